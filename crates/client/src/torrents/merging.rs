//! What a torrent that is there already is given, when it is added again.

use hawser_torrent::{InfoHash, PeerAddr};
use hawser_tracker::TrackerUrl;

use super::{CommandError, Torrents};
use crate::record::MAX_PEERS;
use crate::trackers::TrackerChange;

/// How much of what was named a torrent did not have, and was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Merged {
    /// Peers.
    pub peers: usize,
    /// Trackers.
    pub trackers: usize,
}

impl Torrents {
    /// Gives a torrent, which itself has the trackers in `has`, these peers and trackers where it does not have
    /// them, at once if it runs: all of it, or nothing. Trackers of kinds that are not asked are left out.
    ///
    /// # Errors
    /// [`CommandError::Unknown`]; [`CommandError::Busy`] or [`CommandError::Value`], if there is something that it
    /// does not have.
    pub fn merge(
        &mut self,
        info_hash: InfoHash,
        peers: &[PeerAddr],
        has: &[Vec<String>],
        trackers: &[Vec<String>],
    ) -> Result<Merged, CommandError> {
        let record = self.record(info_hash);
        let record = record.ok_or(CommandError::Unknown(info_hash))?;
        let mut all_peers = record.peers.clone();
        for peer in peers {
            if !all_peers.contains(peer) {
                all_peers.push(*peer);
            }
        }
        let has = record.settings.trackers.as_deref().unwrap_or(has);
        let mut new: Vec<String> = Vec::new();
        for url in trackers.iter().flatten() {
            let is_known = has.iter().flatten().chain(&new).any(|it| it == url);
            if !is_known && url.parse::<TrackerUrl>().is_ok() {
                new.push(url.clone());
            }
        }
        let merged = Merged {
            peers: all_peers.len() - record.peers.len(),
            trackers: new.len(),
        };
        if merged.peers > 0 && all_peers.len() > MAX_PEERS {
            let text = format!("more than {MAX_PEERS} peers would be named for {info_hash}");
            return Err(CommandError::Value(text));
        }
        if merged.trackers > 0 {
            let has = has.to_vec();
            self.change_trackers(info_hash, &has, &[TrackerChange::Add(new)])?;
        }
        if merged.peers > 0 {
            let entry = self.settled(info_hash)?;
            entry.record.peers = all_peers;
            entry.must_save = true;
            entry.task.must_apply = true;
        }
        Ok(merged)
    }
}
