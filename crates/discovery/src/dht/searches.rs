//! The searches for one torrent, repeated as long as it is there.

use hawser_address::PeerAddr;
use hawser_dht::{Address, Announce, Summary};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::schedule::{Aim, Schedule};
use super::{DhtError, DhtHandle};

/// The ports at which peers of each kind of address connect; `None` where they cannot, and nothing is
/// announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerPorts {
    /// Over IPv4, a TCP port.
    pub v4: Option<u16>,
    /// Over IPv6, a TCP port.
    pub v6: Option<u16>,
    /// Over SCION, a UDP port (QUIC).
    pub scion: Option<u16>,
}

/// The searches for one torrent at all nodes of this program. They end when this is dropped.
#[derive(Debug)]
pub struct DhtSearches {
    // Ends its tasks when it is dropped.
    tasks: JoinSet<()>,
}

impl DhtSearches {
    /// Without searches.
    pub(super) fn new() -> Self {
        Self {
            tasks: JoinSet::new(),
        }
    }

    /// Searches at a node from now on.
    pub(super) fn search_at<A: Address + Send + Sync + 'static>(
        &mut self,
        node: DhtHandle<A>,
        info_hash: [u8; 20],
        port: Option<u16>,
        sink: Option<mpsc::Sender<Vec<PeerAddr>>>,
    ) {
        let announce = port.filter(|port| *port != 0).map(Announce::Port);
        if announce.is_some() || sink.is_some() {
            self.tasks.spawn(repeat(node, info_hash, announce, sink));
        }
    }
}

async fn repeat<A: Address>(
    node: DhtHandle<A>,
    info_hash: [u8; 20],
    announce: Option<Announce>,
    sink: Option<mpsc::Sender<Vec<PeerAddr>>>,
) {
    let mut schedule = Schedule::new(Aim {
        finds: sink.is_some(),
        announces: announce.is_some(),
    });
    loop {
        let Ok(summary) = search(&node, info_hash, announce, sink.as_ref()).await else {
            return;
        };
        tokio::time::sleep(schedule.pause(summary)).await;
    }
}

/// One search. Returns what came of it; `None` if there are too many others.
///
/// # Errors
/// If the node was stopped.
async fn search<A: Address>(
    node: &DhtHandle<A>,
    info_hash: [u8; 20],
    announce: Option<Announce>,
    sink: Option<&mpsc::Sender<Vec<PeerAddr>>>,
) -> Result<Option<Summary>, DhtError> {
    let mut search = match node.search(info_hash, announce).await {
        Ok(search) => search,
        Err(DhtError::Search(error)) => {
            tracing::debug!(%error, "the DHT is not searched now");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    while let Some(peer) = search.recv().await {
        if let Some(sink) = sink {
            // Fails when nobody takes peers any more; the announcement is still made.
            let _ = sink.send(vec![peer.to_peer()]).await;
        }
    }
    Ok(search.summary().await)
}
