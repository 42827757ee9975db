//! Files that are locked while they are open.

use std::fs::File;
use std::ops::Deref;

/// A file that is locked (flock(2)), and is unlocked when it is dropped.
///
/// Closing it would not be enough: the lock lasts while any copy of the descriptor is open, and a process
/// that another thread is starting has one until it runs its program.
#[derive(Debug)]
pub struct LockedFile(File);

impl LockedFile {
    /// Takes over an open file that is locked, or whose file system has no locks.
    #[must_use]
    pub const fn new(file: File) -> Self {
        Self(file)
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Fails where there are no locks.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::TryLockError;

    use super::*;

    #[test]
    fn a_lock_ends_although_a_process_being_started_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        file.lock().unwrap();
        let locked = LockedFile::new(file);
        // As a child has it between fork and exec.
        let inherited = locked.try_clone().unwrap();
        let again = File::open(&path).unwrap();
        assert!(matches!(again.try_lock(), Err(TryLockError::WouldBlock)));
        drop(locked);
        again.try_lock().unwrap();
        drop(inherited);
    }
}
