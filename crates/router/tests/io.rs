//! Two routers over loopback addresses, in threads.

mod common;

use common::{DST_PORT, MTU, SRC_PORT, udp_between};
use hawser_router::{
    Counters, Router, RouterError,
    live::{self, Reply, Request},
};
use hawser_topology::{
    AsDir, AsTopology, BorderRouter, Interface, IsdAsn, LinkState, LinkTo, Shape,
};
use noq_udp::{RecvMeta, Transmit, UdpSocketState};
use sciparse::{
    address::addr::ScionAddr,
    core::{convert::TryFromView as _, encode::WireEncode as _},
    dataplane_path::{model::DpPath, standard::model::StandardPath},
    packet::model::{ScionRawPacket, ScionScmpPacket},
    payload::scmp::model::{
        ScmpEchoReply, ScmpEchoRequest, ScmpExternalInterfaceDown, ScmpMessage,
    },
    util::test_builder::TestPathBuilder,
};
use std::{
    collections::BTreeMap,
    io::{ErrorKind, IoSliceMut},
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicU8, Ordering},
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;

/// Two core ASes, 1-1 and 1-2, with a link between their interfaces 1.
struct Net {
    folder: TempDir,
    /// The first three bytes of all addresses, unlike those of any other test.
    block: [u8; 3],
    running: Vec<JoinHandle<Result<(), RouterError>>>,
}

/// What a link that is up and does nothing to packets is like.
const PLAIN: LinkState = LinkState {
    up: true,
    shape: SHAPE,
};
const SHAPE: Shape = Shape {
    rate: None,
    delay: Duration::ZERO,
    jitter: Duration::ZERO,
    loss: 0.0,
    queue: Duration::from_millis(50),
};

impl Net {
    /// Writes both ASes' folders.
    fn new() -> Net {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        let process = std::process::id();
        let block = [
            127,
            (64 + process % 128) as u8,
            (process / 128 % 8 * 32) as u8 + NEXT.fetch_add(1, Ordering::Relaxed),
        ];
        let net = Net {
            folder: TempDir::new().unwrap(),
            block,
            running: Vec::new(),
        };
        for number in [1, 2] {
            let dir = net.dir(number);
            std::fs::create_dir(dir.path()).unwrap();
            dir.write_topology(&net.topology(number)).unwrap();
            dir.write_master_key(&[number; 16]).unwrap();
        }
        net
    }

    /// Both routers running, links as they are.
    fn up() -> Net {
        let mut net = Net::new();
        net.start(1);
        net.start(2);
        net
    }

    fn start(&mut self, number: u8) {
        let router = Router::open_with_seed(&self.dir(number), 7).unwrap();
        self.running.push(std::thread::spawn(|| router.run()));
    }

    fn dir(&self, number: u8) -> AsDir {
        AsDir::new(self.folder.path().join(number.to_string()))
    }

    fn ip(&self, last: u8) -> Ipv4Addr {
        let [a, b, c] = self.block;
        Ipv4Addr::new(a, b, c, last)
    }

    fn router(&self, number: u8) -> SocketAddr {
        SocketAddr::new(self.ip(10 * number + 4).into(), 30042)
    }

    fn link_end(&self, number: u8) -> SocketAddr {
        SocketAddr::new(self.ip(100 + number).into(), 50000)
    }

    fn topology(&self, number: u8) -> AsTopology {
        let interface = Interface {
            local: self.link_end(number),
            remote: self.link_end(3 - number),
            isd_as: ia(3 - number),
            remote_id: 1,
            link_to: LinkTo::Core,
            mtu: MTU,
        };
        let router = BorderRouter {
            internal_addr: self.router(number),
            interfaces: BTreeMap::from([(1, interface)]),
        };
        AsTopology {
            isd_as: ia(number),
            mtu: MTU,
            core: true,
            dispatched_ports: (31000, 32767),
            control_service: BTreeMap::new(),
            border_routers: BTreeMap::from([(format!("br{number}"), router)]),
        }
    }

