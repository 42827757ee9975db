//! Why a session fails, and how it ends.

use std::time::Duration;

use hawser_endhost::ScionAddr;
use hawser_keys::{PeerKey, ServerKeyError};
use thiserror::Error;

use crate::protocol::RefusalCode;

/// Why a session cannot be opened, or ends.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum SessionError {
    #[error("no path to {peer} works: {reason}")]
    NoPath { peer: ScionAddr, reason: String },
    #[error("{peer} does not answer within {} s: {reason}", .after.as_secs())]
    Silent {
        peer: ScionAddr,
        after: Duration,
        reason: String,
    },
    #[error(transparent)]
    Key(#[from] ServerKeyError),
    #[error(
        "{peer} shows the key {key}, another one than over other paths (possible man-in-the-middle)"
    )]
    OtherKey { peer: ScionAddr, key: PeerKey },
    #[error("{peer} refuses: {text}")]
    Refused {
        peer: ScionAddr,
        code: RefusalCode,
        text: String,
    },
    #[error("the key {key} of {peer} is no longer trusted here")]
    Distrusted { peer: ScionAddr, key: PeerKey },
    #[error("{peer} breaks the protocol: it sends a message at the wrong time")]
    Protocol { peer: ScionAddr },
}

/// Why a dial has failed.
#[derive(Debug)]
pub(crate) enum DialError {
    /// The path, or the connection, does not work.
    Path(String),
    /// The other host is not to be connected to over any path.
    Peer(SessionError),
}

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nobody wants it any more: what is under way is delivered, and the other side learns of the end.
    InOrder,
    /// One side no longer trusts the other: nothing is delivered.
    Revoked,
    /// It has failed.
    Failed,
}

impl Ending {
    /// That of a session that ends by this error, if any.
    pub(super) fn of(error: Option<&SessionError>) -> Self {
        match error {
            None => Self::InOrder,
            Some(SessionError::Distrusted { .. }) => Self::Revoked,
            Some(SessionError::Refused { code, .. }) if *code == RefusalCode::KEY => Self::Revoked,
            Some(_) => Self::Failed,
        }
    }
}
