//! Counters of packets that were dropped.

use std::sync::atomic::{AtomicU64, Ordering};

use hawser_packet::Malformed;

/// Packets that arrived and were dropped, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DropCounters {
    /// A wrong UDP or SCMP checksum.
    pub checksum: u64,
    /// Not a SCION packet, or one whose lengths contradict each other.
    pub malformed: u64,
    /// For another AS, host or port.
    pub not_for_us: u64,
    /// A protocol other than UDP and SCMP.
    pub unusable: u64,
    /// SCMP errors that quote no packet sent from here, or too little of one to tell.
    pub invented: u64,
}

#[derive(Debug, Default)]
pub(super) struct Drops {
    checksum: AtomicU64,
    malformed: AtomicU64,
    pub(super) not_for_us: AtomicU64,
    unusable: AtomicU64,
    pub(super) invented: AtomicU64,
}

impl Drops {
    #[cold]
    pub(super) fn malformed(&self, why: Malformed) {
        let counter = match why {
            Malformed::Checksum => &self.checksum,
            Malformed::NextHeader(_) => &self.unusable,
            _ => &self.malformed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters now.
    pub(super) fn counters(&self) -> DropCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DropCounters {
            checksum: load(&self.checksum),
            malformed: load(&self.malformed),
            not_for_us: load(&self.not_for_us),
            unusable: load(&self.unusable),
            invented: load(&self.invented),
        }
    }
}
