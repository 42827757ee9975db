//! A connection.

use std::fmt;
use std::time::Duration;

use hawser_endhost::{Path, ScionAddr};
use hawser_path::{Fingerprint, Interface};
use thiserror::Error;

use crate::stream::{RecvStream, SendStream};

/// SHA-256 of the public key (DER `SubjectPublicKeyInfo`) in a peer's certificate: the same on all
/// connections of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerKey(pub [u8; 32]);

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A connection to one peer over one path. Cloning shares it; it closes when the last clone and the
/// last of its streams are gone.
#[derive(Clone)]
pub struct Connection {}

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
    /// Nothing was heard for the idle timeout.
    #[error("nothing heard from the peer for {0:?}")]
    TimedOut(Duration),
    /// A router reported an interface of the path down (SCMP).
    #[error("the path is down at {0}")]
    PathDown(Interface),
    /// A router or host on the path reported that packets do not get through (SCMP).
    #[error("{0}")]
    Unreachable(String),
    /// Packets cannot leave this host.
    #[error("cannot send to {peer}: {message}")]
    Socket {
        /// Where to.
        peer: ScionAddr,
        /// What the system says.
        message: String,
    },
    /// The peer broke the protocol, or forgot the connection.
    #[error("QUIC: {0}")]
    Protocol(String),
}

/// Why no stream could be opened or accepted: the connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the connection is closed: {0}")]
pub struct OpenStreamError(pub CloseReason);

/// Why a path cannot take the place of a connection's path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetPathError {
    /// A connection stays on its path; only a refresh of the same path can be set.
    #[error("the connection is on path {pinned}, not on {given}: open another connection")]
    OtherPath {
        /// The connection's path.
        pinned: Fingerprint,
        /// The one given.
        given: Fingerprint,
    },
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

/// Counters and estimates of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// Bytes of QUIC packets sent.
    pub bytes_sent: u64,
    /// Bytes of QUIC packets received.
    pub bytes_received: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that counted as lost.
    pub lost: u64,
}

impl Connection {
    /// The peer's address.
    pub fn peer(&self) -> ScionAddr {
        unimplemented!()
    }

    /// The connection's path, seen from here.
    pub fn fingerprint(&self) -> Fingerprint {
        unimplemented!()
    }

    /// The path, where this side chose it; none on an accepted connection.
    pub fn path(&self) -> Option<Path> {
        unimplemented!()
    }

    /// The peer's key.
    pub fn peer_key(&self) -> PeerKey {
        unimplemented!()
    }

    /// Opens a stream in both directions. The peer hears of it with the first byte.
    ///
    /// # Errors
    /// When the connection is closed.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), OpenStreamError> {
        unimplemented!()
    }

    /// Waits for the peer to open a stream in both directions.
    ///
    /// # Errors
    /// When the connection is closed.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), OpenStreamError> {
        unimplemented!()
    }

    /// Counters and estimates.
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }

    /// Closes the connection at once and tells the peer why.
    pub fn close(&self, _reason: &str) {
        unimplemented!()
    }

    /// Waits until the connection is closed, and says why.
    pub async fn closed(&self) -> CloseReason {
        unimplemented!()
    }

    /// Why the connection is closed, if it is.
    pub fn close_reason(&self) -> Option<CloseReason> {
        unimplemented!()
    }

    /// Goes on with a refreshed path of the same fingerprint.
    ///
    /// # Errors
    /// When it is another path, or the connection is closed.
    pub fn set_path(&self, _path: Path) -> Result<(), SetPathError> {
        unimplemented!()
    }
}
