//! Why connections close.

use std::borrow::Cow;
use std::time::Duration;

use hawser_endhost::lanes::LaneEnd;
use noq_proto::ConnectionError;
use thiserror::Error;

/// The application error code (RFC 9000, 20.2) of a close that the application did not request. The
/// application defines the other codes, below 0xffff_ff00.
pub const NO_CODE: u32 = 0;

/// The application error code with which a connection is closed whose peer sends its data in so many
/// small pieces with gaps that they take far more memory than their bytes.
pub const TOO_FRAGMENTED: u32 = 0xffff_ff01;

/// The application error code with which a connection is closed that gives way to others before the
/// application knew its peer: its endpoint has as many as it has memory for. The peer may try again.
pub const DISPLACED: u32 = 0xffff_ff02;

/// The reason of [`DISPLACED`].
pub(crate) const DISPLACED_REASON: &str = "too many peers connect at once; try again";

/// The reason that both sides see when an endpoint is closed.
pub(crate) const ENDPOINT_CLOSED: &str = "the endpoint was closed";

/// Why a connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed here: {reason}")]
    Local {
        /// The application error code that was sent to the peer.
        code: u32,
        /// Text for people.
        reason: String,
    },
    /// The peer closed it.
    #[error("closed by the peer: {reason}")]
    Peer {
        /// The application error code; also [`NO_CODE`] where the peer closed its endpoint or its
        /// lane ended.
        code: u64,
        /// Text for people.
        reason: String,
    },
    /// No packet arrived within the idle timeout.
    #[error("no packet from the peer for {0:?}")]
    TimedOut(Duration),
    /// The connection's lane ended: the path is down, or packets cannot leave this host.
    #[error(transparent)]
    Lane(#[from] LaneEnd),
    /// The peer violated the protocol, or no longer knows the connection.
    #[error("QUIC: {0}")]
    Protocol(String),
}

impl CloseReason {
    /// The reason for a QUIC error when no other reason is recorded.
    pub(crate) fn of(error: &ConnectionError, idle_timeout: Duration) -> Self {
        match error {
            ConnectionError::TimedOut => Self::TimedOut(idle_timeout),
            ConnectionError::LocallyClosed => Self::Local {
                code: NO_CODE,
                reason: ENDPOINT_CLOSED.into(),
            },
            ConnectionError::ApplicationClosed(close) => Self::Peer {
                code: close.error_code.into(),
                reason: match close.reason.is_empty() {
                    true => "it gave no reason".into(),
                    false => String::from_utf8_lossy(&close.reason).into_owned(),
                },
            },
            error => Self::Protocol(error.to_string()),
        }
    }

    /// The code and the text for the peer.
    pub(crate) fn for_peer(&self) -> (u32, Cow<'_, str>) {
        match self {
            Self::Local { code, reason } => (*code, Cow::Borrowed(reason)),
            other => (NO_CODE, Cow::Owned(other.to_string())),
        }
    }
}
