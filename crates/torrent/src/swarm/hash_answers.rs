//! How many answers with hashes a peer may have.

use std::time::{Duration, Instant};

/// Time after which a peer that has had all its answers gets one more.
const REFILL: Duration = Duration::from_secs(1);

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

    /// Takes one of at most `most`; returns whether there was one.
    pub fn take(&mut self, most: u32, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since);
        let refilled = passed.as_secs() / REFILL.as_secs();
        self.since += REFILL * u32::try_from(refilled).unwrap_or(u32::MAX);
        let left = u64::from(self.left).saturating_add(refilled);
        self.left = left.min(most.into()) as u32;
        let is_there = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_run_out_and_come_back_one_per_second() {
        let mut now = Instant::now();
        let mut answers = HashAnswers::new(4, now);
        let mut taken = |now| (0..10).filter(|_| answers.take(4, now)).count();
        assert_eq!(taken(now), 4);
        now += REFILL * 2;
        assert_eq!(taken(now), 2);
        now += REFILL / 2;
        assert_eq!(taken(now), 0);
        now += REFILL * 1_000_000;
        assert_eq!(taken(now), 4);
    }
}
