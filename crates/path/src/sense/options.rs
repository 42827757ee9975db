//! How carefully paths are tried.

use std::time::Duration;

/// How much is looked at, and what counts as the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SenseOptions {
    /// A rate that differs by less than this share is the same rate. Where rates differ by more
    /// from slot to slot, up to half of what a shared bottleneck would cost is too.
    pub tolerance: f64,
    /// How many slots the rates are compared over, before and after; at least 1. Up to five times
    /// as many where rates differ from slot to slot; with 1, that cannot be seen.
    pub slots: usize,
    /// How long a pair of paths that share a bottleneck is not tried again; doubled each time.
    pub pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
}

impl Default for SenseOptions {
    fn default() -> Self {
        Self {
            tolerance: 0.05,
            slots: 3,
            pause: Duration::from_secs(30),
            longest_pause: Duration::from_secs(480),
        }
    }
}
