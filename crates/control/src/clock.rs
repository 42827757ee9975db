//! The time of answers.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time now, in Unix seconds.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
