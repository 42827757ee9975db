//! The names of files that are not complete.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use crate::layout::Layout;

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
/// It had the suffix, and lost it, or got another name.
const RENAMED: u8 = 2;

/// Which files have the suffix, and how much of each is missing.
#[derive(Debug)]
pub(crate) struct PartialNames {
    /// By entry.
    states: Vec<AtomicU8>,
    /// Bytes of each entry that are not verified.
    pub missing: Vec<AtomicU64>,
    /// The ranges that were counted as verified.
    pub counted: OnceLock<Vec<AtomicBool>>,
    /// Held while a file is renamed and that is noted.
    renaming: Mutex<()>,
    /// The paths of entries that have others than in the layout, without the suffix.
    paths: RwLock<HashMap<usize, PathBuf>>,
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
            paths: RwLock::default(),
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

    /// The file of an entry has lost the suffix.
    pub fn set_renamed(&self, entry: usize) {
        self.states[entry].store(RENAMED, Ordering::Release);
    }

    /// The file of an entry is about to get another path.
    pub fn note_rename(&self, entry: usize) {
        let order = Ordering::AcqRel;
        // One that has the suffix may move in any case.
        let _ = self.states[entry].compare_exchange(NEVER, RENAMED, order, Ordering::Acquire);
    }

    /// The path of an entry, if it is another than in the layout.
    pub fn path(&self, entry: usize) -> Option<PathBuf> {
        let paths = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        paths.get(&entry).cloned()
    }

    /// Entries have other paths.
    pub fn set_paths(&self, renamed: Vec<(usize, PathBuf)>) {
        let mut paths = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        paths.extend(renamed);
    }

    /// Whether all of an entry is verified.
    pub fn is_complete(&self, entry: usize) -> bool {
        self.missing[entry].load(Ordering::Acquire) == 0
    }

    /// Whether a file that is not found may have been renamed meanwhile.
    pub fn may_move(&self, entry: usize) -> bool {
        self.states[entry].load(Ordering::Acquire) != NEVER
    }

    /// Holds names as they are.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.renaming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names that a file with the suffix must not have: they are those of others.
pub(crate) fn taken<'a>(layout: &'a Layout, parts: &'a Path) -> BTreeSet<&'a Path> {
    let files = layout.entries.iter().map(|entry| &*entry.path);
    let links = layout.links.iter().map(|(path, _)| &**path);
    files.chain(links).chain([parts]).collect()
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
