//! Why a transfer failed.

use std::io;
use std::time::Duration;

use hawser_endhost::socket::XdpError;
use hawser_endhost::{PathsError, ScionAddr};
use hawser_keys::{PeerKey, ServerKeyError};
use hawser_quic::BindError;
use thiserror::Error;

use crate::content::{LandingError, ManifestError, ScanError, SourceError};
use crate::protocol::ErrorCode;

/// Why a transfer failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The socket could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The socket for datagrams could not be bound, or its thread started.
    #[error("cannot bind a socket for content: {0}")]
    DataSocket(String),
    /// The device cannot be used by AF_XDP.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// A thread that worked for the transfer panicked.
    #[error("{0} has failed on this host, as its log says: run the command again")]
    Panicked(&'static str),
    /// No path to the peer is known.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The paths that there are cannot be used.
    #[error("no path to {peer} can be used: {reason}")]
    NoPath {
        /// The peer.
        peer: ScionAddr,
        /// Why.
        reason: String,
    },
    /// Nothing came from the peer for a while.
    #[error("{peer} could not be reached for {} s: {reason}", .after.as_secs())]
    Unreachable {
        /// The peer.
        peer: ScionAddr,
        /// For how long.
        after: Duration,
        /// Why the last path failed.
        reason: String,
    },
    /// The server's key is not trusted.
    #[error(transparent)]
    ServerKey(#[from] ServerKeyError),
    /// Another server answers than the one that knew the code.
    #[error(
        "{peer} shows the key {key}, and showed another one before: server key changed during the transfer (possible man-in-the-middle)"
    )]
    OtherServer {
        /// The server's address.
        peer: ScionAddr,
        /// The key that it shows.
        key: PeerKey,
    },
    /// The other side has another code.
    #[error("the other side has another code, or somebody is in between: start both sides again")]
    Code,
    /// The files cannot be listed.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The content cannot be read here.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The content cannot be written here.
    #[error(transparent)]
    Landing(#[from] LandingError),
    /// The source named files that are not allowed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The content is larger than what a sink takes in one transfer.
    #[error("the content has {0} bytes, and a transfer at most 64 TiB: send it in parts")]
    TooLarge(u64),
    /// The content of source and sink differ, although every part of it was verified.
    #[error("the content does not match at the end: run the command again")]
    Mismatch,
    /// The peer refused, or failed.
    #[error("the other side: {text}")]
    Peer {
        /// The code (docs/bulk-protocol.md).
        code: ErrorCode,
        /// The peer's words.
        text: String,
    },
    /// The peer breaks the protocol.
    #[error("the other side breaks the protocol: {0}")]
    Protocol(&'static str),
    /// The peer's datagrams break the protocol.
    #[error("the other side breaks the protocol: {0}")]
    Datagrams(String),
    /// The thread that sends and receives has ended.
    #[error("this host can no longer send or receive: {0}")]
    Data(String),
    /// The peer has gone and begun another session.
    #[error("the peer restarted and opened a new session")]
    Replaced,
    /// The peer's key was allowed or known at the beginning, and no longer is.
    #[error("the key of the other side is no longer trusted here")]
    Revoked,
    /// The transfer was cancelled here.
    #[error("cancelled")]
    Cancelled,
}

impl TransferError {
    /// The code and text of the `Fail` message to the peer; `None` if the peer has sent one, or is gone.
    pub(crate) fn for_peer(&self) -> Option<(ErrorCode, String)> {
        let code = match self {
            Self::Peer { .. } | Self::Unreachable { .. } | Self::Replaced => return None,
            Self::Landing(LandingError::Full { .. }) => ErrorCode::DISK_FULL,
            Self::Landing(_) | Self::Source(_) | Self::Thread(_) | Self::Panicked(_) => {
                ErrorCode::STORAGE
            }
            Self::Revoked => {
                let text = "the key is no longer allowed here".to_owned();
                return Some((ErrorCode::KEY, text));
            }
            Self::Scan(_) => ErrorCode::NO_CONTENT,
            Self::Manifest(ManifestError::NoMemory) => ErrorCode::TOO_MANY,
            Self::Manifest(_) | Self::TooLarge(_) => ErrorCode::MANIFEST,
            Self::Mismatch => ErrorCode::MISMATCH,
            Self::Protocol(_) | Self::Datagrams(_) => ErrorCode::PROTOCOL,
            _ => ErrorCode::CANCELLED,
        };
        Some((code, self.to_string()))
    }
}
