//! What a supervisor reports.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::set::ServiceId;

/// What has happened to a service.
#[derive(Debug)]
#[non_exhaustive]
pub enum Report {
    /// Its process runs.
    Started {
        /// The service.
        service: ServiceId,
        /// Whether it had ended by itself before.
        again: bool,
    },
    /// Its process cannot be started.
    NotStarted {
        /// The service.
        service: ServiceId,
        /// Why.
        error: io::Error,
        /// The pause until the next attempt.
        again_after: Duration,
    },
    /// It is ready.
    Ready {
        /// The service.
        service: ServiceId,
    },
    /// It wrote a line to standard error.
    Said {
        /// The service.
        service: ServiceId,
        /// The line, at most 4000 bytes of it.
        line: String,
    },
    /// Its process has ended by itself.
    Ended {
        /// The service.
        service: ServiceId,
        /// How; an error if somebody else has reaped the process.
        status: io::Result<ExitStatus>,
        /// The last line that it wrote to standard error.
        last_line: Option<String>,
        /// The pause until the next start.
        again_after: Duration,
    },
    /// Its process has ended as it was told to.
    Stopped {
        /// The service.
        service: ServiceId,
    },
    /// Its process does not end, even when killed. It is watched: once it has ended, the service goes
    /// on.
    Stuck {
        /// The service.
        service: ServiceId,
    },
}
