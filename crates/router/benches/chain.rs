//! Measures SCION/UDP packets from host to host through two border routers, and through two bare UDP
//! forwarders on the same links in the same run.
//!
//! `cargo bench -p hawser-router --bench chain [-- OPTIONS]`
//!
//! Each side is a network namespace, as in a lab: the host and its router share one, and a veth pair
//! is the link. Packets have 1472 bytes, and the host sends them in batches (GSO). Every router is a
//! process of its own. Links either carry a batch whole, or the kernel cuts it into single packets
//! before each device ("per packet").
//!
//! The host keeps a fixed number of packets in flight, so that it does not overload the routers: only
//! packets that arrive are counted. CPU time is that of each process, which includes the work that
//! the kernel does for its packets at the next hop.
//!
//! Options: `--seconds S` of each measurement (1), `--rounds N` (5; medians are printed), `--flows N`
//! (1), `--size BYTES` of a packet (1472), `--only NAME` of a contestant, `--json FILE`. `HAWSER_OLD`
//! names a `hawser` program whose routers are measured beside those of this build. It needs root,
//! and `ip` of iproute2.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

#[path = "../tests/common/mod.rs"]
mod common;

#[path = "chain/bare.rs"]
mod bare;
#[path = "chain/hosts.rs"]
mod hosts;
#[path = "chain/links.rs"]
mod links;
#[path = "chain/process.rs"]
mod process;
#[path = "chain/report.rs"]
mod report;

use std::time::Duration;

use hawser_kernel::namespace::is_privileged;
use hawser_router::{Options, Router};
use hawser_topology::AsDir;

use self::common::net::Net;
use self::common::{DST_PORT, SRC_PORT};
use self::links::Links;
use self::process::{Process, machine_time};
use self::report::{Outcome, Report};

/// Time in which queues fill before a measurement starts.
const WARM_UP: Duration = Duration::from_millis(200);

/// What forwards the packets.
#[derive(Clone, Copy, PartialEq)]
enum Contestant<'a> {
    /// The routers of this build.
    Routers,
    /// The routers of another `hawser` program.
    Program(&'a str),
    /// Forwarders that look at nothing.
    Bare,
}

impl Contestant<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Routers => "hawser",
            Self::Program(_) => "old",
            Self::Bare => "bare",
        }
    }
}

/// What to measure.
struct Arguments {
    time: Duration,
    rounds: usize,
    flows: u32,
    size: usize,
    only: Option<String>,
    json: Option<String>,
}

impl Arguments {
    fn read() -> Self {
        let words: Vec<String> = std::env::args().collect();
        let value = |name: &str| {
            let at = words.iter().position(|word| word == name)?;
            Some(words.get(at + 1).expect("an option has a value").clone())
        };
        let number = |name, default| {
            value(name).map_or(default, |text| text.parse::<f64>().expect("a number"))
        };
        Self {
            time: Duration::from_secs_f64(number("--seconds", 1.0)),
            rounds: number("--rounds", 5.0) as usize,
            flows: number("--flows", 1.0) as u32,
            size: number("--size", 1472.0) as usize,
            only: value("--only"),
            json: value("--json"),
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["router", dir] => return run_router(dir),
        ["bare", from, by, to] => return bare::forward([from, by, to].map(|a| a.parse().unwrap())),
        _ => {}
    }
    if !is_privileged() || !links::has_ip() {
        println!("skipped: needs root, and `ip` of iproute2");
        return;
    }
    let options = Arguments::read();
    let old = std::env::var("HAWSER_OLD").ok();
    let mut contestants = vec![Contestant::Routers, Contestant::Bare];
    contestants.extend(old.as_deref().map(Contestant::Program));
    if let Some(only) = &options.only {
        contestants.retain(|contestant| contestant.name() == only);
    }
    let mut report = Report::default();
    for whole in [true, false] {
        for _ in 0..options.rounds {
            for contestant in &contestants {
                let outcome = measure(*contestant, whole, &options);
                report.add(whole, contestant.name(), outcome);
            }
        }
    }
    report.print();
    if let Some(file) = &options.json {
        report.write(file);
    }
}

/// Runs the border router of the AS in `dir` until it is killed.
fn run_router(dir: &str) {
    let router = Router::open(&AsDir::new(dir), None, &Options::default()).unwrap();
    router.run().unwrap();
}

/// Sends for a while through two routers, or what takes their place.
fn measure(contestant: Contestant<'_>, whole: bool, options: &Arguments) -> Outcome {
    let net = Net::between([10, 200, 0]);
    let links = Links::new(&net, whole);
    let forwarders = [1, 2].map(|number| {
        let forwarder = match contestant {
            Contestant::Routers => Process::of_this_program("router").arg(net.dir(number).path()),
            Contestant::Program(path) => Process::new(path)
                .arg("router")
                .arg("run")
                .arg(net.dir(number).path()),
            Contestant::Bare => {
                let (from, to) = match number {
                    1 => (net.router(1), net.link_end(2)),
                    _ => (net.link_end(2), (net.ip(20), DST_PORT).into()),
                };
                let by = if number == 1 { net.link_end(1) } else { from };
                [from, by, to]
                    .iter()
                    .fold(Process::of_this_program("bare"), |process, address| {
                        process.arg(address.to_string())
                    })
            }
        };
        forwarder.start(links.namespace(number))
    });
    let packets: Vec<Vec<u8>> = (0..options.flows)
        .map(|flow| {
            let empty = net.packet(0, DST_PORT, 2).len() - 2;
            let mut packet = net.packet(0, DST_PORT, options.size - empty);
            packet[1..4].copy_from_slice(&(flow + 1).to_be_bytes()[1..]);
            packet
        })
        .collect();
    let [from, to] = [(1, SRC_PORT), (2, DST_PORT)].map(|(number, port)| {
        let open = || net.host(number, port);
        links.namespace(number).run(open).unwrap()
    });
    hosts::exchange(from, net.router(1), to, packets, |progress| {
        progress.wait_for_first();
        std::thread::sleep(WARM_UP);
        let before = Sample::take(&forwarders, progress);
        std::thread::sleep(options.time);
        Sample::take(&forwarders, progress).since(&before, options.size)
    })
}

/// All counts at one moment.
struct Sample {
    at: std::time::Instant,
    packets: u64,
    lost: u64,
    forwarders: [f64; 2],
    hosts: [f64; 2],
    machine: f64,
}

impl Sample {
    fn take(forwarders: &[Process; 2], progress: &hosts::Progress) -> Self {
        Self {
            at: std::time::Instant::now(),
            packets: progress.arrived(),
            lost: progress.lost(),
            forwarders: [0, 1].map(|at| forwarders[at].cpu_time()),
            hosts: progress.cpu_times(),
            machine: machine_time(),
        }
    }

    fn since(&self, before: &Self, size: usize) -> Outcome {
        let seconds = (self.at - before.at).as_secs_f64();
        let packets = (self.packets - before.packets) as f64;
        let gigabytes = packets * size as f64 / 1e9;
        let each = |now: f64, then: f64| (now - then) / gigabytes;
        Outcome {
            gbit_per_second: gigabytes * 8.0 / seconds,
            packets_per_second: packets / seconds,
            lost_packets: (self.lost - before.lost) as f64,
            routers: [0, 1].map(|at| each(self.forwarders[at], before.forwarders[at])),
            hosts: [0, 1].map(|at| each(self.hosts[at], before.hosts[at])),
            machine: each(self.machine, before.machine),
        }
    }
}
