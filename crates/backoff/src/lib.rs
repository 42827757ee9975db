//! The pause after each failure in a row of something that is tried again: it doubles with every
//! failure, from a first pause up to a longest one, and a success ends the row.
//!
//! Pure: no clock and no chance. The caller adds a pause to the time of the failure, and spreads it
//! where many hosts must not try again at the same moment.
//!
//! The pauses of *paths* are another thing: they come from tables, depend on what failed, and can be
//! cut short. The path manager has them (`hawser-manager`).

use std::time::Duration;

/// The failures in a row of one thing, and the pause that follows the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Pauses of `first` after the first failure, twice as long after each further one, and at most
    /// `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// Records a failure. Returns the pause before the next attempt.
    pub fn fail(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.pause_after(self.failures)
    }

    /// Forgets all failures, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Number of failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The pause after this many failures in a row; zero after none.
    pub fn pause_after(&self, failures: u32) -> Duration {
        let Some(doubled) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = 1u32.checked_shl(doubled).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_pause_doubles_up_to_the_longest_and_starts_over() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(1), seconds(5));
        assert_eq!(backoff.pause_after(0), Duration::ZERO);
        let pauses: Vec<_> = (0..5).map(|_| backoff.fail().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 5, 5]);
        assert_eq!(backoff.failures(), 5);
        backoff.reset();
        assert_eq!(backoff.fail(), seconds(1));
    }

    proptest! {
        #[test]
        fn pauses_never_shrink_and_are_bounded(
            first in 1..10_000u64, longest in 10_000..1_000_000u64, failures in 1..=u32::MAX,
        ) {
            let [first, longest] = [first, longest].map(Duration::from_millis);
            let backoff = Backoff::new(first, longest);
            let pause = backoff.pause_after(failures);
            prop_assert!((first..=longest).contains(&pause));
            prop_assert!(backoff.pause_after(failures.saturating_add(1)) >= pause);
            prop_assert_eq!(backoff.pause_after(u32::MAX), longest);
        }
    }
}
