//! Which files of a torrent are wanted, and which of their bytes come first.

use std::collections::BTreeMap;

use hawser_picker::Wanted;
pub use hawser_picker::{PieceOrder, Priority};
use thiserror::Error;

use crate::metainfo::Metainfo;

/// Bytes of a file that are needed before all others, whatever the priority of the file: those
/// that are about to be read. Their pieces are fetched in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// The file, as an index into [`Metainfo::files`].
    pub file: usize,
    /// Position of the first byte in the file.
    pub offset: u64,
    /// Number of bytes. What is past the end of the file is left out.
    pub length: u64,
}

/// The files to fetch, and in which order. The default is everything, rarest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The priority of files that are not in `files`.
    others: Priority,
    /// Priorities by index into [`Metainfo::files`].
    files: BTreeMap<usize, Priority>,
    order: PieceOrder,
    window: Option<Window>,
}

/// Why a selection does not fit a torrent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// It names a file that the torrent does not have.
    #[error("the torrent has no file with index {file}: it has {count} files, from index 0 on")]
    NoSuchFile {
        /// The index.
        file: usize,
        /// Number of files of the torrent, padding included.
        count: usize,
    },
    /// Its window begins in a file that is skipped.
    #[error("the file with index {0} is skipped: select it before its bytes are asked for first")]
    SkippedWindow(usize),
}

impl Selection {
    /// Every file.
    pub fn all() -> Self {
        Self::default()
    }

    /// No file; [`Selection::with_file`] adds some.
    pub fn none() -> Self {
        Self {
            others: Priority::Skip,
            ..Self::default()
        }
    }

    /// The same with another priority of a file, given as an index into [`Metainfo::files`]. Padding
    /// files (BEP 47) have no priority: what is set for them is ignored.
    #[must_use]
    pub fn with_file(mut self, file: usize, priority: Priority) -> Self {
        self.files.insert(file, priority);
        self
    }

    /// The same with another order of pieces.
    #[must_use]
    pub fn with_order(mut self, order: PieceOrder) -> Self {
        self.order = order;
        self
    }

    /// The same with bytes that come first, or without any.
    #[must_use]
    pub fn with_window(mut self, window: Option<Window>) -> Self {
        self.window = window;
        self
    }

    /// The priority of a file.
    pub fn priority(&self, file: usize) -> Priority {
        self.files.get(&file).copied().unwrap_or(self.others)
    }

    /// Whether a file is wanted at all.
    pub fn has(&self, file: usize) -> bool {
        self.priority(file) != Priority::Skip
    }

    /// The order of pieces.
    pub fn order(&self) -> PieceOrder {
        self.order
    }

    /// The bytes that come first.
    pub fn window(&self) -> Option<Window> {
        self.window
    }

    /// The pieces of the selected files of a torrent. A piece of padding alone is not wanted: its bytes are
    /// known (BEP 47).
    pub(crate) fn wanted(&self, metainfo: &Metainfo) -> Wanted {
        let pieces = metainfo.pieces;
        let mut priorities = vec![Priority::Skip; pieces.count() as usize];
        let (mut at, mut window) = (0, 0..0);
        for (index, file) in metainfo.files.iter().enumerate() {
            let bytes = at..at + file.length;
            at = bytes.end;
            if file.padding {
                continue;
            }
            let priority = self.priority(index);
            for piece in pieces.overlapping(&bytes) {
                let known = &mut priorities[piece as usize];
                *known = priority.max(*known);
            }
            if let Some(it) = self.window().filter(|it| it.file == index) {
                let start = bytes.start + it.offset.min(file.length);
                let end = start.saturating_add(it.length).min(bytes.end);
                window = pieces.overlapping(&(start..end));
            }
        }
        Wanted::new(priorities, self.order(), window)
    }

    /// Checks that it fits a torrent.
    ///
    /// # Errors
    /// If it names a file that the torrent does not have, or its window is in a skipped file.
    pub fn check(&self, metainfo: &Metainfo) -> Result<(), SelectionError> {
        let count = metainfo.files.len();
        let last = self.files.last_key_value().map(|(file, _)| *file);
        let window = self.window.map(|window| window.file);
        let named = last.into_iter().chain(window);
        if let Some(file) = named.into_iter().find(|file| *file >= count) {
            return Err(SelectionError::NoSuchFile { file, count });
        }
        match window.filter(|file| self.priority(*file) == Priority::Skip) {
            Some(file) => Err(SelectionError::SkippedWindow(file)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use hawser_picker::Padding;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::torrent_of;
    use crate::wire::BLOCK;

    #[test]
    fn a_selection_that_does_not_fit_is_refused() {
        let metainfo = torrent_of(&[("a", 10, false), ("b", 20, false)], 16 << 10);
        let window = |file| {
            Some(Window {
                file,
                offset: 0,
                length: 1,
            })
        };
        let none = Selection::none();
        assert_eq!(none.check(&metainfo), Ok(()));
        let error = none.clone().with_file(2, Priority::High).check(&metainfo);
        assert_eq!(error, Err(SelectionError::NoSuchFile { file: 2, count: 2 }));
        let error = Selection::all().with_window(window(2)).check(&metainfo);
        assert_eq!(error, Err(SelectionError::NoSuchFile { file: 2, count: 2 }));
        let one = none.with_file(1, Priority::Low);
        let error = one.clone().with_window(window(0)).check(&metainfo);
        assert_eq!(error, Err(SelectionError::SkippedWindow(0)));
        assert_eq!(one.with_window(window(1)).check(&metainfo), Ok(()));
    }

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
            let (wanted, padding) = (selection.wanted(&metainfo), Padding::of(&metainfo));
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
