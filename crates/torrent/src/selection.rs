//! Which files of a torrent are wanted, and which of their bytes come first.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::metainfo::Metainfo;

/// How much a file is wanted. A piece that has bytes of several files is wanted as much as the one
/// of them that is wanted most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// Not at all: its file is not created.
    Skip,
    /// After all others.
    Low,
    /// As most files.
    #[default]
    Normal,
    /// Before all others.
    High,
}

/// The order in which pieces of one priority are fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PieceOrder {
    /// Those that fewest peers have come first, which keeps all pieces available in the swarm.
    #[default]
    RarestFirst,
    /// In the order of the content, as for reading while it is fetched.
    Sequential,
}

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
    use super::*;
    use crate::testing::torrent_of;

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
}
