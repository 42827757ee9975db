//! The part file: bytes of files that are not selected.
//!
//! A range is verified as a whole. Where it crosses from a selected file into one that is not
//! selected, the bytes in the latter are needed too, but its file is not created for them: they are
//! in the part file until the file is selected.
//!
//! Every range that has bytes of several files has a slot in the part file, in their order and
//! whatever is selected. So the part file needs no index, and is at most as long as these ranges,
//! fewer than there are files; what is not written in it are holes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustix::fs::{FallocateFlags, SeekFrom};

use crate::layout::{Layout, Span};
use crate::range::{Ranges, overlapping};

/// Bytes copied at a time when a file takes its bytes from the part file.
const CHUNK: u64 = 256 << 10;

/// A range that has bytes of several files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    /// Its bytes in the content.
    bytes: Range<u64>,
    /// Its position in the part file.
    at: u64,
}

/// The slots of the part file, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slots(Vec<Slot>);

impl Slots {
    /// The slots for files of this layout, divided into these ranges.
    pub fn new(layout: &Layout, ranges: &impl Ranges) -> Self {
        let (mut slots, mut at, mut checked) = (Vec::new(), 0, 0);
        for (_, entry) in layout.on_disk() {
            // Only the first and the last range of a file have bytes of others.
            let of = overlapping(ranges, &entry.bytes());
            let ends = [of.start, of.end.saturating_sub(1)];
            for index in ends.into_iter().filter(|index| of.contains(index)) {
                if index < checked {
                    continue;
                }
                checked = index + 1;
                let bytes = ranges.range(index);
                if layout.spans_on_disk(bytes.clone()).nth(1).is_some() {
                    let length = bytes.end - bytes.start;
                    slots.push(Slot { bytes, at });
                    at += length;
                }
            }
        }
        Self(slots)
    }

    /// Whether a range of bytes has a slot or a part of one.
    pub fn overlap(&self, bytes: &Range<u64>) -> bool {
        let first = self.0.partition_point(|slot| slot.bytes.end <= bytes.start);
        let slot = self.0.get(first);
        slot.is_some_and(|slot| slot.bytes.start < bytes.end)
    }

    /// The position of the first bytes of `bytes` in the part file, if they have one, and how many
    /// of them this goes for.
    fn locate(&self, bytes: Range<u64>) -> (Option<u64>, u64) {
        let first = self.0.partition_point(|slot| slot.bytes.end <= bytes.start);
        match self.0.get(first) {
            Some(slot) if slot.bytes.start <= bytes.start => {
                let end = bytes.end.min(slot.bytes.end);
                let at = slot.at + (bytes.start - slot.bytes.start);
                (Some(at), end - bytes.start)
            }
            Some(slot) => (None, bytes.end.min(slot.bytes.start) - bytes.start),
            None => (None, bytes.end - bytes.start),
        }
    }
}

/// A run of bytes inside one file on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Located {
    /// The entry that the bytes belong to.
    pub entry: usize,
    /// Position in the entry's file or in the part file; `None` if the entry has neither for them.
    pub offset: Option<u64>,
    /// Length in bytes, at least one.
    pub length: u64,
}

impl From<Span> for Located {
    /// A span in the entry's own file.
    fn from(span: Span) -> Self {
        Self {
            entry: span.entry,
            offset: Some(span.offset),
            length: span.length,
        }
    }
}

/// Which entries have their bytes in the part file, and where.
#[derive(Debug)]
pub(crate) struct PartFile {
    /// Its path, relative to the root.
    pub path: PathBuf,
    pub slots: Slots,
    /// Whether each entry is not selected.
    skipped: Vec<AtomicBool>,
    /// Whether each entry has its bytes in the part file instead of its own file.
    held: Vec<AtomicBool>,
    /// Taken for reading while bytes are read or written, and for writing while they are moved.
    moves: RwLock<()>,
}

impl PartFile {
    /// The part file at `path` of a layout with `entries` entries, of which those in `skipped` are
    /// not selected. No entry has its bytes in it yet.
    pub fn new(path: PathBuf, slots: Slots, entries: usize, skipped: &BTreeSet<usize>) -> Self {
        Self {
            path,
            slots,
            skipped: (0..entries)
                .map(|entry| skipped.contains(&entry).into())
                .collect(),
            held: (0..entries).map(|_| AtomicBool::new(false)).collect(),
            moves: RwLock::default(),
        }
    }

    /// Whether an entry is not selected.
    pub fn is_skipped(&self, entry: usize) -> bool {
        self.skipped[entry].load(Ordering::Acquire)
    }

    /// Sets whether an entry is not selected.
    pub fn set_skipped(&self, entry: usize, is_skipped: bool) {
        self.skipped[entry].store(is_skipped, Ordering::Release);
    }

