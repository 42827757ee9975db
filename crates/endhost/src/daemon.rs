//! The SCION daemon.

use thiserror::Error;

/// A client of the daemon.
#[derive(Clone, Debug)]
pub struct Daemon {}

/// Why the daemon gave no answer.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// Nothing answers.
    #[error("cannot reach the SCION daemon at {address}: start it, or set SCION_DAEMON")]
    Unreachable {
        /// Where it was looked for.
        address: String,
    },
}

impl Daemon {
    /// A client of the daemon at `addr`.
    ///
    /// # Errors
    /// When `addr` is no address.
    pub fn connect(_addr: &str) -> Result<Self, DaemonError> {
        unimplemented!()
    }

    /// The daemon the environment names.
    ///
    /// # Errors
    /// When the environment names no address.
    pub fn from_env() -> Result<Self, DaemonError> {
        unimplemented!()
    }
}
