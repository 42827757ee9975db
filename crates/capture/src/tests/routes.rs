//! Tests of routes in the kernel.

use std::net::TcpStream;

use hawser_kernel::netlink::Netlink;
use hawser_kernel::route::{Route, Rule};
use ipnet::IpNet;

use super::network::{LINK, Network};
use crate::{Device, Routes, RoutesError, Target};

const TABLE: u32 = 4857;
const MARK: u32 = 7;

fn device(prefixes: &[&str]) -> Routes {
    let prefixes = prefixes.iter().map(|one| one.parse::<IpNet>().unwrap());
    let device = Device::new(LINK, prefixes)
        .with_source("10.9.0.1".parse().unwrap())
        .with_source("fd09::1".parse().unwrap())
        .with_mtu(1300);
    Routes::new(TABLE, 1000, MARK, Target::Device(device))
}

#[test]
fn routes_and_rules_are_set_changed_and_removed() {
    let Some(network) = Network::create() else {
        return;
    };
    let inside = || {
        let mut netlink = Netlink::open().unwrap();
        let mut all = || {
            let mut routes = netlink.routes(TABLE).unwrap();
            routes.sort();
            (routes, netlink.rules().unwrap())
        };
        let before = all();
        assert!(!Routes::reset(TABLE).unwrap());
        for wanted in [
            device(&["10.1.0.0/16"]),
            device(&["10.1.0.0/17", "10.1.0.0/16", "fd01::/16", "fd01::/16"]),
            device(&["10.1.0.0/17", "fd02::/16"]),
            Routes::new(TABLE, 1001, MARK + 1, Target::Listener),
            device(&["fd02::/16"]),
        ] {
            assert!(wanted.apply().unwrap(), "{wanted:?}");
            let after = all();
            assert!(!wanted.apply().unwrap(), "{wanted:?}");
            assert_eq!(all(), after);
            assert!(!after.0.is_empty());
        }
        let mut changed = device(&["fd02::/16"]);
        changed.target = Target::Device(Device::new(LINK, ["fd02::/16".parse().unwrap()]));
        assert!(changed.apply().unwrap());
        assert!(!changed.apply().unwrap());
        assert!(Routes::reset(TABLE).unwrap());
        assert_eq!(all(), before);
    };
    network.host.run(inside).unwrap();
}

#[test]
fn packets_without_the_mark_go_to_the_device() {
    let Some(network) = Network::create() else {
        return;
    };
    let inside = || {
        let mut netlink = Netlink::open().unwrap();
        // To the address of the other end, without a route but ours.
        let to = ["10.4.0.7:9", "[fd04::7]:9"];
        let local = |to: &str, mark: u32| {
            let any = match to.starts_with('[') {
                true => "[::]:0",
                false => "0.0.0.0:0",
            };
            let socket = std::net::UdpSocket::bind(any).unwrap();
            let level = libc::SOL_SOCKET;
            hawser_kernel::socket::set_option(&socket, level, libc::SO_MARK, mark as i32).unwrap();
            socket
                .connect(to)
                .map(|()| socket.local_addr().unwrap().ip().to_string())
        };
        for to in to {
            assert!(local(to, 0).is_err(), "{to}");
        }
        assert!(device(&["10.4.0.0/16", "fd04::/16"]).apply().unwrap());
        assert_eq!(local(to[0], 0).unwrap(), "10.9.0.1");
        assert_eq!(local(to[1], 0).unwrap(), "fd09::1");
        for to in to {
            assert!(local(to, MARK).is_err(), "{to}");
        }
        // The routes vanish with the device, the rules do not.
        netlink.set_up(LINK, false).unwrap();
        assert_eq!(netlink.routes(TABLE).unwrap(), []);
        let error = device(&["10.4.0.0/16"]).apply().unwrap_err();
        assert!(matches!(error, RoutesError::Down(LINK)), "{error}");
        let ours = |rule: &&Rule| rule.table == TABLE;
        assert_ne!(netlink.rules().unwrap().iter().filter(ours).count(), 0);
        assert!(Routes::reset(TABLE).unwrap());
        assert_eq!(netlink.rules().unwrap().iter().filter(ours).count(), 0);
    };
    network.host.run(inside).unwrap();
}

#[test]
fn tcp_keeps_its_other_routes() {
    let Some(network) = Network::create() else {
        return;
    };
    let inside = || {
        let datagram = |to: &str, mark: u32| {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            let level = libc::SOL_SOCKET;
            hawser_kernel::socket::set_option(&socket, level, libc::SO_MARK, mark as i32).unwrap();
            socket.connect(to).is_ok()
        };
        let stream = |to: &str| {
            let error = TcpStream::connect(to).unwrap_err();
            error.raw_os_error() != Some(libc::ENETUNREACH)
        };
        let to = "10.4.0.7:9";
        assert!(!datagram(to, 0) && !stream(to));
        let mut wanted = device(&["10.4.0.0/16"]);
        if let Target::Device(device) = &mut wanted.target {
            device.without_tcp = true;
        }
        assert!(wanted.apply().unwrap());
        assert!(!wanted.apply().unwrap());
        assert!(datagram(to, 0) && !datagram(to, MARK) && !stream(to));
        // A second table at the same places, which is removed before the first one.
        wanted.table += 1;
        assert!(wanted.apply().unwrap());
        assert!(Routes::reset(wanted.table).unwrap());
        assert!(datagram(to, 0) && !datagram(to, MARK) && !stream(to));
        assert!(Routes::reset(TABLE).unwrap());
        let rules = Netlink::open().unwrap().rules().unwrap();
        assert!(rules.iter().all(|rule| rule.protocol != 72), "{rules:?}");
    };
    network.host.run(inside).unwrap();
}

#[test]
fn routes_of_others_stay() {
    let Some(network) = Network::create() else {
        return;
    };
    let inside = || {
        let mut netlink = Netlink::open().unwrap();
        let other = Route {
            table: TABLE,
            ..Route::new("10.1.0.0/16".parse().unwrap(), LINK)
        };
        netlink.add_route(&other).unwrap();
        let error = device(&["10.1.0.0/16"]).apply().unwrap_err().to_string();
        let expected = "the routing table 4857 has a route to 10.1.0.0/16 of another program: use \
                        another";
        assert_eq!(error, expected);
        assert!(device(&["10.1.0.0/17"]).apply().unwrap());
        assert!(Routes::reset(TABLE).unwrap());
        assert_eq!(netlink.routes(TABLE).unwrap(), [other]);
    };
    network.host.run(inside).unwrap();
}
