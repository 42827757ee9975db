//! A host, and a server on a link with it.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use hawser_kernel::route::Route;
use hawser_kernel::socket::set_option;
use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd};
use rustix::net::{AddressFamily, SocketType};

use crate::original_destination;

/// Index of both ends of the link.
pub const LINK: u32 = 10;
/// The port of the server.
pub const PORT: u16 = 443;

/// Two hosts with a link between them. The host has `10.9.0.1` and `fd09::1`; the server has
/// `10.N.0.7` and `fd0N::7` for N from 1 to 3, and accepts connections on [`PORT`].
pub struct Network {
    pub host: NetNs,
    pub server: NetNs,
    /// The listener that captures, on the loopback addresses of the host.
    pub ours: [TcpListener; 2],
    /// A listener on [`PORT`] of the host.
    near: TcpListener,
    far: TcpListener,
}

/// Where a connection arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived {
    /// At our listener; with the original destination.
    Captured(SocketAddr),
    /// At a server; with the address that the server sees as its own.
    Through(SocketAddr),
}

impl Network {
    /// `None` if this user may not create namespaces.
    pub fn create() -> Option<Self> {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return None;
        }
        let (host, server) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        host.run(|| add_veth(&server)).unwrap();
        host.run(|| configure(&["10.9.0.1/24", "fd09::1/32"]))
            .unwrap();
        let addresses = ["10.9.0.2/24", "fd09::2/32"];
        let servers = ["10.1.0.7/32", "10.2.0.7/32", "10.3.0.7/32"];
        let servers6 = ["fd01::7/128", "fd02::7/128", "fd03::7/128"];
        let all = [&addresses[..], &servers, &servers6].concat();
        server.run(|| configure(&all)).unwrap();
        let routes = || {
            let mut netlink = Netlink::open().unwrap();
            for n in 1..=3 {
                for destination in [format!("10.{n}.0.0/16"), format!("fd0{n}::/16")] {
                    let route = Route::new(destination.parse().unwrap(), LINK);
                    netlink.add_route(&route).unwrap();
                }
            }
        };
        host.run(routes).unwrap();
        let listen = |ns: &NetNs, address: &str, port| {
            let listen = || TcpListener::bind((address, port)).unwrap();
            ns.run(listen).unwrap()
        };
        let v4 = listen(&host, "127.0.0.1", 0);
        let v6 = listen(&host, "::1", v4.local_addr().unwrap().port());
        Some(Self {
            near: listen(&host, "::", PORT),
            far: listen(&server, "::", PORT),
            ours: [v4, v6],
            host,
            server,
        })
    }

    /// The port of our listener.
    pub fn port(&self) -> u16 {
        self.ours[0].local_addr().unwrap().port()
    }

    /// Connects from the host to [`PORT`] of `to`, with a mark unless it is 0.
    pub fn connect(&self, to: &str, mark: u32) -> Arrived {
        let to = SocketAddr::new(to.parse().unwrap(), PORT);
        let _connected = self.host.run(|| connect(to, mark)).unwrap().unwrap();
        self.accept()
    }

    /// A connection from the host to the server at `to`, and the server's end. What is not read in
    /// time is an error.
    pub fn pair(&self, to: &str) -> (TcpStream, TcpStream) {
        let to = SocketAddr::new(to.parse().unwrap(), PORT);
        let near = self.host.run(|| connect(to, 0)).unwrap().unwrap();
        let (far, _) = self.far.accept().unwrap();
        for end in [&near, &far] {
            end.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        }
        (near, far)
    }

    /// Accepts the only connection.
    pub fn accept(&self) -> Arrived {
        let [v4, v6] = &self.ours;
        let all = [v4, v6, &self.near, &self.far];
        let mut polled = all.map(|one| PollFd::new(one, PollFlags::IN));
        poll(&mut polled, None).unwrap();
        let ready = polled.iter().position(|one| !one.revents().is_empty());
        let ready = ready.unwrap();
        let (accepted, _) = all[ready].accept().unwrap();
        match ready {
            0 | 1 => Arrived::Captured(original_destination(&accepted).unwrap().unwrap()),
            _ => {
                let local = accepted.local_addr().unwrap();
                Arrived::Through((local.ip().to_canonical(), local.port()).into())
            }
        }
    }
}

pub fn captured(to: &str) -> Arrived {
    Arrived::Captured((to.parse::<IpAddr>().unwrap(), PORT).into())
}

pub fn through(to: &str) -> Arrived {
    Arrived::Through((to.parse::<IpAddr>().unwrap(), PORT).into())
}

/// Connects from a socket with a mark unless it is 0.
fn connect(to: SocketAddr, mark: u32) -> io::Result<TcpStream> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    if mark != 0 {
        set_option(&socket, libc::SOL_SOCKET, libc::SO_MARK, mark as i32)?;
    }
    rustix::net::connect(&socket, &to)?;
    Ok(socket.into())
}

/// Creates the link from this namespace to `other`.
fn add_veth(other: &NetNs) {
    let end = |name: &str| {
        let mut message = LinkMessage::default();
        message.header.index = LINK;
        message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        message
    };
    let mut peer = end("far");
    let fd = other.as_fd().as_raw_fd();
    peer.attributes.push(LinkAttribute::NetNsFd(fd));
    let mut message = end("near");
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    let mut netlink = Netlink::open().unwrap();
    netlink
        .request(RouteNetlinkMessage::NewLink(message), flags)
        .unwrap();
}

/// Sets the devices up, and adds addresses to the link.
fn configure(addresses: &[&str]) {
    let mut netlink = Netlink::open().unwrap();
    for device in [LOOPBACK, LINK] {
        netlink.set_up(device, true).unwrap();
    }
    for address in addresses {
        let (address, prefix) = address.split_once('/').unwrap();
        let address: IpAddr = address.parse().unwrap();
        let prefix = prefix.parse().unwrap();
        netlink.add_address(LINK, address, prefix).unwrap();
        // The kernel makes IPv6 addresses local shortly afterwards.
        while !is_local(&mut netlink, address) {
            std::thread::yield_now();
        }
    }
}

/// Whether this host has a route by which it takes packets to the address.
pub fn is_local(netlink: &mut Netlink, address: IpAddr) -> bool {
    /// `RT_TABLE_LOCAL` of rtnetlink(7).
    const LOCAL: u32 = 255;
    let routes = netlink.routes(LOCAL).unwrap();
    let mut routes = routes.into_iter();
    routes.any(|route| route.local && route.destination == IpNet::from(address))
}
