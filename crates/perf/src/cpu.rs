//! Processor time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this process so far: of all its threads, in user space and in the kernel.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
