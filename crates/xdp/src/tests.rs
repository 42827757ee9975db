//! Ports at veth devices: what they take, what they leave, how they end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use hawser_kernel::netlink::Netlink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::device::Device;
use crate::filter::{PASS, REDIRECT};
use crate::frame::Template;
use crate::hops::Hops;
use crate::testing::{DEVICE, Host, hosts};
use crate::{Hook, Outcome, Port, XdpError};

/// The next datagram of `port`.
fn next(port: &Port) -> (SocketAddr, Vec<u8>) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut found = None;
        port.receive(|from, payload| {
            let free = found.is_none();
            if free {
                found = Some((from, payload.to_vec()));
            }
            free
        });
        if let Some(found) = found {
            return found;
        }
        assert!(Instant::now() < deadline, "nothing arrives");
        let sockets: Vec<_> = port.sockets().collect();
        let mut entries: Vec<_> = (sockets.iter())
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        let short = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        poll(&mut entries, Some(&short)).unwrap();
    }
}

/// Lets the kernel find out the neighbour's address.
fn meet(socket: &UdpSocket, other: &UdpSocket) {
    socket
        .send_to(b"hello", other.local_addr().unwrap())
        .unwrap();
    let mut buffer = [0; 16];
    other.recv_from(&mut buffer).unwrap();
}

fn expect(socket: &UdpSocket, from: SocketAddr, payload: &[u8]) {
    let mut buffer = [0; 9000];
    let (length, sender) = socket.recv_from(&mut buffer).unwrap();
    assert_eq!((sender, &buffer[..length]), (from, payload));
}

fn payload(length: usize) -> Vec<u8> {
    let mut payload = vec![0; length];
    fastrand::fill(&mut payload);
    payload
}

#[test]
fn datagrams_of_all_sizes_cross_in_both_directions() {
    for (mtu, v6) in [(1500, false), (1500, true), (3000, false)] {
        let Some((near, far)) = hosts(mtu, 1) else {
            return;
        };
        let (socket, local) = near.bind(v6);
        let (other, remote) = far.bind(v6);
        meet(&socket, &other);
        let Some(port) = near.open(local) else {
            return;
        };
        let most = mtu as usize - if v6 { 48 } else { 28 };
        let sizes = [1, 2, 17, 18, 19, 100, 1000, most - 1, most];
        // To and from a program that uses the kernel's stack.
        for size in sizes {
            let sent = payload(size);
            let outcome = port.try_send(&sent, size, remote).unwrap();
            assert_eq!(outcome, Outcome::Sent, "{size}");
            expect(&other, local, &sent);
            other.send_to(&sent, local).unwrap();
            assert_eq!(next(&port), (remote, sent));
        }
        // Between two ports, many at once, the last one shorter.
        let there = far.open(remote).unwrap();
        for size in sizes {
            let sent = payload(size * 63 + size.div_ceil(2));
            let outcome = port.try_send(&sent, size, remote).unwrap();
            assert_eq!(outcome, Outcome::Sent);
            for datagram in sent.chunks(size) {
                assert_eq!(next(&there), (local, datagram.to_vec()));
            }
        }
        assert_eq!(port.sent(), sizes.len() as u64 * 65);
        assert_eq!(there.received(), sizes.len() as u64 * 64);
        // More than all rings hold.
        let sent = payload(most * 64);
        for _ in 0..200 {
            while port.try_send(&sent, most, remote).is_err() {
                port.receive(|_, _| true);
            }
            for datagram in sent.chunks(most) {
                assert_eq!(next(&there).1, datagram);
            }
        }
    }
}

#[test]
fn every_receive_queue_has_its_socket() {
    const QUEUES: u32 = 4;
    let Some((near, far)) = hosts(1500, QUEUES) else {
        return;
    };
    let (socket, local) = near.bind(false);
    let Some(port) = near.open(local) else {
        return;
    };
    assert_eq!(port.status().queues, QUEUES as usize);
    // The other end chooses the queue by the ports; each datagram of 64 ports arrives at the port.
    let others: Vec<_> = (0..64).map(|_| far.bind(false)).collect();
    for (other, remote) in &others {
        let sent = payload(500);
        other.send_to(&sent, local).unwrap();
        assert_eq!(next(&port), (*remote, sent));
    }
    // None of them by the kernel.
    socket.set_nonblocking(true).unwrap();
    socket.recv_from(&mut [0; 16]).unwrap_err();
}

