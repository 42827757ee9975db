//! The sink's side: what of the content is there already, and writing the rest.
//!
//! A file is written as `.NAME.hawser-part` beside its place, and renamed once all of it is there:
//! a file that it replaces is whole at any time. No list of what was verified is kept, since nothing
//! on disk is trusted anyway: a later transfer hashes every range of the part files that has been
//! written (the rest are holes), and the source compares. So a range that was written stays of use
//! when the process is killed, and also when the source's files have changed in other places.
//!
//! Ranges are not forced to disk one by one: after a power failure, what was not on disk yet is found
//! to be wrong, and sent again. [`Landing::complete`] waits for the disk once, for all files.

mod disk;
mod error;
mod existing;
mod faults;
mod finish;
mod owner;
mod part_name;
mod parts;
mod place;
mod progress;
mod skip;
mod survey;
mod taking;
mod unfinished;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_store::StoreError;

use self::disk::Disk;
pub use self::error::LandingError;
use super::manifest::Manifest;
use super::skip::Skipped;
use super::tree::{self, ChainingValue};
use crate::protocol::Choices;

/// What happens to files and links that are at the sink already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// They become those of the source.
    #[default]
    Replace,
    /// They stay.
    Keep,
    /// They stay if they are newer than those of the source.
    KeepNewer,
}

/// How content is written.
#[derive(Debug, Clone)]
pub struct LandingOptions {
    /// The `PATH` of `DST/PATH`, below the folder: a folder to write into, or the name for the only
    /// file or directory at the top of the manifest. Empty: into the folder itself.
    pub path: PathBuf,
    /// Identifies the sender, as by its key. A directory that an unfinished landing of the same sender
    /// has created at `path` is continued.
    pub sender: String,
    /// What happens to files that exist.
    pub existing: Existing,
    /// Which of owners, groups, ACLs and extended attributes are taken, if the source sends them.
    pub take: Choices,
    /// Whether [`Landing::complete`] waits until everything is on disk.
    pub sync: bool,
    /// Whether the first file that cannot be written is an error. Otherwise such files are skipped.
    pub strict: bool,
    /// Whether [`Landing::prepare`] fails if another transfer writes to one of the files, so that it
    /// can be called again later. Otherwise such files are skipped.
    pub wait_for_others: bool,
}

impl Default for LandingOptions {
    fn default() -> Self {
        Self {
            path: PathBuf::new(),
            sender: String::new(),
            existing: Existing::Replace,
            take: Choices::NONE,
            sync: true,
            strict: false,
            wait_for_others: false,
        }
    }
}

/// The content of a transfer as it is written below a folder. Any number of threads may write.
#[derive(Debug)]
pub struct Landing {
    manifest: Arc<Manifest>,
    /// `None`: nothing is written.
    disk: Option<Disk>,
    sync: bool,
    done: Mutex<Done>,
}

/// The ranges that were kept or written.
#[derive(Debug)]
struct Done {
    ranges: Vec<bool>,
    /// Bytes of the others.
    missing: u64,
}

impl Landing {
    /// Opens the folder, which is created if it does not exist, creates the directories of the
    /// manifest in it, and finds which of its files are there. No file is created or changed.
    ///
    /// # Errors
    /// If the disk is too small, or the folder cannot be written to. What concerns some of the files
    /// alone, as when something is in the way, is an error only if that is to be strict.
    pub fn prepare(
        manifest: Arc<Manifest>,
        folder: &Path,
        options: LandingOptions,
    ) -> Result<Self, LandingError> {
        let disk = Disk::prepare(&manifest, folder, &options)?;
        Ok(Self::new(manifest, Some(disk), options.sync))
    }

    /// A landing that writes nothing, to measure all but the disk.
    #[must_use]
    pub fn discard(manifest: Arc<Manifest>) -> Self {
        Self::new(manifest, None, false)
    }

    fn new(manifest: Arc<Manifest>, disk: Option<Disk>, sync: bool) -> Self {
        let missing = manifest.length();
        let ranges = vec![false; tree::count(missing) as usize];
        Self {
            manifest,
            disk,
            sync,
            done: Mutex::new(Done { ranges, missing }),
        }
    }

