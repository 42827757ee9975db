//! The swarms, which all sockets share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_tracker::Swarms;

/// The swarms. The lock is held for one request, or while all are copied to be written, and never while
/// something is awaited.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Swarms>>);

impl Shared {
    pub fn new(swarms: Swarms) -> Self {
        Self(Arc::new(Mutex::new(swarms)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Swarms> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
