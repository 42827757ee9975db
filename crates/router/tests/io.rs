//! Two routers over loopback addresses, in threads.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hawser_kernel::rpc::RpcError;
use hawser_packet::ScmpError;
use hawser_router::live::{self, Reply, Request};
use hawser_router::{Options, Router, RouterError};
use hawser_topology::{LinkState, Shape};
use noq_udp::{RecvMeta, UdpSocketState};

use self::common::net::{Net, PATIENCE, PLAIN, SHAPE, burst, ia};
use self::common::{
    DST_PORT, SRC_PORT, ScmpPacket, TestAddr, echo, reversed_path, scmp_between, udp_between,
};

/// The next packet: the number its payload begins with, and its length.
fn next(socket: &UdpSocket) -> (u16, usize) {
    let mut buffer = [0; 65536];
    let length = socket.recv(&mut buffer).unwrap();
    let payload = usize::from(buffer[5]) * 4 + 8;
    (
        u16::from_be_bytes([buffer[payload], buffer[payload + 1]]),
        length,
    )
}

/// Whether nothing arrives within 100 ms.
fn is_silent(socket: &UdpSocket) -> bool {
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let silent = matches!(socket.recv(&mut [0; 2048]),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    silent
}

#[test]
fn packets_pass_in_both_directions() {
    let net = Net::up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let packet = net.packet(1, DST_PORT, 1000);
    one.send_to(&packet, net.router(1)).unwrap();
    let mut got = vec![0; 2048];
    let (length, from) = two.recv_from(&mut got).unwrap();
    assert_eq!((length, from), (packet.len(), net.router(2)));

    let path = reversed_path(&got[..length]);
    let back = udp_between(net.addr(2), net.addr(1), SRC_PORT, path, 500);
    two.send_to(&back, net.router(2)).unwrap();
    assert_eq!(next(&one).1, back.len());

    let counters = net.counters(1);
    for id in [0, 1] {
        let interface = counters.interfaces[&id];
        assert_eq!((interface.rx_packets, interface.tx_packets), (1, 1));
    }
    assert_eq!(counters.interfaces[&0].rx_bytes, packet.len() as u64);
    assert_eq!(counters.interfaces[&1].rx_bytes, back.len() as u64);
    assert_eq!(counters.drops, BTreeMap::new());
}

#[test]
fn a_burst_crosses_both_routers_in_order() {
    let net = Net::up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let mut packets: Vec<_> = (0..40).map(|i| net.packet(i, DST_PORT, 1300)).collect();
    packets.push(net.packet(40, DST_PORT, 77));
    for _ in 0..20 {
        burst(&one, net.router(1), &packets);
        for (number, packet) in packets.iter().enumerate() {
            assert_eq!(next(&two), (number as u16, packet.len()));
        }
    }
    for router in [1, 2] {
        let counters = net.counters(router);
        let interface = counters.interfaces[&(router as u16 - 1)];
        assert_eq!(interface.rx_packets, 20 * 41);
        assert_eq!(counters.drops, BTreeMap::new());
    }
}

#[test]
fn a_mixed_burst_is_split() {
    let net = Net::up();
    let one = net.host(1, SRC_PORT);
    let (two, other) = (net.host(2, DST_PORT), net.host(2, DST_PORT + 1));
    let packets: Vec<_> = (0..30)
        .map(|number| {
            let port = DST_PORT + u16::from(number % 5 == 4);
            let mut packet = net.packet(number, port, 1000);
            if number % 3 == 0 {
                // The MAC of the first or of the second hop.
                let hop = 36 + 4 + 8 + if number % 2 == 0 { 0 } else { 12 };
                packet[hop + 8] ^= 1;
            }
            packet
        })
        .collect();
    burst(&one, net.router(1), &packets);
    for number in (0..30).filter(|number| number % 3 != 0) {
        let socket = if number % 5 == 4 { &other } else { &two };
        assert_eq!(next(socket).0, number);
    }
    assert!(is_silent(&two) && is_silent(&other));
    for router in [1, 2] {
        let counters = net.counters(router);
        assert_eq!(
            counters.drops,
            BTreeMap::from([("invalid-mac".to_owned(), 5)])
        );
    }
}

#[test]
fn packets_of_changing_size_keep_their_order() {
    let net = Net::up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    // Batches that fit into the buffer of the receiving socket.
    for start in (0..200).step_by(40) {
        for number in start..start + 40 {
            let packet = net.packet(number, DST_PORT, 10 + usize::from(number * 37 % 900));
            one.send_to(&packet, net.router(1)).unwrap();
        }
        for number in start..start + 40 {
            assert_eq!(next(&two).0, number);
        }
    }
}

#[test]
fn delay_holds_packets_and_keeps_their_order() {
    let mut net = Net::new();
    let delay = Duration::from_millis(30);
    let jitter = Duration::from_millis(10);
    let state = LinkState {
        up: true,
        shape: Shape {
            delay,
            jitter,
            ..SHAPE
        },
    };
    net.dir(1)
        .write_links(&BTreeMap::from([(1, state)]))
        .unwrap();
    net.start(1);
    net.start(2);
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let start = Instant::now();
    for number in 0..100 {
        one.send_to(&net.packet(number, DST_PORT, 100), net.router(1))
            .unwrap();
    }
    assert_eq!(next(&two).0, 0);
    // Never earlier; how much later depends on the machine.
    assert!(start.elapsed() >= delay - jitter);
    for number in 1..100 {
        assert_eq!(next(&two).0, number);
    }
    net.set_link(1, PLAIN);
    one.send_to(&net.packet(100, DST_PORT, 100), net.router(1))
        .unwrap();
    assert_eq!(next(&two).0, 100);
}

#[test]
fn a_rate_limits_the_size_of_a_send() {
    let mut net = Net::new();
    net.start(1);
    // Takes the place of the second router, to observe single sends.
    let neighbour = UdpSocket::bind(net.link_end(2)).unwrap();
    let state = UdpSocketState::new((&neighbour).into()).unwrap();
    let one = net.host(1, SRC_PORT);
    let packets: Vec<_> = (0..20).map(|i| net.packet(i, DST_PORT, 1200)).collect();
    let length = packets[0].len();
    // One millisecond at 10 Mbit/s carries less than a packet, at 40 Mbit/s three.
    for (rate, at_once) in [(None, 20), (Some(10_000_000), 1), (Some(40_000_000), 3)] {
        net.set_link(
            1,
            LinkState {
                up: true,
                shape: Shape { rate, ..SHAPE },
            },
        );
        burst(&one, net.router(1), &packets);
        neighbour.set_nonblocking(false).unwrap();
        let mut received = 0;
        while received < 20 {
            let mut buffer = vec![0; 65536];
            let mut meta = [RecvMeta::default()];
            let slices = &mut [IoSliceMut::new(&mut buffer)];
            state.recv((&neighbour).into(), slices, &mut meta).unwrap();
            assert_eq!(meta[0].stride, length);
            let packets = meta[0].len / length;
            assert_eq!(packets, at_once.min(20 - received));
            received += packets;
        }
    }
}

#[test]
fn a_link_with_full_loss_passes_nothing_until_it_changes() {
    let net = Net::up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    net.set_link(
        1,
        LinkState {
            up: true,
            shape: Shape { loss: 1.0, ..SHAPE },
        },
    );
    for number in 0..50 {
        one.send_to(&net.packet(number, DST_PORT, 100), net.router(1))
            .unwrap();
    }
    let counters = net.counters_after(1, 0, 50);
    assert_eq!(
        counters.drops,
        BTreeMap::from([("emulated-loss".to_owned(), 50)])
    );
    assert_eq!(counters.interfaces[&1].tx_packets, 0);
    net.set_link(1, PLAIN);
    one.send_to(&net.packet(99, DST_PORT, 100), net.router(1))
        .unwrap();
    assert_eq!(next(&two).0, 99);
}

#[test]
fn a_link_loses_single_packets_of_a_burst() {
    let net = Net::up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let half = Shape { loss: 0.5, ..SHAPE };
    net.set_link(
        1,
        LinkState {
            up: true,
            shape: half,
        },
    );
    let packets: Vec<_> = (0..40).map(|i| net.packet(i, DST_PORT, 100)).collect();
    burst(&one, net.router(1), &packets);
    let counters = net.counters_after(1, 0, 40);
    let (sent, lost) = (
        counters.interfaces[&1].tx_packets,
        counters.drops["emulated-loss"],
    );
    assert!(0 < sent && sent < 40, "{sent}");
    assert_eq!(sent + lost, 40);
    let numbers: Vec<_> = (0..sent).map(|_| next(&two).0).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
}

#[test]
fn a_link_that_is_down_is_reported_and_comes_back() {
    let net = Net::up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let down = LinkState {
        up: false,
        shape: SHAPE,
    };
    net.set_link(1, down);
    let packet = net.packet(1, DST_PORT, 100);
    one.send_to(&packet, net.router(1)).unwrap();
    let mut buffer = vec![0; 2048];
    let length = one.recv(&mut buffer).unwrap();
    let error = ScmpError::ExternalInterfaceDown {
        isd_as: ia(1),
        interface: 1,
    };
    let message = ScmpPacket::parse(&buffer[..length]);
    assert_eq!(message.error(), (error, &packet[..]));

    // Packets that arrive from the neighbour are dropped too.
    net.set_link(1, PLAIN);
    net.set_link(2, down);
    one.send_to(&net.packet(2, DST_PORT, 100), net.router(1))
        .unwrap();
    let counters = net.counters_after(2, 1, 1);
    assert_eq!(
        counters.drops,
        BTreeMap::from([("interface-down".to_owned(), 1)])
    );
    net.set_link(2, PLAIN);
    one.send_to(&net.packet(3, DST_PORT, 100), net.router(1))
        .unwrap();
    assert_eq!(next(&two).0, 3);
}

#[test]
fn a_flood_of_errors_is_limited() {
    let net = Net::up();
    let one = net.host(1, SRC_PORT);
    net.set_link(
        1,
        LinkState {
            up: false,
            shape: SHAPE,
        },
    );
    let packets: Vec<_> = (0..50).map(|i| net.packet(i, DST_PORT, 100)).collect();
    for _ in 0..40 {
        burst(&one, net.router(1), &packets);
    }
    let counters = net.counters_after(1, 0, 2000);
    let sent = counters.interfaces[&0].tx_packets;
    let limited = counters.drops["scmp-rate-limited"];
    assert_eq!(counters.drops["interface-down"], 2000);
    assert_eq!(sent + limited, 2000);
    assert!(sent >= 100, "a burst passes: {sent}");
    assert!(limited > 0);
}

/// A STUN binding request without attributes.
fn binding_request(transaction: u8) -> Vec<u8> {
    let head = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
    [&head[..], &[transaction; 12]].concat()
}

/// The answer to that request, to a host at `to`.
fn binding_answer(transaction: u8, to: &UdpSocket) -> Vec<u8> {
    let SocketAddr::V4(to) = to.local_addr().unwrap() else {
        panic!("the network is of IPv4")
    };
    let ip: Vec<u8> = to
        .ip()
        .octets()
        .iter()
        .zip([0x21, 0x12, 0xa4, 0x42])
        .map(|(a, b)| a ^ b)
        .collect();
    let head = [1, 1, 0, 12, 0x21, 0x12, 0xa4, 0x42];
    let port = (to.port() ^ 0x2112).to_be_bytes();
    [
        &head[..],
        &[transaction; 12],
        &[0, 0x20, 0, 8, 0, 1],
        &port,
        &ip[..],
    ]
    .concat()
}

#[test]
fn stun_requests_of_hosts_are_answered_among_their_packets() {
    let net = Net::up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let other = net.host(1, SRC_PORT + 1);
    for number in 0..3 {
        one.send_to(&binding_request(number), net.router(1))
            .unwrap();
        one.send_to(&net.packet(number.into(), DST_PORT, 500), net.router(1))
            .unwrap();
        other
            .send_to(&binding_request(100 + number), net.router(1))
            .unwrap();
    }
    let mut buffer = [0; 2048];
    for (socket, first) in [(&one, 0), (&other, 100)] {
        for number in first..first + 3 {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..length], binding_answer(number, socket));
            assert_eq!(from, net.router(1));
        }
    }
    for number in 0..3 {
        assert_eq!(next(&two).0, number);
    }
    let counters = net.counters(1);
    assert_eq!(counters.stun_answers, 6);
    assert_eq!(counters.interfaces[&0].rx_packets, 9);
    assert_eq!(counters.interfaces[&0].tx_packets, 6);
    assert_eq!(counters.drops, BTreeMap::new());
}

