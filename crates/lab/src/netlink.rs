//! The few rtnetlink(7) requests that a lab is made of.

use crate::netns::NetNs;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkDeserializable, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressMessage, AddressScope},
    link::{
        AfSpecInet, AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InetDevConf, InfoData, InfoKind,
        InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
    },
    route::{
        RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope,
        RouteType,
    },
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::fd::AsRawFd;
use std::{io, net::Ipv4Addr};

/// Number of `lo` in every namespace.
pub(crate) const LOOPBACK: u32 = 1;
/// `RT_TABLE_LOCAL` of rtnetlink(7): the addresses that are this host's own.
const TABLE_LOCAL: u8 = 255;

/// A socket to the network namespace in which it was opened.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// One end of a veth pair.
pub(crate) struct VethEnd<'a> {
    pub device: &'a str,
    pub index: u32,
}

impl Netlink {
    /// Opens a socket to the namespace of the calling thread.
    pub fn open() -> io::Result<Netlink> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink {
            socket,
            sequence: 0,
        })
    }

    /// Makes a veth pair: `near` here, `far` in another namespace from the
    /// start.
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

    /// Sets a device up, quiet on IPv6 and forwarding on IPv4.
    ///
    /// By netlink and not by sysctl, since containers often have `/proc/sys`
    /// read-only.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        // No link-local address, hence no router solicitations: a lab at rest
        // sends nothing.
        let quiet = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)]);
        match self.set(index, vec![quiet], false) {
            // A kernel without IPv6 is quiet on it.
            Err(e) if e.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
            other => other?,
        }
        let mut conf = InetDevConf::default();
        conf.forwarding = 1;
        let forwarding = AfSpecUnspec::Inet(vec![AfSpecInet::DevConfRequest(conf)]);
        self.set(index, vec![forwarding], true)
    }

    fn set(&mut self, index: u32, spec: Vec<AfSpecUnspec>, up: bool) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        if up {
            message.header.flags = LinkFlags::Up;
            message.header.change_mask = LinkFlags::Up;
        }
        message.attributes = vec![LinkAttribute::AfSpecUnspec(spec)];
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an address.
    pub fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix;
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(address.into()),
            AddressAttribute::Address(address.into()),
        ];
        self.create(RouteNetlinkMessage::NewAddress(message))
    }

    /// Makes an address the host's own, one that its programs speak *to* from
    /// `source`. With an address on a device they would speak from that itself.
    pub fn add_local(&mut self, address: Ipv4Addr, source: Ipv4Addr) -> io::Result<()> {
        let mut message = route(address, source, LOOPBACK);
        message.header.table = TABLE_LOCAL;
        message.header.scope = RouteScope::Host;
        message.header.kind = RouteType::Local;
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    /// Routes one address over a neighbour.
    pub fn add_route(
        &mut self,
        to: Ipv4Addr,
        via: Ipv4Addr,
        index: u32,
        source: Ipv4Addr,
    ) -> io::Result<()> {
        let mut message = route(to, source, index);
        message
            .attributes
            .push(RouteAttribute::Gateway(RouteAddress::Inet(via)));
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.request(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a request and waits for the kernel's word on it.
    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<Answer>::deserialize(&answer).map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::Error(e) if answer.header.sequence_number == self.sequence => {
                match e.code {
                    None => Ok(()),
                    Some(code) => Err(io::Error::from_raw_os_error(code.get().abs())),
                }
            }
            other => Err(io::Error::other(format!(
                "the kernel answered a request with {other:?}"
            ))),
        }
    }
}

/// Answers to requests are acknowledgements or errors, which the payload type
/// is not asked for.
#[derive(Debug)]
struct Answer;

impl NetlinkDeserializable for Answer {
    type Error = std::convert::Infallible;
    fn deserialize(_: &netlink_packet_core::NetlinkHeader, _: &[u8]) -> Result<Self, Self::Error> {
        Ok(Answer)
    }
}

fn route(to: Ipv4Addr, source: Ipv4Addr, index: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: 32,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Universe,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet(to)),
        RouteAttribute::PrefSource(RouteAddress::Inet(source)),
        RouteAttribute::Oif(index),
    ];
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::is_privileged;
    use std::net::UdpSocket;

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
        };
        let far = VethEnd {
            device: "if7",
            index: 1007,
        };
        a.run(|| Netlink::open().unwrap().add_veth(&near, &far, &b, 1428))
            .unwrap()
            .unwrap();
        for (ns, n, index) in [(&a, 1u8, 1001), (&b, 2, 1007)] {
            ns.run(|| {
                let mut link = Netlink::open().unwrap();
                let host = Ipv4Addr::new(10, 0, n, 1);
                link.set_up(LOOPBACK).unwrap();
                link.add_address(LOOPBACK, host, 32).unwrap();
                link.add_local(Ipv4Addr::new(10, 0, n, 254), host).unwrap();
                link.set_up(index).unwrap();
                let end = |n| Ipv4Addr::new(10, 128, 0, n - 1);
                link.add_address(index, end(n), 31).unwrap();
                let other = Ipv4Addr::new(10, 0, 3 - n, 1);
                link.add_route(other, end(3 - n), index, host).unwrap();
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
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.connect(to).unwrap();
                socket.local_addr().unwrap().ip().to_string()
            })
            .unwrap()
        };
        assert_eq!(from("10.0.1.254:30042"), "10.0.1.1");
        assert_eq!(from("10.0.2.1:1"), "10.0.1.1");
        // Links are spoken on from the link's own address.
        assert_eq!(from("10.128.0.1:50000"), "10.128.0.0");
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
    fn what_the_kernel_refuses_is_told() {
        let Some((a, b)) = pair() else { return };
        let end = || VethEnd {
            device: "if1",
            index: 1001,
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
            assert!(!v6.contains("if1"), "{v6}");
            let dev = std::fs::read_to_string(format!("{net}/dev")).unwrap();
            assert!(dev.contains("if1:"), "{dev}");
            let forwarding = "/proc/sys/net/ipv4/conf/if1/forwarding";
            assert_eq!(std::fs::read_to_string(forwarding).unwrap().trim(), "1");
        })
        .unwrap();
    }
}
