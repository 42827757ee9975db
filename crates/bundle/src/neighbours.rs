//! `neighbours.json`: links whose far ends have names in place of addresses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) const NEIGHBOURS: &str = "neighbours.json";

/// The names of neighbours by interface, each with a UDP port: `as1-ff00-0-111:50001`.
///
/// `topology.json` has an address for each of them too, which counts until the name is resolved. The
/// limits of such a link have the number of the interface as their name in `link_info.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Neighbours(pub BTreeMap<u16, String>);

impl Neighbours {
    /// Checks that each is a name or an address with a port, and belongs to an interface that the AS `has`.
    ///
    /// # Errors
    /// What is wrong with the first that does not.
    pub(crate) fn check(&self, mut has: impl FnMut(u16) -> bool) -> Result<(), String> {
        for (&id, text) in &self.0 {
            let port = text.rsplit_once(':').map(|(_, port)| port.parse());
            let reason = match port {
                _ if !has(id) => format!("topology.json has no interface {id}"),
                Some(Ok(1..=u16::MAX)) => continue,
                _ => format!("{text:?}, of interface {id}, is not a name with a port"),
            };
            return Err(reason);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_a_port_or_an_interface_are_refused() {
        for (id, text, reason) in [
            (1, "as2:50003", None),
            (1, "[fd00::1]:50003", None),
            (1, "as2", Some("not a name with a port")),
            (1, "as2:0", Some("not a name with a port")),
            (3, "as2:50003", Some("no interface 3")),
        ] {
            let neighbours = Neighbours([(id, text.to_owned())].into());
            let refused = neighbours.check(|id| id < 3).err();
            assert_eq!(refused.is_some(), reason.is_some(), "{text}: {refused:?}");
            let said = refused.unwrap_or_default();
            assert!(said.contains(reason.unwrap_or_default()), "{said}");
        }
    }
}
