//! The pieces of the files that are wanted, and their order.

use std::ops::Range;

use crate::metainfo::Metainfo;
use crate::pieces::Pieces;
use crate::selection::{PieceOrder, Priority, Selection};
use crate::wire::BLOCK;

/// How early a piece is fetched, the earliest greatest: those of the window, then by priority.
pub(crate) type Rank = (bool, Priority);

/// The rank of the pieces of the window.
pub(crate) const WINDOW: Rank = (true, Priority::High);

/// How much each piece is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    priorities: Vec<Priority>,
    order: PieceOrder,
    /// The pieces that come first, in order.
    window: Range<u32>,
    /// Whether all wanted pieces have the same rank.
    is_uniform: bool,
}

impl Wanted {
    /// Everything, rarest first.
    #[cfg(test)]
    pub fn everything(pieces: Pieces) -> Self {
        let priorities = vec![Priority::default(); pieces.count() as usize];
        Self::new(priorities, PieceOrder::default(), 0..0)
    }

    /// The pieces of the files of a torrent that are selected. A piece of padding alone is not
    /// wanted: its bytes are known (BEP 47).
    pub fn of(selection: &Selection, metainfo: &Metainfo) -> Self {
        let pieces = metainfo.pieces;
        let mut priorities = vec![Priority::Skip; pieces.count() as usize];
        let (mut at, mut window) = (0, 0..0);
        for (index, file) in metainfo.files.iter().enumerate() {
            let bytes = at..at + file.length;
            at = bytes.end;
            if file.padding {
                continue;
            }
            let priority = selection.priority(index);
            for piece in pieces.overlapping(&bytes) {
                let known = &mut priorities[piece as usize];
                *known = priority.max(*known);
            }
            if let Some(it) = selection.window().filter(|it| it.file == index) {
                let start = bytes.start + it.offset.min(file.length);
                let end = start.saturating_add(it.length).min(bytes.end);
                window = pieces.overlapping(&(start..end));
            }
        }
        Self::new(priorities, selection.order(), window)
    }

    /// Pieces with these priorities, of which those of `window` come first.
    pub fn new(priorities: Vec<Priority>, order: PieceOrder, window: Range<u32>) -> Self {
        let wanted = priorities.iter().filter(|it| **it != Priority::Skip);
        let first = wanted.clone().next();
        Self {
            is_uniform: window.is_empty() && wanted.clone().all(|it| Some(it) == first),
            priorities,
            order,
            window,
        }
    }

    /// Whether a piece is wanted.
    pub fn has(&self, piece: u32) -> bool {
        self.priority(piece) != Priority::Skip
    }

    /// The priority of a piece; past the last one, that of a piece not wanted.
    pub fn priority(&self, piece: u32) -> Priority {
        let known = self.priorities.get(piece as usize);
        known.copied().unwrap_or(Priority::Skip)
    }

    /// The rank of a piece. Those of the window all have the same.
    pub fn rank(&self, piece: u32) -> Rank {
        match self.window.contains(&piece) {
            true => WINDOW,
            false => (false, self.priority(piece)),
        }
    }

    /// Whether all wanted pieces have the same rank.
    pub fn is_uniform(&self) -> bool {
        self.is_uniform
    }

    /// Whether all wanted pieces have the same rank, and the rarest come first.
    pub fn is_rarest_first(&self) -> bool {
        self.is_uniform && self.order == PieceOrder::RarestFirst
    }

    /// The order of pieces of one priority.
    pub fn order(&self) -> PieceOrder {
        self.order
    }

    /// The pieces that come first.
    pub fn window(&self) -> Range<u32> {
        self.window.clone()
    }
}

/// The padding of a torrent (BEP 47): zeros that are not requested, neither blocks of it alone nor what a
/// block ends with. Without it a piece ends with its file, as in version 2 (BEP 52); anacrolix/torrent takes
/// no requests past that, of hybrids either.
#[derive(Debug, Clone, Default)]
pub(crate) struct Padding {
    /// In order, none of them empty; adjacent ones are one.
    ranges: Vec<Range<u64>>,
}

impl Padding {
    /// The padding of a torrent.
    pub fn of(metainfo: &Metainfo) -> Self {
        let (mut at, mut found) = (0, Vec::<Range<u64>>::new());
        for file in &metainfo.files {
            let bytes = at..at + file.length;
            at = bytes.end;
            if !file.padding || bytes.is_empty() {
                continue;
            }
            match found.last_mut() {
                Some(last) if last.end == bytes.start => last.end = bytes.end,
                _ => found.push(bytes),
            }
        }
        Self { ranges: found }
    }

