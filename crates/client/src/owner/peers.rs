//! How many peers each torrent may be connected to.

use std::collections::HashSet;

use hawser_torrent::InfoHash;

use super::Owner;
use crate::peer_limits::{Peers, share};

impl Owner {
    /// Tells the tasks of torrents how many peers each may be connected to.
    pub(super) fn share_peers(&self) {
        let limits = self.torrents.all_limits().peers;
        let mut hashes: Vec<&InfoHash> = self.running.keys().collect();
        hashes.sort_unstable();
        let peers = |info_hash: &&InfoHash| {
            let running = self.running.get(*info_hash)?;
            let record = self.torrents.record(**info_hash)?;
            let most = record.settings.max_peers.unwrap_or(limits.each);
            let live = running.live.borrow();
            let download = live.download.as_ref();
            let connected = download.map_or(0, |download| connected(&download.borrow()));
            Some((&running.max_peers, Peers { connected, most }))
        };
        let (tasks, peers): (Vec<_>, Vec<_>) = hashes.iter().filter_map(peers).unzip();
        let shares = share(limits.all, &peers, self.turn);
        for (task, share) in tasks.into_iter().zip(shares) {
            task.send_if_modified(|kept| std::mem::replace(kept, share) != share);
        }
    }
}

/// How many address-level peers a download is connected to.
fn connected(progress: &hawser_torrent::Progress) -> usize {
    let peers = progress.uploads.peers.iter();
    let keys: HashSet<[u8; 32]> = peers.map(|peer| peer.key).collect();
    keys.len()
}
