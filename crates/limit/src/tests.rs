//! Tests with the kernel, on the loopback device of a separate network namespace per test.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::*;

const INSIDE: &str = "HAWSER_LIMIT_TEST_INSIDE";

/// Runs `body`, which is the test `name`, as root of a new network namespace in a new process.
/// Skips the test with a message if this user may not create one.
fn in_own_network(name: &str, body: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let isolated = ["--user", "--map-root-user", "--net"];
    let isolated = match is_privileged() {
        true => &isolated[2..],
        false => &isolated[..],
    };
    let allowed = Command::new("unshare").args(isolated).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        println!("{name}: skipped, this user may not make a network namespace");
        return;
    }
    let output = Command::new("unshare")
        .args(isolated)
        .arg(std::env::current_exe().unwrap())
        .args([&format!("tests::{name}"), "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: see above");
    assert!(printed.contains("1 passed"), "{name}: did not run");
}

/// Switches the loopback device on, with frames of 1514 bytes.
fn loopback_up() {
    let mut netlink = Netlink::open().unwrap();
    netlink.set_mtu(LOOPBACK, 1500).unwrap();
    netlink.set_up(LOOPBACK, true).unwrap();
}

fn limit(rate: u64, milliseconds: u64) -> LinkLimit {
    LinkLimit {
        rate,
        queue: Duration::from_millis(milliseconds),
    }
}

fn set(rate: u64, milliseconds: u64) -> Change {
    apply("lo", Some(&limit(rate, milliseconds))).unwrap()
}

#[test]
fn sets_changes_and_removes() {
    in_own_network("sets_changes_and_removes", || {
        loopback_up();
        assert_eq!(apply("lo", None).unwrap(), Change::Unchanged);
        assert_eq!(read("lo").unwrap(), None);

        let mut change = Change::Created;
        for wanted in [
            limit(10_000_000, 50),
            limit(300_000_000, 50),
            limit(300_000_000, 20),
            limit(LinkLimit::MAX_RATE, 50),
            limit(LinkLimit::MIN_RATE, 10_000),
        ] {
            assert_eq!(apply("lo", Some(&wanted)).unwrap(), change, "{wanted:?}");
            assert_eq!(apply("lo", Some(&wanted)).unwrap(), Change::Unchanged);
            assert_eq!(read("lo").unwrap(), Some((wanted, Counters::default())));
            change = Change::Changed;
        }

        assert_eq!(apply("lo", None).unwrap(), Change::Removed);
        assert_eq!(read("lo").unwrap(), None);
        assert_eq!(apply("lo", None).unwrap(), Change::Unchanged);
    });
}

