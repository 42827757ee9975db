//! Which hosts serve which leechers, and what was sent so far.

use std::collections::{BTreeMap, BTreeSet};

use crate::choose::Pair;
use crate::names::HostId;

/// Uploaders with the leechers they serve.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Those that are unchoked now.
    pub now: BTreeSet<Pair>,
    /// The bytes of each pair, while both are present.
    bytes: BTreeMap<Pair, u64>,
}

impl Served {
    /// Counts bytes that were sent.
    pub fn count(&mut self, pair: Pair, bytes: u64) {
        *self.bytes.entry(pair).or_default() += bytes;
    }

    /// The bytes sent so far.
    pub fn bytes(&self, pair: Pair) -> u64 {
        self.bytes.get(&pair).copied().unwrap_or(0)
    }

    /// Forgets what was exchanged with hosts that have left.
    pub fn forget(&mut self, gone: &BTreeSet<HostId>) {
        self.bytes
            .retain(|pair, _| !gone.contains(&pair.from) && !gone.contains(&pair.to));
    }
}
