//! Names of files that are not complete: with `.part` at their end, until all that is in them is verified.
//!
//! A file gets the suffix when it is created, if that is wanted; one that has it from before is used under
//! that name in any case. It loses the suffix once: the lock of moves is taken for writing meanwhile, so
//! that no read or write of bytes is under way, and a look at the file that does not find it is made again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::StoreError;
use crate::files::{Files, Writable};
use crate::layout::Layout;
use crate::range::Ranges;

/// What the name of a file that is not complete ends with, if it is to be told by its name.
pub const PART_SUFFIX: &str = ".part";

/// Longest name of a file on usual file systems, in bytes.
const MAX_NAME: usize = 255;

/// The path of a file while it is not complete; `None` if its name would be too long.
pub fn part_name(path: &Path) -> Option<PathBuf> {
    let mut name: OsString = path.file_name()?.to_owned();
    name.push(PART_SUFFIX);
    (name.len() <= MAX_NAME).then(|| path.with_file_name(name))
}

/// The file never had the suffix.
const NEVER: u8 = 0;
/// It has the suffix.
const PARTIAL: u8 = 1;
/// It had the suffix, and lost it.
const RENAMED: u8 = 2;

/// Which files have the suffix, and how much of each is missing.
#[derive(Debug)]
pub(crate) struct PartialNames {
    /// By entry.
    states: Vec<AtomicU8>,
    /// Bytes of each entry that are not verified.
    missing: Vec<AtomicU64>,
    /// The ranges that were counted as verified.
    counted: OnceLock<Vec<AtomicBool>>,
    /// Held while a file is renamed and that is noted.
    renaming: Mutex<()>,
}

impl PartialNames {
    /// No file has the suffix, and all is missing.
    pub fn new(layout: &Layout) -> Self {
        let entries = &layout.entries;
        Self {
            states: entries.iter().map(|_| AtomicU8::new(NEVER)).collect(),
            missing: entries.iter().map(|it| AtomicU64::new(it.length)).collect(),
            counted: OnceLock::new(),
            renaming: Mutex::new(()),
        }
    }

    /// Whether the file of an entry has the suffix.
    pub fn is_partial(&self, entry: usize) -> bool {
        self.states[entry].load(Ordering::Acquire) == PARTIAL
    }

    /// The file of an entry has the suffix, or gets it when it is created.
    pub fn set_partial(&self, entry: usize) {
        self.states[entry].store(PARTIAL, Ordering::Release);
    }

    /// Whether all of an entry is verified.
    pub fn is_complete(&self, entry: usize) -> bool {
        self.missing[entry].load(Ordering::Acquire) == 0
    }

    /// Whether a file that is not found may have been renamed meanwhile.
    fn may_move(&self, entry: usize) -> bool {
        self.states[entry].load(Ordering::Acquire) != NEVER
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.renaming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names that a file with the suffix must not have: they are those of others.
pub(crate) fn taken<'a>(layout: &'a Layout, parts: &'a Path) -> BTreeSet<&'a Path> {
    let files = layout.entries.iter().map(|entry| &*entry.path);
    let links = layout.links.iter().map(|(path, _)| &**path);
    files.chain(links).chain([parts]).collect()
}

impl Files {
    /// Looks at the file of an entry under its name; again, if it is renamed meanwhile.
    pub(crate) fn at_place<T>(
        &self,
        entry: usize,
        look: impl Fn(&Path) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let found = look(&self.place_of(entry));
        let Some(writable) = &self.writable else {
            return found;
        };
        match found {
            Err(error) if error.is_not_found() && writable.names.may_move(entry) => {
                // It is not renamed while this is held.
                let _steady = writable.names.lock();
                look(&self.place_of(entry))
            }
            found => found,
        }
    }

    /// Counts what is missing of each file, of which these ranges are verified, and takes the suffix off those
    /// that are complete.
    pub(crate) fn count_missing<R: Ranges>(&self, ranges: &R, is_verified: impl Fn(u32) -> bool) {
        let Some(writable) = &self.writable else {
            return;
        };
        let counted = (0..ranges.count()).map(|_| AtomicBool::new(false));
        if writable.names.counted.set(counted.collect()).is_err() {
            return;
        }
        for range in (0..ranges.count()).filter(|range| is_verified(*range)) {
            self.on_verified(range, ranges);
        }
    }

    /// A range is verified. The suffix is taken off the files that are complete with it.
    pub(crate) fn on_verified<R: Ranges>(&self, range: u32, ranges: &R) {
        let Some(writable) = &self.writable else {
            return;
        };
        let counted = writable.names.counted.get();
        let Some(counted) = counted.and_then(|all| all.get(range as usize)) else {
            return;
        };
        // One that is fetched and verified again counts once.
        if counted.swap(true, Ordering::AcqRel) {
            return;
        }
        for span in self.layout().spans_on_disk(ranges.range(range)) {
            let missing = &writable.names.missing[span.entry];
            let before = missing.fetch_sub(span.length, Ordering::AcqRel);
            if before == span.length && writable.names.is_partial(span.entry) {
                let _moving = writable.parts.moving();
                if let Err(error) = self.finish_name(span.entry, writable) {
                    // It is tried again at the end, and then it is an error.
                    tracing::warn!("{error}");
                }
            }
        }
    }

    /// Takes the suffix off the files that are selected, all of which are complete.
    pub(crate) fn finish_names(&self) -> Result<(), StoreError> {
        let Some(writable) = &self.writable else {
            return Ok(());
        };
        let _moving = writable.parts.moving();
        for (entry, _) in self.layout().on_disk() {
            if !writable.parts.is_skipped(entry) {
                self.finish_name(entry, writable)?;
            }
        }
        Ok(())
    }

    /// Takes the suffix off the file of an entry, if it has it, and a file of its own. Bytes may not be read
    /// or written meanwhile.
    pub(crate) fn finish_name(&self, entry: usize, writable: &Writable) -> Result<(), StoreError> {
        let _renaming = writable.names.lock();
        let path = &self.layout().entries[entry].path;
        let is_due = writable.names.is_partial(entry) && !writable.parts.holds(entry);
        if let Some(partial) = part_name(path).filter(|_| is_due) {
            writable.folder.rename_file(&partial, path)?;
            writable.names.states[entry].store(RENAMED, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_suffix_if_there_is_room() {
        let path = Path::new("set/a.bin");
        assert_eq!(part_name(path), Some("set/a.bin.part".into()));
        let room = "x".repeat(MAX_NAME - PART_SUFFIX.len());
        assert!(part_name(Path::new(&room)).is_some());
        assert_eq!(part_name(Path::new(&format!("{room}x"))), None);
    }
}
