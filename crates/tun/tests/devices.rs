//! Devices of the kernel: two hosts, each a namespace with a TUN device, and what their programs send
//! carried between the devices, TCP over IPv6 by segments and all else by whole packets.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io};

use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use hawser_kernel::socket::{option, set_option};
use hawser_tun::{MergedPacket, Merger, Queue, READ_BUFFER, Tun, TunError};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use proptest::prelude::*;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    Protocol, RecvFlags, SendFlags, SocketType, bind, connect, ipproto, listen, recv, sendto,
    socket,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Bytes of TCP header and payload that a segment may have on the path.
const MAX: usize = 1193;
/// Bytes that a whole packet may have: the default MTU of TUN devices.
const MTU: usize = 1500;

/// Options of UDP (`linux/udp.h`).
const SOL_UDP: i32 = 17;
const UDP_SEGMENT: i32 = 103;

/// Options of MPTCP (`linux/mptcp.h`), the place of the flags in `struct mptcp_info`, and the flag of
/// connections that are plain TCP.
const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_INFO_FLAGS: usize = 8;
const MPTCP_INFO_FLAG_FALLBACK: u32 = 1;

/// After this a test that waits for a packet fails instead of waiting for ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// Two hosts, and the thread that carries packets between them.
struct Pair {
    namespaces: [NetNs; 2],
    stop: io::PipeWriter,
    carrier: JoinHandle<[Seen; 2]>,
}

/// What was carried from one host.
#[derive(Debug, Default)]
struct Seen {
    /// Packets of TCP that had to be cut.
    cut: usize,
    /// Packets of several segments that were written to the other host.
    merged: usize,
    /// Packets of UDP or of TCP over IPv4 that became several.
    split: usize,
}

impl Pair {
    /// `None`, with a message, where that is not allowed.
    fn create() -> Option<Self> {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return None;
        }
        let namespaces = [0; 2].map(|_| NetNs::create().unwrap());
        let mut queues = Vec::new();
        for (number, namespace) in (1..).zip(&namespaces) {
            let created = namespace.run(|| {
                let mut tun = Tun::create("tun", 1).unwrap();
                configure(tun.index, number);
                tun.queues.remove(0)
            });
            // As it comes from another process.
            queues.push(Queue::from(OwnedFd::from(created.unwrap())));
        }
        let (stopped, stop) = io::pipe().unwrap();
        let queues = [queues.remove(0), queues.remove(0)];
        let carrier = thread::spawn(move || carry(&queues, &stopped));
        Some(Self {
            namespaces,
            stop,
            carrier,
        })
    }

    fn run<T: Send>(&self, host: usize, job: impl FnOnce() -> T + Send) -> T {
        self.namespaces[host].run(job).unwrap()
    }

    /// Ends the carrier.
    fn finish(self) -> [Seen; 2] {
        drop(self.stop);
        self.carrier.join().unwrap()
    }

    /// A connection of TCP or MPTCP from the first host to the second.
    fn connect(&self, protocol: Protocol, v6: bool) -> [TcpStream; 2] {
        let open = |host| {
            let family = match v6 {
                false => rustix::net::AddressFamily::INET,
                true => rustix::net::AddressFamily::INET6,
            };
            self.run(host, || {
                socket(family, SocketType::STREAM, Some(protocol)).unwrap()
            })
        };
        let (client, server) = (open(0), open(1));
        bind(&server, &SocketAddr::new(ip(2, v6), 0)).unwrap();
        listen(&server, 1).unwrap();
        let listener = TcpListener::from(server);
        connect(&client, &listener.local_addr().unwrap()).unwrap();
        let (client, (server, _)) = (TcpStream::from(client), listener.accept().unwrap());
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
        }
        [client, server]
    }
}

fn ip(number: u8, v6: bool) -> IpAddr {
    let text = match v6 {
        false => format!("10.9.0.{number}"),
        true => format!("fd09::{number}"),
    };
    text.parse().unwrap()
}

