//! What a change of a configuration means for the services that run by it.

use std::collections::BTreeMap;

use hawser_topology::{AsTopology, LinkAddresses, LinkState, Shape};

use crate::bundle::{Bundle, ContentError, LINK_INFO, LINK_STATES, TOPOLOGY};
use crate::manifest::MANIFEST;

/// What the services of an AS do to go from one configuration to another; each includes the ones
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceChange {
    /// Nothing: at most `link_info.json` and `hawser.json` differ, which no service reads.
    None,
    /// The border routers set links anew: their states differ in `links.json`, which no other service of
    /// an AS that joined reads.
    Links,
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
        if !differ_beside(&[MANIFEST, LINK_INFO, LINK_STATES]) {
            return ServiceChange::Links;
        }
        let (Ok(now), Ok(then)) = (self.topology(), before.topology()) else {
            return ServiceChange::Restart;
        };
        let routers = |topology: &AsTopology| {
            let routers = topology.border_routers.iter();
            let routers = routers.map(|(name, router)| (name.clone(), router.internal_addr));
            (topology.isd_as, routers.collect::<Vec<_>>())
        };
        if differ_beside(&[MANIFEST, LINK_INFO, LINK_STATES, TOPOLOGY])
            || routers(&now) != routers(&then)
        {
            return ServiceChange::Restart;
        }
        match without_underlay(now) == without_underlay(then) {
            true => ServiceChange::Underlay,
            false => ServiceChange::Topology,
        }
    }

    /// The states of links that differ from those in `before`, by the interfaces of this configuration.
    ///
    /// # Errors
    /// When `links.json` or `topology.json` is not valid.
    pub fn changed_link_states(
        &self,
        before: &Self,
    ) -> Result<BTreeMap<u16, LinkState>, ContentError> {
        let (now, then) = (self.link_states()?, before.link_states()?);
        let topology = self.topology()?;
        let routers = topology.border_routers.values();
        let interfaces = routers.flat_map(|router| router.interfaces.keys().copied());
        // As border routers have interfaces that the file does not name.
        let plain = LinkState {
            up: true,
            shape: Shape::default(),
        };
        let changed = interfaces.filter_map(|id| {
            let of = |states: &BTreeMap<u16, LinkState>| states.get(&id).copied().unwrap_or(plain);
            (of(&now) != of(&then)).then(|| (id, of(&now)))
        });
        Ok(changed.collect())
    }
}

fn without_underlay(mut topology: AsTopology) -> AsTopology {
    let routers = topology.border_routers.values_mut();
    for interface in routers.flat_map(|router| router.interfaces.values_mut()) {
        interface.underlay = LinkAddresses::default();
    }
    topology
}
