//! Which attributes of entries are taken.

use std::sync::atomic::AtomicU64;

use crate::protocol::Choices;

/// What is taken of the attributes that are sent.
#[derive(Debug, Default)]
pub(super) struct Taking {
    pub choices: Choices,
    /// Entries of which something was not taken, or could not be set.
    pub stripped: AtomicU64,
}

impl Taking {
    pub const fn new(choices: Choices) -> Self {
        Self {
            choices,
            stripped: AtomicU64::new(0),
        }
    }
}
