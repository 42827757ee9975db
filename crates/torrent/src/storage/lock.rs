//! One download at a time into the same files.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Files, StorageError};

/// Keeps others from downloading into the same files for as long as it exists. The system takes it
/// back when the process ends, however that comes.
///
/// A file has to be there to be locked. When nothing was written by the time this is dropped, what
/// was created is removed.
#[derive(Debug)]
pub(crate) struct Lock {
    files: Arc<Files>,
    /// Open, and locked where the file system knows locks.
    file: File,
    /// The file, if it was not there before.
    created: Option<PathBuf>,
}

impl Files {
    /// Locks the files for one download. It is the first file that is locked (flock(2)), created if
    /// it is not there, so that nothing else is left behind; `None` when there are no files.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another download has the lock.
    pub fn lock(self: &Arc<Self>) -> Result<Option<Lock>, StorageError> {
        let Some(first) = self.on_disk().next() else {
            return Ok(None);
        };
        loop {
            if let Some(lock) = self.lock_if_there()? {
                return Ok(Some(lock));
            }
            let file = self.create(first)?;
            let created = Some(self.path_of(first));
            if let Some(lock) = self.lock_file(first, file, created)? {
                return Ok(Some(lock));
            }
        }
    }

    /// The same, if the first file is there; `None` else.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another download has the lock.
    pub fn lock_if_there(self: &Arc<Self>) -> Result<Option<Lock>, StorageError> {
        let Some(first) = self.on_disk().next() else {
            return Ok(None);
        };
        match self.open_apart(first) {
            Ok(file) => self.lock_file(first, file, None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `None` when the file was removed meanwhile, by another download that ended.
    fn lock_file(
        self: &Arc<Self>,
        entry: usize,
        file: File,
        created: Option<PathBuf>,
    ) -> Result<Option<Lock>, StorageError> {
        let path = self.path_of(entry);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) => {
                return Ok(None);
            }
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(StorageError::InUse { path }),
            // Better than no download at all on a file system that knows no locks.
            Err(errno @ (Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)) => {
                tracing::warn!(path = %path.display(), %errno, "cannot be locked against other downloads");
            }
            Err(errno) => return Err(StorageError::io("lock", &path, errno.into())),
        }
        Ok(Some(Lock {
            files: Arc::clone(self),
            file,
            created,
        }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.files.has_room() {
            return;
        }
        let metadata = self.file.metadata();
        if let Some(created) = &self.created
            && metadata.is_ok_and(|metadata| metadata.len() == 0)
        {
            // It may have been moved away meanwhile.
            let _ = std::fs::remove_file(created);
        }
        self.files.remove_new_folders();
    }
}
