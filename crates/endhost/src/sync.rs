//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also after a panic: no change under a lock of this crate can panic half-way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