#[test]
fn other_stun_messages_get_no_answer_but_a_count() {
    let net = Net::up();
    let one = net.host(1, SRC_PORT);
    let mut cut = binding_request(1);
    cut[3] = 4;
    let mut indication = binding_request(2);
    indication[1] = 0x11;
    for message in [cut, indication] {
        one.send_to(&message, net.router(1)).unwrap();
    }
    let counters = net.counters_after(1, 0, 2);
    let drops = [("stun-malformed", 1), ("stun-unsupported", 1)];
    let drops: BTreeMap<_, _> = drops.map(|(name, count)| (name.to_owned(), count)).into();
    assert_eq!(counters.drops, drops);
    assert_eq!(
        (counters.stun_answers, counters.interfaces[&0].tx_packets),
        (0, 0)
    );
    assert!(is_silent(&one));
}

#[test]
fn a_flood_of_stun_requests_is_limited() {
    let net = Net::up();
    let one = net.host(1, SRC_PORT);
    let requests: Vec<_> = (0..50).map(binding_request).collect();
    let began = Instant::now();
    for _ in 0..80 {
        burst(&one, net.router(1), &requests);
    }
    let counters = net.counters_after(1, 0, 4000);
    // On a machine that takes long for this, more are within the rate.
    let allowed = 1001 + began.elapsed().as_millis() * 10;
    let answered = counters.stun_answers;
    let limited = counters.drops.get("stun-rate-limited");
    assert_eq!(answered + limited.copied().unwrap_or(0), 4000);
    assert!(answered >= 1000, "a burst passes: {answered}");
    assert!(u128::from(answered) <= allowed, "{answered} of {allowed}");
}

