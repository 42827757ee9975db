//! Where each byte of a torrent stands: the files laid end to end, cut into pieces (BEP 3).

use std::path::{Path, PathBuf};

use crate::metainfo::Metainfo;

/// One file in the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Relative to the storage's root.
    pub path: PathBuf,
    /// Where its first byte stands among all bytes of the torrent.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// Zeros that are never on disk (BEP 47).
    pub padding: bool,
}

/// The files of a torrent, laid end to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    piece_length: u32,
    total: u64,
    entries: Vec<Entry>,
    /// Symbolic links: the path, and where it leads from the folder that it is in.
    links: Vec<(PathBuf, PathBuf)>,
}

/// A run of bytes inside one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Which entry.
    pub entry: usize,
    /// Where in that file.
    pub offset: u64,
    /// How many bytes, at least one.
    pub length: u64,
}

impl Layout {
    /// Lays out `files` (path, length, padding) in order.
    pub fn new(piece_length: u32, files: impl IntoIterator<Item = (PathBuf, u64, bool)>) -> Self {
        let mut total = 0;
        let entries = files
            .into_iter()
            .map(|(path, length, padding)| {
                let start = total;
                total += length;
                Entry {
                    path,
                    start,
                    length,
                    padding,
                }
            })
            .collect();
        Self {
            piece_length,
            total,
            entries,
            links: Vec::new(),
        }
    }

    /// The layout below a download folder.
    pub fn of(metainfo: &Metainfo) -> Self {
        let mut layout = Self::new(
            metainfo.piece_length(),
            metainfo
                .files()
                .iter()
                .map(|file| (file.path.clone(), file.length, file.padding)),
        );
        let links = metainfo.links().iter();
        layout.links = links
            .filter_map(|link| Some((link.path.clone(), link.target.clone()?)))
            .collect();
        layout
    }

    /// The layout below the content itself, whatever the content is called on this disk: `path` is
    /// the single file, or the folder of the several. Returns the root to open it at.
    pub fn at_content(metainfo: &Metainfo, path: &Path) -> (PathBuf, Self) {
        if !metainfo.is_multi_file() {
            let root = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            };
            let name = path.file_name().map(PathBuf::from).unwrap_or_default();
            let layout = Self::new(
                metainfo.piece_length(),
                [(name, metainfo.total_length(), false)],
            );
            return (root, layout);
        }
        let files = metainfo.files().iter().map(|file| {
            // `Metainfo` puts the name in front of every path.
            let inner = file.path.components().skip(1).collect();
            (inner, file.length, file.padding)
        });
        (path.to_owned(), Self::new(metainfo.piece_length(), files))
    }

    /// All files in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The symbolic links to make: the path of each, and where it leads from its own folder.
    pub fn links(&self) -> &[(PathBuf, PathBuf)] {
        &self.links
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many pieces.
    pub fn piece_count(&self) -> u32 {
        self.total.div_ceil(u64::from(self.piece_length)) as u32
    }

    /// Where a piece begins.
    pub fn piece_start(&self, piece: u32) -> u64 {
        u64::from(piece) * u64::from(self.piece_length)
    }

    /// How long a piece is; 0 past the last.
    pub fn piece_size(&self, piece: u32) -> u32 {
        let left = self.total.saturating_sub(self.piece_start(piece));
        left.min(u64::from(self.piece_length)) as u32
    }

    /// The runs in files that make up `length` bytes from `start` on, in order; cut at the end of
    /// the torrent.
    pub fn spans(&self, start: u64, length: u64) -> impl Iterator<Item = Span> + '_ {
        let end = start.saturating_add(length).min(self.total);
        let first = self
            .entries
            .partition_point(|entry| entry.start + entry.length <= start);
        self.entries[first..]
            .iter()
            .enumerate()
            .take_while(move |(_, entry)| entry.start < end)
            .map(move |(index, entry)| {
                let from = start.max(entry.start);
                let to = end.min(entry.start + entry.length);
                Span {
                    entry: first + index,
                    offset: from - entry.start,
                    length: to - from,
                }
            })
            // Empty files, and the file at `start` when no bytes are asked for.
            .filter(|span| span.length > 0)
    }

    /// The first file that a piece touches, to name it in a message.
    pub fn file_of_piece(&self, piece: u32) -> Option<&Path> {
        let span = self
            .spans(self.piece_start(piece), u64::from(self.piece_size(piece)))
            .find(|span| !self.entries[span.entry].padding)?;
        Some(&self.entries[span.entry].path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_cover_each_byte_once_and_in_order(
            lengths in proptest::collection::vec(0u64..50, 1..12),
            start in 0u64..400,
            length in 0u64..400,
        ) {
            let files = lengths.iter().enumerate().map(|(i, l)| (PathBuf::from(i.to_string()), *l, false));
            let layout = Layout::new(16, files);
            let mut at = start;
            for span in layout.spans(start, length) {
                let entry = &layout.entries()[span.entry];
                prop_assert!(span.length > 0);
                prop_assert_eq!(entry.start + span.offset, at);
                prop_assert!(span.offset + span.length <= entry.length);
                at += span.length;
            }
            let end = (start + length).min(layout.total());
            prop_assert_eq!(at, end.max(start));
        }

        #[test]
        fn pieces_add_up_to_the_whole(lengths in proptest::collection::vec(0u64..50, 1..12)) {
            let files = lengths.iter().enumerate().map(|(i, l)| (PathBuf::from(i.to_string()), *l, false));
            let layout = Layout::new(16, files);
            let sum: u64 = (0..layout.piece_count()).map(|p| u64::from(layout.piece_size(p))).sum();
            prop_assert_eq!(sum, layout.total());
            prop_assert_eq!(layout.piece_size(layout.piece_count()), 0);
        }
    }
}
