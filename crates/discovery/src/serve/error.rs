//! What can go wrong with a tracker.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Why a tracker cannot begin, or has not kept its state.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A socket cannot be bound.
    #[error("cannot listen at {addr} ({network}): {error}")]
    Bind {
        /// Its address.
        addr: SocketAddr,
        /// `http` or `udp`.
        network: &'static str,
        /// Why.
        error: io::Error,
    },
    /// The file with the swarms cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file with the swarms cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}