#[test]
fn a_router_starts_before_its_neighbour() {
    let mut net = Net::new();
    net.start(1);
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    for number in 0..10 {
        one.send_to(&net.packet(number, DST_PORT, 100), net.router(1))
            .unwrap();
        net.counters_after(1, 0, u64::from(number) + 1);
    }
    net.start(2);
    one.send_to(&net.packet(10, DST_PORT, 100), net.router(1))
        .unwrap();
    assert_eq!(next(&two).0, 10);
}

#[test]
fn the_routers_answer_pings_over_their_sockets() {
    let net = Net::up();
    let one = net.host(1, SRC_PORT);
    let far = TestAddr::new(ia(2), net.router(2).ip());
    let request = echo(false, SRC_PORT, 5, &[1, 2, 3]).to_bytes();
    let packet = scmp_between(net.addr(1), far, net.path(), &request);
    one.send_to(&packet, net.router(1)).unwrap();
    let mut buffer = vec![0; 2048];
    let length = one.recv(&mut buffer).unwrap();
    let message = ScmpPacket::parse(&buffer[..length]);
    assert_eq!(message.scmp(), echo(true, SRC_PORT, 5, &[1, 2, 3]));
}

#[test]
fn a_second_router_for_a_folder_is_refused() {
    let net = Net::up();
    let second = Router::open(&net.dir(1), None, &Options::default())
        .err()
        .unwrap();
    assert!(matches!(second, RouterError::Running { .. }), "{second}");
    assert!(second.to_string().contains("already"), "{second}");

    assert_eq!(net.call(1, &Request::Stop), Reply::Done);
    let deadline = Instant::now() + PATIENCE;
    while net.dir(1).router_socket().exists() {
        assert!(Instant::now() < deadline, "the router does not stop");
        std::thread::sleep(Duration::from_millis(1));
    }
    let gone = live::call(&net.dir(1).router_socket(), &Request::Counters);
    assert!(matches!(gone, Err(RpcError::Connect { .. })));
    drop(Router::open(&net.dir(1), None, &Options::default()).unwrap());
}

