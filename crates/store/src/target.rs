//! Files opened for a download, with the verified ranges of an earlier one.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::check::check;
use crate::error::StoreError;
use crate::files::Files;
use crate::layout::Layout;
use crate::lock::Lock;
use crate::mark::Mark;
use crate::options::{Allocation, FileOptions};
use crate::parts::{PartFile, Slots};
use crate::range::{Hash, Ranges};
use crate::stamp::Stamps;
use crate::survey::Survey;
use crate::verified::Verified;

/// The files and folder of a download.
#[derive(Debug, Clone)]
pub struct Target {
    /// The folder, created if it does not exist.
    pub root: PathBuf,
    /// The files in the folder.
    pub layout: Layout,
    /// Identifies the download, so that it recognizes its unfinished files; at most 255 bytes.
    pub mark: Vec<u8>,
    /// The files that are not selected, as indices into the entries of the layout: they are not
    /// created, and none that exists is changed unless it belongs to the download.
    pub skipped: BTreeSet<usize>,
    /// The path of the part file in the folder, which no file of the layout has: what is needed of
    /// files that are not selected is in it. It exists only as long as there is a need for it.
    pub parts: PathBuf,
    /// How the files are put on disk.
    pub options: FileOptions,
    /// What was verified before: ranges of it whose files have not changed since are not hashed.
    pub trusted: Option<Verified>,
}

/// Files opened and locked for a download.
#[derive(Debug)]
pub struct Resumed {
    /// The files.
    pub files: Arc<Files>,
    /// Must be kept while the files are written to; `None` if there are no files.
    pub lock: Option<Lock>,
    /// The verified ranges, in order.
    pub verified: Vec<u32>,
    /// The states of the files before they were verified.
    pub stamps: Stamps,
    /// How many of the verified ranges were not hashed, as [`Target::trusted`] has them.
    pub trusted: u32,
}

impl Target {
    /// Opens and locks the files and verifies their ranges, without changing a file that does not
    /// belong to the download, unless it may be overwritten. Calls `each` once for every range, in no
    /// particular order, with whether it is verified; if `each` returns `false`, ends early with
    /// `None`. What an earlier download left in the part file moves to the files that are selected
    /// now. Blocks until done.
    ///
    /// # Errors
    /// If there is an obstacle in place of a selected file, if a file is in use by another download
    /// ([`StoreError::InUse`]) or belongs to none ([`StoreError::Foreign`],
    /// [`StoreError::TooLong`]), or if a system call fails.
    pub fn resume<R: Ranges>(
        self,
        ranges: &R,
        mut each: impl FnMut(u32, bool) -> bool,
    ) -> Result<Option<Resumed>, StoreError>
    where
        Hash<R>: Send + Sync,
    {
        let mark = Mark::new(self.mark);
        let slots = Slots::new(&self.layout, ranges);
        let entries = self.layout.entries.len();
        let parts = PartFile::new(self.parts, slots, entries, &self.skipped);
        let files = Files::writable(self.root, self.layout, mark, self.options, parts)?;
        let files = Arc::new(files);
        // Locks before verifying, which may take long, but creates nothing yet.
        let mut lock = Lock::acquire(&files, false)?;
        let stamps = files.stamps();
        let mut survey = Survey::of(&files)?;
        let known = self.trusted.map(|known| known.unchanged(&files, ranges));
        let (known, mut trusted) = (known.unwrap_or_default(), 0);
        let mut verified = vec![false; ranges.count() as usize];
        if survey.is_empty {
            // What is padding alone needs no file.
            let layout = files.layout();
            let is_padding = |index| layout.spans_on_disk(ranges.range(index)).next().is_none();
            if layout.entries.iter().any(|entry| entry.padding) {
                check(&files, ranges, is_padding, |index, is_right| {
                    verified[index as usize] = is_right;
                    true
                })?;
            }
            let padding = (0..).zip(&verified).filter(|(_, is_right)| **is_right);
            if !padding.map(|(index, _)| index).all(|it| each(it, true)) {
                return Ok(None);
            }
        } else {
            let is_known = |index: u32| known.get(index as usize) == Some(&true);
            match verify(&files, ranges, &mut survey, &mut verified, is_known, each)? {
                Some(count) => trusted = count,
                None => return Ok(None),
            }
            let is_verified = |index| verified[index as usize];
            if !self.options.overwrite {
                let foreign = survey.foreign(&files, ranges, is_verified)?;
                if let Some(entry) = foreign.first() {
                    return Err(StoreError::Foreign(files.path_of(*entry)));
                }
            }
            survey.refuse_read_only(&files, ranges, is_verified)?;
        }
        match &mut lock {
            None => lock = Lock::acquire(&files, true)?,
            Some(lock) => lock.extend(true)?,
        }
        files.select(|entry| !self.skipped.contains(&entry))?;
        files.count_missing(ranges, |index| verified[index as usize]);
        let is_partial = verified.iter().any(|is_verified| !is_verified);
        let verified: Vec<u32> = (0..ranges.count())
            .filter(|index| verified[*index as usize])
            .collect();
        let allocates = is_partial && self.options.allocation == Allocation::Full;
        if allocates || !survey.is_empty && !verified.is_empty() {
            files.create_all()?;
        }
        Ok(Some(Resumed {
            files,
            lock,
            verified,
            stamps,
            trusted,
        }))
    }
}