/// Sets the device up with the addresses of a host.
fn configure(index: u32, number: u8) {
    let mut netlink = Netlink::open().unwrap();
    let mut message = LinkMessage::default();
    message.header.index = index;
    (message.header.flags, message.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
    let message = RouteNetlinkMessage::SetLink(message);
    netlink.request(message, 0).unwrap();
    for v6 in [false, true] {
        let mut message = AddressMessage::default();
        let (family, prefix_len) = match v6 {
            false => (AddressFamily::Inet, 24),
            true => (AddressFamily::Inet6, 64),
        };
        (message.header.family, message.header.prefix_len) = (family, prefix_len);
        message.header.index = index;
        message.header.flags = AddressHeaderFlags::Nodad;
        let ip = ip(number, v6);
        message.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
        let message = RouteNetlinkMessage::NewAddress(message);
        netlink.request(message, NLM_F_CREATE | NLM_F_EXCL).unwrap();
    }
    // The kernel adds the route to an own IPv6 address a little later, and until then drops packets
    // to it.
    let route = format!("fd09{:0>28x} 80 ", number);
    let deadline = Instant::now() + PATIENCE;
    while !(fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap()).contains(&route) {
        assert!(Instant::now() < deadline, "no route {route}");
        thread::yield_now();
    }
}

/// Carries packets in both directions until the pipe is closed.
fn carry(queues: &[Queue; 2], stopped: &io::PipeReader) -> [Seen; 2] {
    let mut buffer = vec![0; READ_BUFFER];
    let mut seen = [Seen::default(), Seen::default()];
    let mut mergers = [Merger::new(), Merger::new()];
    loop {
        let polled = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut ready = [
            polled(queues[0].as_fd()),
            polled(queues[1].as_fd()),
            polled(stopped.as_fd()),
        ];
        poll(&mut ready, None).unwrap();
        if !ready[2].revents().is_empty() {
            return seen;
        }
        for from in 0..2 {
            let (merger, seen) = (&mut mergers[from], &mut seen[from]);
            carry_batch(
                [&queues[from], &queues[1 - from]],
                &mut buffer,
                merger,
                seen,
            );
        }
    }
}

fn carry_batch([from, to]: [&Queue; 2], buffer: &mut [u8], merger: &mut Merger, seen: &mut Seen) {
    let (mut datagram, mut scratch) = (Vec::new(), Vec::new());
    let mut merged = 0;
    let mut write = |packet: MergedPacket<'_>| {
        merged += usize::from(packet.bytes().len() > 10 + 40 + MAX);
        to.try_write(packet).unwrap();
    };
    loop {
        let packet = match from.try_read(buffer) {
            Ok(packet) => packet,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        };
        let (IpAddr::V6(source), IpAddr::V6(destination), Some(tcp)) =
            (packet.source(), packet.destination(), packet.tcp())
        else {
            let datagrams = packet.datagrams(&mut scratch);
            seen.split += usize::from(datagrams.len() > 1);
            for datagram in datagrams {
                assert!(datagram.len() <= MTU);
                to.try_write_datagram(datagram).unwrap();
            }
            continue;
        };
        let segments = tcp.segments(MAX);
        seen.cut += usize::from(segments.len() > 1);
        for segment in segments {
            datagram.clear();
            datagram.extend_from_slice(segment.header());
            datagram.extend_from_slice(segment.payload());
            assert!(datagram.len() <= MAX);
            let ecn = packet.ecn();
            merger
                .push(source, destination, ecn, &datagram, &mut write)
                .unwrap();
        }
    }
    merger.flush(&mut write);
    seen.merged += merged;
}

