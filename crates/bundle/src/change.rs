//! What a change of a configuration means for the services that run by it.

use hawser_topology::{AsTopology, LinkAddresses};

use crate::bundle::{Bundle, LINK_INFO, TOPOLOGY};
use crate::manifest::MANIFEST;

/// What the services of an AS do to go from one configuration to another; each includes the ones
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceChange {
    /// Nothing: at most `link_info.json` and `hawser.json` differ, which no service reads.
    None,
    /// The border routers read `topology.json` again: underlay addresses of links differ in it, which
    /// no other service uses.
    Underlay,
    /// The control service starts again too: `topology.json` differs in what hosts are told.
    Topology,
    /// All start again: other routers, or other keys and certificates.
    Restart,
}

impl Bundle {
    /// What the services of the AS do to go from `before` to this.
    pub fn change_from(&self, before: &Self) -> ServiceChange {
        let differ_beside = |names: &[&str]| {
            let rest = |bundle: &Self| -> Vec<(String, Vec<u8>)> {
                let files = bundle.files().filter(|(name, _)| !names.contains(name));
                let owned = files.map(|(name, content)| (name.to_owned(), content.to_vec()));
                owned.collect()
            };
            rest(self) != rest(before)
        };
        if !differ_beside(&[MANIFEST, LINK_INFO]) {
            return ServiceChange::None;
        }
        let (Ok(now), Ok(then)) = (self.topology(), before.topology()) else {
            return ServiceChange::Restart;
        };
        let routers = |topology: &AsTopology| {
            let routers = topology.border_routers.iter();
            let routers = routers.map(|(name, router)| (name.clone(), router.internal_addr));
            (topology.isd_as, routers.collect::<Vec<_>>())
        };
        if differ_beside(&[MANIFEST, LINK_INFO, TOPOLOGY]) || routers(&now) != routers(&then) {
            return ServiceChange::Restart;
        }
        match without_underlay(now) == without_underlay(then) {
            true => ServiceChange::Underlay,
            false => ServiceChange::Topology,
        }
    }
}

fn without_underlay(mut topology: AsTopology) -> AsTopology {
    let routers = topology.border_routers.values_mut();
    for interface in routers.flat_map(|router| router.interfaces.values_mut()) {
        interface.underlay = LinkAddresses::default();
    }
    topology
}