/// Verifies what is on disk, and notes it in `verified`. Files that are not selected and turn out not
/// to belong to the download are left alone from then on, and the part file is read in their place.
/// Ranges that are known to be right are not hashed; returns how many that were, or `None` if `each`
/// returned `false`.
fn verify<R: Ranges>(
    files: &Files,
    ranges: &R,
    survey: &mut Survey,
    verified: &mut [bool],
    is_known: impl Fn(u32) -> bool + Sync,
    mut each: impl FnMut(u32, bool) -> bool,
) -> Result<Option<u32>, StoreError>
where
    Hash<R>: Send + Sync,
{
    let Some(writable) = &files.writable else {
        return Ok(Some(0));
    };
    let parts = &writable.parts;
    // A range in such a file may be in the part file after all.
    let is_doubtful = |index: u32| {
        let bytes = ranges.range(index);
        parts.slots.overlap(&bytes)
            && files
                .layout()
                .spans_on_disk(bytes)
                .any(|span| parts.is_skipped(span.entry) && !parts.holds(span.entry))
    };
    let doubtful: BTreeSet<u32> = (0..ranges.count()).filter(|it| is_doubtful(*it)).collect();
    // Which file such a range is in follows from hashing.
    let covers = |index| survey.covers(files, ranges.range(index));
    let is_trusted = |index| is_known(index) && !doubtful.contains(&index) && covers(index);
    let mut trusted = 0;
    for index in (0..ranges.count()).filter(|index| is_trusted(*index)) {
        verified[index as usize] = true;
        trusted += 1;
        if !each(index, true) {
            return Ok(None);
        }
    }
    if trusted == ranges.count() {
        return Ok(Some(trusted));
    }
    let mut stopped = false;
    let is_there = |index| !is_trusted(index) && covers(index);
    check(files, ranges, is_there, |index, is_right| {
        if is_trusted(index) {
            return true;
        }
        verified[index as usize] = is_right;
        if is_right || !doubtful.contains(&index) {
            stopped = !each(index, is_right);
        }
        !stopped
    })?;
    if stopped {
        return Ok(None);
    }
    let foreign = survey.foreign(files, ranges, |index| verified[index as usize])?;
    let foreign = foreign.into_iter().filter(|it| parts.is_skipped(*it));
    let foreign: BTreeSet<usize> = foreign.collect();
    for entry in &foreign {
        parts.set_held(*entry, true);
        files.close(*entry);
    }
    survey.update(files, &foreign)?;
    let open = doubtful
        .into_iter()
        .filter(|index| !verified[*index as usize]);
    let open: BTreeSet<u32> = open.collect();
    if open.is_empty() {
        return Ok(Some(trusted));
    }
    let is_there = |index| open.contains(&index) && survey.covers(files, ranges.range(index));
    check(files, ranges, is_there, |index, is_right| {
        if open.contains(&index) {
            verified[index as usize] = is_right;
            stopped = !each(index, is_right);
        }
        !stopped
    })?;
    Ok((!stopped).then_some(trusted))
}

impl Files {
    /// Checks that every file exists and has its length, and returns the states of the files. Call
    /// it before they are verified or after everything selected is written. Selected files opened
    /// for writing also lose the mark of an unfinished download; selected ones without any byte are
    /// created.
    ///
    /// # Errors
    /// If a file is missing, has another length, or cannot be created, or something has the name of a file
    /// that has `.part` at its end.
    pub fn complete(&self) -> Result<Stamps, StoreError> {
        self.create_all()?;
        self.finish_names()?;
        self.check_lengths()?;
        if let Some(writable) = &self.writable {
            for (entry, _) in self.own_files() {
                // One that is not selected may lack ranges.
                if !writable.parts.is_skipped(entry)
                    && let Ok(file) = self.open(entry)
                {
                    Mark::take_off(&file);
                }
            }
            // Nothing is written any more.
            self.close_all();
        }
        Ok(self.stamps())
    }
}

#[cfg(test)]
mod tests;
