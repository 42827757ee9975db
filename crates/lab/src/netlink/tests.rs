//! Tests with the kernel, in separate namespaces per test.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use hawser_kernel::namespace::is_privileged;

use super::*;

/// Two hosts and a link between them, with the addresses of the plan.
fn pair() -> Option<(NetNs, NetNs)> {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return None;
    }
    let (a, b) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    let near = VethEnd {
        device: "if1",
        index: 1001,
        mac: [2, 0, 0, 0, 0, 1],
    };
    let far = VethEnd {
        device: "if7",
        index: 1007,
        mac: [2, 0, 0, 0, 0, 2],
    };
    a.run(|| Netlink::open().unwrap().add_veth(&near, &far, &b, 1428))
        .unwrap()
        .unwrap();
    for (ns, n, index) in [(&a, 1u8, 1001), (&b, 2, 1007)] {
        ns.run(|| {
            let mut link = Netlink::open().unwrap();
            let host = Ipv4Addr::new(10, 0, n, 1);
            link.configure(LOOPBACK).unwrap();
            link.set_up(LOOPBACK, true).unwrap();
            link.add_address(LOOPBACK, host.into(), 32).unwrap();
            link.add_local(Ipv4Addr::new(10, 0, n, 254), host).unwrap();
            let host6: Ipv6Addr = format!("fd00:0:0:{n}::1").parse().unwrap();
            link.add_address(LOOPBACK, host6.into(), 128).unwrap();
            let service: Ipv6Addr = format!("fd00:0:0:{n}::fe").parse().unwrap();
            link.add_local6(service, host6).unwrap();
            link.configure(index).unwrap();
            link.set_up(index, true).unwrap();
            let end = |n| Ipv4Addr::new(10, 128, 0, n - 1);
            link.add_address(index, end(n).into(), 31).unwrap();
            let end6: IpAddr = format!("fd00:0:1::{}", n - 1).parse().unwrap();
            link.add_address(index, end6, 127).unwrap();
            let mac = [2, 0, 0, 0, 0, 3 - n];
            link.add_neighbour(index, end(3 - n).into(), mac).unwrap();
            let others = [3 - n].into_iter().chain(10..=255);
            let routes: Vec<_> = others
                .map(|other| Route {
                    to: Ipv4Addr::new(10, 0, other, 1),
                    via: end(3 - n),
                    index,
                })
                .collect();
            // More than one batch of requests, sent twice, as after a failure of half of them.
            assert!(routes.len() > 128);
            link.add_routes(&routes, host).unwrap();
            link.add_routes(&routes, host).unwrap();
        })
        .unwrap();
    }
    Some((a, b))
}

#[test]
fn hosts_send_from_their_host_address() {
    let Some((a, _b)) = pair() else { return };
    let from = |to: &'static str| {
        a.run(|| {
            let to: std::net::SocketAddr = to.parse().unwrap();
            let any = if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
            let socket = UdpSocket::bind(any).unwrap();
            socket.connect(to).unwrap();
            socket.local_addr().unwrap().ip().to_string()
        })
        .unwrap()
    };
    assert_eq!(from("10.0.1.254:30042"), "10.0.1.1");
    assert_eq!(from("10.0.2.1:1"), "10.0.1.1");
    // On links, packets are sent from the link's address.
    assert_eq!(from("10.128.0.1:50000"), "10.128.0.0");
    assert_eq!(from("[fd00:0:0:1::fe]:30042"), "fd00:0:0:1::1");
    assert_eq!(from("[fd00:0:1::1]:50000"), "fd00:0:1::");
}

/// Sends a packet until it arrives: packets sent while a device comes up may be lost.
fn cross(from: &UdpSocket, to: &UdpSocket, at: &str, bytes: &mut [u8]) -> (usize, SocketAddr) {
    to.set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    loop {
        from.send_to(b"over", at).unwrap();
        if let Ok(received) = to.recv_from(bytes) {
            return received;
        }
    }
}

