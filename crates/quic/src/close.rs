//! Why connections close.

use std::borrow::Cow;
use std::time::Duration;

use hawser_endhost::lanes::LaneEnd;
use noq::ConnectionError;
use thiserror::Error;

/// Why a connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed here: {0}")]
    Local(String),
    /// The peer closed it.
    #[error("closed by the peer: {0}")]
    Peer(String),
    /// No packet arrived for the idle timeout.
    #[error("no packet from the peer for {0:?}")]
    TimedOut(Duration),
    /// Its lane ended: the path is down, or packets cannot leave this host.
    #[error(transparent)]
    Lane(#[from] LaneEnd),
    /// The peer broke the protocol, or forgot the connection.
    #[error("QUIC: {0}")]
    Protocol(String),
}

impl CloseReason {
    /// What a QUIC error means when nothing else is known.
    pub(crate) fn of(error: &ConnectionError, idle_timeout: Duration) -> Self {
        match error {
            ConnectionError::TimedOut => Self::TimedOut(idle_timeout),
            ConnectionError::LocallyClosed => Self::Local("the endpoint was closed".into()),
            ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
                Self::Peer("it gave no reason".into())
            }
            ConnectionError::ApplicationClosed(close) => {
                Self::Peer(String::from_utf8_lossy(&close.reason).into_owned())
            }
            error => Self::Protocol(error.to_string()),
        }
    }

    /// What the peer is told.
    pub(crate) fn for_peer(&self) -> Cow<'_, str> {
        match self {
            Self::Local(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.to_string()),
        }
    }
}
