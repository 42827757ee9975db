//! The reasons for which a connection ended.

use std::time::Duration;

use hawser_manager::Failure;
use thiserror::Error;

use crate::close::{CloseCode, Closed};
use crate::transport::Connection;
use crate::wire::WireError;

/// Longest wait for the handshake of a peer.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a connection ended or could not be established.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum Gone {
    /// The peer broke the protocol.
    #[error("dropped: {0}")]
    Broke(#[from] WireError),
    /// The peer is this program itself.
    #[error("this is our own address")]
    Ourselves,
    /// The handshake of the peer did not arrive in time.
    #[error("no BitTorrent handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())]
    Silent,
    /// The connection ended.
    #[error("{0}")]
    Closed(Closed),
    /// A block that the peer requested could not be read from disk.
    #[error("cannot read what it asked for: {0}")]
    Disk(String),
}

impl Gone {
    /// The connection ended for a reason that is not the peer's fault.
    pub fn closed(text: impl Into<String>) -> Self {
        Self::Closed(Closed::plain(text))
    }

    /// The reason why `connection` was closed, if known, else `otherwise`.
    pub(super) fn of(connection: &dyn Connection, otherwise: &str) -> Self {
        let closed = connection.close_reason();
        Self::Closed(closed.unwrap_or_else(|| Closed::plain(otherwise)))
    }

    /// The code sent to the peer when the connection is closed for this reason.
    pub fn code(&self) -> CloseCode {
        match self {
            Self::Broke(_) => CloseCode::Banned,
            Self::Disk(_) => CloseCode::Storage,
            Self::Ourselves | Self::Silent | Self::Closed(_) => CloseCode::Plain,
        }
    }

    /// What the reason means to the path manager, if the peer was dialed and there was no session.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Closed(closed) if closed.code == CloseCode::PathRefused => Failure::Refused,
            Self::Closed(_) => Failure::Failed,
            _ => Failure::Rejected,
        }
    }

    /// Whether dialing the peer again is useless: it serves another torrent, or is this program.
    pub fn is_final(&self) -> bool {
        use WireError::{NotBitTorrent, NotThisTorrent, WrongInfoHash};
        matches!(
            self,
            Self::Ourselves | Self::Broke(WrongInfoHash(_) | NotThisTorrent | NotBitTorrent)
        )
    }
}
