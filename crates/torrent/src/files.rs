//! How much of each file is verified.

use std::sync::Arc;

use crate::bitfield::Bitfield;
use crate::metainfo::Metainfo;
use crate::picker::Wanted;
use crate::piece_map::PieceMap;
use crate::pieces::Pieces;
use crate::selection::{Priority, Selection};

/// The state of one file of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileProgress {
    /// The file, as an index into [`Metainfo::files`].
    pub file: usize,
    /// Its length in bytes.
    pub length: u64,
    /// Its bytes whose piece is verified.
    pub verified_bytes: u64,
    /// How much it is wanted.
    pub priority: Priority,
}

/// The states of the files of a download.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilesProgress {
    /// Each file, without padding (BEP 47), in the order of the torrent.
    pub each: Arc<[FileProgress]>,
    /// Bytes of all pieces that have some of a selected file: those that are fetched.
    pub wanted_bytes: u64,
    /// Those of `wanted_bytes` whose piece is verified.
    pub wanted_verified_bytes: u64,
    /// The pieces that are verified, of all files; none before the content on disk is verified.
    pub pieces: PieceMap,
}

/// Counts what is verified of each file.
#[derive(Debug)]
pub(crate) struct FileTally {
    pieces: Pieces,
    /// The position of each file of `progress` in the content.
    starts: Vec<u64>,
    progress: FilesProgress,
}

impl FileTally {
    /// For a torrent of which everything is wanted and nothing verified.
    pub fn new(metainfo: &Metainfo) -> Self {
        let (mut at, mut starts, mut each) = (0, Vec::new(), Vec::new());
        for (index, file) in metainfo.files.iter().enumerate() {
            if !file.padding {
                starts.push(at);
                each.push(FileProgress {
                    file: index,
                    length: file.length,
                    verified_bytes: 0,
                    priority: Priority::default(),
                });
            }
            at += file.length;
        }
        Self {
            pieces: metainfo.pieces,
            starts,
            progress: FilesProgress {
                each: each.into(),
                wanted_bytes: metainfo.pieces.total,
                wanted_verified_bytes: 0,
                pieces: PieceMap::empty(metainfo.pieces.count()),
            },
        }
    }

    /// The states now.
    pub fn progress(&self) -> &FilesProgress {
        &self.progress
    }

    /// Counts anew: `wanted` are the pieces of `selection`, and `verified` those that are verified.
    pub fn select(&mut self, selection: &Selection, wanted: &Wanted, verified: &Bitfield) {
        for file in Arc::make_mut(&mut self.progress.each) {
            file.priority = selection.priority(file.file);
            file.verified_bytes = 0;
        }
        let size = |piece| u64::from(self.pieces.size(piece));
        let pieces = (0..self.pieces.count()).filter(|piece| wanted.has(*piece));
        self.progress.wanted_bytes = pieces.map(size).sum();
        self.progress.wanted_verified_bytes = 0;
        self.progress.pieces = PieceMap::empty(self.pieces.count());
        verified.iter().for_each(|piece| self.verify(piece, wanted));
    }

    /// Counts a piece that is verified.
    pub fn verify(&mut self, piece: u32, wanted: &Wanted) {
        self.progress.pieces.set(piece);
        let bytes = self.pieces.range(piece);
        if wanted.has(piece) {
            self.progress.wanted_verified_bytes += bytes.end - bytes.start;
        }
        let each = Arc::make_mut(&mut self.progress.each);
        // The last file that begins before the piece, or empty ones behind it, may reach into it.
        let later = self.starts.partition_point(|start| *start < bytes.start);
        let first = each[..later].iter().rposition(|file| file.length > 0);
        let files = each.iter_mut().zip(&self.starts).skip(first.unwrap_or(0));
        for (file, start) in files.take_while(|(_, start)| **start < bytes.end) {
            let end = bytes.end.min(*start + file.length);
            file.verified_bytes += end.saturating_sub(bytes.start.max(*start));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::torrent_of;

    proptest! {
        #[test]
        fn each_byte_of_a_file_counts_once(
            files in proptest::collection::vec((0u64..5000, any::<bool>()), 1..8),
            order in Just((0..64u32).collect::<Vec<_>>()).prop_shuffle(),
            before in 0usize..20,
        ) {
            let total: u64 = files.iter().map(|(length, _)| length).sum();
            prop_assume!(files.iter().any(|(length, padding)| !padding && *length > 0));
            let names: Vec<String> = (0..files.len()).map(|i| i.to_string()).collect();
            let listed: Vec<(&str, u64, bool)> = files
                .iter()
                .zip(&names)
                .map(|((length, padding), name)| (name.as_str(), *length, *padding))
                .collect();
            let metainfo = torrent_of(&listed, 1024);
            let count = metainfo.pieces.count();
            let mut tally = FileTally::new(&metainfo);
            let mut verified = Bitfield::empty(count);
            let order: Vec<u32> = order.into_iter().filter(|piece| *piece < count).collect();
            let (before, after) = order.split_at(before.min(order.len()));
            before.iter().for_each(|piece| { verified.set(*piece); });
            let selection = Selection::none().with_file(0, Priority::High);
            let wanted = selection.wanted(&metainfo);
            tally.select(&selection, &wanted, &verified);
            for piece in after {
                verified.set(*piece);
                tally.verify(*piece, &wanted);
                let mut at = 0;
                let mut shown = tally.progress().each.iter();
                for (index, (length, padding)) in files.iter().enumerate() {
                    let bytes = (at..at + length).filter(|byte| verified.has((byte / 1024) as u32));
                    at += length;
                    if !padding {
                        let file = shown.next().unwrap();
                        prop_assert_eq!((file.file, file.length), (index, *length));
                        prop_assert_eq!(file.verified_bytes, bytes.count() as u64);
                        let is_first = index == 0;
                        prop_assert_eq!(file.priority == Priority::High, is_first);
                    }
                }
                prop_assert!(shown.next().is_none());
            }
            let of = |has: &dyn Fn(u32) -> bool| -> u64 {
                let pieces = (0..count).filter(|piece| has(*piece));
                pieces.map(|piece| u64::from(metainfo.pieces.size(piece))).sum()
            };
            let progress = tally.progress();
            prop_assert_eq!(progress.pieces.as_bytes(), verified.as_wire());
            prop_assert_eq!(progress.wanted_bytes, of(&|piece| wanted.has(piece)));
            let both = of(&|piece| wanted.has(piece) && verified.has(piece));
            prop_assert_eq!(progress.wanted_verified_bytes, both);
            prop_assert!(total >= progress.wanted_bytes);
        }
    }
}
