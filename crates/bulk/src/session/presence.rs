//! Whether the peer of a session is still there.

use std::time::{Duration, Instant};

use hawser_endhost::patience::Patience;

use super::SESSION_TIMEOUT;

/// A peer from which nothing came for this long has gone, if it begins another session: connections
/// are kept alive four times a second.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the peer of a session is still there.
pub(super) struct Presence {
    /// Time without a connection; `None` while there is one.
    alone: Option<Patience>,
    /// Why the last connection ended.
    last_error: Option<String>,
    /// Bytes received over connections, and when the last of them came.
    arrived: (u64, Instant),
}

impl Presence {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            alone: Some(Patience::new(now)),
            last_error: None,
            arrived: (0, now),
        }
    }

    /// There is a connection.
    pub(super) fn on_connected(&mut self) {
        self.alone = None;
    }

    /// The last connection has ended.
    pub(super) fn on_alone(&mut self, now: Instant) {
        self.alone = Some(Patience::new(now));
    }

    /// A connection failed.
    pub(super) fn on_error(&mut self, error: String) {
        self.last_error = Some(error);
    }

    /// Why the last connection ended.
    pub(super) fn take_error(&mut self) -> Option<String> {
        self.last_error.take()
    }

    /// Whether there has been no connection for as long as a session is kept without one.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        let alone = self.alone.as_mut();
        alone.is_some_and(|alone| alone.is_over(SESSION_TIMEOUT, now))
    }

    /// So many bytes have arrived in all.
    pub(super) fn observe(&mut self, bytes: u64, now: Instant) {
        if bytes != self.arrived.0 {
            self.arrived = (bytes, now);
        }
    }

    /// Whether the peer has been silent long enough for another of its sessions to replace this one.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.arrived.1) >= REPLACE_TIMEOUT
    }
}
