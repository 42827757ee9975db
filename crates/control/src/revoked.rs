//! Interfaces that hosts reported down.

use std::collections::HashMap;

use hawser_path::Interface;
use hawser_topology::IsdAsn;

/// Seconds for which an interface counts as down after a host reported it, as in scionproto's
/// daemon. A host that receives further SCMP errors about the interface reports it again.
const HOLDS: u64 = 10;

/// Interfaces, each with the Unix second at which it counts as up again.
#[derive(Debug, Default)]
pub(crate) struct Revoked(HashMap<Interface, u64>);

impl Revoked {
    pub fn add(&mut self, isd_as: IsdAsn, id: u16, now: u64) {
        self.0.insert(Interface { isd_as, id }, now + HOLDS);
    }

    /// Forgets what no longer holds. Returns whether anything did not; so it does where the clock
    /// was set back.
    pub fn expire(&mut self, now: u64) -> bool {
        let before = self.0.len();
        self.0
            .retain(|_, until| (now..=now.saturating_add(HOLDS)).contains(until) && *until > now);
        self.0.len() < before
    }

    /// Whether one of the interfaces is reported down.
    pub fn any(&self, interfaces: &[Interface]) -> bool {
        let known = |interface| self.0.contains_key(interface);
        !self.0.is_empty() && interfaces.iter().any(known)
    }
}
