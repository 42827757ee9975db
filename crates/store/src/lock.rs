//! A lock that prevents two downloads into the same files at once.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_file::LockedFile;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::StoreError;
use crate::files::Files;

/// Prevents other downloads into the same files while it exists. The system releases it when the
/// process ends for any reason.
///
/// A file must exist to be locked. If nothing was written until this is dropped, files and folders
/// created for the lock are removed.
#[derive(Debug)]
pub struct Lock {
    files: Arc<Files>,
    /// Open, and locked if the file system supports locks.
    file: LockedFile,
    /// The path of the file, if it did not exist before.
    created: Option<PathBuf>,
}

impl Lock {
    /// Locks the files for one download. Only the first file is locked (flock(2)), so that nothing
    /// else is left behind. If it does not exist, it is created if `create` is true; otherwise the
    /// result is `None`, as for a layout without files.
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
            let (file, is_locked) = match lock(&file, &path)? {
                true => (file, true),
                false => lock_for_writing(files, first, file)?,
            };
            // Another download that ended has removed the file meanwhile.
            if is_locked && file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) {
                continue;
            }
            // On a file system without locks, downloading without one is better than failing.
            if !is_locked {
                tracing::warn!(path = %path.display(), "cannot be locked against other downloads");
            }
            return Ok(Some(Self {
                files: Arc::clone(files),
                file: LockedFile::new(file),
                created,
            }));
        }
    }
}

/// Locks the file of an entry, which could not be locked as `file` is open for reading only: NFS
/// locks only files that are open for writing. Returns whether it is locked; complete files may be
/// on read-only media, which nobody else can write to either.
fn lock_for_writing(files: &Files, entry: usize, file: File) -> Result<(File, bool), StoreError> {
    let Ok(writes) = files.open_for_writing(entry) else {
        return Ok((file, false));
    };
    let is_locked = lock(&writes, &files.path_of(entry))?;
    Ok((writes, is_locked))
}

/// Locks the open file `file`, which is at `path`, until it is closed (flock(2)). `false` if its file
/// system has no locks, or none for a file that is open like this one.
///
/// # Errors
/// [`StoreError::InUse`] if it is locked already, also by this process.
pub fn lock(file: &File, path: &Path) -> Result<bool, StoreError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Err(StoreError::InUse(path.to_owned())),
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::BADF) => {
            Ok(false)
        }
        Err(errno) => Err(StoreError::io("lock", path, errno.into())),
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
            // Fails if the file was moved meanwhile.
            let _ = std::fs::remove_file(created);
        }
        writable.folder.remove_created();
    }
}