/// Sends different bytes in both directions of a connection at once, and compares them.
fn exchange(streams: [TcpStream; 2], length: usize) {
    let content = [3, 5].map(|step| {
        let bytes = (0..length).map(|i| ((i * step) >> 3) as u8 ^ i as u8);
        bytes.collect::<Vec<u8>>()
    });
    thread::scope(|scope| {
        for (index, stream) in streams.iter().enumerate() {
            let (mut reader, mut writer) = (stream, stream);
            let (sent, expected) = (&content[index], &content[1 - index]);
            scope.spawn(move || {
                writer.write_all(sent).unwrap();
                writer.shutdown(std::net::Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                let mut received = Vec::new();
                reader.read_to_end(&mut received).unwrap();
                assert!(received == *expected, "{} bytes", received.len());
            });
        }
    });
}

#[test]
fn tcp_is_cut_and_merged_in_both_directions() {
    let Some(pair) = Pair::create() else { return };
    // Several connections interleave.
    let connections = [0; 3].map(|_| pair.connect(ipproto::TCP, true));
    thread::scope(|scope| {
        for streams in connections {
            scope.spawn(|| exchange(streams, 4_000_000));
        }
    });
    let seen = pair.finish();
    assert!(seen.iter().all(|s| s.cut > 0 && s.merged > 0), "{seen:?}");
}

#[test]
fn mptcp_takes_its_options_repeated_on_each_segment() {
    let Some(pair) = Pair::create() else { return };
    let family = rustix::net::AddressFamily::INET6;
    if socket(family, SocketType::STREAM, Some(ipproto::MPTCP)).is_err() {
        eprintln!("skipped: this kernel has no MPTCP");
        return;
    }
    let streams = pair.connect(ipproto::MPTCP, true);
    let kept = [0, 1].map(|index: usize| streams[index].try_clone().unwrap());
    exchange(streams, 4_000_000);
    for stream in kept {
        let info: [u8; MPTCP_INFO_FLAGS + 4] = option(stream, SOL_MPTCP, MPTCP_INFO).unwrap();
        let mut flags = [0; 4];
        flags.copy_from_slice(&info[MPTCP_INFO_FLAGS..]);
        assert_eq!(u32::from_ne_bytes(flags) & MPTCP_INFO_FLAG_FALLBACK, 0);
    }
    let seen = pair.finish();
    assert!(seen.iter().all(|s| s.cut > 0 && s.merged > 0), "{seen:?}");
}

#[test]
fn large_packets_of_tcp_over_ipv4_become_whole_packets() {
    let Some(pair) = Pair::create() else { return };
    exchange(pair.connect(ipproto::TCP, false), 2_000_000);
    let seen = pair.finish();
    assert!(seen.iter().all(|s| s.split > 0), "{seen:?}");
    assert!(seen.iter().all(|s| s.cut == 0), "{seen:?}");
}

#[test]
fn udp_datagrams_arrive_one_by_one() {
    const SEGMENT: usize = 1111;
    let Some(pair) = Pair::create() else { return };
    for v6 in [false, true] {
        let receiver = pair.run(1, || UdpSocket::bind((ip(2, v6), 0)).unwrap());
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        let sender = pair.run(0, || UdpSocket::bind((ip(1, v6), 0)).unwrap());
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        set_option(&sender, SOL_UDP, UDP_SEGMENT, SEGMENT as i32).unwrap();
        let content: Vec<u8> = (0..10 * SEGMENT + 7).map(|i| (i >> 4) as u8).collect();
        sender.send(&content).unwrap();
        sender.send(b"alone").unwrap();
        let (mut buffer, mut received) = (vec![0; 10_000], Vec::new());
        for part in content.chunks(SEGMENT) {
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(length, part.len());
            received.extend_from_slice(&buffer[..length]);
        }
        assert!(received == content);
        let length = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"alone");
    }
    let [first, second] = pair.finish();
    // Large packets if the kernel has USO (since 6.2).
    let Ok(tun) = NetNs::create()
        .unwrap()
        .run(|| Tun::create("tun", 1).unwrap())
    else {
        panic!("a second device could not be created");
    };
    assert_eq!(first.split, if tun.has_uso { 2 } else { 0 }, "{first:?}");
    assert_eq!(second.split, 0, "{second:?}");
}