#[test]
fn tc_sees_the_same() {
    in_own_network("tc_sees_the_same", || {
        if Command::new("tc").arg("-V").output().is_err() {
            println!("tc_sees_the_same: skipped, no tc to ask");
            return;
        }
        let tc = |args: &str| {
            let output = Command::new("tc").args(args.split(' ')).output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        loopback_up();
        for (rate, in_tc, queue) in [
            (10_000_000, "10Mbit", 62_500),
            (300_000_000, "300Mbit", 1_875_000),
            (40_000_000_000, "40Gbit", 250_000_000),
        ] {
            set(rate, 50);
            let class = tc("-d class show dev lo");
            assert!(
                class.contains("class htb 4857:1 root leaf 4858:"),
                "{class}"
            );
            assert!(
                class.contains(&format!(" rate {in_tc} ceil {in_tc} ")),
                "{class}"
            );
            assert!(class.contains(" quantum 65536 "), "{class}");
            let all = tc("qdisc show dev lo");
            assert!(all.contains("qdisc htb 4857: root refcnt"), "{all}");
            assert!(all.contains(" default 0x1 "), "{all}");
            assert!(all.contains("qdisc bfifo 4858: parent 4857:1"), "{all}");
            // In plain text tc rounds the length of the queue.
            let bytes = tc("-j qdisc show dev lo");
            assert!(bytes.contains(&format!("\"limit\":{queue}")), "{bytes}");
        }
    });
}

/// Two sockets on the loopback device, the second the receiver.
fn sockets() -> (UdpSocket, UdpSocket) {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (sender, receiver)
}

#[test]
fn a_new_rate_drops_no_queued_packets() {
    in_own_network("a_new_rate_drops_no_queued_packets", || {
        loopback_up();
        let (sender, receiver) = sockets();
        // At this rate each packet takes a second.
        set(LinkLimit::MIN_RATE, 100_000);
        const SENT: u64 = 60;
        for _ in 0..SENT {
            sender.send(&[0; 1000]).unwrap();
        }
        let (_, waiting) = read("lo").unwrap().unwrap();
        assert!(waiting.backlog > 0 && waiting.overlimits > 0, "{waiting:?}");

        assert_eq!(set(1_000_000_000, 1_000), Change::Changed);
        for _ in 0..SENT {
            receiver.recv(&mut [0; 1000]).unwrap();
        }
        let (now, counters) = read("lo").unwrap().unwrap();
        assert_eq!(now, limit(1_000_000_000, 1_000));
        assert_eq!(counters.drops, 0);
        assert_eq!(counters.backlog, 0);
        assert_eq!(counters.packets, SENT);
        // The limit counts Ethernet, IP and UDP headers.
        assert_eq!(counters.bytes, SENT * 1042);
    });
}

#[test]
fn packets_beyond_the_queue_length_are_dropped_and_counted() {
    in_own_network(
        "packets_beyond_the_queue_length_are_dropped_and_counted",
        || {
            loopback_up();
            let (sender, receiver) = sockets();
            // The burst and the queue have two frames each.
            set(LinkLimit::MIN_RATE, 0);
            const SENT: u64 = 20;
            for _ in 0..SENT {
                // Some of these may fail with the error of a full queue.
                let _ = sender.send(&[0; 1000]);
            }
            set(1_000_000_000, 1_000);
            let (_, counters) = read("lo").unwrap().unwrap();
            assert!(counters.drops > 0, "{counters:?}");
            let passed = SENT - u64::from(counters.drops);
            for _ in 0..passed {
                receiver.recv(&mut [0; 1000]).unwrap();
            }
            let (_, counters) = read("lo").unwrap().unwrap();
            assert_eq!(counters.packets, passed);
            assert_eq!(counters.bytes, passed * 1042);
        },
    );
}

/// Sets a queueing discipline on the loopback device as another program would.
fn foreign_root() {
    let mut message = TcMessage::with_index(1);
    message.header.parent = TcHandle::ROOT;
    message.header.handle = TcHandle {
        major: 0x8001,
        minor: 0,
    };
    message
        .attributes
        .push(TcAttribute::Kind("pfifo".to_owned()));
    Netlink::open()
        .unwrap()
        .request(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .unwrap();
}

#[test]
fn foreign_disciplines_are_left_alone() {
    in_own_network("foreign_disciplines_are_left_alone", || {
        loopback_up();
        foreign_root();
        let error = apply("lo", Some(&limit(10_000_000, 50))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "lo has a queueing discipline that hawser did not set (pfifo 8001:): \
             remove it first (tc qdisc del dev lo root)"
        );
        assert_eq!(apply("lo", None).unwrap(), Change::Unchanged);
        assert_eq!(read("lo").unwrap(), None);
        // The foreign discipline is still there.
        assert!(apply("lo", Some(&limit(10_000_000, 50))).is_err());
    });
}

#[test]
fn completes_or_removes_interrupted_limits() {
    in_own_network("completes_or_removes_interrupted_limits", || {
        loopback_up();
        let interrupted = || Link::open("lo").unwrap().add_root().unwrap();
        interrupted();
        let error = read("lo").unwrap_err();
        assert!(matches!(error, LimitError::Incomplete { .. }), "{error}");
        assert_eq!(set(10_000_000, 50), Change::Changed);
        let (now, _) = read("lo").unwrap().unwrap();
        assert_eq!(now, limit(10_000_000, 50));
        assert_eq!(apply("lo", None).unwrap(), Change::Removed);

        interrupted();
        assert_eq!(apply("lo", None).unwrap(), Change::Removed);
        assert_eq!(read("lo").unwrap(), None);
    });
}

#[test]
fn limits_out_of_bounds_change_nothing() {
    in_own_network("limits_out_of_bounds_change_nothing", || {
        loopback_up();
        for wanted in [limit(0, 50), limit(LinkLimit::MAX_RATE, 1_000)] {
            apply("lo", Some(&wanted)).unwrap_err();
            assert_eq!(read("lo").unwrap(), None);
        }
        set(10_000_000, 50);
        apply("lo", Some(&limit(0, 50))).unwrap_err();
        assert_eq!(read("lo").unwrap().unwrap().0, limit(10_000_000, 50));
    });
}

#[test]
fn a_burst_holds_whole_frames_of_the_link() {
    in_own_network("a_burst_holds_whole_frames_of_the_link", || {
        let frames = || Link::open("lo").unwrap().mtu + 14;
        let class = || Link::open("lo").unwrap().class().unwrap().unwrap().0;
        // The loopback device initially has an MTU of 64 KiB.
        let large = frames();
        assert_eq!(set(8_000_000, 0), Change::Created);
        let burst = class().burst;
        loopback_up();
        assert!(frames() < large);
        assert_eq!(set(8_000_000, 0), Change::Changed);
        assert!(class().burst < burst);
    });
}

#[test]
fn unknown_links_are_refused() {
    for name in [
        "",
        "hawser-no-such",
        "a-name-longer-than-any-link-has",
        "a/b",
    ] {
        for result in [
            apply(name, Some(&limit(10_000_000, 50))).map(drop),
            apply(name, None).map(drop),
            read(name).map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(
                matches!(error, LimitError::NoLink { .. }),
                "{name}: {error}"
            );
        }
    }
}

#[test]
fn acts_on_the_calling_threads_namespace() {
    in_own_network("acts_on_the_calling_threads_namespace", || {
        let elsewhere = NetNs::create().unwrap().run(|| {
            assert_eq!(set(10_000_000, 50), Change::Created);
            read("lo").unwrap().is_some()
        });
        assert!(elsewhere.unwrap());
        assert_eq!(read("lo").unwrap(), None);
    });
}

#[test]
fn without_the_right_reading_works_and_setting_does_not() {
    in_own_network(
        "without_the_right_reading_works_and_setting_does_not",
        || {
            set(10_000_000, 50);
            let none = CapabilitySets {
                effective: CapabilitySet::empty(),
                permitted: CapabilitySet::empty(),
                inheritable: CapabilitySet::empty(),
            };
            set_capabilities(None, none).unwrap();
            assert_eq!(read("lo").unwrap().unwrap().0.rate, 10_000_000);
            assert_eq!(set(10_000_000, 50), Change::Unchanged);
            for wanted in [Some(&limit(20_000_000, 50)), None] {
                let error = apply("lo", wanted).unwrap_err();
                assert_eq!(
                    error.to_string(),
                    "not allowed to limit lo: needs CAP_NET_ADMIN in this network namespace"
                );
            }
        },
    );
}
