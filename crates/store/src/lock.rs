//! A lock that prevents two downloads into the same files at once.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_file::LockedFile;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::StoreError;
use crate::files::{Files, Writable};

/// Prevents other downloads into the same files while it exists. The system releases it when the
/// process ends for any reason.
///
/// A file must exist to be locked. If nothing was written until this is dropped, files and folders
/// created for the lock are removed. So is the part file if nothing in it is needed.
#[derive(Debug)]
pub struct Lock {
    files: Arc<Files>,
    first: Option<Locked>,
    parts: Option<Locked>,
}

/// A file that is open, and locked if its file system supports locks.
#[derive(Debug)]
struct Locked {
    file: LockedFile,
    path: PathBuf,
    /// Whether it did not exist before.
    is_created: bool,
}

impl Lock {
    /// Locks the files for one download. Only the first file, and the part file if there is one, are
    /// locked (flock(2)), so that nothing else is left behind. Those that do not exist are created
    /// if `create` is true: the first file if it is selected, the part file if any is not. The
    /// result is `None` if there is nothing to lock.
    ///
    /// Downloads with different selections meet at the part file: one that has selected everything
    /// locks the first file, and the part file if it exists; any other locks the part file, and the
    /// first file if it exists.
    pub(crate) fn acquire(files: &Arc<Files>, create: bool) -> Result<Option<Self>, StoreError> {
        let (first, parts) = (lock_first(files, create)?, lock_parts(files, create)?);
        Ok((first.is_some() || parts.is_some()).then(|| Self {
            files: Arc::clone(files),
            first,
            parts,
        }))
    }

    /// Locks what is not locked yet.
    pub(crate) fn extend(&mut self, create: bool) -> Result<(), StoreError> {
        if self.first.is_none() {
            self.first = lock_first(&self.files, create)?;
        }
        if self.parts.is_none() {
            self.parts = lock_parts(&self.files, create)?;
        }
        Ok(())
    }
}

/// Locks the first file.
fn lock_first(files: &Files, create: bool) -> Result<Option<Locked>, StoreError> {
    let (Some(writable), Some((first, _))) = (&files.writable, files.layout().on_disk().next())
    else {
        return Ok(None);
    };
    let place = files.own_place(first);
    if !writable.parts.holds(first) {
        let writes = || files.open_for_writing(first);
        return lock_at(writable, &place, create, writes);
    }
    // It may be another's, which is no obstacle.
    match writable.folder.metadata(&place) {
        Ok(Some(found)) if found.is_file() => {
            let writes = || writable.folder.open_file(&place);
            lock_at(writable, &place, false, writes)
        }
        _ => Ok(None),
    }
}

/// Locks the part file.
fn lock_parts(files: &Files, create: bool) -> Result<Option<Locked>, StoreError> {
    let Some(writable) = &files.writable else {
        return Ok(None);
    };
    let path = &writable.parts.path;
    let create = create && writable.parts.holds_any();
    lock_at(writable, path, create, || writable.folder.open_file(path))
}

/// Locks the file at `path`, which `writes` opens for writing.
fn lock_at(
    Writable { folder, .. }: &Writable,
    path: &Path,
    create: bool,
    writes: impl Fn() -> Result<File, StoreError>,
) -> Result<Option<Locked>, StoreError> {
    let full = folder.path().join(path);
    loop {
        let (file, is_created) = match folder.read_file(path) {
            Err(error) if error.is_not_found() && create => (folder.create_file(path)?, true),
            Err(error) if error.is_not_found() => return Ok(None),
            file => (file?, false),
        };
        let (file, is_locked) = match lock(&file, &full)? {
            true => (file, true),
            false => lock_for_writing(file, &full, &writes)?,
        };
        // Another download that ended has removed the file meanwhile.
        if is_locked && file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) {
            continue;
        }
        // On a file system without locks, downloading without one is better than failing.
        if !is_locked {
            tracing::warn!(path = %full.display(), "cannot be locked against other downloads");
        }
        return Ok(Some(Locked {
            file: LockedFile::new(file),
            path: full,
            is_created,
        }));
    }
}

/// Locks the file at `path`, which could not be locked as `file` is open for reading only: NFS locks
/// only files that are open for writing. Returns whether it is locked; complete files may be on
/// read-only media, which nobody else can write to either.
fn lock_for_writing(
    file: File,
    path: &Path,
    writes: impl Fn() -> Result<File, StoreError>,
) -> Result<(File, bool), StoreError> {
    let Ok(writes) = writes() else {
        return Ok((file, false));
    };
    let is_locked = lock(&writes, path)?;
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

/// Removes a file of this download.
fn remove(path: &Path) {
    // Fails if there is none, or it was moved meanwhile.
    let _ = std::fs::remove_file(path);
}

impl Drop for Lock {
    fn drop(&mut self) {
        let Some(writable) = &self.files.writable else {
            return;
        };
        // Waits until no bytes are moved any more.
        let created = *writable.created();
        // It may have been created after the lock.
        let parts = writable.folder.path().join(&writable.parts.path);
        let is_empty = |found: Metadata| found.is_file() && found.len() == 0;
        if !writable.parts.holds_any() || parts.symlink_metadata().is_ok_and(is_empty) {
            remove(&parts);
        }
        let mut entries = self.files.layout().on_disk();
        let entry = entries.next().map(|(first, _)| first);
        let is_unselected = entry.is_some_and(|first| writable.parts.holds(first));
        if let Some(first) = &self.first
            && (!created || is_unselected)
            && first.is_created
            && first.file.metadata().is_ok_and(|found| found.len() == 0)
        {
            // It may have got another name.
            let place = entry.map(|entry| self.files.own_place(entry));
            remove(&place.map_or(first.path.clone(), |place| self.files.root().join(place)));
        }
        if !created {
            writable.folder.remove_created();
        }
    }
}
