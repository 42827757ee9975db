//! How a command fails: the job went wrong, or it was used wrongly.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

/// Why a command did not do its job. Any error becomes a failed job by `?`.
#[derive(Debug)]
pub struct Failure {
    reason: String,
    code: u8,
}

impl Failure {
    /// A failed job, from anything that prints: exit code 1.
    pub fn job(reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self { reason, code: 1 }
    }

    /// Wrong use, from anything that prints: exit code 2.
    pub fn usage(reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self { reason, code: 2 }
    }

    /// The same, of a command named after one of `scion`'s: exit code 2 where there is nothing to
    /// report on, as there; 1 is for a bad report.
    pub fn like_scion(self) -> Self {
        Self { code: 2, ..self }
    }

    /// The exit code that says so.
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

/// Adds what was being done to an error, on one line.
pub trait Doing<T> {
    /// `reading x.torrent: not bencoded …`
    fn doing(self, what: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::job(format_args!("{what}: {error}")))
    }
}
