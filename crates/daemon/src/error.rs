//! Why a daemon cannot run.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use hawser_client::{RemoteError, RunError};
use hawser_http::TlsError;
use hawser_kernel::bind::Refused;
use hawser_service::TransfersError;
use thiserror::Error;

/// Why a daemon cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The torrents cannot run.
    #[error(transparent)]
    Torrents(#[from] RunError),
    /// The transfers cannot run.
    #[error(transparent)]
    Transfers(#[from] TransfersError),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] RemoteError),
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A socket of the API cannot be bound.
    #[error("cannot listen at {address}: {}", Refused::tcp(*.address, source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system has no random numbers.
    #[error("{0}")]
    Random(&'static str),
    /// The address of the API cannot be published.
    #[error("cannot write the address of the API to {folder}: {source}")]
    Publish {
        /// The folder of the state.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A part of the daemon has ended by itself.
    #[error("the daemon does not work without {0}, which has ended by itself: start it again")]
    Ended(&'static str),
}
