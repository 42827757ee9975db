//! What each path given out carries, slot by slot, for sensing.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hawser_path::Fingerprint;

use super::{Swarm, Who};
use crate::transport::{Connection, Transport};

/// How long a slot is.
const SLOT: Duration = Duration::from_secs(1);

/// The slot that runs.
pub(super) struct Slot {
    /// Bytes sent over each connection in use when it began, and when that was.
    marks: BTreeMap<(Who, Fingerprint), u64>,
    begun: Instant,
}

impl Slot {
    pub fn new(now: Instant) -> Self {
        Self {
            marks: BTreeMap::new(),
            begun: now,
        }
    }
}

impl<T: Transport> Swarm<T> {
    /// Ends the slot if it is over, and lets sensing judge what was carried.
    pub(super) fn end_slot_of_uploads(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.uploads.slot.begun);
        if elapsed < SLOT {
            return;
        }
        let marks = self.sent();
        let before = std::mem::replace(&mut self.uploads.slot, Slot { marks, begun: now });
        let rate = |(given, sent): (&(Who, Fingerprint), &u64)| {
            let bytes = sent.checked_sub(*before.marks.get(given)?)?;
            Some((*given, bytes as f64 * 8.0 / elapsed.as_secs_f64()))
        };
        let rates = self.uploads.slot.marks.iter().filter_map(rate).collect();
        for change in self.uploads.assignment.slot(&rates, now) {
            tracing::debug!(peer = %change.peer, path = %change.path,
                decision = %change.decision, "sensed");
        }
    }

    /// Bytes sent so far over each path that the peer may ask for blocks over.
    fn sent(&self) -> BTreeMap<(Who, Fingerprint), u64> {
        let mut sent = BTreeMap::new();
        for conn in self.conns.values().filter(|conn| !conn.terms.choked) {
            if let Some(who) = self.uploads.who(conn.group) {
                let uploaded = conn.counts.uploaded.load(Ordering::Relaxed);
                sent.insert((who, conn.connection.fingerprint()), uploaded);
            }
        }
        sent
    }
}