    /// Whether an entry has its bytes in the part file.
    pub fn holds(&self, entry: usize) -> bool {
        self.held[entry].load(Ordering::Acquire)
    }

    /// Sets whether an entry has its bytes in the part file.
    pub fn set_held(&self, entry: usize, is_held: bool) {
        self.held[entry].store(is_held, Ordering::Release);
    }

    /// Whether any entry has its bytes in the part file.
    pub fn holds_any(&self) -> bool {
        self.held.iter().any(|held| held.load(Ordering::Acquire))
    }

    /// Keeps bytes from being moved while it is held.
    pub fn steady(&self) -> RwLockReadGuard<'_, ()> {
        self.moves.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps bytes from being read and written while it is held.
    pub fn moving(&self) -> RwLockWriteGuard<'_, ()> {
        self.moves.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of the first bytes of a span that begins at `start` in the content, and the rest
    /// of the span.
    pub fn locate(&self, span: Span, start: u64) -> (Located, Option<Span>) {
        let (offset, length) = match self.holds(span.entry) {
            false => (Some(span.offset), span.length),
            true => self.slots.locate(start..start + span.length),
        };
        let rest = Span {
            offset: span.offset + length,
            length: span.length - length,
            ..span
        };
        let located = Located {
            entry: span.entry,
            offset,
            length,
        };
        (located, (rest.length > 0).then_some(rest))
    }

    /// The parts of an entry with these bytes that have a place in the part file: the position in
    /// the entry's file, and the bytes in the part file. At most two.
    pub fn parts_of(&self, bytes: Range<u64>) -> Vec<(u64, Range<u64>)> {
        let (mut parts, mut at) = (Vec::new(), bytes.start);
        while at < bytes.end {
            let (offset, length) = self.slots.locate(at..bytes.end);
            if let Some(offset) = offset {
                parts.push((at - bytes.start, offset..offset + length));
            }
            at += length;
        }
        parts
    }
}

/// The next bytes of `within` that were written in a file: neither a hole nor past its end. A file
/// system that cannot tell has no holes.
pub(crate) fn next_data(file: &File, within: Range<u64>) -> Option<Range<u64>> {
    let start = rustix::fs::seek(file, SeekFrom::Data(within.start)).ok()?;
    let end = rustix::fs::seek(file, SeekFrom::Hole(start)).ok()?;
    let found = start..end.min(within.end);
    (!found.is_empty()).then_some(found)
}

/// Copies what was written at `from` in the part file to position `to` on of another file.
pub(crate) fn copy(parts: &File, from: Range<u64>, file: &File, to: u64) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut rest = from.clone();
    while let Some(data) = next_data(parts, rest.clone()) {
        let length = (data.end - data.start).min(CHUNK);
        buffer.resize(length as usize, 0);
        parts.read_exact_at(&mut buffer, data.start)?;
        file.write_all_at(&buffer, to + (data.start - from.start))?;
        rest.start = data.start + length;
    }
    Ok(())
}

/// Makes a hole of bytes of the part file, so that they take no space. A file system without holes
/// keeps them, which does no harm.
pub(crate) fn punch(parts: &File, bytes: Range<u64>) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let punched = rustix::fs::fallocate(parts, flags, bytes.start, bytes.end - bytes.start);
    if let Err(error) = punched {
        tracing::debug!(%error, "moved bytes stay in the part file");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::range::testing::Pieces;

    proptest! {
        #[test]
        fn each_byte_of_a_range_over_several_files_has_a_place_of_its_own(
            lengths in proptest::collection::vec((0u64..40, any::<bool>()), 1..12),
            range in 1u64..30,
        ) {
            let files = lengths.iter().enumerate();
            let layout = Layout::new(files.map(|(i, (length, padding))| {
                (PathBuf::from(i.to_string()), *length, *padding)
            }));
            let total: u64 = lengths.iter().map(|(length, _)| length).sum();
            let pieces = Pieces { length: range, total, hashes: Vec::new() };
            let slots = Slots::new(&layout, &pieces);
            let mut used = BTreeSet::new();
            for index in 0..pieces.count() {
                let bytes = pieces.range(index);
                let files = layout.spans_on_disk(bytes.clone()).count();
                prop_assert_eq!(slots.overlap(&bytes), files > 1);
                for byte in bytes {
                    let (place, length) = slots.locate(byte..total);
                    prop_assert!(length > 0);
                    prop_assert_eq!(place.is_some(), files > 1);
                    prop_assert!(place.is_none_or(|place| used.insert(place)));
                }
            }
            // There are no gaps, and fewer slots than files.
            prop_assert_eq!(used.last().map_or(0, |last| last + 1), used.len() as u64);
            prop_assert!(slots.0.len() < lengths.len().max(1));
        }
    }
}
