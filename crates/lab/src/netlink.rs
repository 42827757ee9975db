//! The few rtnetlink(7) requests that a lab is made of.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkDeserializable,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    AfSpecInet, AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InetDevConf, InfoData, InfoKind,
    InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::fd::AsRawFd;

use crate::netns::NetNs;
use crate::plan::Route;

/// Number of `lo` in every namespace.
pub(crate) const LOOPBACK: u32 = 1;
/// `RT_TABLE_LOCAL` of rtnetlink(7): the addresses that are this host's own.
const TABLE_LOCAL: u8 = 255;

/// Requests sent at once: the answers to all of them, if they fail, fit into a socket's buffer.
const BATCH: usize = 128;

/// How often, and how long in all, a route that the kernel is to add is looked for.
const MOMENT: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket to the network namespace in which it was opened.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// One end of a veth pair.
pub(crate) struct VethEnd<'a> {
    pub device: &'a str,
    pub index: u32,
    pub mac: Mac,
}

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

impl Netlink {
    /// Opens a socket to the namespace of the calling thread.
    pub fn open() -> io::Result<Self> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Makes a veth pair: `near` here, `far` in another namespace from the start.
    pub fn add_veth(
        &mut self,
        near: &VethEnd<'_>,
        far: &VethEnd<'_>,
        far_ns: &NetNs,
        mtu: u32,
    ) -> io::Result<()> {
        let end = |end: &VethEnd<'_>| {
            let mut message = LinkMessage::default();
            message.header.index = end.index;
            message.attributes = vec![
                LinkAttribute::IfName(end.device.to_owned()),
                LinkAttribute::Mtu(mtu),
                LinkAttribute::Address(end.mac.to_vec()),
            ];
            message
        };
        let mut peer = end(far);
        let fd = far_ns.as_fd().as_raw_fd();
        peer.attributes.push(LinkAttribute::NetNsFd(fd));
        let mut message = end(near);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.create(RouteNetlinkMessage::NewLink(message))
    }

    /// Makes a device quiet on IPv6 and forwarding on IPv4.
    ///
    /// By netlink and not by sysctl, since containers often have `/proc/sys` read-only.
    pub fn configure(&mut self, index: u32) -> io::Result<()> {
        // No link-local address, hence no router solicitations: a lab at rest sends nothing but
        // what watches its links.
        let quiet = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)]);
        match self.set(index, vec![quiet]) {
            // A kernel without IPv6 is quiet on it.
            Err(e) if e.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
            other => other?,
        }
        let mut conf = InetDevConf::default();
        conf.forwarding = 1;
        let forwarding = AfSpecUnspec::Inet(vec![AfSpecInet::DevConfRequest(conf)]);
        self.set(index, vec![forwarding])
    }

    fn set(&mut self, index: u32, spec: Vec<AfSpecUnspec>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![LinkAttribute::AfSpecUnspec(spec)];
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Sets a device up.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        self.set_flags(index, LinkFlags::Up)
    }

    /// Sets a device down. It keeps its IPv4 addresses and loses all else.
    pub fn set_down(&mut self, index: u32) -> io::Result<()> {
        self.set_flags(index, LinkFlags::empty())
    }

    fn set_flags(&mut self, index: u32, flags: LinkFlags) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = flags;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an address.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.prefix_len = prefix;
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        if address.is_ipv6() {
            // Nobody else can have it, and it is to be usable at once.
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        self.create(RouteNetlinkMessage::NewAddress(message))
    }

    /// Makes an address the host's own, one that its programs speak *to* from `source`. With an
    /// address on a device they would speak from that itself.
    pub fn add_local(&mut self, address: Ipv4Addr, source: Ipv4Addr) -> io::Result<()> {
        let message = local_route(address.into(), source.into());
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    /// The same in IPv6, where programs bind only addresses that a device has: the route that comes
    /// with it gives way to one with a source.
    pub fn add_local6(&mut self, address: Ipv6Addr, source: Ipv6Addr) -> io::Result<()> {
        self.add_address(LOOPBACK, address.into(), 128)?;
        let mut message = local_route(address.into(), source.into());
        self.create(RouteNetlinkMessage::NewRoute(message.clone()))?;
        message.header.protocol = RouteProtocol::Kernel;
        message
            .attributes
            .retain(|a| !matches!(a, RouteAttribute::PrefSource(_)));
        // The kernel adds its own route a moment after the address.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let removed = self.request(RouteNetlinkMessage::DelRoute(message.clone()), 0);
            match removed {
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) && Instant::now() < deadline => {
                    std::thread::sleep(MOMENT);
                }
                other => return other,
            }
        }
    }

    /// Says where a neighbour is, for as long as the device is up.
    ///
    /// The kernel has one table of learned neighbours for all namespaces, the machine's own among
    /// them, of 1024 entries unless set otherwise (`gc_thresh3` of arp(7)). An entry that is
    /// permanent takes no place there.
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(address.into()),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        let message = RouteNetlinkMessage::NewNeighbour(message);
        self.request(message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Routes addresses over neighbours, from one source; those that are there are replaced. TCP to
    /// and from there is controlled by CUBIC, whatever the host is set to, so that measurements
    /// compare: BBR takes the burst that a limit lets through for the link's rate. A kernel that
    /// has no CUBIC uses what it has.
    pub fn add_routes(&mut self, routes: &[Route], source: Ipv4Addr) -> io::Result<()> {
        let cubic = RouteMetric::CcAlgo("cubic".to_owned());
        let cubic = RouteAttribute::Metrics(vec![cubic]);
        match self.add_routes_with(routes, source, Some(&cubic)) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.add_routes_with(routes, source, None)
            }
            made => made,
        }
    }

    fn add_routes_with(
        &mut self,
        routes: &[Route],
        source: Ipv4Addr,
        more: Option<&RouteAttribute>,
    ) -> io::Result<()> {
        let message = |to: &Route| {
            let mut message = route(to.to.into(), source.into(), to.index);
            let via = RouteAttribute::Gateway(RouteAddress::Inet(to.via));
            message.attributes.push(via);
            message.attributes.extend(more.cloned());
            RouteNetlinkMessage::NewRoute(message)
        };
        for some in routes.chunks(BATCH) {
            self.batch(some.iter().map(message), NLM_F_CREATE | NLM_F_REPLACE)?;
        }
        Ok(())
    }

    fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.request(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a request and waits for the kernel's answer.
    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.batch(std::iter::once(message), flags)
    }

    /// Sends requests at once, and waits for the kernel's answer: netlink(7) has it take them one
    /// after the other, and answer those that fail and the last one. Returns the first error.
    fn batch(
        &mut self,
        messages: impl Iterator<Item = RouteNetlinkMessage>,
        flags: u16,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut messages = messages.peekable();
        while let Some(message) = messages.next() {
            self.sequence += 1;
            let mut message = NetlinkMessage::from(message);
            message.header.flags = NLM_F_REQUEST | flags;
            if messages.peek().is_none() {
                message.header.flags |= NLM_F_ACK;
            }
            message.header.sequence_number = self.sequence;
            message.finalize();
            let start = bytes.len();
            // Messages begin at multiples of four bytes.
            bytes.resize(start + message.buffer_len().next_multiple_of(4), 0);
            message.serialize(&mut bytes[start..]);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.socket.send(&bytes, 0)?;
        let mut result = Ok(());
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let answer =
                NetlinkMessage::<Answer>::deserialize(&answer).map_err(io::Error::other)?;
            let NetlinkPayload::Error(error) = answer.payload else {
                let payload = answer.payload;
                return Err(io::Error::other(format!(
                    "the kernel answered a request with {payload:?}"
                )));
            };
            if let (Ok(()), Some(code)) = (&result, error.code) {
                result = Err(io::Error::from_raw_os_error(code.get().abs()));
            }
            if answer.header.sequence_number == self.sequence {
                return result;
            }
        }
    }
}

