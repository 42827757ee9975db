//! How many connections this process may have at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::lending::MAX_LOANS;
use crate::lending::channel::FILES;

/// Descriptors that the rest of the process is left, for sessions, files and devices.
const RESERVED_FILES: u64 = 128;
/// Of this number of descriptors, one connection may be lent.
const FILES_PER_LOAN: u64 = 64;
const MIN_LOANS: u64 = 4;
/// Descriptors that a loan takes: those of the carrier, and in the holder the pipes in the place of two watches.
const PER_LOAN: u64 = FILES as u64 + 2;
/// Descriptors that a connection may take, with those of a carrier in the same process.
const PER_CONNECTION: u64 = 4;
/// Bounds of the number of connections, whatever the limit of open files.
const MIN_CONNECTIONS: u64 = 16;
const MAX_CONNECTIONS: u64 = 1 << 18;

/// The connections that may be added. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    limit: usize,
    /// Whether there was a warning since there was room.
    warned: Arc<AtomicBool>,
}

/// Connections that the holder may lend to the carrier at once.
pub(crate) fn loans() -> usize {
    loans_of(files()) as usize
}

fn loans_of(files: u64) -> u64 {
    (files / FILES_PER_LOAN).clamp(MIN_LOANS, MAX_LOANS as u64)
}

/// Descriptors that this process may have.
fn files() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Held by a connection until its descriptors are closed.
pub(crate) type Permit = OwnedSemaphorePermit;

impl Budget {
    /// As many connections as the hard limit of open files (`RLIMIT_NOFILE`) has room for.
    pub(crate) fn of_process() -> Self {
        let files = files();
        let lent = loans_of(files) * PER_LOAN;
        let limit = files.saturating_sub(RESERVED_FILES + lent) / PER_CONNECTION;
        Self::new(limit.clamp(MIN_CONNECTIONS, MAX_CONNECTIONS) as usize)
    }

    /// At most `limit` connections.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(limit)),
            limit,
            warned: Arc::default(),
        }
    }

    /// Adds a connection; `None` if there are as many as there may be, of which this warns once.
    pub(crate) fn take(&self) -> Option<Permit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok();
        let was_warned = self.warned.swap(permit.is_none(), Ordering::Relaxed);
        if permit.is_none() && !was_warned {
            tracing::warn!("{}", self.exhausted());
        }
        permit
    }

    /// Why there may be no more.
    pub(crate) fn exhausted(&self) -> String {
        format!(
            "there are {} connections at once, more than the limit of open files allows: raise it \
             (`ulimit -n`, LimitNOFILE= of the unit)",
            self.limit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_than_the_limit_at_once() {
        let budget = Budget::new(2);
        let (first, second) = (budget.take(), budget.take());
        assert!(first.is_some() && second.is_some());
        assert!(budget.clone().take().is_none());
        drop(first);
        assert!(budget.take().is_some());
        assert!(Budget::of_process().take().is_some());
    }
}
