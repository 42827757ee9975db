//! How virtual time goes by.

use std::time::Duration;

/// The step of virtual time. What falls within a step counts from its end, but for the moment at
/// which a leecher has all.
pub const STEP: Duration = Duration::from_millis(100);
