//! The backoff before a service that has ended is restarted.

use std::time::Duration;

/// The first wait, which is short: a service that is killed once is restarted almost at once.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// The longest wait, for a service that fails each time.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// After a run of at least this time the backoff is reset.
const STEADY: Duration = Duration::from_secs(10);

/// The backoff of one service, which holds the next wait: doubled each time the service ends soon
/// after its start.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(MIN_BACKOFF)
    }
}

impl Backoff {
    /// The wait after a service that has run for `ran`.
    pub fn next(&mut self, ran: Duration) -> Duration {
        if ran >= STEADY {
            *self = Self::default();
        }
        let wait = self.0;
        self.0 = (wait * 2).min(MAX_BACKOFF);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_and_is_reset_after_a_long_run() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..12).map(|_| backoff.next(MIN_BACKOFF)).collect();
        assert_eq!(waits[..3], [MIN_BACKOFF, MIN_BACKOFF * 2, MIN_BACKOFF * 4]);
        assert!(waits.is_sorted());
        assert_eq!(waits[11], MAX_BACKOFF);
        assert_eq!(backoff.next(STEADY), MIN_BACKOFF);
        assert_eq!(backoff.next(Duration::ZERO), MIN_BACKOFF * 2);
    }
}
