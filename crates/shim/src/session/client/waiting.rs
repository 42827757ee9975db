//! The requests that wait for a path, and how long the first one may take.

use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_endhost::patience::Patience;

use super::action::RequestId;
use super::error::SessionError;

/// How long a program waits for the first path, without the time in which this process did not run.
const FIRST_PATH_TIMEOUT: Duration = Duration::from_secs(10);

/// The requests that wait for a path.
#[derive(Debug)]
pub(super) struct Waiting {
    /// As many as programs connect at once, of which the driver has a limit.
    requests: Vec<RequestId>,
    began: Instant,
    /// The wait for the first path.
    patience: Patience,
}

impl Waiting {
    /// Nobody waits yet; the wait for the first path begins.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            requests: Vec::new(),
            began: now,
            patience: Patience::new(now),
        }
    }

    /// How long ago that was.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    pub(super) fn add(&mut self, request: RequestId) {
        self.requests.push(request);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Those that wait, which wait no longer.
    pub(super) fn take(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.requests)
    }

    /// Why there is no use in waiting for the first path any more, if so. `is_hopeful` says whether one
    /// may still come about, `trouble` what has failed.
    pub(super) fn judge(
        &mut self,
        peer: ScionAddr,
        is_hopeful: bool,
        trouble: Option<String>,
        now: Instant,
    ) -> Option<SessionError> {
        if !is_hopeful {
            let reason = trouble.unwrap_or_else(|| "none is offered".to_owned());
            return Some(SessionError::NoPath { peer, reason });
        }
        let is_over = self.patience.is_over(FIRST_PATH_TIMEOUT, now);
        is_over.then(|| SessionError::Silent {
            peer,
            after: FIRST_PATH_TIMEOUT,
            reason: trouble.unwrap_or_else(|| "no path is connected".to_owned()),
        })
    }
}
