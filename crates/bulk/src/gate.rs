//! How far ahead content is read.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Ranges that are read and not sent. More would only fill the memory.
const AHEAD: usize = 16;
/// A packet may have content of two ranges.
const MIN_RANGES: usize = 2;

/// A range, read and hashed.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub range: u64,
    pub bytes: Arc<Vec<u8>>,
}

/// Bounds what is read and not yet sent, and what is sent and not yet confirmed.
#[derive(Debug)]
pub(crate) struct Gate {
    ranges: Mutex<Ranges>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Ranges {
    /// Read and not sent.
    unsent: BTreeSet<u64>,
    /// Read and not confirmed: their bytes are in memory.
    held: BTreeSet<u64>,
    /// Most ranges in memory.
    most: usize,
    closed: bool,
}

impl Ranges {
    /// Whether `range` has to wait. One that is read again takes the place that it has.
    fn is_full_for(&self, range: u64) -> bool {
        let full = self.unsent.len() >= AHEAD || self.held.len() >= self.most;
        full && !self.held.contains(&range)
    }
}

impl Gate {
    /// A gate that keeps at most `most` ranges in memory.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            ranges: Mutex::new(Ranges {
                most: most.max(MIN_RANGES),
                ..Ranges::default()
            }),
            changed: Condvar::new(),
        }
    }

    /// Keeps at most `most` ranges in memory from now on.
    pub(crate) fn set_most(&self, most: usize) {
        self.lock().most = most.max(MIN_RANGES);
        self.changed.notify_all();
    }

    #[cfg(test)]
    pub(crate) fn most(&self) -> usize {
        self.lock().most
    }

    /// The number of ranges in memory.
    pub(crate) fn held(&self) -> usize {
        self.lock().held.len()
    }

    fn lock(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for `range`; `false` when nothing more is to be read.
    pub(crate) fn enter(&self, range: u64) -> bool {
        let full = |ranges: &mut Ranges| !ranges.closed && ranges.is_full_for(range);
        let waited = self.changed.wait_while(self.lock(), full);
        let mut ranges = waited.unwrap_or_else(PoisonError::into_inner);
        ranges.unsent.insert(range);
        ranges.held.insert(range);
        !ranges.closed
    }

    /// Records that all of `range` was sent.
    pub(crate) fn sent(&self, range: u64) {
        self.lock().unsent.remove(&range);
        self.changed.notify_all();
    }

    /// Records that the memory of `range` is free.
    pub(crate) fn freed(&self, range: u64) {
        let mut ranges = self.lock();
        ranges.unsent.remove(&range);
        ranges.held.remove(&range);
        drop(ranges);
        self.changed.notify_all();
    }

    /// Lets nothing more be read.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_is_read_again_needs_no_further_room() {
        let gate = Gate::new(2);
        for range in 0..2 {
            assert!(gate.enter(range));
            gate.sent(range);
        }
        // However often: it would wait without end if each took a place.
        for _ in 0..3 * AHEAD {
            assert!(gate.enter(1));
        }
        assert_eq!(gate.held(), 2);
        gate.sent(1);
        gate.freed(0);
        // What was never read frees nothing.
        gate.freed(7);
        assert!(gate.enter(2));
        assert_eq!(gate.held(), 2);
    }
}