#[test]
fn a_ping_is_answered() {
    const REQUEST: u8 = 128;
    const REPLY: u8 = 129;
    let Some(pair) = Pair::create() else { return };
    let IpAddr::V6(there) = ip(2, true) else {
        unreachable!("an IPv6 address")
    };
    let pinging = pair.run(0, || {
        let family = rustix::net::AddressFamily::INET6;
        socket(family, SocketType::RAW, Some(ipproto::ICMPV6)).unwrap()
    });
    set_socket_timeout(&pinging, Timeout::Recv, Some(PATIENCE)).unwrap();
    // The kernel fills in the checksum.
    let request = [&[REQUEST, 0, 0, 0, 0x12, 0x34, 0, 1][..], &[7; 1000]].concat();
    let to = SocketAddr::V6(SocketAddrV6::new(there, 0, 0, 0));
    sendto(&pinging, &request, SendFlags::empty(), &to).unwrap();
    let mut buffer = [0; 2000];
    let answer = loop {
        let (length, _) = recv(&pinging, &mut buffer[..], RecvFlags::empty()).unwrap();
        // Others are of neighbour discovery.
        if buffer[0] == REPLY {
            break &buffer[..length];
        }
    };
    assert_eq!(answer[4..], request[4..]);
    pair.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn the_kernel_takes_whatever_is_merged(
        segments in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 20..200), 5..16_u8, any::<bool>()), 1..50,
        ),
        largest in 20..65_536_usize,
    ) {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return Ok(());
        }
        let namespace = NetNs::create().unwrap();
        let created = namespace.run(|| {
            let mut tun = Tun::create("tun", 1).unwrap();
            configure(tun.index, 2);
            tun.queues.remove(0)
        });
        let (queue, mut merger) = (created.unwrap(), Merger::new());
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (ip(1, true), ip(2, true)) else {
            unreachable!("IPv6 addresses")
        };
        let mut written = 0;
        let mut write = |packet: MergedPacket<'_>| {
            written += 1;
            queue.try_write(packet).unwrap();
        };
        let (mut taken, mut sequence) = (0, 0_u32);
        let large = (vec![0x10; largest], 5, true);
        for (mut segment, words, is_data) in segments.into_iter().chain([large]) {
            segment[12] = words << 4;
            if is_data {
                // Continues the one before it if that has the same header.
                segment[..4].fill(1);
                segment[4..8].copy_from_slice(&sequence.to_be_bytes());
                segment[8..12].fill(2);
                segment[13..20].copy_from_slice(&[0x10, 1, 1, 0, 0, 0, 0]);
            }
            let header = usize::from(words) * 4;
            let payload = segment.len().saturating_sub(header);
            sequence = sequence.wrapping_add(payload as u32);
            let pushed = merger.push(source, destination, 0, &segment, &mut write);
            taken += usize::from(pushed.is_ok());
        }
        merger.flush(&mut write);
        prop_assert!((1..=taken).contains(&written));
    }
}

#[test]
fn a_device_has_its_queues_and_vanishes_with_the_last() {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    let namespace = NetNs::create().unwrap();
    namespace
        .run(|| {
            let tun = Tun::create("shim%d", 3).unwrap();
            assert_eq!((&tun.name[..], tun.queues.len()), ("shim0", 3));
            let second = Tun::create("shim%d", 1).unwrap();
            assert_eq!(second.name, "shim1");
            assert_ne!(second.index, tun.index);
            let error = Tun::create("shim0", 1).unwrap_err();
            assert!(matches!(&error, TunError::NameTaken(name) if name == "shim0"));
            let error = Tun::create("lo", 1).unwrap_err();
            assert!(matches!(error, TunError::NameTaken(_)), "{error}");
            // A device that is down takes nothing.
            tun.queues[0].try_write_datagram(&[0x60; 60]).unwrap_err();
            drop(tun);
            assert_eq!(Tun::create("shim0", 1).unwrap().name, "shim0");
        })
        .unwrap();
}

#[test]
fn wrong_use_is_refused() {
    for name in ["", "sixteen-bytes-ab", "a b", "a/b", "a:b", "..", "a%s"] {
        let error = Tun::create(name, 1).unwrap_err();
        assert!(matches!(error, TunError::InvalidName(_)), "{name}: {error}");
    }
    for queues in [0, 257] {
        let error = Tun::create("tun", queues).unwrap_err();
        assert!(matches!(error, TunError::Queues(_)), "{error}");
    }
}

#[test]
fn the_capability_is_needed() {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    // Each thread has its own capabilities.
    let created = thread::spawn(|| {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::NET_ADMIN);
        set_capabilities(None, sets).unwrap();
        Tun::create("tun", 1)
    });
    let error = created.join().unwrap().unwrap_err();
    assert!(matches!(error, TunError::NotPermitted(_)), "{error}");
}