/// Answers to requests are acknowledgements or errors, which the payload type is not asked for.
#[derive(Debug)]
struct Answer;

impl NetlinkDeserializable for Answer {
    type Error = std::convert::Infallible;
    fn deserialize(_: &netlink_packet_core::NetlinkHeader, _: &[u8]) -> Result<Self, Self::Error> {
        Ok(Self)
    }
}

/// A route that makes an address the host's own.
fn local_route(to: IpAddr, source: IpAddr) -> RouteMessage {
    let mut message = route(to, source, LOOPBACK);
    message.header.table = TABLE_LOCAL;
    message.header.scope = RouteScope::Host;
    message.header.kind = RouteType::Local;
    message
}

fn route(to: IpAddr, source: IpAddr, index: u32) -> RouteMessage {
    let (address_family, destination_prefix_length) = match to {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family,
        destination_prefix_length,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Universe,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![
        RouteAttribute::Destination(to.into()),
        RouteAttribute::PrefSource(source.into()),
        RouteAttribute::Oif(index),
    ];
    message
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;
    use crate::netns::is_privileged;

    /// Two hosts and a link between them, as the plan lays them out.
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
                link.set_up(LOOPBACK).unwrap();
                link.add_address(LOOPBACK, host.into(), 32).unwrap();
                link.add_local(Ipv4Addr::new(10, 0, n, 254), host).unwrap();
                let host6: Ipv6Addr = format!("fd00:0:0:{n}::1").parse().unwrap();
                link.add_address(LOOPBACK, host6.into(), 128).unwrap();
                let service: Ipv6Addr = format!("fd00:0:0:{n}::fe").parse().unwrap();
                link.add_local6(service, host6).unwrap();
                link.configure(index).unwrap();
                link.set_up(index).unwrap();
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
                // More than one batch; and again, as after half of it has failed.
                assert!(routes.len() > BATCH);
                link.add_routes(&routes, host).unwrap();
                link.add_routes(&routes, host).unwrap();
            })
            .unwrap();
        }
        Some((a, b))
    }

    #[test]
    fn hosts_speak_from_their_host_address() {
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
        // Links are spoken on from the link's own address.
        assert_eq!(from("10.128.0.1:50000"), "10.128.0.0");
        assert_eq!(from("[fd00:0:0:1::fe]:30042"), "fd00:0:0:1::1");
        assert_eq!(from("[fd00:0:1::1]:50000"), "fd00:0:1::");
    }

    #[test]
    fn packets_cross_the_link() {
        let Some((a, b)) = pair() else { return };
        let there = b.run(|| UdpSocket::bind("10.0.2.1:7000").unwrap()).unwrap();
        // A service binds its address though no device has it.
        let service = a
            .run(|| UdpSocket::bind("10.0.1.254:30042").unwrap())
            .unwrap();
        let here = a.run(|| UdpSocket::bind("10.0.1.1:0").unwrap()).unwrap();
        here.send_to(b"over", "10.0.2.1:7000").unwrap();
        let mut bytes = [0; 8];
        let (n, from) = there.recv_from(&mut bytes).unwrap();
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
        here.send_to(b"over", "[fd00:0:1::1]:50000").unwrap();
        assert_eq!(there.recv_from(&mut bytes).unwrap().0, 4);
        there.send_to(b"back", "[fd00:0:1::]:50000").unwrap();
        assert_eq!(here.recv_from(&mut bytes).unwrap().0, 4);
        let service = bind(&a, "[fd00:0:0:1::fe]:30042");
        let host = bind(&a, "[::]:0");
        host.send_to(b"within", "[fd00:0:0:1::fe]:30042").unwrap();
        let (n, from) = service.recv_from(&mut bytes).unwrap();
        assert_eq!((n, from.ip().to_string()), (6, "fd00:0:0:1::1".to_owned()));
    }

    #[test]
    fn one_refusal_of_many_is_told() {
        let Some((a, _b)) = pair() else { return };
        let route = |other, via| Route {
            to: Ipv4Addr::new(10, 1, other, 1),
            via,
            index: 1001,
        };
        let mut routes: Vec<_> = (0..100)
            .map(|other| route(other, Ipv4Addr::new(10, 128, 0, 1)))
            .collect();
        // Not on the link.
        routes[50].via = Ipv4Addr::new(10, 99, 0, 1);
        let host = Ipv4Addr::new(10, 0, 1, 1);
        a.run(|| {
            let mut link = Netlink::open().unwrap();
            let error = link.add_routes(&routes, host).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENETUNREACH));
            // No answer is left that the next request could take for its own.
            link.add_routes(&routes[..1], host).unwrap();
        })
        .unwrap();
    }

    #[test]
    fn what_the_kernel_refuses_is_told() {
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
        assert_eq!(error.raw_os_error(), Some(libc::EEXIST));
    }

    #[test]
    fn devices_are_quiet_and_forward() {
        let Some((a, _b)) = pair() else { return };
        a.run(|| {
            // The calling thread's, not the process's.
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
}
