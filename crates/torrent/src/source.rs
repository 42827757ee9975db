//! How peers are found.

use hawser_address::PeerAddr;
pub use hawser_address::PeerSource;
use tokio::sync::mpsc;

/// Announcements of found peers that may wait for a torrent, which takes none while it checks the disk.
const MAX_WAITING: usize = 64;

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
