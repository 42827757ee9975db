//! Waits before something that failed is tried again.

use std::time::Duration;

/// A wait that doubles with each failure, up to a longest one.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// The wait after a failure.
    pub fn failed(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(self.longest);
        wait
    }

    /// The same, between three and five quarters of it: many nodes must not return all at once.
    pub fn failed_spread(&mut self) -> Duration {
        self.failed().mul_f64(0.75 + fastrand::f64() / 2.0)
    }

    /// Begins anew after a success.
    pub fn worked(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_longest_and_begins_anew() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(1), seconds(5));
        let waits: Vec<_> = (0..5).map(|_| backoff.failed().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 5, 5]);
        backoff.worked();
        assert_eq!(backoff.failed(), seconds(1));
        let spread = backoff.failed_spread();
        assert!((seconds(1)..=seconds(3)).contains(&spread), "{spread:?}");
    }
}