    /// A socket of the host in AS `number`.
    fn host(&self, number: u8, port: u16) -> UdpSocket {
        let socket = UdpSocket::bind((self.ip(10 * number), port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        socket
    }

    fn addr(&self, number: u8) -> ScionAddr {
        ScionAddr::new(ia(number), IpAddr::from(self.ip(10 * number)).into())
    }

    fn path(&self) -> StandardPath {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs() as u32;
        let path = TestPathBuilder::new(self.addr(1), self.addr(2))
            .using_info_timestamp(now - 60)
            .core()
            .using_forwarding_key(self.dir(1).hop_key().unwrap())
            .add_hop(0, 1)
            .using_forwarding_key(self.dir(2).hop_key().unwrap())
            .add_hop(1, 0)
            .build(now);
        match path.data_plane_path {
            DpPath::Standard(path) => path,
            other => panic!("{other:?}"),
        }
    }

    /// A packet from 1-1 to 1-2 whose payload begins with `number`.
    fn packet(&self, number: u16, port: u16, payload: usize) -> Vec<u8> {
        let mut packet = udp_between(self.addr(1), self.addr(2), port, self.path(), payload);
        let at = packet.len() - payload;
        packet[at..at + 2].copy_from_slice(&number.to_be_bytes());
        packet
    }

    fn call(&self, number: u8, request: &Request) -> Reply {
        live::call(&self.dir(number).router_socket(), request).unwrap()
    }

    fn set_link(&self, number: u8, state: LinkState) {
        let request = Request::SetLink { id: 1, state };
        assert_eq!(self.call(number, &request), Reply::Done);
    }

    fn counters(&self, number: u8) -> Counters {
        match self.call(number, &Request::Counters) {
            Reply::Counters(counters) => counters,
            other => panic!("{other:?}"),
        }
    }

    /// The counters once router `number` has received `packets` at interface
    /// `id`: what it has done with them it has counted too.
    fn counters_after(&self, number: u8, id: u16, packets: u64) -> Counters {
        let patience = Instant::now() + Duration::from_secs(10);
        loop {
            let counters = self.counters(number);
            if counters.interfaces[&id].rx_packets >= packets || Instant::now() > patience {
                return counters;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for number in [1, 2] {
            // One that the test has stopped itself does not answer.
            let _ = live::call(&self.dir(number).router_socket(), &Request::Stop);
        }
        for router in self.running.drain(..) {
            let ended = router.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

fn ia(number: u8) -> IsdAsn {
    common::ia(number.into())
}

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

/// Whether nothing comes for a while.
fn is_silent(socket: &UdpSocket) -> bool {
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let silent = matches!(socket.recv(&mut [0; 2048]),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    silent
}

/// Sends `packets`, all of one length but the last, in one call.
fn burst(socket: &UdpSocket, to: SocketAddr, packets: &[Vec<u8>]) {
    let state = UdpSocketState::new(socket.into()).unwrap();
    socket.set_nonblocking(false).unwrap();
    let transmit = Transmit {
        destination: to,
        ecn: None,
        contents: &packets.concat(),
        segment_size: Some(packets[0].len()),
        src_ip: None,
    };
    state.try_send(socket.into(), &transmit).unwrap();
}

#[test]
fn packets_go_there_and_back() {
    let net = Net::up();
    let (one, two) = (net.host(1, SRC_PORT), net.host(2, DST_PORT));
    let packet = net.packet(1, DST_PORT, 1000);
    one.send_to(&packet, net.router(1)).unwrap();
    let mut got = vec![0; 2048];
    let (length, from) = two.recv_from(&mut got).unwrap();
    assert_eq!((length, from), (packet.len(), net.router(2)));

    let (raw, _) = ScionRawPacket::try_from_slice(&got[..length]).unwrap();
    let DpPath::Standard(mut path) = raw.header.path else {
        panic!()
    };
    path.try_reverse().unwrap();
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
fn a_mixed_burst_is_taken_apart() {
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
    // As many at a time as the receiving socket has room for.
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
    // Never earlier; how much later is the machine's affair.
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
fn a_rate_caps_what_leaves_at_once() {
    let mut net = Net::new();
    net.start(1);
    // In place of the second router, to see single sends.
    let neighbour = UdpSocket::bind(net.link_end(2)).unwrap();
    let state = UdpSocketState::new((&neighbour).into()).unwrap();
    let one = net.host(1, SRC_PORT);
    let packets: Vec<_> = (0..20).map(|i| net.packet(i, DST_PORT, 1200)).collect();
    let length = packets[0].len();
    // A millisecond of 10 Mbit/s is less than a packet, of 40 Mbit/s three.
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
fn a_link_that_loses_everything_passes_nothing_until_it_is_mended() {
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
fn a_link_that_is_down_is_told_and_comes_back() {
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
    let (raw, _) = ScionRawPacket::try_from_slice(&buffer[..length]).unwrap();
    let expected = ScmpExternalInterfaceDown::new(ia(1), 1, packet);
    assert_eq!(raw.try_into_scmp().unwrap().payload, expected.into());

    // What the neighbour still sends is not taken either.
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

#[test]
fn a_neighbour_that_is_not_there_yet_is_no_reason_to_stop() {
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
    let far = ScionAddr::new(ia(2), net.router(2).ip().into());
    let request = ScmpEchoRequest::new(SRC_PORT, 5, vec![1, 2, 3]);
    let packet = ScionScmpPacket::new(net.addr(1), far, net.path().into(), request.into());
    one.send_to(&packet.try_encode_to_vec().unwrap(), net.router(1))
        .unwrap();
    let mut buffer = vec![0; 2048];
    let length = one.recv(&mut buffer).unwrap();
    let (raw, _) = ScionRawPacket::try_from_slice(&buffer[..length]).unwrap();
    let reply: ScmpMessage = ScmpEchoReply::new(SRC_PORT, 5, vec![1, 2, 3]).into();
    assert_eq!(raw.try_into_scmp().unwrap().payload, reply);
}

#[test]
fn one_router_serves_a_folder() {
    let net = Net::up();
    let second = Router::open(&net.dir(1)).err().unwrap();
    assert!(matches!(second, RouterError::Running { .. }), "{second}");
    assert!(second.to_string().contains("already"), "{second}");

    assert_eq!(net.call(1, &Request::Stop), Reply::Done);
    let patience = Instant::now() + Duration::from_secs(10);
    while net.dir(1).router_socket().exists() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    let gone = live::call(&net.dir(1).router_socket(), &Request::Counters);
    assert!(matches!(gone, Err(live::LiveError::Connect { .. })));
    drop(Router::open(&net.dir(1)).unwrap());
}

#[test]
fn the_socket_of_a_killed_router_is_taken_over() {
    let net = Net::new();
    let socket = net.dir(1).router_socket();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    drop(Router::open(&net.dir(1)).unwrap());
    assert!(!socket.exists());
}

#[test]
fn requests_that_make_no_sense_are_answered_with_an_error() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let net = Net::up();
    let request = Request::SetLink {
        id: 9,
        state: PLAIN,
    };
    let Reply::Error { message } = net.call(1, &request) else {
        panic!()
    };
    assert_eq!(message, "there is no interface 9");

    let mut caller = std::os::unix::net::UnixStream::connect(net.dir(1).router_socket()).unwrap();
    caller.write_all(b"{\"Dance\":{}}\n\"Counters\"\n").unwrap();
    let mut lines = BufReader::new(caller).lines();
    let first: Reply = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(matches!(first, Reply::Error { .. }));
    let second: Reply = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(matches!(second, Reply::Counters(_)));
}

#[test]
fn topologies_a_router_cannot_serve_are_refused() {
    let net = Net::new();
    let dir = net.dir(1);
    let open = || Router::open(&dir).err().unwrap();
    let mut topology = net.topology(1);
    let router = topology.border_routers["br1"].clone();

    topology
        .border_routers
        .insert("br2".to_owned(), router.clone());
    dir.write_topology(&topology).unwrap();
    let refused = open();
    assert!(
        refused.to_string().contains("2 border routers"),
        "{refused}"
    );

    topology.border_routers.clear();
    dir.write_topology(&topology).unwrap();
    let refused = open();
    assert!(
        matches!(refused, RouterError::Routers { count: 0, .. }),
        "{refused}"
    );

    dir.write_topology(&net.topology(1)).unwrap();
    dir.write_links(&BTreeMap::from([(5, PLAIN)])).unwrap();
    let refused = open();
    assert!(
        matches!(refused, RouterError::UnknownLink { id: 5, .. }),
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
    drop(Router::open(&dir).unwrap());
}
