//! The address plan: a network turned into namespaces, devices and addresses.
//!
//! Pure: the same network always gets the same plan.

mod address;
mod files;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_topology::{AsTopology, IsdAsn, Link, LinkState, Network, Side, Underlay};

use crate::name::as_folder;
use crate::netlink::Mac;
use crate::routes;

/// Largest IP packet of a device, headers included.
const LARGEST_PACKET: u16 = 65535;
/// Border routers of an AS, each with an address of its own: `10.0.n.254` downwards to `10.0.n.2`.
const MOST_ROUTERS: usize = 253;
/// ASes are numbered from 1; `10.n>>8.n.x` must stay below the links' range.
const MOST_ASES: usize = 0x7fff;
/// Pairs of addresses in `10.128.0.0/9`, the links' range.
const MOST_LINKS: usize = 1 << 22;

/// A network that cannot be laid out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// More ASes than addresses for them.
    #[error("{0} ASes are more than a lab has addresses for ({MOST_ASES})")]
    Ases(usize),
    /// More links than addresses for them.
    #[error("{0} links are more than a lab has addresses for ({MOST_LINKS})")]
    Links(usize),
    /// More border routers in an AS than addresses for them.
    #[error(
        "AS {isd_as}: {count} border routers are more than a lab has addresses for ({MOST_ROUTERS})"
    )]
    Routers {
        /// The AS.
        isd_as: IsdAsn,
        /// How many it has.
        count: usize,
    },
    /// A link that ends in an AS which is not there.
    #[error("a link names the AS {0}, which the network does not have")]
    UnknownAs(IsdAsn),
    /// An MTU above what a packet of the underlay carries.
    #[error("link {link}: mtu {mtu} is too large: at most {largest} bytes fit into the underlay")]
    Mtu {
        /// The link, as `a - b`.
        link: String,
        /// Its MTU in bytes.
        mtu: u16,
        /// What fits, in bytes.
        largest: u16,
    },
}

/// Everything that is made of a network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub ases: Vec<AsPlan>,
    pub links: Vec<LinkPlan>,
}

/// One AS: a namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AsPlan {
    pub isd_as: IsdAsn,
    /// Name of its folder inside the lab's.
    pub folder: String,
    /// The plain IPv4 address that every host has.
    pub host: Ipv4Addr,
    /// The address of its host where the AS speaks IPv6.
    pub host6: Option<Ipv6Addr>,
    /// Its border routers, at least one.
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
    /// Its address inside the AS; the control service has that of the first.
    pub address: IpAddr,
}

impl AsPlan {
    /// The host as SCION addresses it.
    pub fn scion_host(&self) -> IpAddr {
        self.host6.map_or(self.host.into(), IpAddr::from)
    }
}

/// A way to another AS's host without SCION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub to: Ipv4Addr,
    pub via: Ipv4Addr,
    /// Index of the device, see [`EndPlan::index`].
    pub index: u32,
}

/// One link: a veth pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkPlan {
    pub a: EndPlan,
    pub b: EndPlan,
    /// MTU of the devices in bytes, headers of the underlay included.
    pub mtu: u32,
}

/// One end of a link: a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndPlan {
    /// Which of [`Plan::ases`] it is in.
    pub owner: usize,
    /// Its name there.
    pub device: String,
    /// Its number there. Chosen by us so that nothing need be asked back.
    pub index: u32,
    /// For plain IP, and for SCION where the link speaks IPv4.
    pub address: Ipv4Addr,
    /// For SCION where the link speaks IPv6.
    pub address6: Option<Ipv6Addr>,
    /// Its Ethernet address, known to the other end from the start.
    pub mac: Mac,
}

impl EndPlan {
    /// The end as its border router addresses it.
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

/// First device number used: above `lo` and the fallback tunnels that some kernels put into every
/// new namespace.
const FIRST_INDEX: u32 = 1000;

impl Plan {
    pub fn of(network: &Network) -> Result<Self, PlanError> {
        if network.ases.len() > MOST_ASES {
            return Err(PlanError::Ases(network.ases.len()));
        }
        if network.links.len() > MOST_LINKS {
            return Err(PlanError::Links(network.links.len()));
        }
        let number: BTreeMap<IsdAsn, usize> = (0..)
            .zip(&network.ases)
            .map(|(i, a)| (a.isd_as, i))
            .collect();
        let links = (0..)
            .zip(&network.links)
            .map(|(i, link)| link_plan(i, link, &number))
            .collect::<Result<Vec<_>, _>>()?;
        let mut next_hops = routes::next_hops(network.ases.len(), &links).into_iter();
        let ases = (0..)
            .zip(&network.ases)
            .map(|(i, as_)| {
                let routes = next_hops
                    .next()
                    .unwrap_or_default()
                    .into_iter()
                    .map(|hop| {
                        let link = &links[hop.link];
                        Route {
                            to: address::host(hop.to),
                            via: link.end(hop.side.other()).address,
                            index: link.end(hop.side).index,
                        }
                    })
                    .collect();
                let routers = routers(network, i)?;
                Ok(AsPlan {
                    isd_as: as_.isd_as,
                    folder: as_folder(as_.isd_as),
                    host: address::host(i),
                    host6: match as_.underlay {
                        Underlay::Ipv4 => None,
                        Underlay::Ipv6 => Some(address::host6(i)),
                    },
                    topology: files::topology(network, &links, i, &routers),
                    routers,
                    links: network
                        .links_of(as_.isd_as)
                        .map(|(link, side)| {
                            let shape = link.shape;
                            (link.end(side).id, LinkState { up: true, shape })
                        })
                        .collect(),
                    routes,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { ases, links })
    }
}

/// The border routers of the AS at `index`.
fn routers(network: &Network, index: usize) -> Result<Vec<RouterPlan>, PlanError> {
    let as_ = &network.ases[index];
    let folder = as_folder(as_.isd_as);
    // Without a link it has one that nothing passes: its control service is then an AS like any
    // other.
    let count = network.routers(as_.isd_as).len().max(1);
    if count > MOST_ROUTERS {
        return Err(PlanError::Routers {
            isd_as: as_.isd_as,
            count,
        });
    }
    let router = |i| RouterPlan {
        name: format!("br{folder}-{}", i + 1),
        address: address::service(index, i, as_.underlay),
    };
    Ok((0..count).map(router).collect())
}

fn link_plan(i: u32, link: &Link, number: &BTreeMap<IsdAsn, usize>) -> Result<LinkPlan, PlanError> {
    let largest = LARGEST_PACKET - link.underlay.headers();
    if link.mtu > largest {
        return Err(PlanError::Mtu {
            link: format!("{} - {}", link.a, link.b),
            mtu: link.mtu,
            largest,
        });
    }
    let end = |side: Side| {
        let end = link.end(side);
        let owner = number
            .get(&end.isd_as)
            .ok_or(PlanError::UnknownAs(end.isd_as))?;
        Ok(EndPlan {
            owner: *owner,
            device: format!("if{}", end.id),
            index: FIRST_INDEX + u32::from(end.id),
            address: address::link(i, side),
            address6: match link.underlay {
                Underlay::Ipv4 => None,
                Underlay::Ipv6 => Some(address::link6(i, side)),
            },
            mac: address::mac(i, side),
        })
    };
    Ok(LinkPlan {
        a: end(Side::A)?,
        b: end(Side::B)?,
        mtu: u32::from(link.mtu + link.underlay.headers()),
    })
}

#[cfg(test)]
mod tests;
