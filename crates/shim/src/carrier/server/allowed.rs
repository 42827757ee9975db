//! Which keys are allowed, as the file with them changes.

use std::time::Duration;

use hawser_keys::{Allowed, KeysFileError, PeerKey, Revocations, StillAllowed};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Interval, MissedTickBehavior};

/// Time between two looks at the file.
const INTERVAL: Duration = Revocations::<PeerKey>::INTERVAL;

/// The keys that are allowed, as they change.
pub(super) struct Followed {
    /// `None` allows any.
    allowed: Option<Allowed>,
    tick: Interval,
    /// The look that is under way: what waits for it may be interrupted.
    reading: Option<JoinHandle<Result<StillAllowed, KeysFileError>>>,
    /// Whether it was reported that the file cannot be used.
    is_reported: bool,
}

impl Followed {
    pub(super) fn new(allowed: Option<Allowed>) -> Self {
        let mut tick = tokio::time::interval(INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            allowed,
            tick,
            reading: None,
            is_reported: false,
        }
    }

    /// The keys that are allowed at the next look; never comes if any is. While the file cannot be used,
    /// only those that are in no file are.
    pub(super) async fn next(&mut self) -> StillAllowed {
        let Some(allowed) = &self.allowed else {
            return std::future::pending().await;
        };
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => {
                self.tick.tick().await;
                let allowed = allowed.clone();
                none.insert(spawn_blocking(move || allowed.still()))
            }
        };
        let read = reading.await;
        self.reading = None;
        let was_reported = self.is_reported;
        self.is_reported = false;
        match read {
            Ok(Ok(still)) => still,
            Ok(Err(error)) => {
                self.is_reported = true;
                if !was_reported {
                    tracing::error!("{error}: sessions of hosts whose keys are in it end");
                }
                allowed.given()
            }
            // A panic was reported.
            Err(_) => allowed.given(),
        }
    }
}
