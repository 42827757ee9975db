//! One download at a time into the same files.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::StoreError;
use crate::files::Files;

/// Keeps others from downloading into the same files for as long as it exists. The system releases
/// it when the process ends, in whatever manner.
///
/// A file must exist to be locked. If nothing was written by the time this is dropped, what was
/// created is removed.
#[derive(Debug)]
pub struct Lock {
    files: Arc<Files>,
    /// Open, and locked if the file system knows locks.
    file: File,
    /// The file, if it did not exist before.
    created: Option<PathBuf>,
}

impl Lock {
    /// Locks the files for one download. It is the first file that is locked (flock(2)), created if
    /// it does not exist, so that nothing else is left behind; `None` if there are no files.
    pub(crate) fn acquire(files: &Arc<Files>) -> Result<Option<Self>, StoreError> {
        let Some((first, _)) = files.layout().on_disk().next() else {
            return Ok(None);
        };
        loop {
            if let Some(lock) = Self::acquire_existing(files)? {
                return Ok(Some(lock));
            }
            let file = files.create(first)?;
            let created = Some(files.path_of(first));
            if let Some(lock) = Self::of(files, first, file, created)? {
                return Ok(Some(lock));
            }
        }
    }

    /// The same if the first file exists, `None` if not.
    pub(crate) fn acquire_existing(files: &Arc<Files>) -> Result<Option<Self>, StoreError> {
        let Some((first, _)) = files.layout().on_disk().next() else {
            return Ok(None);
        };
        match files.open(first) {
            Ok(file) => Self::of(files, first, file, None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `None` if the file was removed meanwhile, by another download that ended.
    fn of(
        files: &Arc<Files>,
        entry: usize,
        file: File,
        created: Option<PathBuf>,
    ) -> Result<Option<Self>, StoreError> {
        let path = files.path_of(entry);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) => {
                return Ok(None);
            }
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(StoreError::InUse { path }),
            // Better than no download at all on a file system that knows no locks.
            Err(errno @ (Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)) => {
                tracing::warn!(path = %path.display(), %errno, "cannot be locked against other downloads");
            }
            Err(errno) => return Err(StoreError::io("lock", &path, errno.into())),
        }
        Ok(Some(Self {
            files: Arc::clone(files),
            file,
            created,
        }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.files.are_created() {
            return;
        }
        let metadata = self.file.metadata();
        if let Some(created) = &self.created
            && metadata.is_ok_and(|metadata| metadata.len() == 0)
        {
            // It fails where it was moved meanwhile.
            let _ = std::fs::remove_file(created);
        }
        self.files.remove_created_folders();
    }
}