/// Devices with packets larger than a chunk cannot run the program in the driver, and what does not
/// fit is the kernel's.
#[test]
fn jumbo_packets_stay_with_the_kernel() {
    let Some((near, far)) = hosts(9000, 1) else {
        return;
    };
    let (socket, local) = near.bind(false);
    let (other, remote) = far.bind(false);
    meet(&socket, &other);
    let Some(port) = near.open(local) else {
        return;
    };
    assert_eq!(port.status().hook, Hook::Generic);
    assert!(!port.status().zero_copy);
    for size in [1, 1472, 3798] {
        let sent = payload(size);
        let outcome = port.try_send(&sent, size, remote).unwrap();
        assert_eq!(outcome, Outcome::Sent);
        expect(&other, local, &sent);
        other.send_to(&sent, local).unwrap();
        assert_eq!(next(&port), (remote, sent));
    }
    for size in [4055, 8972] {
        let sent = payload(size);
        let outcome = port.try_send(&sent, size, remote).unwrap();
        assert_eq!(outcome, Outcome::Declined);
        other.send_to(&sent, local).unwrap();
        expect(&socket, remote, &sent);
    }
}

#[test]
fn everything_else_stays_with_the_kernel() {
    let Some((near, far)) = hosts(1500, 1) else {
        return;
    };
    let (socket, local) = near.bind(false);
    let (neighbour, beside) = near.bind(false);
    let (other, remote) = far.bind(false);
    let Some(port) = near.open(local) else {
        return;
    };
    // The neighbour is not known yet: the kernel is to send, and finds out.
    assert_eq!(
        port.try_send(b"first", 5, remote).unwrap(),
        Outcome::Declined
    );
    meet(&socket, &other);
    // What is too large for a packet, or goes elsewhere, is the kernel's too.
    let large = payload(1473);
    let outcome = port.try_send(&large, 1473, remote).unwrap();
    assert_eq!(outcome, Outcome::Declined);
    let outcome = port.try_send(b"here", 4, beside).unwrap();
    assert_eq!(outcome, Outcome::Declined);
    // Another port, also from this one.
    other.send_to(b"beside", beside).unwrap();
    expect(&neighbour, remote, b"beside");
    socket.send_to(b"by the kernel", remote).unwrap();
    expect(&other, local, b"by the kernel");
    // Fragments.
    let large = payload(4000);
    other.send_to(&large, local).unwrap();
    expect(&socket, remote, &large);
    // TCP, in larger packets than the device's.
    let listener = near.run(|| TcpListener::bind((near.ip(false), 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let mut there = far.run(|| TcpStream::connect(address)).unwrap();
    let (mut here, _) = listener.accept().unwrap();
    let sent = payload(3_000_000);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| there.write_all(&sent).unwrap());
        let mut received = vec![0; sent.len()];
        here.read_exact(&mut received).unwrap();
        received
    });
    assert!(sent == received);
    // The port has seen nothing of it, and still takes what is its own.
    other.send_to(b"own", local).unwrap();
    assert_eq!(next(&port), (remote, b"own".to_vec()));
    assert_eq!(port.received(), 1);
    // Without the port, the socket is as before.
    drop(port);
    other.send_to(b"back", local).unwrap();
    expect(&socket, remote, b"back");
}

#[test]
fn the_program_takes_only_its_datagrams() {
    let Some((near, far)) = hosts(1500, 1) else {
        return;
    };
    for v6 in [false, true] {
        let (_socket, local) = near.bind(v6);
        let remote = SocketAddr::new(far.ip(v6), 30042);
        let Some(port) = near.open(local) else {
            return;
        };
        let frame = |to: SocketAddr, length: usize| {
            let template = Template::new(far.mac(), near.mac(), remote, to.ip());
            let mut frame = vec![0; 4096];
            let length = template.write(to.port(), &payload(length), &mut frame);
            frame.truncate(length.unwrap());
            frame
        };
        let changed = |at: usize, value: u8| {
            let mut frame = frame(local, 100);
            frame[at] = value;
            frame
        };
        let ip = 14;
        let longest = 2048 - 256 - 14 - if v6 { 48 } else { 28 };
        let mut table = vec![
            (frame(local, 0), REDIRECT, "empty"),
            (frame(local, 1400), REDIRECT, "usual"),
            (frame(local, longest), REDIRECT, "longest"),
            (frame(local, longest + 1), PASS, "too long"),
            (frame(local, 0)[..41].to_vec(), PASS, "cut off"),
            (changed(12, 0x09), PASS, "other type"),
            (
                frame(SocketAddr::new(local.ip(), local.port() ^ 1), 9),
                PASS,
                "other port",
            ),
            (
                frame(SocketAddr::new(far.ip(v6), local.port()), 9),
                PASS,
                "other host",
            ),
        ];
        match v6 {
            false => table.extend([
                (changed(ip + 9, 6), PASS, "TCP"),
                (changed(ip, 0x46), PASS, "with options"),
                (changed(ip + 6, 0x20), PASS, "first fragment"),
                (changed(ip + 7, 0x01), PASS, "further fragment"),
                (changed(ip + 6, 0x00), REDIRECT, "may be fragmented"),
                (changed(ip + 16, 11), PASS, "first byte of the address"),
            ]),
            true => table.extend([
                (changed(ip + 6, 6), PASS, "TCP"),
                (changed(ip + 6, 44), PASS, "fragment"),
                (changed(ip + 24, 0), PASS, "first byte of the address"),
                (changed(ip + 30, 1), PASS, "middle of the address"),
            ]),
        }
        for (frame, expected, what) in table {
            let result = port.program().test(&frame);
            assert_eq!(result.unwrap(), expected, "{what}, IPv6: {v6}");
        }
    }
}

