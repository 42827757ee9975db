//! How peers are found.

use std::fmt;

use hawser_address::PeerAddr;
use tokio::sync::mpsc;

/// Announcements of found peers that may wait for a torrent, which takes none while it checks the disk.
const MAX_WAITING: usize = 64;

/// How the address of a peer was found, the most trusted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PeerSource {
    /// A person named it, on the command line or in a magnet link.
    Listed,
    /// A tracker (BEPs 3 and 15).
    Tracker,
    /// Local discovery (BEP 14).
    Local,
    /// The DHT (BEP 5).
    Dht,
    /// Another peer (BEP 11, and `scion_pex` for SCION peers).
    Exchange,
}

impl fmt::Display for PeerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "listed",
            Self::Tracker => "tracker",
            Self::Local => "local discovery",
            Self::Dht => "DHT",
            Self::Exchange => "peer exchange",
        })
    }
}

/// Addresses of peers, and how they were found.
pub(crate) type Found = (Vec<PeerAddr>, PeerSource);

/// Gives a download the peers that are found while it runs. Clones give them to the same one.
#[derive(Debug, Clone)]
pub struct FoundPeers(mpsc::Sender<Found>);

impl FoundPeers {
    /// The handle, and what it gives.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Found>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(sender), receiver)
    }

    /// Adds peers, which are dialed as there is room for them. Returns whether the download still runs;
    /// waits while it takes none.
    pub async fn add(&self, peers: Vec<PeerAddr>, source: PeerSource) -> bool {
        peers.is_empty() || self.0.send((peers, source)).await.is_ok()
    }
}
