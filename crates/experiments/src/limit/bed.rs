//! Two network namespaces that a pair of devices joins: the attachment point, where limits are set,
//! and its user.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::{NetNs, become_root_of_own, is_privileged};
use hawser_kernel::netlink::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::names::{IpVersion, Way};
use crate::error::{During, ExperimentError};

/// The device of the attachment point, on which limits are set.
pub const DEVICE: &str = "point";
/// The device of the user.
const USER: &str = "user";
/// The user's addresses: each is the far end of a link.
pub const USED: u8 = 4;
const MTU: u32 = 1500;
/// Seconds for which a namespace keeps the fragments of an IPv6 datagram.
const FRAGMENTS_TIMEOUT: &str = "/proc/sys/net/ipv6/ip6frag_time";
/// Hardware addresses of the attachment point and the user.
const MAC: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// The two namespaces, which end with this.
pub struct Bed {
    /// The attachment point.
    pub point: NetNs,
    /// Its user.
    pub user: NetNs,
}

/// The attachment point's address.
pub fn near(ip: IpVersion) -> IpAddr {
    match ip {
        IpVersion::V4 => Ipv4Addr::new(10, 7, 0, 1).into(),
        IpVersion::V6 => Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

/// The user's address with a number below [`USED`].
pub fn far(ip: IpVersion, number: u8) -> IpAddr {
    match ip {
        IpVersion::V4 => Ipv4Addr::new(10, 7, 1, number).into(),
        IpVersion::V6 => Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 1, number.into()).into(),
    }
}

/// The addresses from and to which packets go.
pub fn ends(ip: IpVersion, way: Way, number: u8) -> (IpAddr, IpAddr) {
    match way {
        Way::Egress => (near(ip), far(ip, number)),
        Way::Ingress => (far(ip, number), near(ip)),
    }
}

impl Bed {
    /// Makes the namespaces, in a user namespace without root.
    pub fn make() -> Result<Self, ExperimentError> {
        if !is_privileged() {
            become_root_of_own().during(
                "user namespaces are not allowed here: run as root, or allow them (sysctl \
                 user.max_user_namespaces above 0)",
            )?;
        }
        let make = || NetNs::create().during("making a network namespace");
        let (point, user) = (make()?, make()?);
        let bed = Self { point, user };
        let joined = bed.point.run(|| bed.join());
        joined.during("entering a network namespace")??;
        let versions = [IpVersion::V4, IpVersion::V6];
        let here = versions.map(near).to_vec();
        let all = |ip| (0..USED).map(move |number| far(ip, number));
        let there: Vec<IpAddr> = versions.into_iter().flat_map(all).collect();
        let sides = [
            (&bed.point, DEVICE, &here, &there, MAC[1]),
            (&bed.user, USER, &there, &here, MAC[0]),
        ];
        for (namespace, device, own, others, mac) in sides {
            let done = namespace.run(|| configure(device, own, others, mac));
            done.during("entering a network namespace")??;
        }
        Ok(bed)
    }

    /// The namespaces that send and receive.
    pub fn sides(&self, way: Way) -> (&NetNs, &NetNs) {
        match way {
            Way::Egress => (&self.point, &self.user),
            Way::Ingress => (&self.user, &self.point),
        }
    }

    fn join(&self) -> Result<(), ExperimentError> {
        let end = |name: &str, mac: [u8; 6]| {
            let mut message = LinkMessage::default();
            message.attributes = vec![
                LinkAttribute::IfName(name.to_owned()),
                LinkAttribute::Mtu(MTU),
                LinkAttribute::Address(mac.to_vec()),
            ];
            message
        };
        let mut peer = end(USER, MAC[1]);
        let namespace = self.user.as_fd().as_raw_fd();
        peer.attributes.push(LinkAttribute::NetNsFd(namespace));
        let mut message = end(DEVICE, MAC[0]);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let step = "making a pair of devices";
        let mut netlink = Netlink::open().during(step)?;
        let request = RouteNetlinkMessage::NewLink(message);
        netlink
            .request(request, NLM_F_CREATE | NLM_F_EXCL)
            .during(step)?;
        Ok(())
    }
}

fn configure(
    device: &str,
    own: &[IpAddr],
    others: &[IpAddr],
    mac: [u8; 6],
) -> Result<(), ExperimentError> {
    let step = || format!("setting up the device {device}");
    let mut netlink = Netlink::open().during(step())?;
    netlink.set_up(LOOPBACK, true).during(step())?;
    let found = netlink.interface(device).during(step())?;
    let index = found.ok_or("it is gone").during(step())?.index;
    netlink.set_up(index, true).during(step())?;
    for address in own {
        let prefix = if address.is_ipv4() { 16 } else { 64 };
        netlink
            .add_address(index, *address, prefix)
            .during(step())?;
    }
    // By default the kernel gives fragments up after a minute, and says so to their sender over the link:
    // in the middle of another measurement.
    fs::write(FRAGMENTS_TIMEOUT, "1").during(step())?;
    // Where packets wait, or are dropped, neighbours would not be found again.
    for address in others {
        let mut message = NeighbourMessage::default();
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        let to = match *address {
            IpAddr::V4(address) => {
                message.header.family = AddressFamily::Inet;
                NeighbourAddress::Inet(address)
            }
            IpAddr::V6(address) => {
                message.header.family = AddressFamily::Inet6;
                NeighbourAddress::Inet6(address)
            }
        };
        message.attributes = vec![
            NeighbourAttribute::Destination(to),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        let request = RouteNetlinkMessage::NewNeighbour(message);
        netlink
            .request(request, NLM_F_CREATE | NLM_F_EXCL)
            .during(step())?;
    }
    Ok(())
}