#[test]
fn packets_cross_the_link() {
    let Some((a, b)) = pair() else { return };
    let there = b.run(|| UdpSocket::bind("10.0.2.1:7000").unwrap()).unwrap();
    // A service can bind its address although no device has it.
    let service = a
        .run(|| UdpSocket::bind("10.0.1.254:30042").unwrap())
        .unwrap();
    let here = a.run(|| UdpSocket::bind("10.0.1.1:0").unwrap()).unwrap();
    let mut bytes = [0; 8];
    let (n, from) = cross(&here, &there, "10.0.2.1:7000", &mut bytes);
    assert_eq!(
        (&bytes[..n], from.ip().to_string()),
        (&b"over"[..], "10.0.1.1".into())
    );
    here.send_to(b"within", "10.0.1.254:30042").unwrap();
    let (n, from) = service.recv_from(&mut bytes).unwrap();
    assert_eq!(
        (&bytes[..n], from),
        (&b"within"[..], here.local_addr().unwrap())
    );
}

#[test]
fn tcp_between_hosts_is_controlled_by_cubic() {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    if !known.is_ok_and(|known| known.contains("cubic")) {
        eprintln!("skipped: this kernel has no CUBIC loaded");
        return;
    }
    let Some((a, b)) = pair() else { return };
    let listener = b.run(|| TcpListener::bind("10.0.2.1:7000").unwrap());
    let listener = listener.unwrap();
    let here = a.run(|| TcpStream::connect("10.0.2.1:7000").unwrap());
    let (there, _) = listener.accept().unwrap();
    for socket in [here.unwrap(), there] {
        let control = rustix::net::sockopt::tcp_congestion(&socket).unwrap();
        assert_eq!(control, "cubic");
    }
}

#[test]
fn ipv6_packets_cross_the_link() {
    let Some((a, b)) = pair() else { return };
    let bind = |ns: &NetNs, to: &'static str| ns.run(|| UdpSocket::bind(to).unwrap()).unwrap();
    let (here, there) = (
        bind(&a, "[fd00:0:1::]:50000"),
        bind(&b, "[fd00:0:1::1]:50000"),
    );
    let mut bytes = [0; 8];
    assert_eq!(cross(&here, &there, "[fd00:0:1::1]:50000", &mut bytes).0, 4);
    assert_eq!(cross(&there, &here, "[fd00:0:1::]:50000", &mut bytes).0, 4);
    let service = bind(&a, "[fd00:0:0:1::fe]:30042");
    let host = bind(&a, "[::]:0");
    host.send_to(b"within", "[fd00:0:0:1::fe]:30042").unwrap();
    let (n, from) = service.recv_from(&mut bytes).unwrap();
    assert_eq!((n, from.ip().to_string()), (6, "fd00:0:0:1::1".to_owned()));
}

#[test]
fn one_refusal_of_many_is_reported() {
    let Some((a, _b)) = pair() else { return };
    let route = |other, via| Route {
        to: Ipv4Addr::new(10, 1, other, 1),
        via,
        index: 1001,
    };
    let mut routes: Vec<_> = (0..100)
        .map(|other| route(other, Ipv4Addr::new(10, 128, 0, 1)))
        .collect();
    // This gateway is not on the link.
    routes[50].via = Ipv4Addr::new(10, 99, 0, 1);
    let host = Ipv4Addr::new(10, 0, 1, 1);
    a.run(|| {
        let mut link = Netlink::open().unwrap();
        let error = link.add_routes(&routes, host).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NETUNREACH.raw_os_error()));
        // No answers remain that the next request could read.
        link.add_routes(&routes[..1], host).unwrap();
    })
    .unwrap();
}

#[test]
fn refusals_of_the_kernel_are_reported() {
    let Some((a, b)) = pair() else { return };
    let end = || VethEnd {
        device: "if1",
        index: 1001,
        mac: [2, 0, 0, 0, 0, 1],
    };
    let error = a
        .run(|| Netlink::open().unwrap().add_veth(&end(), &end(), &b, 1500))
        .unwrap()
        .unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::EXIST.raw_os_error()));
}

#[test]
fn devices_are_quiet_and_forward() {
    let Some((a, _b)) = pair() else { return };
    a.run(|| {
        // The namespace of the calling thread, not that of the process.
        let net = "/proc/thread-self/net";
        let v6 = std::fs::read_to_string(format!("{net}/if_inet6")).unwrap_or_default();
        assert!(!v6.contains("fe80"), "{v6}");
        let dev = std::fs::read_to_string(format!("{net}/dev")).unwrap();
        assert!(dev.contains("if1:"), "{dev}");
        let forwarding = "/proc/sys/net/ipv4/conf/if1/forwarding";
        assert_eq!(std::fs::read_to_string(forwarding).unwrap().trim(), "1");
    })
    .unwrap();
}
