//! How a command fails: the job failed, or the command was used wrongly.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

/// Why a command failed. `?` turns any error into a failed job.
#[derive(Debug)]
pub struct Failure {
    reason: String,
    code: u8,
}

impl Failure {
    /// A failed job with any printable reason: exit code 1.
    pub fn job(reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self { reason, code: 1 }
    }

    /// A job that was done, but for some of its files: exit code 3.
    pub fn partial(reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self { reason, code: 3 }
    }

    /// Wrong use with any printable reason: exit code 2.
    pub fn usage(reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self { reason, code: 2 }
    }

    /// The same for a command named after one of `scion`'s: exit code 2 if there is nothing to
    /// report, as in `scion`; 1 stands for a bad report.
    pub fn like_scion(self) -> Self {
        Self { code: 2, ..self }
    }

    /// Whether the command was used wrongly.
    pub fn is_wrong_use(&self) -> bool {
        self.code == 2
    }

    /// The exit code of the failure.
    pub fn exit_code(&self) -> ExitCode {
        self.code.into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::job(error)
    }
}

/// Adds the failed action to an error, on one line.
pub trait Doing<T> {
    /// `reading x.torrent: not bencoded …`
    fn doing(self, what: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::job(format_args!("{what}: {error}")))
    }
}
