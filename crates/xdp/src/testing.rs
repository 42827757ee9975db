//! Two namespaces and a veth pair between them, for tests.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::frame::Mac;
use crate::{Port, XdpError};

/// The name of the device in each namespace.
pub(crate) const DEVICE: &str = "veth";
const INDEX: u32 = 10;
const LOOPBACK: u32 = 1;

/// One of two hosts.
pub(crate) struct Host {
    namespace: NetNs,
    /// Distinguishes the addresses of the hosts.
    number: u8,
}

/// Two hosts with a cable between them, packets of at most `mtu` bytes on it, and so many receive
/// queues at each end; `None`, with a message, where that is not allowed.
pub(crate) fn hosts(mtu: u32, queues: u32) -> Option<(Host, Host)> {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return None;
    }
    let [near, far] = [1, 2].map(|number| Host {
        namespace: NetNs::create().unwrap(),
        number,
    });
    let end = |host: &Host| {
        let mut message = LinkMessage::default();
        message.header.index = INDEX;
        message.attributes = vec![
            LinkAttribute::IfName(DEVICE.to_owned()),
            LinkAttribute::Mtu(mtu),
            LinkAttribute::Address(host.mac().to_vec()),
            LinkAttribute::NumRxQueues(queues),
            LinkAttribute::NumTxQueues(queues),
        ];
        message
    };
    let mut peer = end(&far);
    let fd = far.namespace.as_fd().as_raw_fd();
    peer.attributes.push(LinkAttribute::NetNsFd(fd));
    let mut veth = end(&near);
    veth.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    near.change(vec![RouteNetlinkMessage::NewLink(veth)]);
    for host in [&near, &far] {
        host.set_up(LOOPBACK, true);
        host.set_up(INDEX, true);
        for v6 in [false, true] {
            let mut message = AddressMessage::default();
            let ip = host.ip(v6);
            message.header.family = family(ip);
            message.header.prefix_len = if v6 { 64 } else { 24 };
            message.header.scope = AddressScope::Universe;
            message.header.index = INDEX;
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
            host.change(vec![RouteNetlinkMessage::NewAddress(message)]);
        }
    }
    Some((near, far))
}

fn family(ip: IpAddr) -> AddressFamily {
    match ip {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

impl Host {
    pub(crate) fn ip(&self, v6: bool) -> IpAddr {
        let text = match v6 {
            false => format!("10.9.0.{}", self.number),
            true => format!("fd09::{}", self.number),
        };
        text.parse().unwrap()
    }

    pub(crate) fn mac(&self) -> Mac {
        [2, 0, 0, 9, 0, self.number]
    }

    /// Runs `job` at this host.
    pub(crate) fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        self.namespace.run(job).unwrap()
    }

    fn change(&self, requests: Vec<RouteNetlinkMessage>) {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.run(|| Netlink::open()?.batch(requests, flags))
            .unwrap();
    }

    pub(crate) fn set_up(&self, index: u32, up: bool) {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags.set(LinkFlags::Up, up);
        message.header.change_mask = LinkFlags::Up;
        let message = vec![RouteNetlinkMessage::SetLink(message)];
        self.run(|| Netlink::open()?.batch(message, 0)).unwrap();
    }

    /// Takes the device down.
    pub(crate) fn cut(&self) {
        self.set_up(INDEX, false);
    }

    /// Sets the neighbour `ip` to `mac` for good.
    pub(crate) fn set_neighbour(&self, ip: IpAddr, mac: Mac) {
        let mut message = NeighbourMessage::default();
        message.header.family = family(ip);
        message.header.ifindex = INDEX;
        message.header.state = NeighbourState::Permanent;
        let destination = match ip {
            IpAddr::V4(ip) => NeighbourAddress::Inet(ip),
            IpAddr::V6(ip) => NeighbourAddress::Inet6(ip),
        };
        message.attributes = vec![
            NeighbourAttribute::Destination(destination),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        let message = vec![RouteNetlinkMessage::NewNeighbour(message)];
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.run(|| Netlink::open()?.batch(message, flags)).unwrap();
    }

    /// A UDP socket at any port, whose receives end after a while.
    pub(crate) fn bind(&self, v6: bool) -> (UdpSocket, SocketAddr) {
        let socket = self.run(|| UdpSocket::bind((self.ip(v6), 0))).unwrap();
        let timeout = Some(Duration::from_secs(10));
        socket.set_read_timeout(timeout).unwrap();
        let local = socket.local_addr().unwrap();
        (socket, local)
    }

    /// A port for the datagrams to `local`; `None`, with a message, where that is not allowed.
    pub(crate) fn open(&self, local: SocketAddr) -> Option<Port> {
        match self.run(|| Port::open(DEVICE, local)) {
            Err(error @ XdpError::NotPermitted { .. }) => {
                eprintln!("skipped: {error}");
                None
            }
            other => Some(other.unwrap()),
        }
    }
}
