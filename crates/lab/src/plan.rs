//! The address plan: a network turned into namespaces, devices and addresses.
//!
//! Pure: the same network always gets the same plan.

mod address;
mod files;
mod layout;
mod routes;

use std::collections::BTreeMap;

use hawser_topology::{IsdAsn, Link, LinkState, Network, Side, Underlay, as_folder};

pub(crate) use self::layout::{AsPlan, EndPlan, LinkPlan, Mac, Route, RouterPlan};

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

/// The links, as indices into `network.links`, that plain IP takes from one AS to another in a lab
/// of `network`; `None` when there is no route, or no lab can be made of the network.
pub fn ip_route(network: &Network, from: IsdAsn, to: IsdAsn) -> Option<Vec<usize>> {
    let plan = Plan::of(network).ok()?;
    let number = |isd_as| network.ases.iter().position(|as_| as_.isd_as == isd_as);
    let (mut at, to) = (number(from)?, number(to)?);
    let hops = routes::next_hops(plan.ases.len(), &plan.links);
    let mut route = Vec::new();
    while at != to {
        let hop = hops[at].iter().find(|hop| hop.to == to)?;
        route.push(hop.link);
        at = plan.links[hop.link].end(hop.side.other()).owner;
    }
    Some(route)
}

#[cfg(test)]
mod tests;
