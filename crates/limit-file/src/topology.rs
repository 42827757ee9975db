//! Links of an AS, by its `topology.json`.

use std::net::SocketAddr;

use hawser_topology::AsTopology;

use crate::link::{Link, LinkFile, Place, Rates};

impl LinkFile {
    /// All links of an AS, each with the rates that `rates` gives for its interface; those without
    /// any are left out.
    #[must_use]
    pub fn of_topology(topology: &AsTopology, rates: impl Fn(u16) -> Option<Rates>) -> Self {
        let mut links = Vec::new();
        for router in topology.border_routers.values() {
            for &number in router.interfaces.keys() {
                let Some(rates) = rates(number) else { continue };
                links.push(Link {
                    entry: format!("interface {number}"),
                    place: Place::Interface(number),
                    device: None,
                    rates,
                    queue: None,
                });
            }
        }
        Self {
            links,
            default: None,
        }
    }
}

/// The far end of an interface's link; `None` if the AS has no such interface.
pub(crate) fn remote(topology: &AsTopology, interface: u16) -> Option<SocketAddr> {
    let routers = topology.border_routers.values();
    let mut found = routers.filter_map(|router| router.interfaces.get(&interface));
    Some(found.next()?.underlay.remote)
}
