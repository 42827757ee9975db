//! Hashing what is there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use hawser_store::StoreError;

use super::disk::{Disk, FITS, SKIPPED, THERE, lock};
use super::progress::RangeState;
use crate::content::manifest::Piece;
use crate::content::tree::{self, ChainingValue, RANGE};

/// Ranges that a thread hashes at a time: neighbours share files.
const RANGES_PER_JOB: u64 = 16;

/// Most threads: more do not read faster.
const MAX_THREADS: usize = 8;

/// The chaining values of neighbouring ranges, each with its range.
type Values = Vec<(u64, ChainingValue)>;

impl Disk {
    /// Passes the chaining value of every range that is there to `each`, in ascending order.
    pub fn existing(
        &self,
        mut each: impl FnMut(u64, ChainingValue) -> bool,
    ) -> Result<(), StoreError> {
        let is_any_there = (0..self.manifest.entries().len())
            .any(|entry| self.is(entry, THERE) || self.known(entry).is_some());
        if !is_any_there {
            return Ok(());
        }
        let groups = tree::count(self.manifest.length()).div_ceil(RANGES_PER_JOB);
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (results, received) = sync_channel(threads * 4);
            for _ in 0..threads.min(MAX_THREADS) {
                let (results, next, stop) = (results.clone(), &next, &stop);
                scope.spawn(move || {
                    let mut buffer = vec![0; RANGE as usize];
                    while !stop.load(Ordering::Relaxed) {
                        let group = next.fetch_add(1, Ordering::Relaxed);
                        let values = self.hash_group(group, &mut buffer);
                        if group >= groups || results.send((group, values)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(results);
            // Leaving this loop drops `received`, so that threads stop at their next send.
            let mut waiting = BTreeMap::new();
            let mut expected = 0;
            for (group, values) in received {
                waiting.insert(group, values);
                while let Some(values) = waiting.remove(&expected) {
                    expected += 1;
                    let goes_on = values
                        .map(|values| values.into_iter().all(|(range, value)| each(range, value)));
                    if !matches!(goes_on, Ok(true)) {
                        stop.store(true, Ordering::Relaxed);
                        return goes_on.map(|_| ());
                    }
                }
            }
            Ok(())
        })
    }

    /// The chaining values of the ranges of a group that are there.
    fn hash_group(&self, group: u64, buffer: &mut [u8]) -> Result<Values, StoreError> {
        let total = self.manifest.length();
        let first = group * RANGES_PER_JOB;
        let mut values = Vec::new();
        for index in first..(first + RANGES_PER_JOB).min(tree::count(total)) {
            let positions = tree::range(index, total);
            let bytes = &mut buffer[..(positions.end - positions.start) as usize];
            if self.read_range(positions, bytes)? {
                values.push((index, tree::chaining_value(index, bytes, total)));
            }
        }
        Ok(values)
    }

    /// Reads these positions of the content into `bytes`; `false` if not all of them are there.
    fn read_range(&self, positions: Range<u64>, bytes: &mut [u8]) -> Result<bool, StoreError> {
        let start = positions.start;
        let pieces: Vec<Piece> = self.manifest.pieces(positions).collect();
        let is_there = |pieces: &[Piece]| self.find(pieces) != RangeState::Missing;
        // Without reading anything.
        if !pieces.chunk_by(same_file).all(is_there) {
            return Ok(false);
        }
        for pieces in pieces.chunk_by(same_file) {
            let entry = pieces[0].entry;
            let read = match self.find(pieces) {
                RangeState::Missing => return Ok(false),
                RangeState::InBase => match self.final_file(entry) {
                    Ok(Some(file)) => read(&file, pieces, start, bytes),
                    // One that cannot be read is replaced.
                    Ok(None) | Err(StoreError::Io { .. }) => return Ok(false),
                    Err(error) => return self.fault(entry, error).map(|()| false),
                },
                RangeState::InPart => match self.known(entry) {
                    Some(progress) => {
                        let mut progress = lock(&progress);
                        match self.part_file(entry, &mut progress) {
                            Ok(file) => read(file, pieces, start, bytes),
                            Err(error) => return self.fault(entry, error).map(|()| false),
                        }
                    }
                    None => return Ok(false),
                },
            };
            match read {
                Ok(()) => {}
                // It has become shorter meanwhile.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => {
                    let error = StoreError::io("read", &self.place.path_of(entry), error);
                    return self.fault(entry, error).map(|()| false);
                }
            }
        }
        Ok(true)
    }

    /// Where pieces of one file in one range were when the landing was prepared.
    fn find(&self, pieces: &[Piece]) -> RangeState {
        let entry = pieces[0].entry;
        match self.known(entry) {
            _ if self.is(entry, SKIPPED) => RangeState::Missing,
            Some(progress) => lock(&progress).find(pieces),
            // All of the file is in this range.
            None if self.is(entry, FITS) => RangeState::InBase,
            None => RangeState::Missing,
        }
    }

    /// The file at the name of an entry; `None` if it was removed.
    pub(super) fn final_file(&self, entry: usize) -> Result<Option<Arc<File>>, StoreError> {
        let open = || {
            let folder = self.place.folder_of(entry)?;
            let file = folder.open_name(self.place.name_of(entry), false)?;
            let removed = || ErrorKind::NotFound.into();
            file.ok_or_else(|| StoreError::io("open", &self.place.path_of(entry), removed()))
        };
        // A file in one range is used once.
        let file = match self.spanning(entry) {
            Some(_) => self.finals.get(entry, open),
            None => open().map(Arc::new),
        };
        match file {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether pieces are of the same file.
pub(super) fn same_file(a: &Piece, b: &Piece) -> bool {
    a.entry == b.entry
}

/// Reads pieces of one file to their places in `bytes`, which begin at position `start`.
fn read(file: &File, pieces: &[Piece], start: u64, bytes: &mut [u8]) -> io::Result<()> {
    for piece in pieces {
        let at = (piece.position - start) as usize;
        file.read_exact_at(&mut bytes[at..at + piece.length as usize], piece.offset)?;
    }
    Ok(())
}
