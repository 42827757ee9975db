//! The address plan: the namespaces, devices and addresses of a network.
//!
//! Planning does no I/O: the same network always gets the same plan.

mod address;
mod files;
mod held;
mod layout;
mod routes;

use std::collections::BTreeMap;

use hawser_topology::{IsdAsn, Link, LinkState, Network, Side, Underlay};

pub(crate) use self::held::{MARK, device, held_device};
pub(crate) use self::layout::{AsPlan, EndPlan, LinkPlan, Mac, Route, RouterPlan};
use self::routes::NextHop;

/// Largest IP packet of a device in bytes, including headers.
const MAX_PACKET: u16 = 65535;
/// Maximum number of border routers of an AS: each has an address, from `10.0.n.254` down to
/// `10.0.n.2`.
const MAX_ROUTERS: usize = 253;
/// Maximum number of ASes. They are numbered from 1, and `10.n>>8.n.x` must stay below the links'
/// range.
const MAX_ASES: usize = 0x7fff;
/// Maximum number of links: each has a pair of addresses in `10.128.0.0/9`.
const MAX_LINKS: usize = 1 << 22;

/// The error that a network exceeds a bound of labs. The message names the part and the bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

/// All objects to create for a network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub ases: Vec<AsPlan>,
    pub links: Vec<LinkPlan>,
}

/// Lowest device index used: above `lo` and the fallback tunnels that some kernels put into every
/// new namespace.
const MIN_INDEX: u32 = 1000;

impl Plan {
    pub fn of(network: &Network) -> Result<Self, PlanError> {
        check_count("", network.ases.len(), "ASes", MAX_ASES)?;
        check_count("", network.links.len(), "links", MAX_LINKS)?;
        let number: BTreeMap<IsdAsn, usize> = (0..)
            .zip(&network.ases)
            .map(|(i, a)| (a.isd_as, i))
            .collect();
        let links = (0..)
            .zip(&network.links)
            .map(|(i, link)| link_plan(i, link, &number))
            .collect::<Result<Vec<_>, _>>()?;
        let next_hops = routes::next_hops(network.ases.len(), &links);
        let route = |hop: NextHop| {
            let link = &links[hop.link];
            Route {
                to: address::host(hop.to),
                via: link.end(hop.side.other()).address,
                index: link.end(hop.side).index,
            }
        };
        let ases = (0..)
            .zip(network.ases.iter().zip(next_hops))
            .map(|(i, (as_, hops))| {
                let routers = routers(network, i)?;
                let topology = files::topology(network, &links, i, &routers);
                Ok(AsPlan {
                    isd_as: as_.isd_as,
                    host: address::host(i),
                    host6: (as_.underlay == Underlay::Ipv6).then(|| address::host6(i)),
                    topology: topology.ok_or_else(|| {
                        PlanError(format!("AS {} has no border router", as_.isd_as))
                    })?,
                    routers,
                    links: network
                        .links_of(as_.isd_as)
                        .map(|(link, side)| {
                            let shape = link.shape;
                            (link.end(side).id, LinkState { up: true, shape })
                        })
                        .collect(),
                    routes: hops.into_iter().map(route).collect(),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { ases, links })
    }
}

/// Checks that `count` is at most `most`; `name` and `things` are for the error.
fn check_count(name: &str, count: usize, things: &str, most: usize) -> Result<(), PlanError> {
    match count > most {
        true => Err(PlanError(format!(
            "{name}{count} {things} are more than a lab has addresses for ({most})"
        ))),
        false => Ok(()),
    }
}

/// The border routers of the AS at `index`.
fn routers(network: &Network, index: usize) -> Result<Vec<RouterPlan>, PlanError> {
    let as_ = &network.ases[index];
    let names = network.router_names(as_.isd_as);
    let name = format!("AS {}: ", as_.isd_as);
    check_count(&name, names.len(), "border routers", MAX_ROUTERS)?;
    let router = |(i, name)| RouterPlan {
        name,
        address: address::service(index, i, as_.underlay),
    };
    Ok(names.into_iter().enumerate().map(router).collect())
}

fn link_plan(i: u32, link: &Link, number: &BTreeMap<IsdAsn, usize>) -> Result<LinkPlan, PlanError> {
    let largest = MAX_PACKET - link.underlay.headers();
    if link.mtu > largest {
        return Err(PlanError(format!(
            "link {} - {}: mtu {} is too large: at most {largest} bytes fit into the underlay",
            link.a, link.b, link.mtu
        )));
    }
    let end = |side: Side| {
        let end = link.end(side);
        let Some(&owner) = number.get(&end.isd_as) else {
            return Err(PlanError(format!(
                "a link names the AS {}, which the network does not have",
                end.isd_as
            )));
        };
        Ok(EndPlan {
            owner,
            device: device(end.id),
            index: MIN_INDEX + u32::from(end.id),
            address: address::link(i, side),
            address6: (link.underlay == Underlay::Ipv6).then(|| address::link6(i, side)),
            mac: address::mac(i, side),
        })
    };
    Ok(LinkPlan {
        a: end(Side::A)?,
        b: end(Side::B)?,
        mtu: u32::from(link.mtu + link.underlay.headers()),
    })
}

/// The links, as indices into `network.links`, of the plain-IP route from one AS to another in a
/// lab of `network`; `None` if there is no route, or the network exceeds the bounds of labs.
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
