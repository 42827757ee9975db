//! For how long nothing has arrived.

use std::time::{Duration, Instant};

/// Longest time between two observations that counts as silence of the peer. What is longer is a
/// pause of this program, during which it could not have seen anything arrive.
const MAX_STEP: Duration = Duration::from_millis(250);

/// For how long nothing has arrived from a peer, without the time in which this program did not look.
#[derive(Debug)]
pub(crate) struct Silence {
    observed_at: Instant,
    time: Duration,
}

impl Silence {
    /// Begins at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            observed_at: now,
            time: Duration::ZERO,
        }
    }

    /// Takes note that something has arrived since the last observation, or that nothing has.
    pub fn observe(&mut self, has_arrived: bool, now: Instant) {
        let elapsed = self.skip(now);
        self.time = match has_arrived {
            true => Duration::ZERO,
            false => self.time + elapsed.min(MAX_STEP),
        };
    }

    /// Does not count the time since the last observation, and returns it.
    pub fn skip(&mut self, now: Instant) -> Duration {
        let elapsed = now.saturating_duration_since(self.observed_at);
        self.observed_at = now;
        elapsed
    }

    /// Begins again.
    pub fn reset(&mut self) {
        self.time = Duration::ZERO;
    }

    /// How long it has lasted.
    pub fn time(&self) -> Duration {
        self.time
    }
}