#[test]
fn the_socket_of_a_killed_router_is_replaced() {
    let net = Net::new();
    let socket = net.dir(1).router_socket();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    drop(Router::open(&net.dir(1), None, &Options::default()).unwrap());
    assert!(!socket.exists());
}

#[test]
fn invalid_requests_are_answered_with_an_error() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let net = Net::up();
    let request = Request::SetLink {
        id: 9,
        state: PLAIN,
    };
    let Reply::Error { message } = net.call(1, &request) else {
        panic!()
    };
    assert_eq!(message, "this router has no interface 9");

    let mut caller = std::os::unix::net::UnixStream::connect(net.dir(1).router_socket()).unwrap();
    caller.write_all(b"{\"Dance\":{}}\n\"Counters\"\n").unwrap();
    let mut lines = BufReader::new(caller).lines();
    let first: Reply = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(matches!(first, Reply::Error { .. }));
    let second: Reply = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(matches!(second, Reply::Counters(_)));
}

#[test]
fn unsuitable_topologies_are_refused() {
    let net = Net::new();
    let dir = net.dir(1);
    let open = || Router::open(&dir, None, &Options::default()).err().unwrap();
    let mut topology = net.topology(1);
    let router = topology.border_routers["br1"].clone();

    let mut second = router;
    second.interfaces.clear();
    second.internal_addr.set_port(30043);
    topology.border_routers.insert("br2".to_owned(), second);
    dir.write_topology(&topology).unwrap();
    let refused = open();
    assert!(
        refused.to_string().contains("say which one of br1, br2"),
        "{refused}"
    );
    let refused = Router::open(&dir, Some("br3"), &Options::default())
        .err()
        .unwrap();
    assert!(
        refused.to_string().contains("has no border router br3: "),
        "{refused}"
    );
    drop(Router::open(&dir, Some("br2"), &Options::default()).unwrap());

    topology.border_routers.clear();
    dir.write_topology(&topology).unwrap();
    let refused = open();
    assert!(
        refused.to_string().contains("has no border router: "),
        "{refused}"
    );

    dir.write_topology(&net.topology(1)).unwrap();
    dir.write_links(&BTreeMap::from([(5, PLAIN)])).unwrap();
    let refused = open();
    assert!(
        refused.to_string().contains(" has interface 5, which "),
        "{refused}"
    );

    dir.write_links(&BTreeMap::new()).unwrap();
    let taken = UdpSocket::bind(net.router(1)).unwrap();
    let refused = open();
    assert!(
        matches!(refused, RouterError::Interface { id: 0, .. }),
        "{refused}"
    );
    drop(taken);
    drop(Router::open(&dir, None, &Options::default()).unwrap());
}
