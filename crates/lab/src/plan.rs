//! The address plan: the namespaces, devices and addresses of a network.
//!
//! Planning does no I/O: the same network always gets the same plan, and in a lab that is changed what stays
//! keeps its addresses.

mod added;
mod address;
mod files;
mod held;
mod layout;
mod numbers;
mod routes;

use std::collections::BTreeMap;

use hawser_topology::{As, IsdAsn, Link, LinkState, Network, Side, Underlay, as_folder};

pub(crate) use self::added::{AddedPlan, Inside, NETWORK};
pub(crate) use self::held::{MARK, device, held_device};
pub(crate) use self::layout::{AsPlan, EndPlan, LinkId, LinkPlan, Mac, Route, RouterPlan};
use self::numbers::Numbers;
use self::routes::{Edge, NextHop};

/// Largest IP packet of a device in bytes, including headers.
const MAX_PACKET: u16 = 65535;
/// Maximum number of border routers of an AS: each has an address, from `10.0.n.254` down to
/// `10.0.n.101`.
const MAX_ROUTERS: usize = 154;
/// Maximum number of hosts that are added to an AS: from `10.0.n.2` up to `10.0.n.100`.
pub(crate) const MAX_ADDED: usize = 99;
/// The least MTU with which a device has IPv6 addresses (RFC 8200, section 5).
const MIN_MTU: u32 = 1280;
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
    /// The plan of a lab that is brought up with a network.
    pub fn of(network: &Network) -> Result<Self, PlanError> {
        Self::with(network, &Numbers::fresh(network))
    }

    /// The plan of a lab of the plan `before` that is changed to a network.
    pub fn after(before: &Self, network: &Network) -> Result<Self, PlanError> {
        Self::with(network, &Numbers::after(before, network))
    }

    fn with(network: &Network, numbers: &Numbers) -> Result<Self, PlanError> {
        check_count("", network.ases.len(), "ASes", MAX_ASES)?;
        check_count("", network.links.len(), "links", MAX_LINKS)?;
        check_numbers(&numbers.ases, "ASes", MAX_ASES)?;
        check_numbers(&numbers.links, "links", MAX_LINKS)?;
        let position: BTreeMap<IsdAsn, usize> = (0..)
            .zip(&network.ases)
            .map(|(i, a)| (a.isd_as, i))
            .collect();
        let links = (numbers.links.iter())
            .zip(&network.links)
            .map(|(number, link)| link_plan(*number, link, (&position, numbers)))
            .collect::<Result<Vec<_>, _>>()?;
        let edges: Vec<Edge> = links
            .iter()
            .map(|link| Edge {
                a: position[&link.a.isd_as],
                b: position[&link.b.isd_as],
                number: link.number,
            })
            .collect();
        let inner_mtus = inner_mtus(network, &links, &edges);
        let next_hops = routes::next_hops(network.ases.len(), &edges);
        let route = |hop: NextHop| {
            let link = &links[hop.link];
            Route {
                to: address::host(numbers.ases[hop.to]),
                via: link.end(hop.side.other()).address,
                index: link.end(hop.side).index,
            }
        };
        let ases = (0..)
            .zip(network.ases.iter().zip(next_hops))
            .map(|(i, (as_, hops))| {
                let number = numbers.ases[i];
                let mut routers = routers(network, i, numbers)?;
                let mut routes: Vec<Route> = hops.into_iter().map(route).collect();
                routes.sort_by_key(|route| route.to);
                let control = address::service(number, 0, as_.underlay);
                let topology = files::topology(network, &links, i, &routers, control);
                routers.sort_by_key(|router| router.number);
                Ok(AsPlan {
                    isd_as: as_.isd_as,
                    number,
                    host: address::host(number),
                    host6: (as_.underlay == Underlay::Ipv6).then(|| address::host6(number)),
                    control,
                    topology: topology.ok_or_else(|| {
                        PlanError(format!("AS {} has no border router", as_.isd_as))
                    })?,
                    routers,
                    inner_mtu: inner_mtus[i],
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

/// The MTU of the loopback device of each AS: as large as SCION packets of the AS and of its links need,
/// and no larger, so that plain IP inside an AS has packets of the same size.
fn inner_mtus(network: &Network, links: &[LinkPlan], edges: &[Edge]) -> Vec<u32> {
    let inside = |as_: &As| u32::from(as_.mtu) + u32::from(Underlay::Ipv6.headers());
    let mut mtus: Vec<u32> = (network.ases.iter())
        .map(|as_| inside(as_).max(MIN_MTU))
        .collect();
    for (link, edge) in links.iter().zip(edges) {
        for at in [edge.a, edge.b] {
            mtus[at] = mtus[at].max(link.mtu);
        }
    }
    mtus
}

/// Checks that numbers are below `most`, as they are unless a lab has had nearly as many other parts.
fn check_numbers(numbers: &[u32], things: &str, most: usize) -> Result<(), PlanError> {
    let highest = numbers.iter().max().map_or(0, |highest| *highest as usize);
    match highest >= most {
        true => Err(PlanError(format!(
            "the lab has no addresses left for its {things} ({most}): take it down, and bring it up again"
        ))),
        false => Ok(()),
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

/// The border routers of the AS at `index`, in the order of [`Network::routers`].
fn routers(
    network: &Network,
    index: usize,
    numbers: &Numbers,
) -> Result<Vec<RouterPlan>, PlanError> {
    let as_ = &network.ases[index];
    let known = &numbers.routers[index];
    let name = format!("AS {}: ", as_.isd_as);
    check_count(&name, known.len(), "border routers", MAX_ROUTERS)?;
    let highest: Vec<u32> = known.values().copied().collect();
    check_numbers(
        &highest,
        &format!("border routers of {}", as_.isd_as),
        MAX_ROUTERS,
    )?;
    let mut labels = network.routers(as_.isd_as);
    if labels.is_empty() {
        labels.push("");
    }
    let folder = as_folder(as_.isd_as);
    let router = |label: &str| {
        let number = *known.get(label)?;
        Some(RouterPlan {
            label: label.to_owned(),
            number,
            name: format!("br{folder}-{}", number + 1),
            address: address::service(numbers.ases[index], number, as_.underlay),
        })
    };
    Ok(labels.into_iter().filter_map(router).collect())
}

fn link_plan(
    number: u32,
    link: &Link,
    (position, numbers): (&BTreeMap<IsdAsn, usize>, &Numbers),
) -> Result<LinkPlan, PlanError> {
    let largest = MAX_PACKET - link.underlay.headers();
    if link.mtu > largest {
        return Err(PlanError(format!(
            "link {} - {}: mtu {} is too large: at most {largest} bytes fit into the underlay",
            link.a, link.b, link.mtu
        )));
    }
    let end = |side: Side| {
        let end = link.end(side);
        let routers = position.get(&end.isd_as).map(|&at| &numbers.routers[at]);
        let Some(&router) = routers.and_then(|routers| routers.get(&end.router)) else {
            return Err(PlanError(format!(
                "a link names the AS {}, which the network does not have",
                end.isd_as
            )));
        };
        Ok(EndPlan {
            isd_as: end.isd_as,
            id: end.id,
            router,
            device: device(end.id),
            index: MIN_INDEX + u32::from(end.id),
            address: address::link(number, side),
            address6: (link.underlay == Underlay::Ipv6).then(|| address::link6(number, side)),
            mac: address::mac(number, side),
        })
    };
    Ok(LinkPlan {
        number,
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
    let edge = |link: &LinkPlan| {
        Some(Edge {
            a: number(link.a.isd_as)?,
            b: number(link.b.isd_as)?,
            number: link.number,
        })
    };
    let edges: Vec<Edge> = plan.links.iter().map(edge).collect::<Option<_>>()?;
    let hops = routes::next_hops(plan.ases.len(), &edges);
    let mut route = Vec::new();
    while at != to {
        let hop = hops[at].iter().find(|hop| hop.to == to)?;
        route.push(hop.link);
        at = edges[hop.link].end(hop.side.other());
    }
    Some(route)
}

#[cfg(test)]
mod tests;
