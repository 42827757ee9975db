//! What limits of many links cost: setting them all, changing one, adding one, reading them all; and
//! again by a program that has to read the kernel's state first. Run as root:
//! `cargo bench -p hawser-limit --bench links [-- COUNT...]`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_limit::{DeviceLimits, Limit, Limiter, Limits, Remote};

const RUNS: usize = 5;
const DEVICE: &str = "eth0";

fn remote(i: u32, port: Option<u16>) -> Remote {
    Remote {
        address: IpAddr::from((0x0a00_0001 + i).to_be_bytes()),
        port,
    }
}

fn wanted(count: u32, port: Option<u16>) -> BTreeMap<String, DeviceLimits> {
    let limits = Limits::both(Limit::new(10_000_000));
    let limits = DeviceLimits {
        links: (0..count).map(|i| (remote(i, port), limits)).collect(),
        default: Limits::default(),
    };
    BTreeMap::from([(DEVICE.to_owned(), limits)])
}

fn timed<T>(job: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    job();
    start.elapsed()
}

fn ip(args: &str) {
    let status = Command::new("ip").args(args.split(' ')).status();
    assert!(status.is_ok_and(|status| status.success()), "ip {args}");
}

/// The times of one run.
fn measure(count: u32, port: Option<u16>) -> [Duration; 6] {
    let mut all = wanted(count, port);
    let mut limiter = Limiter::open().expect("a netlink socket");
    let set = timed(|| limiter.apply(&all).expect("limits").all().expect("limits"));
    let limits = all.get_mut(DEVICE).expect("the device");
    let changed = Limits::both(Limit::new(20_000_000));
    limits.links.insert(remote(count / 2, port), changed);
    let change = timed(|| limiter.apply(&all).expect("limits").all().expect("limits"));
    let limits = all.get_mut(DEVICE).expect("the device");
    limits.links.insert(remote(count, port), changed);
    let add = timed(|| limiter.apply(&all).expect("limits").all().expect("limits"));
    let read = timed(|| limiter.read(DEVICE).expect("limits"));
    let mut other = Limiter::open().expect("a netlink socket");
    let again = timed(|| other.apply(&all).expect("limits").all().expect("limits"));
    let nothing = BTreeMap::from([(DEVICE.to_owned(), DeviceLimits::default())]);
    let reset = timed(|| {
        limiter
            .apply(&nothing)
            .expect("no limits")
            .all()
            .expect("no limits")
    });
    [set, change, add, read, again, reset]
}

fn main() {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    let counts: Vec<u32> = std::env::args()
        .filter_map(|one| one.parse().ok())
        .collect();
    let counts = match counts.is_empty() {
        true => vec![10, 100, 1000, 4000],
        false => counts,
    };
    println!("milliseconds, both directions: median of {RUNS} runs (lowest to highest)");
    println!("links  set  change one  add one  read  apply again by another  reset");
    let namespace = NetNs::create().expect("a namespace");
    let inside = || {
        ip("link add name eth0 type veth peer name eth1");
        for device in ["eth0", "eth1"] {
            ip(&format!("link set dev {device} up"));
        }
        let ports = [None, Some(50_000)];
        for (port, &count) in ports
            .iter()
            .flat_map(|port| counts.iter().map(move |n| (port, n)))
        {
            let runs: Vec<_> = (0..RUNS).map(|_| measure(count, *port)).collect();
            print!("{count}{}", if port.is_some() { " with ports" } else { "" });
            for column in 0..6 {
                let mut times: Vec<f64> = runs
                    .iter()
                    .map(|run| run[column].as_secs_f64() * 1e3)
                    .collect();
                times.sort_by(f64::total_cmp);
                print!(
                    "  {:.1} ({:.1} to {:.1})",
                    times[RUNS / 2],
                    times[0],
                    times[RUNS - 1]
                );
            }
            println!();
        }
    };
    namespace.run(inside).expect("the namespace");
}
