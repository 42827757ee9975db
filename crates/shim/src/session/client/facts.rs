//! What the status report says of a session, besides its lanes.

use std::collections::{BTreeMap, BTreeSet};

use hawser_path::{Decision, Fingerprint, Interface};

/// What the status report says of a session, besides its lanes.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The latest decision about each path.
    pub decisions: BTreeMap<Fingerprint, Decision>,
    /// What failed last.
    pub last_error: Option<String>,
    /// Shared interfaces of which there was a warning.
    warned: BTreeSet<Interface>,
}

impl Facts {
    pub(super) fn decide(&mut self, changes: Vec<(Fingerprint, Decision)>) {
        self.decisions.extend(changes);
    }

    /// Those of the interfaces that paths share of which there was no warning, by the paths.
    pub(super) fn warn(
        &mut self,
        shared: BTreeMap<Interface, [Fingerprint; 2]>,
    ) -> BTreeMap<[Fingerprint; 2], Vec<Interface>> {
        let mut new: BTreeMap<[Fingerprint; 2], Vec<Interface>> = BTreeMap::new();
        for (interface, paths) in shared {
            if self.warned.insert(interface) {
                new.entry(paths).or_default().push(interface);
            }
        }
        new
    }
}
