//! A router goes over to a changed topology while it runs.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hawser_router::live::{Reply, Request};
use hawser_topology::{AsDir, AsTopology, Bfd};

use self::common::net::{Net, PATIENCE, ia, wait_for};
use self::common::{DST_PORT, SRC_PORT};

/// Writes the folder of another version of AS 1.
fn version(folder: &Path, topology: &AsTopology) -> AsDir {
    let dir = AsDir::new(folder);
    std::fs::create_dir_all(folder).unwrap();
    dir.write_topology(topology).unwrap();
    dir.write_master_key(&[1; 16]).unwrap();
    dir
}

/// Has router 1 go over to a topology.
fn reload(net: &Net, topology: &AsTopology) -> Reply {
    let folder = tempfile::tempdir().unwrap();
    version(folder.path(), topology);
    let folder = folder.path().to_owned();
    net.call(1, &Request::Reload { folder })
}

/// The topology of AS 1 with an interface 2 to an AS that is not there.
fn with_another_link(net: &Net) -> AsTopology {
    let mut topology = net.topology(1);
    let router = topology.border_routers.get_mut("br1").unwrap();
    let mut interface = router.interfaces[&1].clone();
    interface.isd_as = ia(3);
    interface.underlay.local = SocketAddr::new(net.ip(110).into(), 50000);
    interface.underlay.remote = SocketAddr::new(net.ip(111).into(), 50000);
    router.interfaces.insert(2, interface);
    topology
}

/// Packets on their way at most: fewer than the sockets of a router or host hold, as on a busy machine their
/// threads may not run for long.
const MAX_UNDER_WAY: u32 = 64;

/// Waits until a packet may be sent after `sent` others.
fn wait_for_room(sent: u32, received: &AtomicU32) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let arrived = received.load(Ordering::SeqCst);
        if sent - arrived < MAX_UNDER_WAY {
            return;
        }
        assert!(Instant::now() < deadline, "{arrived} of {sent} arrived");
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Packets that cross the router all the time all arrive, in their order, while a link is added and
/// removed; and BFD of the link that stays sees nothing.
#[test]
fn a_link_is_added_and_removed_without_loss_on_others() {
    const PACKETS: u16 = 2000;
    let mut net = Net::with_bfd(Bfd::default());
    net.start(1);
    net.start(2);
    for number in [1, 2] {
        wait_for(&net.dir(number).router_socket(), "1", true);
    }
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let more = with_another_link(&net);
    let received = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let (net, received) = (&net, &received);
        scope.spawn(move || {
            for number in 0..PACKETS {
                wait_for_room(number.into(), received);
                let packet = net.packet(number, DST_PORT, 100);
                one.send_to(&packet, net.router(1)).unwrap();
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        scope.spawn(move || {
            for _ in 0..10 {
                assert_eq!(reload(net, &more), Reply::Done);
                assert!(net.counters(1).interfaces.contains_key(&2));
                assert_eq!(reload(net, &net.topology(1)), Reply::Done);
                assert!(!net.counters(1).interfaces.contains_key(&2));
            }
        });
        let mut buffer = [0; 2048];
        for number in 0..PACKETS {
            let length = two.recv(&mut buffer).unwrap();
            let payload = &buffer[length - 100..];
            assert_eq!(u16::from_be_bytes([payload[0], payload[1]]), number);
            received.fetch_add(1, Ordering::SeqCst);
        }
    });
    let counters = net.counters(1);
    // The counters of what stays go on.
    assert_eq!(counters.interfaces[&1].tx_packets, u64::from(PACKETS));
    assert!(counters.bfd["1"]);
    assert!(counters.drops.is_empty(), "{:?}", counters.drops);
}

/// The packet number `number` of a flow.
fn of_flow(net: &Net, flow: u16, number: u16) -> Vec<u8> {
    let mut packet = net.packet(number, DST_PORT, 100);
    packet[2..4].copy_from_slice(&flow.to_be_bytes());
    packet
}

/// With several threads: packets of many flows all arrive, those of a flow in their order, while a
/// link is added and removed; and each thread receives at the added link.
#[test]
fn several_threads_go_over_together() {
    const FLOWS: u16 = 12;
    const PACKETS: u16 = 200;
    let mut net = Net::with_bfd(Bfd::default());
    net.threads = 3;
    net.start(1);
    net.start(2);
    for number in [1, 2] {
        wait_for(&net.dir(number).router_socket(), "1", true);
    }
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let more = with_another_link(&net);
    let far = std::net::UdpSocket::bind((net.ip(111), 50000)).unwrap();
    let received = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let (net, received) = (&net, &received);
        scope.spawn(move || {
            for number in 0..PACKETS {
                for flow in 0..FLOWS {
                    wait_for_room(u32::from(number * FLOWS + flow), received);
                    let packet = of_flow(net, flow, number);
                    one.send_to(&packet, net.router(1)).unwrap();
                }
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        scope.spawn(move || {
            for _ in 0..10 {
                assert_eq!(reload(net, &more), Reply::Done);
                // The threads process different flows. The interface's counters began anew.
                for flow in 0..FLOWS {
                    let packet = of_flow(net, flow, 0);
                    far.send_to(&packet, (net.ip(110), 50000)).unwrap();
                }
                let counters = net.counters_after(1, 2, FLOWS.into());
                assert_eq!(counters.interfaces[&2].rx_packets, u64::from(FLOWS));
                assert_eq!(reload(net, &net.topology(1)), Reply::Done);
                assert!(!net.counters(1).interfaces.contains_key(&2));
            }
        });
        let mut next = [0; FLOWS as usize];
        let mut buffer = [0; 2048];
        for _ in 0..FLOWS * PACKETS {
            let length = two.recv(&mut buffer).unwrap();
            let flow = u16::from_be_bytes([buffer[2], buffer[3]]);
            let payload = &buffer[length - 100..];
            let due = &mut next[usize::from(flow)];
            let number = u16::from_be_bytes([payload[0], payload[1]]);
            assert_eq!(number, *due, "flow {flow}");
            *due += 1;
            received.fetch_add(1, Ordering::SeqCst);
        }
    });
    let counters = net.counters(1);
    let all = u64::from(FLOWS * PACKETS);
    assert_eq!(counters.interfaces[&1].tx_packets, all);
    assert!(counters.bfd["1"]);
}

#[test]
fn an_added_link_receives() {
    let net = Net::up();
    assert_eq!(reload(&net, &with_another_link(&net)), Reply::Done);
    let far = std::net::UdpSocket::bind((net.ip(111), 50000)).unwrap();
    far.send_to(&[0; 40], (net.ip(110), 50000)).unwrap();
    assert_eq!(net.counters_after(1, 2, 1).interfaces[&2].rx_packets, 1);
}

#[test]
fn what_takes_a_restart_changes_nothing() {
    let net = Net::up();
    let before = net.counters(1);
    let mut moved = net.topology(1);
    let router = moved.border_routers.get_mut("br1").unwrap();
    router.internal_addr.set_port(30099);
    let mut taken = with_another_link(&net);
    let router = taken.border_routers.get_mut("br1").unwrap();
    router.interfaces.get_mut(&2).unwrap().underlay.local = net.link_end(2);
    for (topology, reason) in [
        (moved, "internal address"),
        (taken, "cannot open interface 2"),
    ] {
        let Reply::Error { message } = reload(&net, &topology) else {
            panic!()
        };
        assert!(message.contains(reason), "{message}");
        assert_eq!(net.counters(1), before);
    }
}
