//! BFD between routers, over loopback addresses, in threads.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hawser_packet::ScmpError;
use hawser_router::live::Request;
use hawser_topology::{Bfd, BorderRouter, Interface, LinkAddresses, LinkState, LinkTo};

use self::common::net::{Net, PATIENCE, PLAIN, burst, counters_at, fresh_path, ia, wait_for};
use self::common::{DST_PORT, MTU, SRC_PORT, ScmpPacket, addr, key, udp_between};

/// Short intervals, and a detection time that a busy machine does not exceed.
const QUICK: Bfd = Bfd {
    disable: false,
    detect_mult: 100,
    desired_min_tx: Duration::from_millis(10),
    required_min_rx: Duration::from_millis(10),
};

/// Two routers whose session is up.
fn up() -> Net {
    let mut net = Net::with_bfd(QUICK);
    net.start(1);
    net.start(2);
    for number in [1, 2] {
        wait_for(&net.dir(number).router_socket(), "1", true);
    }
    net
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 2048];
    let length = socket.recv(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

fn receive_error(socket: &UdpSocket) -> ScmpError {
    ScmpPacket::parse(&receive(socket)).error().0
}

#[test]
fn packets_pass_a_link_that_is_up_and_bfd_is_not_counted() {
    let net = up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let packet = net.packet(1, DST_PORT, 100);
    one.send_to(&packet, net.router(1)).unwrap();
    assert_eq!(receive(&two).len(), packet.len());
    let counters = net.counters(2);
    assert_eq!(counters.bfd, BTreeMap::from([("1".to_owned(), true)]));
    assert_eq!(counters.interfaces[&1].rx_packets, 1);
    assert_eq!(counters.interfaces[&1].rx_bytes, packet.len() as u64);
    assert_eq!(counters.interfaces[&1].tx_packets, 0);
}

#[test]
fn a_stopped_neighbour_is_detected_and_reported() {
    let mut net = up();
    let one = net.host(1, SRC_PORT);
    let (near, far) = (net.dir(1).router_socket(), net.dir(2).router_socket());
    net.stop(&far);
    wait_for(&near, "1", false);
    one.send_to(&net.packet(1, DST_PORT, 100), net.router(1))
        .unwrap();
    let down = ScmpError::ExternalInterfaceDown {
        isd_as: ia(1),
        interface: 1,
    };
    assert_eq!(receive_error(&one), down);

    net.start(2);
    wait_for(&near, "1", true);
    wait_for(&far, "1", true);
    let two = net.host(2, DST_PORT);
    let packet = net.packet(2, DST_PORT, 100);
    one.send_to(&packet, net.router(1)).unwrap();
    assert_eq!(receive(&two).len(), packet.len());
}

#[test]
fn a_link_taken_down_at_one_end_is_down_at_the_other() {
    let net = up();
    let far = net.dir(2).router_socket();
    let down = LinkState { up: false, ..PLAIN };
    net.set_link(1, down);
    wait_for(&far, "1", false);
    net.set_link(1, PLAIN);
    wait_for(&far, "1", true);
    wait_for(&net.dir(1).router_socket(), "1", true);
}

#[test]
fn a_link_with_delay_and_full_loss_stays_up() {
    let net = up();
    let mut lossy = PLAIN;
    lossy.shape.loss = 1.0;
    lossy.shape.delay = Duration::from_millis(30);
    net.set_link(1, lossy);
    // Longer than the detection time of the other end.
    std::thread::sleep(QUICK.desired_min_tx * u32::from(QUICK.detect_mult) * 2);
    let far = net.dir(2).router_socket();
    assert!(counters_at(&far).bfd["1"]);
}

/// The neighbour of 1-1, simulated by the test.
struct Played {
    socket: UdpSocket,
    router: SocketAddr,
}

/// States in a BFD packet (RFC 5880, section 4.1).
const DOWN: u8 = 1;
const INIT: u8 = 2;
const UP: u8 = 3;

impl Played {
    fn new(net: &Net) -> Self {
        let socket = UdpSocket::bind(net.link_end(2)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let router = net.link_end(1);
        Self { socket, router }
    }

    /// Answers the router until its session is up, as a neighbour that computes its Your
    /// Discriminator from the router's with `your_discriminator`. Returns the router's last packet.
    fn bring_up(&self, your_discriminator: impl Fn(u32) -> u32) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let packet = receive(&self.socket);
            let bfd = &packet[packet.len() - 24..];
            let theirs = u32::from_be_bytes(bfd[4..8].try_into().unwrap());
            let state = match bfd[1] >> 6 {
                INIT | UP => UP,
                _ => DOWN,
            };
            self.answer(&packet, state, your_discriminator(theirs));
            if bfd[1] >> 6 == UP {
                return packet;
            }
            assert!(Instant::now() < deadline, "the session does not come up");
        }
    }

    /// Sends an [`answer`] to the router's packet.
    fn answer(&self, packet: &[u8], state: u8, your_discriminator: u32) {
        let answer = answer(packet, state, your_discriminator);
        self.socket.send_to(&answer, self.router).unwrap();
    }
}

/// The router's packet with source and destination exchanged.
fn answer(packet: &[u8], state: u8, your_discriminator: u32) -> Vec<u8> {
    let mut answer = packet.to_vec();
    // Destination and source: ISD-AS, then the IPv4 address.
    answer[12..20].copy_from_slice(&packet[20..28]);
    answer[20..28].copy_from_slice(&packet[12..20]);
    answer[28..32].copy_from_slice(&packet[32..36]);
    answer[32..36].copy_from_slice(&packet[28..32]);
    let bfd = packet.len() - 24;
    answer[bfd + 1] = state << 6;
    // A detection multiplier that a busy machine does not exceed.
    answer[bfd + 2] = 250;
    answer[bfd + 4..bfd + 8].copy_from_slice(&[0, 0, 0, 9]);
    answer[bfd + 8..bfd + 12].copy_from_slice(&your_discriminator.to_be_bytes());
    answer
}

