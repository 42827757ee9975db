//! The parts of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_topology::{AsTopology, IsdAsn, Link, LinkState, Side};
use serde::{Deserialize, Serialize};

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// One AS, which has a namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AsPlan {
    pub isd_as: IsdAsn,
    /// Its addresses follow from this number, which it keeps as long as the lab has it.
    pub number: u32,
    /// The IPv4 address of the host.
    pub host: Ipv4Addr,
    /// The IPv6 address of the host, if the AS's underlay is IPv6.
    pub host6: Option<Ipv6Addr>,
    /// The address of the control service, which it keeps if routers come and go.
    pub control: IpAddr,
    /// The border routers, at least one, by number.
    pub routers: Vec<RouterPlan>,
    /// MTU of the loopback device in bytes, which stands for the network inside the AS.
    pub inner_mtu: u32,
    /// Contents of `topology.json`.
    pub topology: AsTopology,
    /// Contents of `links.json`.
    pub links: BTreeMap<u16, LinkState>,
    /// Plain-IP routes to the hosts of the other ASes.
    pub routes: Vec<Route>,
}

/// A border router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouterPlan {
    /// Its name in the topology file, see [`End::router`](hawser_topology::End::router).
    pub label: String,
    /// Its name and address follow from this number, which it keeps as long as the AS has it.
    pub number: u32,
    /// Its name in `topology.json`.
    pub name: String,
    /// Its internal address.
    pub address: IpAddr,
}

impl AsPlan {
    /// The SCION address of the host.
    pub fn scion_host(&self) -> IpAddr {
        self.host6.map_or(self.host.into(), IpAddr::from)
    }

    /// The addresses of its routers and its control service.
    pub fn services(&self) -> BTreeSet<IpAddr> {
        let routers = self.routers.iter().map(|router| router.address);
        routers.chain([self.control]).collect()
    }
}

/// A plain-IP route to the host of another AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub to: Ipv4Addr,
    /// The far end of the link.
    pub via: Ipv4Addr,
    /// Index of the device, see [`EndPlan::index`].
    pub index: u32,
}

/// A link, named by its interfaces at end `a` and at end `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LinkId(pub (IsdAsn, u16), pub (IsdAsn, u16));

impl LinkId {
    pub fn of(link: &Link) -> Self {
        Self((link.a.isd_as, link.a.id), (link.b.isd_as, link.b.id))
    }

    /// The interfaces at both ends.
    pub fn ends(self) -> [(IsdAsn, u16); 2] {
        [self.0, self.1]
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self((a, a_id), (b, b_id)) = self;
        write!(f, "{a}#{a_id} - {b}#{b_id}")
    }
}

/// One link, which is a veth pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkPlan {
    /// Its addresses follow from this number, which it keeps as long as the lab has it.
    pub number: u32,
    pub a: EndPlan,
    pub b: EndPlan,
    /// MTU of the devices in bytes, including the headers of the underlay.
    pub mtu: u32,
}

/// One end of a link, which is a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndPlan {
    /// Its AS.
    pub isd_as: IsdAsn,
    /// The number of the interface.
    pub id: u16,
    /// The number of the border router that has it.
    pub router: u32,
    /// The name of the device in the AS's namespace.
    pub device: String,
    /// The index of the device in the namespace. The plan chooses it, so that no request to the
    /// kernel is needed.
    pub index: u32,
    /// The address for plain IP, and for SCION if the link's underlay is IPv4.
    pub address: Ipv4Addr,
    /// The address for SCION if the link's underlay is IPv6.
    pub address6: Option<Ipv6Addr>,
    /// The Ethernet address, for which the other end has a permanent neighbour entry.
    pub mac: Mac,
}

impl EndPlan {
    /// The underlay address.
    pub fn underlay(&self) -> IpAddr {
        self.address6.map_or(self.address.into(), IpAddr::from)
    }
}

impl LinkPlan {
    pub fn id(&self) -> LinkId {
        LinkId((self.a.isd_as, self.a.id), (self.b.isd_as, self.b.id))
    }

    pub fn end(&self, side: Side) -> &EndPlan {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}
