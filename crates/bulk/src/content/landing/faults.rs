//! Entries that cannot be written, although others can.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use crate::content::skip::Skipped;

/// The entries that were found to be impossible to write.
#[derive(Debug)]
pub(super) struct Faults {
    /// Whether the first of them ends the landing.
    pub strict: bool,
    /// Whether a file that another transfer writes to ends the landing.
    pub wait_for_others: AtomicBool,
    /// Those that were not reported.
    pub found: Mutex<Vec<Skipped>>,
}

impl Faults {
    /// None so far.
    pub fn new(strict: bool, wait_for_others: bool) -> Self {
        Self {
            strict,
            wait_for_others: AtomicBool::new(wait_for_others),
            found: Mutex::default(),
        }
    }
}