    /// How many of the `length` bytes from `start` on are requested.
    pub fn trim(&self, start: u64, length: u32) -> u32 {
        let end = start + u64::from(length);
        let at = self.ranges.partition_point(|it| it.end < end);
        match self.ranges.get(at).filter(|it| it.start < end) {
            Some(padding) => (padding.start.max(start) - start) as u32,
            None => length,
        }
    }

    /// Whether all of `bytes` are padding.
    fn covers(&self, bytes: &Range<u64>) -> bool {
        let at = self
            .ranges
            .partition_point(|padding| padding.end < bytes.end);
        let padding = self.ranges.get(at);
        padding.is_some_and(|padding| padding.start <= bytes.start && bytes.end <= padding.end)
    }

    /// Which blocks of a piece are padding alone; empty if none is.
    pub fn blocks(&self, pieces: Pieces, piece: u32) -> Vec<u32> {
        if self.ranges.is_empty() {
            return Vec::new();
        }
        let bytes = pieces.range(piece);
        let count = pieces.size(piece).div_ceil(BLOCK);
        let is_padding = |block: &u32| {
            let start = bytes.start + u64::from(*block) * u64::from(BLOCK);
            let end = bytes.end.min(start + u64::from(BLOCK));
            self.covers(&(start..end))
        };
        (0..count).filter(is_padding).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::selection::Window;
    use crate::testing::torrent_of;

    fn any_priority() -> impl Strategy<Value = Priority> {
        prop_oneof![
            Just(Priority::Skip),
            Just(Priority::Low),
            Just(Priority::Normal),
            Just(Priority::High),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pieces_and_blocks_are_those_of_their_bytes(
            files in proptest::collection::vec(
                (0u64..90_000, any::<bool>(), any_priority()),
                1..8,
            ),
            blocks in 1u32..4,
            file: prop::sample::Index,
            offset in 0u64..100_000,
            length in 0u64..100_000,
        ) {
            let total: u64 = files.iter().map(|(length, ..)| length).sum();
            prop_assume!(total > 0 && files.iter().any(|(length, padding, _)| !padding && *length > 0));
            let names: Vec<String> = (0..files.len()).map(|i| i.to_string()).collect();
            let listed: Vec<(&str, u64, bool)> = files
                .iter()
                .zip(&names)
                .map(|((length, padding, _), name)| (name.as_str(), *length, *padding))
                .collect();
            let metainfo = torrent_of(&listed, blocks * BLOCK);
            let window = Window { file: file.index(files.len()), offset, length };
            let mut selection = Selection::none().with_window(Some(window));
            for (index, (_, _, priority)) in files.iter().enumerate() {
                selection = selection.with_file(index, *priority);
            }
            let (wanted, padding) = (Wanted::of(&selection, &metainfo), Padding::of(&metainfo));
            let pieces = metainfo.pieces;
            // The file of each byte, and its position in it.
            let of: Vec<(usize, u64)> = files
                .iter()
                .enumerate()
                .flat_map(|(index, (length, ..))| (0..*length).map(move |at| (index, at)))
                .collect();
            let is_padding = |byte: u64| files[of[byte as usize].0].1;
            for piece in 0..pieces.count() {
                let bytes = || pieces.range(piece).filter(|byte| !is_padding(*byte));
                let expected = bytes().map(|byte| files[of[byte as usize].0].2).max();
                prop_assert_eq!(wanted.priority(piece), expected.unwrap_or(Priority::Skip));
                let first = |byte: u64| {
                    let (file, at) = of[byte as usize];
                    file == window.file && (offset..offset + length).contains(&at)
                };
                prop_assert_eq!(wanted.window().contains(&piece), bytes().any(first));
                let padded = padding.blocks(pieces, piece);
                for block in 0..pieces.size(piece).div_ceil(BLOCK) {
                    let start = pieces.start(piece) + u64::from(block * BLOCK);
                    let end = pieces.range(piece).end.min(start + u64::from(BLOCK));
                    let expected = (start..end).all(is_padding);
                    prop_assert_eq!(padded.contains(&block), expected);
                    if !expected {
                        let last = (start..end).rfind(|byte| !is_padding(*byte));
                        let requested = padding.trim(start, (end - start) as u32);
                        prop_assert_eq!(Some(start + u64::from(requested) - 1), last);
                    }
                }
            }
        }
    }
}
