//! The names, addresses and ports of an exported network.
//!
//! Each end of a link has a UDP port of its own, 50000 and above in the order of the AS's interfaces, at
//! the unspecified address: so a border router starts before its device or the address of its pod is
//! there. The services of an AS are at the loopback address; hosts of the AS are the programs of its pod
//! or container.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_bundle::{LimitedLink, LinkInfo, Neighbours};
use hawser_topology::{
    AsTopology, IsdAsn, Link, LinkAddresses, LinkState, Network, Side, Underlay,
};

use crate::error::ExportError;
use crate::name;

/// UDP port of the first router inside its AS; further routers have the next ones.
const ROUTER_PORT: u16 = 30042;
/// TCP port of the control service.
const CONTROL_PORT: u16 = 30252;
/// Most routers of an AS: their ports end below that of the control service.
const MAX_ROUTERS: usize = (CONTROL_PORT - ROUTER_PORT) as usize;
/// UDP port of the first link of an AS.
const LINK_PORT: u16 = 50000;
/// Most links of an AS: each has a port.
const MAX_LINKS_OF_AS: usize = (u16::MAX - LINK_PORT) as usize;
/// Most links of the network: each has a pair of addresses in `10.128.0.0/9`, and a VXLAN of its own.
const MAX_LINKS: usize = 1 << 22;
/// Largest IP packet between pods and between hosts, in bytes: VXLAN takes 50 of 1500.
const OVERLAY_MTU: u16 = 1450;
/// Largest IP packet in bytes.
const MAX_PACKET: u16 = u16::MAX;
/// `10.128.0.0`, the first address of links, as in a lab.
const LINKS: u32 = 0x0a80_0000;
/// `fd00:0:1::`, the first address of links over IPv6, as in a lab.
const LINKS6: u128 = (0xfd00 << 112) + (1 << 80);
/// Addresses that no host has (RFC 5737, RFC 6666), for neighbours whose names are not resolved yet. With the
/// port of its near end, each link of an AS has another one.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NOWHERE6: Ipv6Addr = Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1);
/// Least rate of a limit, in bit/s: limits are written in kbit/s.
const MIN_RATE: u64 = 1000;

/// How the ASes reach each other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wiring<'a> {
    /// By the names of their pods, over one network that all share.
    Names,
    /// By a device for each link. ASes are on the hosts of these numbers, in the network's order.
    Devices(&'a [usize]),
}

/// An exported network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// The network, with the MTUs that its links have when exported.
    pub network: Network,
    /// Its ASes, in the network's order.
    pub ases: Vec<AsPlan>,
    /// Its links, in the network's order.
    pub links: Vec<LinkPlan>,
    /// What is not as in the topology, in sentences.
    pub notes: Vec<String>,
}

/// An AS.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AsPlan {
    pub isd_as: IsdAsn,
    /// Its name, a DNS label.
    pub name: String,
    pub topology: AsTopology,
    /// The contents of `links.json`: delay, jitter and loss.
    pub states: BTreeMap<u16, LinkState>,
    /// What it limits: what it sends over each link with a rate.
    pub limits: LinkInfo,
    /// The names of its neighbours; empty if they are at fixed addresses.
    pub neighbours: Neighbours,
}

/// A link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LinkPlan {
    pub a: EndPlan,
    pub b: EndPlan,
    /// MTU of its devices in bytes, with the headers of the underlay.
    pub mtu: u16,
}

/// One end of a link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EndPlan {
    /// The index of its AS.
    pub owner: usize,
    /// The device, where each link has one.
    pub device: String,
    /// The address of the device, where each link has one.
    pub address: IpAddr,
    /// The UDP port.
    pub port: u16,
}

