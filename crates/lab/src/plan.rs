//! The address plan: a network turned into namespaces, devices and addresses.
//!
//! Pure: the same network always gets the same plan.

use crate::{name::as_folder, routes};
use hawser_topology::{
    AsTopology, BorderRouter, Interface, IsdAsn, Link, LinkKind, LinkState, LinkTo, Network, Side,
};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

/// UDP port of every border router inside its AS.
const ROUTER_PORT: u16 = 30042;
/// TCP port of every control service.
const CONTROL_PORT: u16 = 30252;
/// UDP port of both ends of every link.
const UNDERLAY_PORT: u16 = 50000;
/// UDP ports that a border router delivers to directly, as in scionproto.
const DISPATCHED_PORTS: (u16, u16) = (31000, 32767);
/// Bytes of the underlay's IPv4 and UDP headers, which a link's MTU leaves out.
const UNDERLAY_HEADERS: u32 = 28;
/// Largest MTU of a link, in bytes of SCION packet: an IPv4 packet has 65535.
const LARGEST_MTU: u16 = 65535 - UNDERLAY_HEADERS as u16;
/// ASes are numbered from 1; `10.n>>8.n.x` must stay below the links' range.
const MOST_ASES: usize = 0x7fff;
/// Pairs of addresses in `10.128.0.0/9`, the links' range.
const MOST_LINKS: usize = 1 << 22;
const LINKS: u32 = 0x0a80_0000;

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
    /// A link that ends in an AS which is not there.
    #[error("a link names the AS {0}, which the network does not have")]
    UnknownAs(IsdAsn),
    /// An MTU above what an IPv4 packet carries.
    #[error(
        "link {link}: mtu {mtu} is too large: at most {LARGEST_MTU} bytes fit into the underlay"
    )]
    Mtu {
        /// The link, as `a - b`.
        link: String,
        /// Its MTU in bytes.
        mtu: u16,
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
    /// The address of its host.
    pub host: Ipv4Addr,
    /// The address of its border router and control service.
    pub services: Ipv4Addr,
    /// Contents of `topology.json`.
    pub topology: AsTopology,
    /// Contents of `links.json`.
    pub links: BTreeMap<u16, LinkState>,
    /// Plain-IP routes to the hosts of the other ASes.
    pub routes: Vec<Route>,
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
    /// MTU of the devices in bytes, IPv4 header included.
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
    pub address: Ipv4Addr,
}

impl LinkPlan {
    pub fn end(&self, side: Side) -> &EndPlan {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

/// First device number used: above `lo` and the fallback tunnels that some
/// kernels put into every new namespace.
const FIRST_INDEX: u32 = 1000;

impl Plan {
    pub fn of(network: &Network) -> Result<Plan, PlanError> {
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
                            to: address(hop.to, 1),
                            via: link.end(hop.side.other()).address,
                            index: link.end(hop.side).index,
                        }
                    })
                    .collect();
                AsPlan {
                    isd_as: as_.isd_as,
                    folder: as_folder(as_.isd_as),
                    host: address(i, 1),
                    services: address(i, 254),
                    topology: topology(network, &links, i),
                    links: network
                        .links_of(as_.isd_as)
                        .map(|(link, side)| {
                            let shape = link.shape;
                            (link.end(side).id, LinkState { up: true, shape })
                        })
                        .collect(),
                    routes,
                }
            })
            .collect();
        Ok(Plan { ases, links })
    }
}

/// Address `last` of the AS at `index`: `10.n>>8.n.last` with n counted from 1.
fn address(index: usize, last: u8) -> Ipv4Addr {
    let n = index + 1;
    Ipv4Addr::new(10, (n >> 8) as u8, n as u8, last)
}

fn link_plan(i: u32, link: &Link, number: &BTreeMap<IsdAsn, usize>) -> Result<LinkPlan, PlanError> {
    if link.mtu > LARGEST_MTU {
        return Err(PlanError::Mtu {
            link: format!("{} - {}", link.a, link.b),
            mtu: link.mtu,
        });
    }
    let end = |side: Side, last: u32| {
        let end = link.end(side);
        let owner = number
            .get(&end.isd_as)
            .ok_or(PlanError::UnknownAs(end.isd_as))?;
        Ok(EndPlan {
            owner: *owner,
            device: format!("if{}", end.id),
            index: FIRST_INDEX + u32::from(end.id),
            address: Ipv4Addr::from(LINKS + 2 * i + last),
        })
    };
    Ok(LinkPlan {
        a: end(Side::A, 0)?,
        b: end(Side::B, 1)?,
        mtu: u32::from(link.mtu) + UNDERLAY_HEADERS,
    })
}

fn topology(network: &Network, links: &[LinkPlan], index: usize) -> AsTopology {
    let as_ = &network.ases[index];
    let services = address(index, 254);
    let mut interfaces = BTreeMap::new();
    for (link, plan) in network.links.iter().zip(links) {
        for side in [Side::A, Side::B] {
            if plan.end(side).owner != index {
                continue;
            }
            let (near, far) = (link.end(side), link.end(side.other()));
            let underlay = |side| SocketAddr::from((plan.end(side).address, UNDERLAY_PORT));
            let interface = Interface {
                local: underlay(side),
                remote: underlay(side.other()),
                isd_as: far.isd_as,
                remote_id: far.id,
                link_to: link_to(link.kind, side),
                mtu: link.mtu,
            };
            interfaces.insert(near.id, interface);
        }
    }
    let folder = as_folder(as_.isd_as);
    AsTopology {
        isd_as: as_.isd_as,
        mtu: as_.mtu,
        core: as_.core,
        dispatched_ports: DISPATCHED_PORTS,
        control_service: [(format!("cs{folder}-1"), (services, CONTROL_PORT).into())].into(),
        border_routers: [(
            format!("br{folder}-1"),
            BorderRouter {
                internal_addr: (services, ROUTER_PORT).into(),
                interfaces,
            },
        )]
        .into(),
    }
}

/// What the far end is to the AS on `side`.
fn link_to(kind: LinkKind, side: Side) -> LinkTo {
    match (kind, side) {
        (LinkKind::Core, _) => LinkTo::Core,
        (LinkKind::Peer, _) => LinkTo::Peer,
        (LinkKind::Child, Side::A) => LinkTo::Child,
        (LinkKind::Child, Side::B) => LinkTo::Parent,
    }
}

#[cfg(test)]
mod tests;
