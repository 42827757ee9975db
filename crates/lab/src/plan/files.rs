//! The files of an AS.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hawser_topology::{
    AsTopology, Bfd, BorderRouter, Interface, LinkAddresses, LinkKind, LinkTo, Network, Side,
    as_folder,
};

use super::layout::{LinkPlan, RouterPlan};

/// UDP port of every border router inside its AS.
const ROUTER_PORT: u16 = 30042;
/// TCP port of every control service.
const CONTROL_PORT: u16 = 30252;
/// UDP port of both ends of every link.
const UNDERLAY_PORT: u16 = 50000;

/// Contents of `topology.json` of the AS at `index`, which has `routers`.
pub(super) fn topology(
    network: &Network,
    links: &[LinkPlan],
    index: usize,
    routers: &[RouterPlan],
) -> AsTopology {
    let as_ = &network.ases[index];
    let mut border_routers: Vec<BorderRouter> = routers
        .iter()
        .map(|router| BorderRouter {
            internal_addr: (router.address, ROUTER_PORT).into(),
            interfaces: BTreeMap::new(),
        })
        .collect();
    // The names of the routers in the topology file, in the plan's order.
    let letters = network.routers(as_.isd_as);
    for (link, plan) in network.links.iter().zip(links) {
        for side in [Side::A, Side::B] {
            if plan.end(side).owner != index {
                continue;
            }
            let (near, far) = (link.end(side), link.end(side.other()));
            let underlay = |side| SocketAddr::from((plan.end(side).underlay(), UNDERLAY_PORT));
            let interface = Interface {
                underlay: LinkAddresses {
                    local: underlay(side),
                    remote: underlay(side.other()),
                },
                isd_as: far.isd_as,
                remote_id: far.id,
                link_to: link_to(link.kind, side),
                mtu: link.mtu,
                bfd: Bfd::default(),
            };
            if let Some(at) = letters.iter().position(|letter| *letter == near.router) {
                border_routers[at].interfaces.insert(near.id, interface);
            }
        }
    }
    let name = format!("cs{}-1", as_folder(as_.isd_as));
    // The plan gives every AS a router.
    let first = routers.iter().take(1);
    let control_service: BTreeMap<_, _> = first
        .map(|router| (name.clone(), (router.address, CONTROL_PORT).into()))
        .collect();
    AsTopology {
        isd_as: as_.isd_as,
        mtu: as_.mtu,
        core: as_.core,
        dispatched_ports: as_.dispatched_ports,
        discovery_service: control_service.clone(),
        control_service,
        border_routers: routers
            .iter()
            .map(|router| router.name.clone())
            .zip(border_routers)
            .collect(),
    }
}

/// The role of the far AS towards the AS on `side`.
fn link_to(kind: LinkKind, side: Side) -> LinkTo {
    match (kind, side) {
        (LinkKind::Core, _) => LinkTo::Core,
        (LinkKind::Peer, _) => LinkTo::Peer,
        (LinkKind::Child, Side::A) => LinkTo::Child,
        (LinkKind::Child, Side::B) => LinkTo::Parent,
    }
}