impl LinkPlan {
    pub fn end(&self, side: Side) -> &EndPlan {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

impl Plan {
    /// Plans the export of a network.
    pub fn new(network: &Network, wiring: Wiring<'_>) -> Result<Self, ExportError> {
        check(network)?;
        let mut network = network.clone();
        let owners: BTreeMap<IsdAsn, usize> = (0..)
            .zip(&network.ases)
            .map(|(at, as_)| (as_.isd_as, at))
            .collect();
        let ports = ports(&network)?;
        let mut links = Vec::with_capacity(network.links.len());
        let mut reduced = 0;
        for (index, link) in (0..).zip(&mut network.links) {
            let owner = |side: Side| {
                let isd_as = link.end(side).isd_as;
                let unknown = || {
                    format!(
                        "link {} names AS {isd_as}, which the network does not have",
                        link.end(side)
                    )
                };
                let owner = owners.get(&isd_as).copied();
                owner.ok_or_else(|| ExportError::Network(unknown()))
            };
            let end = |side: Side| {
                let port = ports.get(&(link.end(side).isd_as, link.end(side).id));
                let port = port.copied().unwrap_or(LINK_PORT);
                Ok::<_, ExportError>(EndPlan {
                    owner: owner(side)?,
                    // containerlab keeps eth0 for itself.
                    device: format!("eth{}", port - LINK_PORT + 1),
                    address: address(index, side, link.underlay),
                    port,
                })
            };
            let (a, b) = (end(Side::A)?, end(Side::B)?);
            let leaves = match wiring {
                Wiring::Names => true,
                Wiring::Devices(hosts) => hosts.get(a.owner) != hosts.get(b.owner),
            };
            let largest = if leaves { OVERLAY_MTU } else { MAX_PACKET };
            let fits = largest - link.underlay.headers();
            if link.mtu > fits {
                if !leaves {
                    return Err(ExportError::Network(format!(
                        "link {} - {}: mtu {} is too large: at most {fits} bytes fit into the underlay",
                        link.a, link.b, link.mtu
                    )));
                }
                link.mtu = fits;
                reduced += 1;
            }
            let mtu = link.mtu + link.underlay.headers();
            links.push(LinkPlan { a, b, mtu });
        }
        let ases = network.ases.iter().map(|as_| {
            let is_named = matches!(wiring, Wiring::Names);
            as_plan(&network, as_.isd_as, &links, is_named)
        });
        let ases = ases.collect::<Result<_, _>>()?;
        let mut notes = Vec::new();
        if reduced > 0 {
            notes.push(format!(
                "The MTU of {reduced} links is lower than in the topology: their packets have at most {OVERLAY_MTU} bytes with all headers."
            ));
        }
        Ok(Self {
            network,
            ases,
            links,
            notes,
        })
    }
}

/// Checks the bounds of exports.
fn check(network: &Network) -> Result<(), ExportError> {
    let links = network.links.len();
    if network.ases.is_empty() {
        return Err(ExportError::Network("the network has no AS".to_owned()));
    }
    if links > MAX_LINKS {
        return Err(ExportError::Network(format!(
            "{links} links are more than an export has addresses for ({MAX_LINKS})"
        )));
    }
    for as_ in &network.ases {
        let (isd_as, routers) = (as_.isd_as, network.routers(as_.isd_as).len());
        if routers > MAX_ROUTERS {
            return Err(ExportError::Network(format!(
                "AS {isd_as} has {routers} border routers, more than there are ports for ({MAX_ROUTERS})"
            )));
        }
    }
    Ok(())
}

/// The port of each end of a link, in each AS in the order of its interfaces.
fn ports(network: &Network) -> Result<BTreeMap<(IsdAsn, u16), u16>, ExportError> {
    let ends = |link: &Link| [&link.a, &link.b].map(|end| (end.isd_as, end.id));
    let ends = network.links.iter().flat_map(ends);
    let mut ports: BTreeMap<(IsdAsn, u16), u16> = ends.map(|end| (end, 0)).collect();
    let mut before = None;
    for ((isd_as, _), port) in &mut ports {
        let count = match before {
            Some((last, count)) if last == *isd_as => count,
            _ => 0,
        };
        let next = u16::try_from(count)
            .ok()
            .filter(|_| count < MAX_LINKS_OF_AS);
        let Some(next) = next else {
            return Err(ExportError::Network(format!(
                "AS {isd_as} has more links than there are ports for ({MAX_LINKS_OF_AS})"
            )));
        };
        *port = LINK_PORT + next;
        before = Some((*isd_as, count + 1));
    }
    Ok(ports)
}

/// The address of one end of the link at `index`.
fn address(index: u32, side: Side, underlay: Underlay) -> IpAddr {
    let at = 2 * index + u32::from(side == Side::B);
    match underlay {
        Underlay::Ipv4 => Ipv4Addr::from(LINKS + at).into(),
        Underlay::Ipv6 => Ipv6Addr::from(LINKS6 + u128::from(at)).into(),
    }
}

fn as_plan(
    network: &Network,
    isd_as: IsdAsn,
    links: &[LinkPlan],
    is_named: bool,
) -> Result<AsPlan, ExportError> {
    let unknown = || ExportError::Network(format!("the network has no AS {isd_as}"));
    let as_ = network.find(isd_as).ok_or_else(unknown)?;
    let inside: IpAddr = match as_.underlay {
        Underlay::Ipv4 => Ipv4Addr::LOCALHOST.into(),
        Underlay::Ipv6 => Ipv6Addr::LOCALHOST.into(),
    };
    let routers = network.router_names(isd_as).into_iter().zip(ROUTER_PORT..);
    let routers: Vec<_> = routers
        .map(|(name, port)| (name, SocketAddr::new(inside, port)))
        .collect();
    let control = SocketAddr::new(inside, CONTROL_PORT);
    let far = |index: usize, side: Side| {
        let (near, far) = (links[index].end(side), links[index].end(side.other()));
        match (is_named, network.links[index].underlay) {
            (false, _) => SocketAddr::new(far.address, far.port),
            (true, Underlay::Ipv4) => SocketAddr::new(NOWHERE.into(), near.port),
            (true, Underlay::Ipv6) => SocketAddr::new(NOWHERE6.into(), near.port),
        }
    };
    let underlay = |index: usize, side: Side| {
        let any: IpAddr = match network.links[index].underlay {
            Underlay::Ipv4 => Ipv4Addr::UNSPECIFIED.into(),
            Underlay::Ipv6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        LinkAddresses {
            local: SocketAddr::new(any, links[index].end(side).port),
            remote: far(index, side),
        }
    };
    let topology = network.topology_of(isd_as, &routers, control, underlay);
    let mut plan = AsPlan {
        isd_as,
        name: name::of_as(isd_as),
        topology: topology.ok_or_else(unknown)?,
        states: BTreeMap::new(),
        limits: LinkInfo::default(),
        neighbours: Neighbours::default(),
    };
    for (index, link) in network.links.iter().enumerate() {
        for side in Side::BOTH
            .into_iter()
            .filter(|&s| link.end(s).isd_as == isd_as)
        {
            let (id, other) = (link.end(side).id, link.end(side.other()));
            let remote = far(index, side);
            let shape = link.shape;
            plan.states.insert(id, LinkState { up: true, shape });
            let rate = shape.rate.map(|rate| rate.max(MIN_RATE));
            // Both ends limit what they send, so that each direction has its limit.
            let (asn, ip, port) = (other.isd_as.asn().to_u64(), remote.ip(), remote.port());
            if let Some(mut limit) = LimitedLink::new(asn, ip, Some(port), rate, None) {
                // As in the lab, where all queues are sized in time alone.
                limit.queue = Some(shape.queue);
                limit.device = (!is_named).then(|| links[index].end(side).device.clone());
                plan.limits.0.insert(id.to_string(), limit);
            }
            if is_named {
                let port = links[index].end(side.other()).port;
                let to = format!("{}:{port}", name::of_as(other.isd_as));
                plan.neighbours.0.insert(id, to);
            }
        }
    }
    Ok(plan)
}

#[cfg(test)]
pub(crate) mod tests;
