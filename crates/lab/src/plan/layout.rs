//! The parts of a plan.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_topology::{AsTopology, IsdAsn, LinkState, Side};
use serde::{Deserialize, Serialize};

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// One AS, which has a namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AsPlan {
    pub isd_as: IsdAsn,
    /// The IPv4 address of the host.
    pub host: Ipv4Addr,
    /// The IPv6 address of the host, if the AS's underlay is IPv6.
    pub host6: Option<Ipv6Addr>,
    /// The border routers, at least one.
    pub routers: Vec<RouterPlan>,
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
    /// Its name in `topology.json`.
    pub name: String,
    /// Its internal address; the control service has that of the first router.
    pub address: IpAddr,
}

impl AsPlan {
    /// The SCION address of the host.
    pub fn scion_host(&self) -> IpAddr {
        self.host6.map_or(self.host.into(), IpAddr::from)
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

/// One link, which is a veth pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkPlan {
    pub a: EndPlan,
    pub b: EndPlan,
    /// MTU of the devices in bytes, including the headers of the underlay.
    pub mtu: u32,
}

/// One end of a link, which is a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndPlan {
    /// Index of its AS in [`Plan::ases`].
    ///
    /// [`Plan::ases`]: super::Plan::ases
    pub owner: usize,
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
    pub fn end(&self, side: Side) -> &EndPlan {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}
