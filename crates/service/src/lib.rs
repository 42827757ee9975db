//! The transfer service: a queue of bulk transfers with an HTTP API.
//!
//! - [`Queue`]: the jobs, their states and limits, and which of them runs next. Pure: no I/O, no
//!   clock.
//! - [`JobLog`]: the jobs on disk, so that they survive a crash.

mod job;
mod log;
mod queue;

pub use self::job::{FailureKind, Job, JobFailure, JobId, JobProgress, JobState, Submission};
pub use self::log::{JobLog, JobLogError, Loaded};
pub use self::queue::{CancelError, Limits, Outcome, Queue, SubmitError, UserLimits};