#[test]
fn changes_of_neighbours_are_followed() {
    let Some((near, far)) = hosts(1500, 1) else {
        return;
    };
    for v6 in [false, true] {
        let local = SocketAddr::new(near.ip(v6), 31000);
        let remote = SocketAddr::new(far.ip(v6), 30042);
        let mut hops = near.run(|| {
            let mut netlink = Netlink::open().unwrap();
            let device = Device::find(&mut netlink, DEVICE, local.ip()).unwrap();
            assert_eq!((device.mac, device.mtu), (near.mac(), 1500));
            assert_eq!((device.queues, &device.driver[..]), (1, "veth"));
            Hops::new(netlink, &device, local)
        });
        let now = Instant::now();
        let template = |mac| Template::new(near.mac(), mac, local, remote.ip());
        assert_eq!(hops.template(remote, now), None);
        near.set_neighbour(remote.ip(), far.mac());
        // Not looked up again at once.
        assert_eq!(hops.template(remote, now), None);
        let later = now + Duration::from_millis(20);
        let found = hops.template(remote, later);
        assert_eq!(found, Some(&template(far.mac())));
        let other = [2, 9, 9, 9, 9, 9];
        near.set_neighbour(remote.ip(), other);
        let later = later + Duration::from_secs(1);
        assert_eq!(hops.template(remote, later), Some(&template(other)));
        // This host itself, and addresses without a route, are the kernel's.
        assert_eq!(hops.template(local, now), None);
        let nowhere = SocketAddr::new(if v6 { "fd99::1" } else { "10.99.0.1" }.parse().unwrap(), 1);
        assert_eq!(hops.template(nowhere, now), None);
    }
}

fn error(host: &Host, device: &str, local: SocketAddr) -> XdpError {
    host.run(|| Port::open(device, local)).unwrap_err()
}

#[test]
fn wrong_devices_are_refused_with_the_reason() {
    let Some((near, far)) = hosts(1500, 1) else {
        return;
    };
    let local = SocketAddr::new(near.ip(false), 31000);
    let elsewhere = SocketAddr::new(far.ip(false), 31000);
    for name in ["eth77", "a-name-longer-than-any-device", "", "."] {
        let found = error(&near, name, local);
        assert!(matches!(found, XdpError::NoDevice(_)), "{name}: {found}");
        assert!(found.is_wrong_device());
    }
    let found = error(&near, "lo", local);
    assert!(matches!(found, XdpError::NotEthernet(_)), "{found}");
    let found = error(&near, DEVICE, elsewhere);
    let text = found.to_string();
    assert!(text.contains("is not an address of veth"), "{text}");
    assert!(found.is_wrong_device());
    let loopback = error(&near, DEVICE, "127.0.0.1:31000".parse().unwrap());
    assert!(loopback.to_string().contains("but of lo"), "{loopback}");

    // One program for each device.
    let Some(port) = near.open(local) else {
        return;
    };
    let found = error(&near, DEVICE, local);
    assert!(matches!(found, XdpError::InUse(_)), "{found}");
    drop(port);
    near.open(local).unwrap();

    // Without the right, also without that to lock memory.
    let found = near.run(|| {
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, none).unwrap();
        Port::open(DEVICE, local).unwrap_err()
    });
    assert!(matches!(found, XdpError::NotPermitted { .. }), "{found}");
    assert!(!found.is_wrong_device());

    near.cut();
    let found = error(&near, DEVICE, local);
    assert!(matches!(found, XdpError::Down(_)), "{found}");
}

#[test]
fn a_device_that_goes_down_is_an_error_of_sending() {
    let Some((near, far)) = hosts(1500, 1) else {
        return;
    };
    let (socket, local) = near.bind(false);
    let (other, remote) = far.bind(false);
    meet(&socket, &other);
    let Some(port) = near.open(local) else {
        return;
    };
    assert_eq!(port.try_send(b"up", 2, remote).unwrap(), Outcome::Sent);
    near.cut();
    port.try_send(b"down", 4, remote).unwrap_err();
}
