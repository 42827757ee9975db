//! Work on a thread of its own, whose panic is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`. If it panics, which was logged, `report` is called: whoever waits for what the thread
/// does must not wait for ever.
pub(crate) fn guarded(work: impl FnOnce(), report: impl FnOnce()) {
    // Nothing that `work` has changed is used afterwards, but for locks, which are poisoned.
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        report();
    }
}
