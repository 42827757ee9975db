//! How a command fails: the job went wrong, or it was used wrongly.

use std::fmt;
use std::process::ExitCode;

/// Why a command did not do its job.
#[derive(Debug)]
pub enum Failure {
    /// The command was used wrongly: exit code 2.
    Usage(String),
    /// The job failed: exit code 1.
    Job(String),
    /// There is nothing to report on, in a command named after one of `scion`'s: exit code 2, as
    /// there; 1 is for a bad report.
    NoReport(String),
}

impl Failure {
    /// A failed job, from anything that prints.
    pub fn job(reason: impl fmt::Display) -> Self {
        Self::Job(reason.to_string())
    }

    /// Wrong use, from anything that prints.
    pub fn usage(reason: impl fmt::Display) -> Self {
        Self::Usage(reason.to_string())
    }

    /// The same, of a command named after one of `scion`'s.
    pub fn like_scion(self) -> Self {
        match self {
            Self::Job(reason) => Self::NoReport(reason),
            other => other,
        }
    }

    /// The exit code that says so.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Job(_) => ExitCode::from(1),
            Self::Usage(_) | Self::NoReport(_) => ExitCode::from(2),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(reason) | Self::Job(reason) | Self::NoReport(reason)) = self;
        f.write_str(reason)
    }
}

/// Adds what was being done to an error, on one line.
pub trait Doing<T> {
    /// `reading x.torrent: not bencoded …`
    fn doing(self, what: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|e| Failure::Job(format!("{what}: {e}")))
    }
}
