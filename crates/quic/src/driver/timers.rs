//! When which connection has something to do that no packet brings.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use noq_proto::ConnectionHandle;

/// The deadlines of an endpoint's connections, one each at most.
#[derive(Debug, Default)]
pub(super) struct Timers(Mutex<BTreeSet<(Instant, ConnectionHandle)>>);

impl Timers {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<(Instant, ConnectionHandle)>> {
        // No operation on the set can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the deadline `before` of a connection by `after`. Returns whether that is the
    /// earliest of all now.
    pub(super) fn set(
        &self,
        connection: ConnectionHandle,
        before: Option<Instant>,
        after: Option<Instant>,
    ) -> bool {
        let mut timers = self.lock();
        if let Some(before) = before {
            timers.remove(&(before, connection));
        }
        let Some(after) = after else {
            return false;
        };
        timers.insert((after, connection));
        timers.first() == Some(&(after, connection))
    }

    /// A connection whose deadline is not after `now`, and what it was; it has none any more.
    pub(super) fn pop(&self, now: Instant) -> Option<(Instant, ConnectionHandle)> {
        let mut timers = self.lock();
        let first = timers.first()?;
        match first.0 <= now {
            true => timers.pop_first(),
            false => None,
        }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.lock().first().map(|(deadline, _)| *deadline)
    }
}
