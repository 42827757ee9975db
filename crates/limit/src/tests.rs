//! Tests with the kernel, on a pair of devices between two network namespaces of their own.

mod interrupted;
mod members;
mod others;
mod traffic;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::*;

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// The addresses of the two ends.
const HERE: [&str; 2] = ["10.0.0.1", "fd00::1"];
const THERE: [&str; 2] = ["10.0.0.2", "fd00::2"];
const MAC: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

/// A namespace with the device `a`, and one at its far end with `b`.
struct Pair {
    here: NetNs,
    there: NetNs,
}

impl Pair {
    /// `None`, with a message, if this user may not make namespaces.
    fn new() -> Option<Self> {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return None;
        }
        let [here, there] = [(); 2].map(|()| NetNs::create().unwrap());
        let holder = there.run(sleeper).unwrap();
        here.run(|| {
            let pid = holder.0.id();
            run(&format!(
                "ip link add name a address {} type veth peer name b address {} netns {pid}",
                MAC[0], MAC[1]
            ));
        })
        .unwrap();
        let ends = [
            (&here, "a", HERE, THERE, MAC[1]),
            (&there, "b", THERE, HERE, MAC[0]),
        ];
        for (namespace, device, addresses, far, mac) in ends {
            let up = || {
                Netlink::open().unwrap().set_up(LOOPBACK, true).unwrap();
                run(&format!("ip addr add {}/24 dev {device}", addresses[0]));
                run(&format!(
                    "ip addr add {}/64 dev {device} nodad",
                    addresses[1]
                ));
                run(&format!("ip link set dev {device} up"));
                // Nobody asks for neighbours, which would be counted.
                for address in far {
                    run(&format!("ip neigh add {address} lladdr {mac} dev {device}"));
                }
            };
            namespace.run(up).unwrap();
        }
        for (namespace, device, ..) in ends {
            namespace.run(|| wait_for_carrier(device)).unwrap();
        }
        Some(Self { here, there })
    }
}