    /// What is transferred.
    #[must_use]
    pub const fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Bytes of content that were neither kept nor written yet.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.done().missing
    }

    /// Hashes what is there, on all cores, and passes the chaining value of each range whose bytes
    /// are all there to `each`, on this thread, in ascending order. Ends early when `each` returns
    /// `false`. To be called before the first range is kept or written.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn existing(
        &self,
        each: impl FnMut(u64, ChainingValue) -> bool,
    ) -> Result<(), LandingError> {
        match &self.disk {
            Some(disk) => Ok(disk.existing(each)?),
            None => Ok(()),
        }
    }

    /// Keeps a range that [`Landing::existing`] has reported and that is the same at the source.
    ///
    /// # Errors
    /// If a file cannot be read or written, and is not skipped. It may be called again.
    ///
    /// # Panics
    /// If there is no such range.
    pub fn keep(&self, range: u64) -> Result<(), LandingError> {
        if let Some(disk) = &self.disk {
            disk.keep(range).map_err(|error| self.failed(error))?;
        }
        self.finished(range);
        Ok(())
    }

    /// Writes a range that was verified: its `bytes` go to their files, and files that are then
    /// complete to their names. A range that was kept or written before is left as it is.
    ///
    /// # Errors
    /// If the disk is full, or a file cannot be written and is not skipped. It may be called again.
    ///
    /// # Panics
    /// If there is no such range, or it has another length.
    pub fn write_range(&self, range: u64, bytes: &[u8]) -> Result<(), LandingError> {
        let positions = tree::range(range, self.manifest.length());
        let length = positions.end - positions.start;
        assert_eq!(bytes.len() as u64, length, "bytes of range {range}");
        if let Some(disk) = &self.disk {
            let written = disk.write_range(range, bytes);
            written.map_err(|error| self.failed(error))?;
        }
        self.finished(range);
        Ok(())
    }

    /// Completes the transfer once all ranges are kept or written: creates files without content and
    /// symbolic links, sets modes and times of directories, and waits for the disk.
    ///
    /// # Errors
    /// If ranges are missing, or a system call fails.
    pub fn complete(&self) -> Result<(), LandingError> {
        match self.missing() {
            0 => {}
            missing => return Err(LandingError::Incomplete(missing)),
        }
        if let Some(disk) = &self.disk {
            disk.complete(self.sync)
                .map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// The entries that were skipped here since the last call.
    #[must_use]
    pub fn take_skipped(&self) -> Vec<Skipped> {
        self.disk.as_ref().map_or(Vec::new(), Disk::take_skipped)
    }

    /// Files and directories of which owners, groups, ACLs or extended attributes were sent, and not
    /// taken, or could not be set.
    #[must_use]
    pub fn stripped(&self) -> u64 {
        self.disk.as_ref().map_or(0, Disk::stripped)
    }

    /// Skips an entry, as the source does: nothing more of it is written.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn skip(&self, entry: usize) {
        if let Some(disk) = &self.disk {
            disk.skip_silently(entry);
        }
    }

    /// Ends the landing once the source knows that it is complete: a directory that it created at a new
    /// name counts as any other from now on. Until then a further attempt continues in it.
    pub fn settle(&self) {
        if let Some(disk) = &self.disk
            && let Err(error) = disk.place.settle()
        {
            // The same directory sent again would be merged into it.
            tracing::warn!(%error, "the mark of a finished landing stays");
        }
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finished(&self, range: u64) {
        let positions = tree::range(range, self.manifest.length());
        let mut done = self.done();
        if !std::mem::replace(&mut done.ranges[range as usize], true) {
            done.missing -= positions.end - positions.start;
        }
    }

    /// Says how much space is missing, if that is the reason.
    fn failed(&self, error: StoreError) -> LandingError {
        let (StoreError::Full(path), Some(disk)) = (&error, &self.disk) else {
            return error.into();
        };
        let free = disk.room().map_or(0, |room| room.bytes);
        LandingError::Full {
            path: path.clone(),
            missing: self.missing().saturating_sub(free).max(1),
        }
    }
}

#[cfg(test)]
mod tests;
