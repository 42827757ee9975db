//! The files of an AS.

use std::net::{IpAddr, SocketAddr};

use hawser_topology::{AsTopology, LinkAddresses, Network, Side};

use super::layout::{LinkPlan, RouterPlan};

/// UDP port of every border router inside its AS.
const ROUTER_PORT: u16 = 30042;
/// TCP port of every control service.
const CONTROL_PORT: u16 = 30252;
/// UDP port of both ends of every link.
const UNDERLAY_PORT: u16 = 50000;

/// Contents of `topology.json` of the AS at `index`, which has `routers` in the order of
/// [`Network::routers`], and its control service at the address `control`.
pub(super) fn topology(
    network: &Network,
    links: &[LinkPlan],
    index: usize,
    routers: &[RouterPlan],
    control: IpAddr,
) -> Option<AsTopology> {
    let internal = |router: &RouterPlan| {
        let address = SocketAddr::new(router.address, ROUTER_PORT);
        (router.name.clone(), address)
    };
    let control = SocketAddr::new(control, CONTROL_PORT);
    let routers: Vec<_> = routers.iter().map(internal).collect();
    let isd_as = network.ases.get(index)?.isd_as;
    network.topology_of(isd_as, &routers, control, |link, side| {
        let underlay = |side: Side| {
            let address = links[link].end(side).underlay();
            SocketAddr::new(address, UNDERLAY_PORT)
        };
        LinkAddresses {
            local: underlay(side),
            remote: underlay(side.other()),
        }
    })
}
