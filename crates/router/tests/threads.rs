//! Two routers of several threads each, over loopback addresses.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::ops::Range;
use std::time::Instant;

use hawser_router::live::{Reply, Request};
use hawser_topology::{Bfd, LinkState, Shape};

use self::common::net::{Net, PLAIN, SHAPE, burst, wait_for};
use self::common::{DST_PORT, SRC_PORT};

/// Flows that the tests send; with three threads, each thread processes some of them.
const FLOWS: u16 = 12;

/// Both routers, with three threads each, on a network with or without BFD.
fn up(mut net: Net) -> Net {
    net.threads = 3;
    net.start(1);
    net.start(2);
    net
}

/// Packets `numbers` of each flow, from the first host to the second.
fn packets(net: &Net, flow: u16, numbers: Range<u16>, size: usize) -> Vec<Vec<u8>> {
    let plain = net.packet(0, DST_PORT, size);
    let with = |number: u16| {
        let mut packet = plain.clone();
        packet[2..4].copy_from_slice(&flow.to_be_bytes());
        let at = packet.len() - size;
        packet[at..at + 2].copy_from_slice(&number.to_be_bytes());
        packet
    };
    numbers.map(with).collect()
}

/// The flow and the number of the next packet.
fn next(socket: &UdpSocket) -> (u16, u16) {
    let mut buffer = [0; 2048];
    socket.recv(&mut buffer).unwrap();
    let payload = usize::from(buffer[5]) * 4 + 8;
    let word = |at: usize| u16::from_be_bytes([buffer[at], buffer[at + 1]]);
    (word(2), word(payload))
}

/// Receives packets `numbers` of every flow, and checks that each flow's are in order.
fn check_order(socket: &UdpSocket, numbers: Range<u16>) {
    let mut expected: BTreeMap<u16, u16> = BTreeMap::new();
    for _ in 0..numbers.len() * usize::from(FLOWS) {
        let (flow, number) = next(socket);
        let due = expected.entry(flow).or_insert(numbers.start);
        assert_eq!(number, *due, "flow {flow}");
        *due += 1;
    }
}

#[test]
fn batches_of_many_flows_arrive_each_in_order() {
    let net = up(Net::new());
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    for start in [0, 5, 10] {
        for flow in 0..FLOWS {
            let batch = packets(&net, flow, start..start + 5, 500);
            burst(&one, net.router(1), &batch);
        }
        // They fit into the buffer of the receiving socket.
        check_order(&two, start..start + 5);
    }
    let counters = net.counters(2);
    assert_eq!(counters.drops, BTreeMap::new());
    assert_eq!(counters.interfaces[&1].rx_packets, 15 * u64::from(FLOWS));
}

#[test]
fn single_packets_of_many_flows_arrive_each_in_order() {
    let net = up(Net::new());
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let flows: Vec<_> = (0..FLOWS)
        .map(|flow| packets(&net, flow, 0..10, 100))
        .collect();
    for number in 0..10 {
        for flow in &flows {
            one.send_to(&flow[number], net.router(1)).unwrap();
        }
    }
    check_order(&two, 0..10);
}

#[test]
fn a_batch_of_mixed_flows_arrives_whole() {
    let net = up(Net::new());
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let mixed: Vec<_> = (0..FLOWS)
        .flat_map(|flow| packets(&net, flow, 0..2, 400))
        .collect();
    burst(&one, net.router(1), &mixed);
    check_order(&two, 0..2);
    assert_eq!(net.counters(1).drops, BTreeMap::new());
}

#[test]
fn the_state_of_a_link_holds_in_all_threads() {
    let net = up(Net::new());
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let lossy = LinkState {
        up: true,
        shape: Shape { loss: 1.0, ..SHAPE },
    };
    net.set_link(1, lossy);
    let send = || {
        for flow in 0..FLOWS {
            burst(&one, net.router(1), &packets(&net, flow, 0..1, 100));
        }
    };
    send();
    let count = u64::from(FLOWS);
    let counters = net.counters_after(1, 0, count);
    assert_eq!(
        counters.drops,
        BTreeMap::from([("emulated-loss".to_owned(), count)])
    );
    net.set_link(1, PLAIN);
    send();
    check_order(&two, 0..1);
}

#[test]
fn all_threads_share_the_limit_of_errors() {
    let net = up(Net::new());
    let one = net.host(1, SRC_PORT);
    net.set_link(
        1,
        LinkState {
            up: false,
            shape: SHAPE,
        },
    );
    let flows: Vec<_> = (0..FLOWS)
        .map(|flow| packets(&net, flow, 0..50, 100))
        .collect();
    let start = Instant::now();
    for flow in flows.iter().chain(&flows).chain(&flows) {
        burst(&one, net.router(1), flow);
    }
    let counters = net.counters_after(1, 0, 150 * u64::from(FLOWS));
    let sent = counters.interfaces[&0].tx_packets;
    let limited = counters.drops["scmp-rate-limited"];
    assert_eq!(sent + limited, 150 * u64::from(FLOWS));
    // A burst of 100, and 1000 a second.
    let allowed = 101.0 + 1000.0 * start.elapsed().as_secs_f64();
    assert!(sent as f64 <= allowed, "{sent} errors, {allowed} allowed");
}

#[test]
fn bfd_brings_the_link_up_in_all_threads() {
    let net = up(Net::with_bfd(Bfd::default()));
    for number in [1, 2] {
        wait_for(&net.dir(number).router_socket(), "1", true);
    }
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    for flow in 0..FLOWS {
        burst(&one, net.router(1), &packets(&net, flow, 0..1, 100));
    }
    check_order(&two, 0..1);
    assert_eq!(net.call(2, &Request::Stop), Reply::Done);
    wait_for(&net.dir(1).router_socket(), "1", false);
    for flow in 0..FLOWS {
        burst(&one, net.router(1), &packets(&net, flow, 0..1, 100));
    }
    let counters = net.counters_after(1, 0, 2 * u64::from(FLOWS));
    assert_eq!(counters.drops["interface-down"], u64::from(FLOWS));
}

#[test]
fn packets_from_other_sources_than_the_neighbour_are_dropped() {
    let net = up(Net::new());
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let stranger = UdpSocket::bind((net.ip(150), 50000)).unwrap();
    let mut packet = net.packet(7, DST_PORT, 100);
    stranger.send_to(&packet, net.link_end(2)).unwrap();
    packet = net.packet(0, DST_PORT, 100);
    packet[2..4].copy_from_slice(&[0, 0]);
    one.send_to(&packet, net.router(1)).unwrap();
    assert_eq!(next(&two), (0, 0));
    // Another thread may receive the stranger's packet, and later.
    let counters = net.counters_when(2, |counters| !counters.drops.is_empty());
    let expected = BTreeMap::from([("unknown-neighbour".to_owned(), 1)]);
    assert_eq!(counters.drops, expected);
}
