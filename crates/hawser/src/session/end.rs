//! Why sessions end.

use std::io;

use hawser_streams::{FrameError, Violation};

use crate::MAX_OUTAGE;
use crate::wire::code;

/// Why a session has ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum End {
    /// It was closed here, with this code.
    #[error("the connection was closed here")]
    Closed(u32),
    /// All users are gone.
    #[error("the connection was dropped")]
    Dropped,
    /// The peer closed it; whether it had received everything up to this side's end.
    #[error("the peer closed the connection")]
    Peer {
        /// Whether it had.
        complete: bool,
    },
    /// The peer gave it up.
    #[error("the peer dropped the connection without closing it")]
    PeerDropped,
    /// No path worked for too long.
    #[error("no path has worked for {limit} s: {0}", limit = MAX_OUTAGE.as_secs())]
    Outage(String),
    /// The peer does not know the session any more.
    #[error("{0}")]
    Refused(String),
    /// The peer offends against the protocol.
    #[error("the peer offends against the protocol: {0}")]
    Offence(String),
}

impl End {
    /// The code with which the paths are closed.
    pub(crate) fn code(&self) -> u32 {
        match self {
            Self::Closed(code) => *code,
            Self::Offence(_) => code::OFFENCE,
            _ => code::DROPPED,
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Closed(_) | Self::Dropped)
    }

    pub(crate) fn to_io(&self) -> io::Error {
        let kind = match self {
            Self::Closed(_) | Self::Dropped => io::ErrorKind::NotConnected,
            Self::Peer { .. } | Self::PeerDropped => io::ErrorKind::ConnectionReset,
            Self::Outage(_) => io::ErrorKind::TimedOut,
            Self::Refused(_) | Self::Offence(_) => io::ErrorKind::ConnectionAborted,
        };
        io::Error::new(kind, self.to_string())
    }
}

/// Why frames cannot be taken in.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(crate) enum FrameFault {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Violation(#[from] Violation),
}
