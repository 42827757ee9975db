//! Which limits are in force, and when they are set again.

use std::time::Duration;

use hawser_backoff::Backoff;
use hawser_limit::FailedLinks;
use tokio::time::Instant;

/// Waits before limits that could not be put into force are tried again.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// Time after which limits in force are set again, as somebody else may have removed them.
const INTERVAL: Duration = Duration::from_secs(30);

/// The limits of the current configuration.
pub(super) struct InForce {
    /// Whether they are in force, but for those of `failed`.
    pub(super) is: bool,
    /// Why they could not be put into force.
    pub(super) error: Option<String>,
    /// The links whose limits are not.
    pub(super) failed: FailedLinks<String>,
    /// When they are set again; `None` if there are none to set.
    pub(super) again: Option<Instant>,
    pub(super) backoff: Backoff,
}

impl Default for InForce {
    fn default() -> Self {
        Self {
            is: false,
            error: None,
            failed: FailedLinks::new(),
            again: None,
            backoff: BACKOFF,
        }
    }
}

impl InForce {
    /// All are in force but those of `failed`.
    pub(super) fn applied(&mut self, failed: FailedLinks<String>, now: Instant) {
        let wait = match failed.is_empty() {
            true => {
                self.backoff.reset();
                INTERVAL
            }
            false => self.backoff.fail(),
        };
        *self = Self {
            is: true,
            error: None,
            failed,
            again: Some(now + wait),
            backoff: self.backoff,
        };
    }

    /// None could be set.
    pub(super) fn refused(&mut self, reason: String, now: Instant) {
        let again = now + self.backoff.fail();
        *self = Self {
            is: false,
            error: Some(reason),
            failed: FailedLinks::new(),
            again: Some(again),
            backoff: self.backoff,
        };
    }
}
