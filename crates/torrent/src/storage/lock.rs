//! One download at a time into the same files.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Files, StorageError};

/// Keeps others from downloading into the same files for as long as it exists. The system takes it
/// back when the process ends, however that comes.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "closing it unlocks it")] File);

impl Files {
    /// Locks the files for one download. It is the first file that is locked (flock(2)), created
    /// if it is not there, so that nothing else is left behind.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another download has the lock.
    pub fn lock(&self) -> Result<Option<Lock>, StorageError> {
        match self.on_disk().next() {
            Some(first) => self.lock_file(first, self.create(first)?),
            None => Ok(None),
        }
    }

    /// The same, if the first file is there; `None` else.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another download has the lock.
    pub fn lock_if_there(&self) -> Result<Option<Lock>, StorageError> {
        let Some(first) = self.on_disk().next() else {
            return Ok(None);
        };
        match self.open_apart(first) {
            Ok(file) => self.lock_file(first, file),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn lock_file(&self, entry: usize, file: File) -> Result<Option<Lock>, StorageError> {
        let path = self.path_of(entry);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(Errno::WOULDBLOCK) => Err(StorageError::InUse { path }),
            // Better than no download at all on a file system that knows no locks.
            Err(errno @ (Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)) => {
                tracing::warn!(path = %path.display(), %errno, "cannot be locked against other downloads");
                Ok(None)
            }
            Err(errno) => Err(StorageError::io("lock", &path, errno.into())),
        }
    }
}
