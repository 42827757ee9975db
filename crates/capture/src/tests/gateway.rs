//! Tests of connections that other hosts make through this one.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};

use hawser_kernel::netlink::Netlink;
use hawser_kernel::socket::set_option;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::network::{LINK, Network, PORT};
use crate::{Gateway, Manner, Redirect, Routes, Target, Wanted, original_destination};

const MARK: u32 = 0x4857;
const PROXY_MARK: u32 = 0x4858;
/// Destinations that the other host reaches through this one.
const DESTINATIONS: [&str; 2] = ["10.4.0.7", "fd04::7"];

/// A network in which the server sends packets to [`DESTINATIONS`] through the host.
fn network() -> Option<Network> {
    let network = Network::create()?;
    let routes = || {
        let mut netlink = Netlink::open().unwrap();
        for (to, via) in DESTINATIONS.iter().zip(["10.9.0.1", "fd09::1"]) {
            let (to, via): (IpAddr, IpAddr) = (to.parse().unwrap(), via.parse().unwrap());
            let mut message = RouteMessage::default();
            message.header.address_family = match to {
                IpAddr::V4(_) => AddressFamily::Inet,
                IpAddr::V6(_) => AddressFamily::Inet6,
            };
            message.header.destination_prefix_length = if to.is_ipv4() { 32 } else { 128 };
            message.header.table = RouteHeader::RT_TABLE_MAIN;
            message.header.protocol = RouteProtocol::Static;
            message.header.scope = RouteScope::Universe;
            message.header.kind = RouteType::Unicast;
            message.attributes = vec![
                RouteAttribute::Destination(to.into()),
                RouteAttribute::Gateway(via.into()),
            ];
            let message = RouteNetlinkMessage::NewRoute(message);
            netlink.request(message, NLM_F_CREATE | NLM_F_EXCL).unwrap();
        }
    };
    network.server.run(routes).unwrap();
    Some(network)
}

/// A listener of the host for both families.
fn listener(network: &Network) -> TcpListener {
    let listen = || TcpListener::bind("[::]:0").unwrap();
    network.host.run(listen).unwrap()
}

/// Redirects connections from the other host.
fn redirect(network: &Network, listener: &TcpListener, manner: Manner) -> Redirect {
    let gateway = Gateway {
        sources: ["10.9.0.0/24", "fd00::/12"]
            .map(|one| one.parse().unwrap())
            .into(),
        port: listener.local_addr().unwrap().port(),
        manner,
    };
    let wanted = Wanted::new(listener.local_addr().unwrap().port(), MARK)
        .with_prefixes(["10.4.0.0/16", "fd04::/16"].map(|one| one.parse().unwrap()))
        .with_gateway(gateway);
    let create = || Redirect::create("hawser-test", &wanted).unwrap();
    network.host.run(create).unwrap()
}

/// Connects from the other host, and checks where the connection was to go.
fn check(network: &Network, listener: &TcpListener) {
    for to in DESTINATIONS {
        let to = SocketAddr::new(to.parse().unwrap(), PORT);
        let connect = || TcpStream::connect(to).unwrap();
        let stream = network.server.run(connect).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(original_destination(&accepted).unwrap(), Some(to));
        assert_eq!(stream.peer_addr().unwrap(), to);
    }
}

#[test]
fn forwarded_connections_are_redirected() {
    let Some(network) = network() else {
        return;
    };
    let listener = listener(&network);
    let _redirect = redirect(&network, &listener, Manner::Redirect);
    check(&network, &listener);
}

#[test]
fn forwarded_connections_are_proxied() {
    let Some(network) = network() else {
        return;
    };
    let listener = listener(&network);
    set_option(&listener, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1).unwrap();
    let manner = Manner::Transparent { mark: PROXY_MARK };
    let _redirect = redirect(&network, &listener, manner);
    let routes = Routes::new(4858, 1001, PROXY_MARK, Target::Listener);
    let apply = || assert!(routes.apply().unwrap());
    network.host.run(apply).unwrap();
    check(&network, &listener);
}

/// The addresses of the host that the other one can dial: IPv4, IPv6, and link-local.
fn near_addresses(network: &Network, port: u16) -> [SocketAddr; 3] {
    let addresses = || hawser_kernel::interface::addresses().unwrap();
    let all = network.host.run(addresses).unwrap();
    let local = all.iter().find_map(|(_, ip)| match ip {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => Some(*ip),
        _ => None,
    });
    [
        ("10.9.0.1".parse::<IpAddr>().unwrap(), port).into(),
        ("fd09::1".parse::<IpAddr>().unwrap(), port).into(),
        SocketAddrV6::new(local.unwrap(), port, 0, LINK).into(),
    ]
}

#[test]
fn what_dials_a_listener_itself_is_no_captured_connection() {
    let Some(network) = network() else {
        return;
    };
    // Of another listener, so that the kernel tracks connections.
    let (listener, other) = (listener(&network), listener(&network));
    let redirect = redirect(&network, &other, Manner::Redirect);
    let port = listener.local_addr().unwrap().port();
    for to in near_addresses(&network, port) {
        let connect = || TcpStream::connect(to).unwrap();
        let _dialed = network.server.run(connect).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(original_destination(&accepted).unwrap(), None, "{to}");
    }
    drop(redirect);
}

#[test]
fn listeners_take_only_what_was_redirected() {
    let Some(network) = network() else {
        return;
    };
    let listener = listener(&network);
    let _redirect = redirect(&network, &listener, Manner::Redirect);
    let port = listener.local_addr().unwrap().port();
    let near = near_addresses(&network, port);
    let loopback = ["127.0.0.1", "::1"].map(|ip| (ip.parse::<IpAddr>().unwrap(), port).into());
    let connect = |to: SocketAddr| move || TcpStream::connect(to).err().map(|error| error.kind());
    for to in near {
        let refused = network.server.run(connect(to)).unwrap();
        assert_eq!(refused, Some(ErrorKind::ConnectionRefused), "{to}");
    }
    for to in near[..2].iter().copied().chain(loopback) {
        let refused = network.host.run(connect(to)).unwrap();
        assert_eq!(refused, Some(ErrorKind::ConnectionRefused), "{to}");
    }
    check(&network, &listener);
}

#[test]
fn the_manner_can_be_changed() {
    let Some(network) = network() else {
        return;
    };
    let listener = listener(&network);
    let mut redirect = redirect(&network, &listener, Manner::Redirect);
    let wanted = |manner| {
        let sources = vec!["10.9.0.0/24".parse().unwrap(), "fd00::/12".parse().unwrap()];
        let port = listener.local_addr().unwrap().port();
        Wanted::new(port, MARK)
            .with_prefixes(["10.4.0.0/16", "fd04::/16"].map(|one| one.parse().unwrap()))
            .with_gateway(Gateway {
                sources,
                port,
                manner,
            })
    };
    let proxy = Manner::Transparent { mark: PROXY_MARK };
    assert!(!redirect.apply(&wanted(Manner::Redirect)).unwrap());
    assert!(redirect.apply(&wanted(proxy)).unwrap());
    assert!(redirect.apply(&wanted(Manner::Redirect)).unwrap());
    check(&network, &listener);
}
