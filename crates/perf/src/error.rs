//! Why a test fails.

use std::fmt::Display;
use std::io;

use hawser_endhost::{HeadersError, socket};
use hawser_quic::{BindError, ConnectError, StreamError};
use thiserror::Error;

/// Why a test failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PerfError {
    /// The QUIC endpoint cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The socket for packets cannot be bound.
    #[error(transparent)]
    Socket(#[from] socket::BindError),
    /// The server does not answer, or the path does not fit.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Packets cannot be sent over the path.
    #[error(transparent)]
    Headers(#[from] HeadersError),
    /// The connection ended during the test.
    #[error("the test was interrupted: {0}")]
    Interrupted(#[from] StreamError),
    /// The other side sent an invalid message, or ended the test.
    #[error("the other side of the test does not follow its protocol: {0}")]
    Message(String),
    /// The requested packets are too small or too large.
    #[error("packets of {packet} bytes: over this path give {smallest} to {largest}")]
    PacketSize {
        /// The requested size of the SCION packet, in bytes.
        packet: u16,
        /// The smallest SCION packet with a sequence number.
        smallest: usize,
        /// The path's MTU.
        largest: u16,
    },
    /// The system refused to send or receive.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl PerfError {
    pub(crate) fn message(reason: impl Display) -> Self {
        Self::Message(reason.to_string())
    }
}
