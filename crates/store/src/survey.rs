//! The files on disk before a download, and whether they belong to the download: a file that only
//! happens to have the same name must not be lost.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::check::hash_zeros;
use crate::error::StoreError;
use crate::files::{Files, Writable};
use crate::range::{Hash, Ranges};

/// The lengths of files before a download changes anything.
#[derive(Debug)]
pub(crate) struct Survey {
    /// Bytes of each entry that can be read: 0 without a file, all of them for padding, those of the
    /// part file if it has the entry's.
    found: Vec<u64>,
    /// Whether all files are missing or empty.
    pub is_empty: bool,
}

impl Survey {
    /// Reads the lengths of all files.
    pub fn of(files: &Files) -> Result<Self, StoreError> {
        let entries = &files.layout().entries;
        let mut found: Vec<u64> = entries.iter().map(|entry| entry.length).collect();
        let mut is_empty = true;
        for (index, _) in files.layout().on_disk() {
            found[index] = length(files, index)?;
            is_empty &= found[index] == 0;
        }
        Ok(Self { found, is_empty })
    }

    /// Reads the lengths of these entries again, which have their bytes in another file now.
    pub fn update(&mut self, files: &Files, entries: &BTreeSet<usize>) -> Result<(), StoreError> {
        for index in entries {
            self.found[*index] = length(files, *index)?;
        }
        Ok(())
    }

    /// Whether all of `bytes` are on disk and can be verified.
    pub fn covers(&self, files: &Files, bytes: Range<u64>) -> bool {
        let mut runs = files.located(bytes);
        runs.all(|run| {
            let end = run.offset.map(|offset| offset + run.length);
            end.is_some_and(|end| end <= self.found[run.entry])
        })
    }

    /// The files that do not belong to the download and would be overwritten, as some range in them
    /// is not verified. A file belongs to the download if it has part of a verified range that
    /// is not all zeros (any file may have a run of zeros), or if it has the mark of this download.
    /// On a file system without marks, an unfinished download is recognized by its files: all have
    /// their full length before anything is written, and there are holes.
    pub fn foreign<R: Ranges>(
        &self,
        files: &Files,
        ranges: &R,
        is_verified: impl Fn(u32) -> bool,
    ) -> Result<BTreeSet<usize>, StoreError> {
        let mut foreign = BTreeSet::new();
        let Some(Writable { mark, .. }) = &files.writable else {
            return Ok(foreign);
        };
        if (0..ranges.count()).all(&is_verified) {
            return Ok(foreign);
        }
        let mut own = vec![false; self.found.len()];
        let mut overwritten = own.clone();
        let mut zeros: HashMap<u64, Hash<R>> = HashMap::new();
        for index in 0..ranges.count() {
            let range = ranges.range(index);
            let length = range.end - range.start;
            let is_verified = is_verified(index);
            let is_telling = is_verified && {
                let of_length = || {
                    let zeros = zeros.entry(length);
                    zeros
                        .or_insert_with(|| hash_zeros(ranges.hasher(index), length))
                        .clone()
                };
                let zeros = ranges.zeros(index).unwrap_or_else(of_length);
                ranges.expected(index) != Some(zeros)
            };
            for span in files.layout().spans(range) {
                own[span.entry] |= is_telling;
                overwritten[span.entry] |= !is_verified;
            }
        }
        let mut without_marks = None;
        for (index, _) in files.own_files() {
            let at_risk = self.found[index] > 0 && overwritten[index] && !own[index];
            if !at_risk {
                continue;
            }
            let file = files.open(index)?;
            // The file is one hole. A file system that cannot tell has no holes.
            if rustix::fs::seek(&file, SeekFrom::Data(0)) == Err(Errno::NXIO) {
                continue;
            }
            let is_own = match mark.is_on(&file).or(without_marks) {
                Some(is_own) => is_own,
                None => *without_marks.insert(self.is_unfinished(files)?),
            };
            if !is_own {
                foreign.insert(index);
            }
        }
        Ok(foreign)
    }

    /// Refuses existing files that will be written to, as some range in them and in a selected file
    /// is not verified, but cannot be: better now than after fetching. Others may be on a read-only
    /// file system.
    pub fn refuse_read_only<R: Ranges>(
        &self,
        files: &Files,
        ranges: &R,
        is_verified: impl Fn(u32) -> bool,
    ) -> Result<(), StoreError> {
        let mut opened_up_to = 0;
        let is_selected = |entry: usize| {
            let writable = files.writable.as_ref();
            !writable.is_some_and(|writable| writable.parts.is_skipped(entry))
        };
        for index in (0..ranges.count()).filter(|index| !is_verified(*index)) {
            let spans = || files.layout().spans_on_disk(ranges.range(index));
            if !spans().any(|span| is_selected(span.entry)) {
                continue;
            }
            for span in spans() {
                if span.entry < opened_up_to {
                    continue;
                }
                opened_up_to = span.entry + 1;
                if self.found[span.entry] > 0 {
                    files.open_for_writing(span.entry)?;
                }
            }
        }
        Ok(())
    }

    /// Whether all files that are not in the part file have their full length, and there are holes.
    fn is_unfinished(&self, files: &Files) -> Result<bool, StoreError> {
        let mut holes = false;
        for (index, entry) in files.own_files() {
            if self.found[index] != entry.length {
                return Ok(false);
            }
            if !holes && entry.length > 0 {
                // A file without another hole has one at its end.
                let hole = rustix::fs::seek(files.open(index)?, SeekFrom::Hole(0));
                holes = hole.is_ok_and(|hole| hole < entry.length);
            }
        }
        Ok(holes)
    }
}

/// The length of the file that has the bytes of an entry; 0 if there is none.
fn length(files: &Files, entry: usize) -> Result<u64, StoreError> {
    match files.open(entry) {
        Err(error) if error.is_not_found() => Ok(0),
        file => {
            let metadata = file?.metadata();
            let failed = |error| StoreError::io("look at", &files.path_of(entry), error);
            Ok(metadata.map_err(failed)?.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::files::testing::everything;
    use crate::layout::Layout;
    use crate::mark::Mark;
    use crate::options::FileOptions;

    #[test]
    fn without_marks_an_unfinished_download_is_recognized_by_its_holes() {
        let dir = tempfile::tempdir().unwrap();
        let layout = || {
            let files = [("a", 100_000), ("b", 100_000)];
            Layout::new(files.map(|(path, length)| (PathBuf::from(path), length, false)))
        };
        let unfinished = || {
            let root = dir.path().to_owned();
            let (mark, parts) = (Mark::new(vec![1; 20]), everything(&layout()));
            let files =
                Files::writable(root, layout(), mark, FileOptions::default(), parts).unwrap();
            let survey = Survey::of(&files).unwrap();
            survey.is_unfinished(&files).unwrap()
        };
        assert!(!unfinished());
        fs::write(dir.path().join("a"), vec![1; 100_000]).unwrap();
        assert!(!unfinished());
        let b = fs::File::create(dir.path().join("b")).unwrap();
        b.set_len(99_999).unwrap();
        assert!(!unfinished());
        b.set_len(100_000).unwrap();
        assert!(unfinished());
        fs::write(dir.path().join("b"), vec![1; 100_000]).unwrap();
        assert!(!unfinished());
    }
}
