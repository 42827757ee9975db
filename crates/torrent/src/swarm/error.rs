//! Why a torrent's owner ended.

use std::time::Duration;

use hawser_store::StoreError;

use crate::address::PeerAddr;

/// Why a torrent's owner ended without having everything.
#[derive(Debug)]
pub(crate) enum SwarmError {
    Stopped,
    Store(StoreError),
    /// No connection and no progress for too long; each peer with the last reason.
    NoPeer(Duration, Vec<(PeerAddr, String)>),
    /// No connected peer sends anything, or has what is missing, for too long.
    NoProgress(Duration, Vec<(PeerAddr, String)>),
    /// No peer is left that may be spoken to.
    AllDropped(Vec<(PeerAddr, String)>),
    /// No path to any peer.
    NoPath(Vec<(PeerAddr, String)>),
    EndpointClosed,
}
