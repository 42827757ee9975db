//! The position of each file in the content: the files laid end to end.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// One file of a [`Layout`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the root of the [`Files`](crate::Files).
    pub path: PathBuf,
    /// Position of its first byte in the content.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Padding: reads as zeros and is never on disk (BEP 47 aligns files with it).
    pub padding: bool,
}

impl Entry {
    /// Its range of bytes in the content.
    pub fn bytes(&self) -> Range<u64> {
        self.start..self.start + self.length
    }
}

/// Files laid end to end, and symbolic links beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of all files.
    total: u64,
    /// All files in order.
    pub entries: Vec<Entry>,
    /// The symbolic links (path, target), each target relative to the folder of its link.
    pub links: Vec<(PathBuf, PathBuf)>,
}

/// A run of bytes inside one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Index into [`Layout::entries`].
    pub entry: usize,
    /// Position in that file.
    pub offset: u64,
    /// Length in bytes, at least one.
    pub length: u64,
}

impl Layout {
    /// Lays out `files` (path, length, padding) in order. Paths are relative and have only plain
    /// components: no root, no `..`.
    pub fn new(files: impl IntoIterator<Item = (PathBuf, u64, bool)>) -> Self {
        let mut total = 0;
        let entries = files.into_iter().map(|(path, length, padding)| {
            let start = total;
            total += length;
            Entry {
                path,
                start,
                length,
                padding,
            }
        });
        let entries = entries.collect();
        Self {
            total,
            entries,
            links: Vec::new(),
        }
    }

    /// The entries that have a file on disk, that is, all except padding.
    pub(crate) fn on_disk(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| !entry.padding)
    }

    /// The spans that make up `bytes`, in order; `bytes` is cut at the end of the content.
    pub(crate) fn spans(&self, bytes: Range<u64>) -> impl Iterator<Item = Span> + '_ {
        let Range { start, end } = bytes;
        let end = end.min(self.total);
        let first = self
            .entries
            .partition_point(|entry| entry.bytes().end <= start);
        let entries = self.entries.iter().enumerate().skip(first);
        entries
            .take_while(move |(_, entry)| entry.start < end)
            .map(move |(index, entry)| {
                let from = start.max(entry.start);
                Span {
                    entry: index,
                    offset: from - entry.start,
                    length: end.min(entry.bytes().end) - from,
                }
            })
            // Leaves out empty files, and the file at `start` if `bytes` is empty.
            .filter(|span| span.length > 0)
    }

    /// The spans of `bytes` that are on disk.
    pub(crate) fn spans_on_disk(&self, bytes: Range<u64>) -> impl Iterator<Item = Span> + '_ {
        let spans = self.spans(bytes);
        spans.filter(|span| !self.entries[span.entry].padding)
    }

    /// The path of the first file that has some of `bytes`, for messages.
    pub fn file_at(&self, bytes: Range<u64>) -> Option<&Path> {
        let span = self.spans_on_disk(bytes).next()?;
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
            let layout = Layout::new(files);
            let mut at = start;
            for span in layout.spans(start..start + length) {
                let entry = &layout.entries[span.entry];
                prop_assert!(span.length > 0);
                prop_assert_eq!(entry.start + span.offset, at);
                prop_assert!(span.offset + span.length <= entry.length);
                at += span.length;
            }
            let end = (start + length).min(layout.total);
            prop_assert_eq!(at, end.max(start));
        }
    }
}
