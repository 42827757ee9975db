//! Places in the queue.

use hawser_torrent::InfoHash;

use super::{CommandError, Torrents};

/// Where to a torrent is moved in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// To the front.
    Top,
    /// One place forward.
    Up,
    /// One place back.
    Down,
    /// To the end.
    Bottom,
    /// To this position, from 0; to the end, if the queue is shorter.
    To(usize),
}

impl Torrents {
    /// The position of a torrent in the queue, from 0.
    pub fn position(&self, info_hash: InfoHash) -> Option<usize> {
        let rank = self.entries.get(&info_hash)?.record.rank;
        Some(self.queue.range(..rank).count())
    }

    /// Moves a torrent in the queue. Those that run keep their places of downloads and seeds.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`CommandError::Busy`].
    pub fn reorder(&mut self, info_hash: InfoHash, to: Move) -> Result<(), CommandError> {
        self.settled(info_hash)?;
        let (ranks, mut hashes): (Vec<u64>, Vec<InfoHash>) =
            self.queue.iter().map(|(rank, hash)| (*rank, *hash)).unzip();
        let last = hashes.len().saturating_sub(1);
        let from = hashes.iter().position(|hash| *hash == info_hash);
        let from = from.ok_or(CommandError::Unknown(info_hash))?;
        let to = match to {
            Move::Top => 0,
            Move::Up => from.saturating_sub(1),
            Move::Down => (from + 1).min(last),
            Move::Bottom => last,
            Move::To(position) => position.min(last),
        };
        let between = from.min(to)..=from.max(to);
        match from < to {
            true => hashes[between.clone()].rotate_left(1),
            false => hashes[between.clone()].rotate_right(1),
        }
        // The ranks stay where they are: only the torrents in between are saved.
        for (rank, hash) in ranks[between.clone()].iter().zip(&hashes[between]) {
            self.queue.insert(*rank, *hash);
            if let Some(entry) = self.entries.get_mut(hash) {
                entry.must_save |= entry.record.rank != *rank;
                entry.record.rank = *rank;
            }
        }
        Ok(())
    }
}
