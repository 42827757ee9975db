//! How many answers with hashes a peer may have. What is read from disk for them counts, too.

use std::time::{Duration, Instant};

/// Time after which a peer that has had all its answers gets one more.
const REFILL: Duration = Duration::from_secs(1);

/// How many bytes are read from disk at the price of an answer.
const READ_PER_ANSWER: u64 = 16 << 20;

/// The price of an answer for which `bytes` are read from disk, in answers.
pub(super) fn price(bytes: u64) -> u32 {
    let price = bytes.div_ceil(READ_PER_ANSWER).max(1);
    u32::try_from(price).unwrap_or(u32::MAX)
}

/// The answers that a peer may still have. It bounds what a peer costs that asks without an end.
#[derive(Debug)]
pub(super) struct HashAnswers {
    left: u32,
    /// Since when they have been refilled.
    since: Instant,
}

impl HashAnswers {
    pub fn new(most: u32, now: Instant) -> Self {
        Self {
            left: most,
            since: now,
        }
    }

    /// Takes `count` answers, of `most` that a peer may have at once. If fewer are left, takes none and returns
    /// false.
    pub fn take(&mut self, count: u32, most: u32, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since);
        let refilled = passed.as_secs() / REFILL.as_secs();
        self.since += REFILL * u32::try_from(refilled).unwrap_or(u32::MAX);
        let left = u64::from(self.left).saturating_add(refilled);
        self.left = left.min(most.into()) as u32;
        let taken = self.left.checked_sub(count);
        self.left = taken.unwrap_or(self.left);
        taken.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_run_out_and_come_back_one_per_second() {
        let mut now = Instant::now();
        let mut answers = HashAnswers::new(4, now);
        let mut taken = |now| (0..10).filter(|_| answers.take(1, 4, now)).count();
        assert_eq!(taken(now), 4);
        now += REFILL * 2;
        assert_eq!(taken(now), 2);
        now += REFILL / 2;
        assert_eq!(taken(now), 0);
        now += REFILL * 1_000_000;
        assert_eq!(taken(now), 4);
    }

    #[test]
    fn a_large_piece_has_the_price_of_several_answers() {
        let now = Instant::now();
        assert_eq!([0, 1, 16 << 20, 128 << 20].map(price), [1, 1, 1, 8]);
        let mut answers = HashAnswers::new(9, now);
        assert!(answers.take(8, 9, now));
        // What is too much takes nothing.
        assert!(!answers.take(2, 9, now));
        assert!(answers.take(1, 9, now));
        assert!(!answers.take(1, 9, now));
    }
}
