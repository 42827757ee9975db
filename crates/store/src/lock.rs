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
    /// Locks the files for one download. It is the first file that is locked (flock(2)), so that
    /// nothing else is left behind. If it does not exist it is created, or else there is no lock, as
    /// where there are no files.
    pub(crate) fn acquire(files: &Arc<Files>, create: bool) -> Result<Option<Self>, StoreError> {
        let (Some(writable), Some((first, entry))) =
            (&files.writable, files.layout().on_disk().next())
        else {
            return Ok(None);
        };
        let path = files.path_of(first);
        loop {
            let (file, created) = match files.open(first) {
                Err(error) if error.is_not_found() && create => {
                    let file = writable.folder.create_file(&entry.path)?;
                    (file, Some(path.clone()))
                }
                Err(error) if error.is_not_found() => return Ok(None),
                file => (file?, None),
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // It was removed meanwhile, by another download that ended.
                Ok(()) if file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) => continue,
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(StoreError::InUse(path)),
                // Better than no download at all on a file system that knows no locks.
                Err(errno @ (Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)) => {
                    tracing::warn!(path = %path.display(), %errno, "cannot be locked against other downloads");
                }
                Err(errno) => return Err(StoreError::io("lock", &path, errno.into())),
            }
            return Ok(Some(Self {
                files: Arc::clone(files),
                file,
                created,
            }));
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let Some(writable) = &self.files.writable else {
            return;
        };
        if *writable.created() {
            return;
        }
        let metadata = self.file.metadata();
        if let Some(created) = &self.created
            && metadata.is_ok_and(|metadata| metadata.len() == 0)
        {
            // It fails where it was moved meanwhile.
            let _ = std::fs::remove_file(created);
        }
        writable.folder.remove_created();
    }
}
