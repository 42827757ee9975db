//! When services are started again, and how long they may take to end.

use std::time::Duration;

use hawser_backoff::Backoff;

/// First pause before a service that has ended is started again: short, for one that was killed once.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// Longest pause, for a service that fails each time.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// A run of this time ends a row of failures.
const STEADY: Duration = Duration::from_secs(10);
/// Longest time of a process to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Longest time of a process to end after SIGKILL: it may be writing memory to disk, or waiting in
/// the kernel.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The times by which services are kept alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The pauses before a service that has ended by itself is started again.
    pub backoff: Backoff,
    /// After a run of at least this time the next pause is the first again.
    pub steady: Duration,
    /// Longest time of a process to end after SIGTERM, before it is killed.
    pub grace: Duration,
    /// Longest time of a process to end after SIGKILL, before it counts as stuck.
    pub kill_timeout: Duration,
}

impl Default for Policy {
    /// Pauses of 100 ms to 30 s, which a run of 10 s resets; 5 s for SIGTERM, 10 s for SIGKILL.
    fn default() -> Self {
        Self {
            backoff: Backoff::new(MIN_BACKOFF, MAX_BACKOFF),
            steady: STEADY,
            grace: GRACE,
            kill_timeout: KILL_TIMEOUT,
        }
    }
}
