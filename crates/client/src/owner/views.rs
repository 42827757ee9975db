//! What others see of the torrents.

use std::time::Duration;

use hawser_torrent::InfoHash;
use tokio::sync::watch;

use super::Owner;
use crate::history::Sample;
use crate::torrents::CommandError;
use crate::view::View;
use crate::windows::Windows;

impl Owner {
    /// The numbers of the torrents that were removed within this time.
    pub fn removed_within(&self, time: Duration) -> Vec<u64> {
        let since = self.began.elapsed().saturating_sub(time);
        self.torrents.removed_since(since)
    }

    /// The rates of a torrent in its present run, each sample with its age; none while it does not run.
    ///
    /// # Errors
    /// If there is no such torrent.
    pub fn history(&self, info_hash: InfoHash) -> Result<Vec<Sample>, CommandError> {
        let known = self.torrents.record(info_hash);
        known.ok_or(CommandError::Unknown(info_hash))?;
        let running = self.running.get(&info_hash);
        let now = self.began.elapsed();
        Ok(running.map_or(Vec::new(), |running| running.history.samples(now)))
    }

    /// Where readers of a torrent say which bytes they need; `None` while it does not run.
    pub fn windows(&self, info_hash: InfoHash) -> Option<watch::Sender<Windows>> {
        let running = self.running.get(&info_hash);
        running.map(|running| running.windows.clone())
    }

    /// The view of a torrent.
    pub fn view(&self, info_hash: InfoHash) -> Option<View> {
        self.view_at(info_hash, self.torrents.position(info_hash)?)
    }

    /// The views of all torrents, in the order of the queue.
    pub fn views(&self) -> Vec<View> {
        let hashes = self.torrents.hashes().enumerate();
        let views = hashes.filter_map(|(position, hash)| self.view_at(hash, position));
        views.collect()
    }

    /// The view of the torrent at this position of the queue.
    fn view_at(&self, info_hash: InfoHash, position: usize) -> Option<View> {
        let running = self.running.get(&info_hash);
        Some(View {
            record: self.torrents.snapshot(info_hash)?,
            status: self.torrents.status(info_hash)?,
            number: self.torrents.number(info_hash)?,
            position,
            changed: self
                .began
                .elapsed()
                .saturating_sub(self.torrents.changed(info_hash)?),
            live: running.map(|running| running.live.borrow().clone()),
        })
    }
}
