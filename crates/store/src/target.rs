//! Files opened for a download, with the verified ranges of an earlier one.

use std::path::PathBuf;
use std::sync::Arc;

use crate::check::check;
use crate::error::StoreError;
use crate::files::Files;
use crate::layout::Layout;
use crate::lock::Lock;
use crate::mark::Mark;
use crate::range::{Hash, Ranges};
use crate::stamp::Stamps;
use crate::survey::Survey;

/// The files and folder of a download.
#[derive(Debug, Clone)]
pub struct Target {
    /// The folder, created if it does not exist.
    pub root: PathBuf,
    /// The files in the folder.
    pub layout: Layout,
    /// Identifies the download, so that it recognizes its unfinished files; at most 255 bytes.
    pub mark: Vec<u8>,
    /// Whether files that do not belong to the download are overwritten instead of refused.
    pub overwrite: bool,
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
}

impl Target {
    /// Opens and locks the files and verifies their ranges, without changing a file that does not
    /// belong to the download, unless `overwrite` is set. Calls `each` for every range checked, in
    /// no particular order, with whether it is verified; if `each` returns `false`, ends early with
    /// `None`. Blocks until done.
    ///
    /// # Errors
    /// If there is an obstacle in place of a file, if a file is in use by another download
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
        let files = Files::writable(self.root, self.layout, mark, self.overwrite)?;
        let files = Arc::new(files);
        // Locks before verifying, which may take long, but creates nothing yet.
        let mut lock = Lock::acquire(&files, false)?;
        let survey = Survey::of(&files)?;
        let mut verified = vec![false; ranges.count() as usize];
        if !survey.is_empty {
            let mut stopped = false;
            let is_there = |index| survey.covers(&files, ranges.range(index));
            check(&files, ranges, is_there, |index, is_right| {
                verified[index as usize] = is_right;
                stopped = !each(index, is_right);
                !stopped
            })?;
            if stopped {
                return Ok(None);
            }
            if !self.overwrite {
                survey.refuse_foreign(&files, ranges, |index| verified[index as usize])?;
            }
            survey.refuse_read_only(&files, ranges, |index| verified[index as usize])?;
        }
        if lock.is_none() {
            lock = Lock::acquire(&files, true)?;
        }
        let verified: Vec<u32> = (0..ranges.count())
            .filter(|index| verified[*index as usize])
            .collect();
        if !verified.is_empty() {
            files.create_all()?;
        }
        Ok(Some(Resumed {
            files,
            lock,
            verified,
        }))
    }
}

impl Files {
    /// Checks that every file exists and has its length, and returns the states of the files. Call
    /// it before they are verified or after everything is written. Files opened for writing also
    /// lose the mark of an unfinished download; files without any byte are created.
    ///
    /// # Errors
    /// If a file is missing, has another length, or cannot be created.
    pub fn complete(&self) -> Result<Stamps, StoreError> {
        self.create_all()?;
        self.check_lengths()?;
        if self.writable.is_some() {
            for (entry, _) in self.layout().on_disk() {
                if let Ok(file) = self.open(entry) {
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
