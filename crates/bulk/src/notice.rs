//! What ends a session from outside.

use std::sync::atomic::{AtomicBool, Ordering};

/// What ends a session from outside. The session polls it several times a second.
#[derive(Debug, Default)]
pub(crate) struct Notice {
    replaced: AtomicBool,
    revoked: AtomicBool,
}

impl Notice {
    /// The peer has begun another session: this one ends once nothing comes any more.
    pub(crate) fn replace(&self) {
        self.replaced.store(true, Ordering::Relaxed);
    }

    /// The peer's key is no longer trusted: the session ends at once.
    pub(crate) fn revoke(&self) {
        self.revoked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Relaxed)
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
    }
}
