//! How many SCMP errors are acted upon.

use std::time::{Duration, Instant};

/// Errors acted upon per flow: the first of a burst, then one in each interval.
const BURST: u32 = 4;
const INTERVAL: Duration = Duration::from_secs(1);

/// The rate limit of SCMP errors that are acted upon: a token bucket.
#[derive(Debug)]
pub(super) struct Budget {
    left: f64,
    last: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            left: BURST.into(),
            last: now,
        }
    }

    /// Takes one, if there is one at `now`.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.left = (self.left + passed / INTERVAL.as_secs_f64()).min(BURST.into());
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_errors_are_acted_upon_in_a_time() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        let mut taken = |after: Duration| (0..50).filter(|_| budget.take(start + after)).count();
        assert_eq!(taken(Duration::ZERO), BURST as usize);
        assert_eq!(taken(INTERVAL * 5 / 2), 2);
        assert_eq!(taken(INTERVAL * 600), BURST as usize);
    }
}
