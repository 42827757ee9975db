//! How far ahead content is read.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Ranges that are read and not sent. More would only fill the memory.
const AHEAD: usize = 16;
/// A packet may have content of two ranges.
const LEAST: usize = 2;

/// A range, read and hashed.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub range: u64,
    pub bytes: Arc<Vec<u8>>,
}

/// Bounds what is read and not yet sent, and what is sent and not yet confirmed.
#[derive(Debug)]
pub(crate) struct Gate {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// Ranges read and not sent.
    unsent: usize,
    /// Ranges read and not confirmed.
    held: usize,
    /// Most ranges in memory.
    most: usize,
    closed: bool,
}

impl Gate {
    /// A gate that keeps at most `most` ranges in memory.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            counts: Mutex::new(Counts {
                most: most.max(LEAST),
                ..Counts::default()
            }),
            changed: Condvar::new(),
        }
    }

    /// Keeps at most `most` ranges in memory from now on.
    pub(crate) fn set_most(&self, most: usize) {
        self.lock().most = most.max(LEAST);
        self.changed.notify_all();
    }

    #[cfg(test)]
    pub(crate) fn most(&self) -> usize {
        self.lock().most
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for one more range; `false` when nothing more is to be read.
    pub(crate) fn enter(&self) -> bool {
        let full = |counts: &mut Counts| {
            !counts.closed && (counts.unsent >= AHEAD || counts.held >= counts.most)
        };
        let waited = self.changed.wait_while(self.lock(), full);
        let mut counts = waited.unwrap_or_else(PoisonError::into_inner);
        counts.unsent += 1;
        counts.held += 1;
        !counts.closed
    }

    /// Records that `ranges` were sent for the first time.
    pub(crate) fn sent(&self, ranges: usize) {
        let mut counts = self.lock();
        counts.unsent = counts.unsent.saturating_sub(ranges);
        self.changed.notify_all();
    }

    /// Records that the memory of `ranges` is free.
    pub(crate) fn freed(&self, ranges: usize) {
        let mut counts = self.lock();
        counts.held = counts.held.saturating_sub(ranges);
        self.changed.notify_all();
    }

    /// Lets nothing more be read.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}
