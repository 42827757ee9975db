//! How many blocks may be requested over a second connection.

use std::time::Instant;

/// One in this many of the blocks of a torrent may be requested over a second connection at once,
/// and twice as many per second: connections that share a bottleneck only seem slow.
const BLOCKS_PER_DUPLICATE: u64 = 160;

/// At least this many blocks may be.
const MIN_AT_ONCE: u64 = 8;

/// Once more than one in this many blocks of a torrent was wasted by being requested twice, none is
/// any more: with those under way then, it is hardly more than one in fifty. What peers send late or twice by
/// themselves does not count: an end without duplicates, in which all wait for the slowest, is not the answer
/// to that.
const BLOCKS_PER_WASTE: u64 = 120;

/// What may be requested over a second connection.
#[derive(Debug)]
pub(super) struct Duplicates {
    /// Blocks that may be requested twice now.
    tokens: f64,
    /// The most of them.
    at_once: f64,
    refilled: Instant,
    /// Blocks wasted by being requested twice, and the most of them.
    wasted: u64,
    may_waste: u64,
}

impl Duplicates {
    /// For a torrent of which `blocks` blocks are missing.
    pub fn new(blocks: u64, now: Instant) -> Self {
        let at_once = (blocks / BLOCKS_PER_DUPLICATE).max(MIN_AT_ONCE) as f64;
        Self {
            tokens: at_once,
            at_once,
            refilled: now,
            wasted: 0,
            may_waste: (blocks / BLOCKS_PER_WASTE).max(MIN_AT_ONCE),
        }
    }

    /// Adds what may be requested twice for the time since the last call.
    pub fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.refilled);
        self.refilled = now;
        let more = 2.0 * self.at_once * elapsed.as_secs_f64();
        self.tokens = (self.tokens + more).min(self.at_once);
    }

    /// Whether a block may be requested twice.
    pub fn is_allowed(&self) -> bool {
        self.tokens >= 1.0 && self.may_waste()
    }

    /// Whether so little was wasted yet that more may be.
    pub fn may_waste(&self) -> bool {
        self.wasted < self.may_waste
    }

    /// Counts a block that is requested twice.
    pub fn count(&mut self) {
        self.tokens -= 1.0;
    }

    /// Sets the number of blocks that arrived and were not needed because they were requested twice.
    pub fn set_wasted(&mut self, wasted: u64) {
        self.wasted = wasted;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn blocks_may_be_requested_twice_until_too_many_were_wasted() {
        let start = Instant::now();
        let mut duplicates = Duplicates::new(1600, start);
        let mut number = 0;
        let mut take_all = |duplicates: &mut Duplicates| {
            while duplicates.is_allowed() {
                duplicates.count();
                number += 1;
            }
            number
        };
        assert_eq!(take_all(&mut duplicates), 10);
        duplicates.refill(start + Duration::from_millis(250));
        assert_eq!(take_all(&mut duplicates), 15);
        duplicates.refill(start + Duration::from_secs(9));
        duplicates.set_wasted(12);
        assert!(duplicates.is_allowed());
        duplicates.set_wasted(13);
        assert!(!duplicates.is_allowed());
    }
}
