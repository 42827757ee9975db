//! Part files: created, locked, and closed when too many are open.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;

use hawser_file::LockedFile;
use hawser_store::{Folder, Found, StoreError};

use super::disk::{Disk, lock};
use super::progress::{Part, Progress};

/// Most part files held open at once: half of the usual limit of 1024 open files.
const MAX_OPEN: usize = 512;

impl Disk {
    /// The part file of a file in several ranges: opened and locked, with its full length.
    pub(super) fn part_file<'a>(
        &self,
        entry: usize,
        progress: &'a mut Progress,
    ) -> Result<&'a File, StoreError> {
        let known = match progress.part {
            Part::Open(..) => None,
            Part::Closed(identity) => Some(Some(identity)),
            Part::Absent => Some(None),
        };
        if let Some(known) = known {
            self.close_oldest();
            let (file, identity) = self.open_part(entry, known)?;
            progress.part = Part::Open(file, identity);
            lock(&self.open).push_back(entry);
        }
        match &progress.part {
            Part::Open(file, _) => Ok(file),
            Part::Absent | Part::Closed(_) => unreachable!("it was opened"),
        }
    }

    /// Opens the part file of an entry; `known` is its identity if it was open before.
    fn open_part(
        &self,
        entry: usize,
        known: Option<(u64, u64)>,
    ) -> Result<(LockedFile, (u64, u64)), StoreError> {
        let folder = self.place.folder_of(entry)?;
        let name = self.place.part_name_of(entry);
        let path = self.part_path(entry, &name);
        let (file, _) = self.create_part(entry, &folder, &name)?;
        let identity = Found::of(&file, &path)?.identity;
        if known.is_some_and(|known| known != identity) {
            return Err(StoreError::InUse(path));
        }
        if known.is_none() {
            // No space is reserved: a later transfer takes everything but holes as written, and
            // ext4 reports reserved space as data once it was read.
            let failed = |error| StoreError::io("grow", &path, error);
            file.set_len(self.entry(entry).size()).map_err(failed)?;
        }
        Ok((file, identity))
    }

    /// Creates or opens the part file of an entry, and locks it. Returns whether it is new.
    pub(super) fn create_part(
        &self,
        entry: usize,
        folder: &Folder,
        name: &OsStr,
    ) -> Result<(LockedFile, bool), StoreError> {
        let path = || self.place.path_of(entry);
        // Until it has its mode, only this user reads it.
        if let Some(file) = folder.create_new(name, 0o600)? {
            return Ok((self.lock_part(file, entry)?, true));
        }
        let in_use = || StoreError::InUse(path());
        let opened = match folder.open_name(name, true) {
            // It got its last permissions, and not its name.
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
                folder.set_mode(name, 0o600)?;
                folder.open_name(name, true)
            }
            opened => opened,
        };
        let file = self.lock_part(opened?.ok_or_else(in_use)?, entry)?;
        // Another transfer may have completed the file before it was locked here.
        let found = Found::of(&file, &path())?;
        match folder.find(name)? {
            Some(at_name) if at_name.identity == found.identity => Ok((file, false)),
            _ => Err(in_use()),
        }
    }

    fn lock_part(&self, file: File, entry: usize) -> Result<LockedFile, StoreError> {
        let is_locked = match self.without_locks.load(Ordering::Relaxed) {
            true => return Ok(LockedFile::new(file)),
            false => hawser_store::lock(&file, &self.place.path_of(entry))?,
        };
        if !is_locked && !self.without_locks.swap(true, Ordering::Relaxed) {
            let path = self.place.root().path().display();
            tracing::warn!(%path, "files cannot be locked against other transfers");
        }
        Ok(LockedFile::new(file))
    }

    /// Closes the part file that has been open for longest, if too many are open. One in use by
    /// another thread stays open.
    fn close_oldest(&self) {
        let mut open = lock(&self.open);
        if open.len() < MAX_OPEN {
            return;
        }
        for at in 0..open.len() {
            let Some(known) = self.known(open[at]) else {
                continue;
            };
            if let Ok(mut progress) = known.try_lock()
                && let Part::Open(_, identity) = progress.part
            {
                progress.part = Part::Closed(identity);
                open.remove(at);
                return;
            }
        }
    }
}
