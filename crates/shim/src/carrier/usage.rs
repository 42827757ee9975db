//! When a session was used last. No clock.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a session is kept without a connection or a packet. A program that comes back after the
/// usual pauses (an idle connection of HTTP, a cache of DNS) needs no new one; a server keeps a
/// session without lanes as long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// When a session was used last.
pub(super) struct Usage(Mutex<Instant>);

impl Usage {
    /// Used `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(now))
    }

    /// Records that the session is in use.
    pub(super) fn touch(&self, now: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Whether the session has been unused long enough to be ended.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(last) >= IDLE_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_over_only_after_it_was_unused_for_long() {
        let (mut now, second) = (Instant::now(), Duration::from_secs(1));
        let usage = Usage::new(now);
        // Reports of its connections come much more often.
        for _ in 0..100 {
            now += 30 * second;
            assert!(!usage.is_over(now));
            usage.touch(now);
        }
        assert!(!usage.is_over(now + IDLE_TIMEOUT - second));
        assert!(usage.is_over(now + IDLE_TIMEOUT));
    }
}