/// Waits until the kernel shows a device as up: it does so some time after both ends are, and tests compare
/// what it shows.
fn wait_for_carrier(device: &str) {
    let start = Instant::now();
    loop {
        let shown = run(&format!("ip -o link show dev {device}"));
        if shown.contains("state UP") && !shown.contains("NO-CARRIER") {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{shown}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that holds a namespace, so that a device can be put there.
struct Holder(std::process::Child);

fn sleeper() -> Holder {
    Holder(Command::new("sleep").arg("600").spawn().unwrap())
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command and returns what it prints.
fn run(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn remote(address: &str, port: Option<u16>) -> Remote {
    Remote {
        address: address.parse().unwrap(),
        port,
    }
}

fn on(device: &str, limits: DeviceLimits) -> BTreeMap<String, DeviceLimits> {
    BTreeMap::from([(device.to_owned(), limits)])
}

fn links<const N: usize>(links: [(Remote, Limits); N]) -> DeviceLimits {
    DeviceLimits {
        links: BTreeMap::from(links),
        default: Limits::default(),
    }
}

fn both(rate: u64) -> Limits {
    Limits::both(Limit::new(rate))
}

/// Limits of `count` links.
fn many(count: u32, rate: u64) -> DeviceLimits {
    let remote = |i: u32| Remote {
        address: IpAddr::from((0x0a01_0000 + i).to_be_bytes()),
        port: i.is_multiple_of(3).then_some(50_000),
    };
    DeviceLimits {
        links: (0..count).map(|i| (remote(i), both(rate))).collect(),
        default: Limits::default(),
    }
}

/// All that `tc` and `ip` say.
fn printed() -> String {
    // Not how many packets, as those that the kernel sends by itself, had no class.
    run(
        "tc qdisc show | sed 's/direct_packets_stat [0-9]*//'; tc filter show dev a; tc filter show dev a ingress; \
         ip -o link show | sed 's/@[^ ]*//'",
    )
}

#[test]
fn limits_are_set_changed_and_removed() {
    let Some(pair) = Pair::new() else { return };
    pair.here
        .run(|| {
            let before = printed();
            let mut limiter = Limiter::open().unwrap();
            let four = remote(THERE[0], None);
            let six = remote(THERE[1], Some(50_000));
            let mut wanted = links([(four, both(10_000_000)), (six, both(20_000_000))]);
            let summary = limiter
                .apply(&on("a", wanted.clone()))
                .unwrap()
                .all()
                .unwrap();
            assert_eq!((summary.added, summary.changed, summary.removed), (4, 0, 0));
            let read = |limiter: &mut Limiter| {
                let all = limiter.read("a").unwrap().into_iter();
                all.map(|one| (one.owner, one.direction, one.rate))
                    .collect::<Vec<_>>()
            };
            let (egress, ingress) = (Direction::Egress, Direction::Ingress);
            assert_eq!(
                read(&mut limiter),
                [
                    (Owner::Link(four), egress, 10_000_000),
                    (Owner::Link(four), ingress, 10_000_000),
                    (Owner::Link(six), egress, 20_000_000),
                    (Owner::Link(six), ingress, 20_000_000),
                ]
            );
            // Another program finds everything as it is wanted.
            for limiter in [&mut limiter, &mut Limiter::open().unwrap()] {
                assert_eq!(
                    limiter
                        .apply(&on("a", wanted.clone()))
                        .unwrap()
                        .all()
                        .unwrap(),
                    Summary::default()
                );
            }
            // One limit of four is another; its queue has the least length, as before.
            wanted.links.get_mut(&six).unwrap().egress = Some(Limit::new(5_000_000));
            let summary = limiter
                .apply(&on("a", wanted.clone()))
                .unwrap()
                .all()
                .unwrap();
            assert_eq!((summary.changed, summary.requests), (1, 1));
            wanted.default = both(1_000_000);
            wanted.links.remove(&four);
            let summary = limiter
                .apply(&on("a", wanted.clone()))
                .unwrap()
                .all()
                .unwrap();
            assert_eq!((summary.added, summary.changed, summary.removed), (2, 0, 2));
            assert_eq!(
                read(&mut limiter),
                [
                    (Owner::Link(six), egress, 5_000_000),
                    (Owner::Link(six), ingress, 20_000_000),
                    (Owner::Default, egress, 1_000_000),
                    (Owner::Default, ingress, 1_000_000),
                ]
            );
            assert_eq!(limiter.devices().unwrap(), ["a"]);
            let summary = limiter
                .apply(&on("a", DeviceLimits::default()))
                .unwrap()
                .all()
                .unwrap();
            assert_eq!(summary.removed, 4);
            assert_eq!(limiter.devices().unwrap(), [""; 0]);
            assert_eq!(printed(), before);
        })
        .unwrap();
}

#[test]
fn the_kernel_has_what_is_planned() {
    let Some(pair) = Pair::new() else { return };
    let remembered = || {
        let mut limiter = Limiter::open().unwrap();
        let default = DeviceLimits {
            default: both(3_000_000),
            ..many(5, 2_000_000)
        };
        for wanted in [
            many(3, 1_000_000),
            many(700, 1_000_000),
            many(30, 2_000_000),
            default,
            many(1200, 1_000_000),
            DeviceLimits::default(),
        ] {
            limiter.apply(&on("a", wanted)).unwrap().all().unwrap();
            limiter.agrees("a");
        }
    };
    pair.here.run(remembered).unwrap();
}

#[test]
fn the_filters_of_an_ifb_share_an_action_that_goes_with_the_last_of_them() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let actions = || run("tc actions list action mirred");
        let mut limiter = Limiter::open().unwrap();
        for count in [20, 3, 30] {
            limiter
                .apply(&on("a", many(count, 1_000_000)))
                .unwrap()
                .all()
                .unwrap();
            let actions = actions();
            assert!(actions.contains("total acts 1\n"), "{actions}");
        }
        limiter
            .apply(&on("a", DeviceLimits::default()))
            .unwrap()
            .all()
            .unwrap();
        // The kernel frees filters some time after they are removed.
        let start = Instant::now();
        while actions().contains("mirred") {
            assert!(start.elapsed() < PATIENCE, "{}", actions());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn the_commands_of_a_plan_have_its_effect() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let mut limiter = Limiter::open().unwrap();
        let steps = [
            links([
                (remote(THERE[0], None), both(500_000)),
                (remote(THERE[0], Some(50_000)), both(10_000_000_000)),
                (remote(THERE[1], None), both(10_000_000)),
                (remote("fd00::3", Some(1)), both(0)),
            ]),
            DeviceLimits {
                default: both(1_000_000),
                ..links([
                    (remote(THERE[0], Some(50_000)), both(20_000_000)),
                    (remote(THERE[1], None), both(10_000_000)),
                ])
            },
            DeviceLimits::default(),
        ];
        for wanted in steps {
            let wanted = on("a", wanted);
            let plans = limiter.plan(&wanted).unwrap().all().unwrap();
            let [plan] = &plans[..] else {
                panic!("{plans:?}")
            };
            assert!(!plan.commands.is_empty());
            run(&format!("set -e; {}", plan.commands.join("\n")));
            let again = limiter.plan(&wanted).unwrap().all().unwrap();
            assert_eq!(again[0].commands, [""; 0]);
        }
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn unknown_devices_and_limits_out_of_bounds_change_nothing() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let before = printed();
        let mut limiter = Limiter::open().unwrap();
        let wanted = links([(remote(THERE[0], None), both(1_000_000))]);
        for name in [
            "",
            "hawser-no-such",
            "a-name-longer-than-any-device-has",
            "x/y",
        ] {
            let error = limiter
                .apply(&on(name, wanted.clone()))
                .unwrap()
                .all()
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("no device {name} in this network namespace")
            );
            assert!(limiter.read(name).is_err());
        }
        let wrong = links([
            (remote(THERE[0], None), both(1_000_000)),
            (remote(THERE[1], None), both(1)),
        ]);
        let error = limiter.apply(&on("a", wrong)).unwrap().all().unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot limit fd00::2 on a to 1 bit/s: choose 8000 to 100000000000, or 0 to let nothing \
             pass"
        );
        assert_eq!(printed(), before);
    };
    pair.here.run(inside).unwrap();
}

#[test]
fn without_the_right_reading_works_and_setting_does_not() {
    let Some(pair) = Pair::new() else { return };
    let inside = || {
        let wanted = on("a", links([(remote(THERE[0], None), both(1_000_000))]));
        Limiter::open()
            .unwrap()
            .apply(&wanted)
            .unwrap()
            .all()
            .unwrap();
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, none).unwrap();
        let mut limiter = Limiter::open().unwrap();
        assert_eq!(limiter.read("a").unwrap().len(), 2);
        assert_eq!(
            limiter.apply(&wanted).unwrap().all().unwrap(),
            Summary::default()
        );
        for limits in [DeviceLimits::default(), many(1, 1_000_000)] {
            let error = limiter.apply(&on("a", limits)).unwrap().all().unwrap_err();
            assert_eq!(
                error.to_string(),
                "not allowed to limit a: needs CAP_NET_ADMIN in this network namespace"
            );
        }
    };
    pair.here.run(inside).unwrap();
}

impl Limiter {
    /// Fails unless the kernel's state of a device is the one that is remembered.
    fn agrees(&mut self, device: &str) {
        let known = self.known_state(device);
        let found = Self::open().unwrap().found_state(device);
        assert_eq!(without_numbers(known), without_numbers(found));
    }
}

/// Without the numbers that the kernel chooses.
fn without_numbers(mut state: crate::state::KernelState) -> crate::state::KernelState {
    state.ingress_filters.root_tables.clear();
    for shaper in state.shapers.values_mut() {
        shaper.filters.root_tables.clear();
    }
    state
}