/// scionproto's router addresses the previous session while it receives any packets.
#[test]
fn a_neighbour_that_addresses_the_previous_session_comes_up() {
    let mut net = Net::with_bfd(QUICK);
    let neighbour = Played::new(&net);
    net.start(1);
    neighbour.bring_up(|discriminator| !discriminator);
    assert!(net.counters(1).bfd["1"]);
}

#[test]
fn bfd_packets_for_another_session_do_not_keep_a_link_up() {
    let mut net = Net::with_bfd(QUICK);
    let neighbour = Played::new(&net);
    net.start(1);
    let packet = neighbour.bring_up(|discriminator| discriminator);
    let deadline = Instant::now() + PATIENCE;
    while net.counters(1).bfd["1"] {
        assert!(Instant::now() < deadline, "the link stays up");
        neighbour.answer(&packet, UP, 12345);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(net.counters(1).drops["unexpected-bfd"] > 0);
}

/// The router receives both changes of state in one batch.
#[test]
fn a_session_that_goes_down_and_up_within_one_batch_is_up() {
    let mut net = Net::with_bfd(QUICK);
    let neighbour = Played::new(&net);
    net.start(1);
    let packet = neighbour.bring_up(|discriminator| discriminator);
    let bfd = packet.len() - 24;
    let discriminator = u32::from_be_bytes(packet[bfd + 4..bfd + 8].try_into().unwrap());
    let answers = [DOWN, DOWN, UP].map(|state| answer(&packet, state, discriminator));
    burst(&neighbour.socket, neighbour.router, &answers);
    let until = |found: &dyn Fn(&[u8]) -> bool| {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !found(&receive(&neighbour.socket)) {
            assert!(Instant::now() < deadline, "it does not arrive");
        }
    };
    // Up again, with the diagnostic "neighbour signaled session down".
    until(&|packet| packet[bfd..bfd + 2] == [1 << 5 | 3, UP << 6]);
    let host = net.host(1, SRC_PORT);
    let sent = net.packet(1, DST_PORT, 100);
    host.send_to(&sent, net.router(1)).unwrap();
    until(&|packet| packet.len() == sent.len());
}

/// Adds a second router to 1-1, whose interface 2 leads to 1-3, a socket of the test without BFD.
fn with_second_router(net: &mut Net) -> UdpSocket {
    let mut topology = net.topology(1);
    let neighbour = UdpSocket::bind((net.ip(200), 50000)).unwrap();
    neighbour.set_read_timeout(Some(PATIENCE)).unwrap();
    let interface = Interface {
        underlay: LinkAddresses {
            local: (net.ip(199), 50000).into(),
            remote: neighbour.local_addr().unwrap(),
        },
        isd_as: ia(3),
        remote_id: 1,
        link_to: LinkTo::Core,
        mtu: MTU,
        bfd: Bfd {
            disable: true,
            ..QUICK
        },
    };
    let second = BorderRouter {
        internal_addr: (net.ip(198), 30042).into(),
        interfaces: BTreeMap::from([(2, interface)]),
    };
    topology.border_routers.insert("second".to_owned(), second);
    net.dir(1).write_topology(&topology).unwrap();
    net.start_named(1, "br1");
    net.start_named(1, "second");
    net.start(2);
    neighbour
}

#[test]
fn two_routers_of_an_as_forward_packets_to_each_other() {
    let mut net = Net::new();
    let neighbour = with_second_router(&mut net);
    let first = net.dir(1).router_socket_of("br1");
    let second = net.dir(1).router_socket_of("second");
    wait_for(&first, "second", true);
    wait_for(&second, "br1", true);

    // From 1-2 through 1-1 to 1-3.
    let keys = [2, 1].map(|number| net.dir(number).hop_key().unwrap());
    let path = fresh_path(&[(0, 1), (1, 2), (1, 0)], &[keys[0], keys[1], key(3)]);
    let host = net.host(2, SRC_PORT);
    let packet = udp_between(net.addr(2), addr(3), DST_PORT, path, 100);
    host.send_to(&packet, net.router(2)).unwrap();
    assert_eq!(receive(&neighbour).len(), packet.len());
    let interfaces = counters_at(&second).interfaces;
    assert_eq!(interfaces[&0].rx_packets, 1);
    assert_eq!(interfaces[&2].tx_packets, 1);

    net.stop(&second);
    wait_for(&first, "second", false);
    host.send_to(&packet, net.router(2)).unwrap();
    let cut = ScmpError::InternalConnectivityDown {
        isd_as: ia(1),
        ingress: 1,
        egress: 2,
    };
    assert_eq!(receive_error(&host), cut);
}

#[test]
fn links_of_another_router_cannot_be_set() {
    let mut net = Net::new();
    with_second_router(&mut net);
    let down = LinkState { up: false, ..PLAIN };
    let request = Request::SetLink { id: 2, state: down };
    let first = net.dir(1).router_socket_of("br1");
    let refused = hawser_router::live::call(&first, &request).unwrap();
    assert!(
        matches!(&refused, hawser_router::live::Reply::Error { message } if message.contains("interface 2")),
        "{refused:?}"
    );
}
