//! The files of a landing.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_store::{Handles, Room, StoreError};

use super::faults::Faults;
use super::place::Place;
use super::progress::{Progress, ranges};
use super::taking::Taking;
use crate::content::manifest::{Entry, EntryKind, Manifest};

/// A regular file is at the name of the entry.
pub(super) const THERE: u8 = 1;
/// It has the right size, and zeros where the entry has holes.
pub(super) const FITS: u8 = 2;
/// It has another mode or modification time than the entry.
pub(super) const STALE: u8 = 4;
/// The entry is complete.
pub(super) const DONE: u8 = 8;
/// The entry is skipped: nothing of it is written.
pub(super) const SKIPPED: u8 = 16;

/// The files of a landing.
#[derive(Debug)]
pub(super) struct Disk {
    pub manifest: Arc<Manifest>,
    pub place: Place,
    /// Of each entry, what is known: one byte, as there may be millions.
    flags: Vec<AtomicU8>,
    /// Files with content in several ranges, of which something is there and something is missing.
    files: Mutex<HashMap<usize, Arc<Mutex<Progress>>>>,
    /// Files whose part file is open, the oldest first.
    pub open: Mutex<VecDeque<usize>>,
    /// The files in several ranges that are at the names of entries, for reading.
    pub finals: Handles,
    /// Whether the file system was found to have no locks.
    pub without_locks: AtomicBool,
    pub faults: Faults,
    pub taking: Taking,
}

impl Disk {
    pub(super) fn new(
        manifest: &Arc<Manifest>,
        place: Place,
        faults: Faults,
        taking: Taking,
    ) -> Self {
        let flags = manifest.entries().iter().map(|_| AtomicU8::new(0));
        Self {
            manifest: Arc::clone(manifest),
            place,
            flags: flags.collect(),
            files: Mutex::default(),
            open: Mutex::default(),
            finals: Handles::default(),
            without_locks: AtomicBool::new(false),
            faults,
            taking,
        }
    }

    /// The room on its file system.
    pub fn room(&self) -> Result<Room, StoreError> {
        self.place.root().room()
    }

    pub(super) fn entry(&self, entry: usize) -> &Entry {
        &self.manifest.entries()[entry]
    }

    pub(super) fn is(&self, entry: usize, flag: u8) -> bool {
        self.flags[entry].load(Ordering::Acquire) & flag == flag
    }

    pub(super) fn set(&self, entry: usize, flags: u8) {
        self.flags[entry].fetch_or(flags, Ordering::AcqRel);
    }

    /// The positions of a file in the content, if they are in several ranges.
    pub(super) fn spanning(&self, entry: usize) -> Option<Range<u64>> {
        let content = self.manifest.content_of(entry);
        let ranges = ranges(&content);
        (ranges.end - ranges.start > 1).then_some(content)
    }

    /// The progress of a file with content in several ranges.
    pub(super) fn progress(&self, entry: usize, content: &Range<u64>) -> Arc<Mutex<Progress>> {
        let mut files = lock(&self.files);
        let progress = files
            .entry(entry)
            .or_insert_with(|| Arc::new(Mutex::new(Progress::new(content))));
        Arc::clone(progress)
    }

    /// The progress of a file of which something is known.
    pub(super) fn known(&self, entry: usize) -> Option<Arc<Mutex<Progress>>> {
        lock(&self.files).get(&entry).cloned()
    }

    /// Drops the progress of a file that is complete.
    pub(super) fn forget(&self, entry: usize) {
        self.set(entry, DONE);
        self.finals.close(entry);
        lock(&self.files).remove(&entry);
        lock(&self.open).retain(|open| *open != entry);
    }

    /// The parts of a file between its extents, which read as zeros.
    pub(super) fn holes(&self, entry: usize) -> Vec<Range<u64>> {
        let EntryKind::File { size, extents } = &self.entry(entry).kind else {
            return Vec::new();
        };
        let mut holes = Vec::new();
        let mut at = 0;
        for extent in extents {
            holes.push(at..extent.offset);
            at = extent.end();
        }
        holes.push(at..*size);
        holes.retain(|hole| !hole.is_empty());
        holes
    }

    /// Permissions and modification time that an entry gets. Set-uid and set-gid would be those of
    /// the user that receives, so they are cleared, but where its owners are those at the source.
    pub(super) fn status(&self, entry: usize) -> (u32, (i64, u32)) {
        let entry = self.entry(entry);
        let modified = (entry.modified.seconds, entry.modified.nanoseconds);
        (entry.mode & 0o1777, modified)
    }

    /// The path of an entry's part file, for messages.
    pub(super) fn part_path(&self, entry: usize, part: &OsString) -> PathBuf {
        self.place.path_of(entry).with_file_name(part)
    }
}

/// Locks a mutex whose data is valid at any time.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
