//! Pairs of devices that join network namespaces (veth(4)), and neighbours behind them.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::namespace::NetNs;
use crate::netlink::{Netlink, NetlinkError};

/// One end of a pair of devices.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// The name of the device.
    pub device: &'a str,
    /// Its number in its namespace; 0 for one that the kernel chooses.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: [u8; 6],
}

impl Netlink {
    /// Creates a pair of devices with this MTU: `near` in this socket's namespace, `far` directly in
    /// another one. Both are down.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN` in both namespaces, or when a device of one of the names exists.
    pub fn add_veth(
        &mut self,
        near: &VethEnd<'_>,
        far: &VethEnd<'_>,
        far_ns: &NetNs,
        mtu: u32,
    ) -> Result<(), NetlinkError> {
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
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewLink(message), flags)
    }

    /// Sets the Ethernet address of a neighbour, until the device goes down.
    ///
    /// The kernel has one table of learned neighbours for all namespaces, including the machine's,
    /// with 1024 entries by default (`gc_thresh3` of arp(7)). Permanent entries do not count.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when there is no such device.
    pub fn add_neighbour(
        &mut self,
        index: u32,
        address: IpAddr,
        mac: [u8; 6],
    ) -> Result<(), NetlinkError> {
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
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewNeighbour(message), flags)
    }
}
