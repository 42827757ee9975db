//! Whether a file has changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one state of a file from another: device, inode (a file that is written anew by a rename has
/// another one), size in bytes, and the times of the last write and of the last change of its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    inode: (u64, u64),
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The state of a file; `None` if there is none, or if it cannot be looked at. A reader takes the stamp
    /// before it reads the file: a change in between then shows in the next stamp.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            inode: (found.dev(), found.ino()),
            len: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PUBLIC, write};

    #[test]
    fn a_file_that_was_replaced_or_removed_has_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert_eq!(Stamp::of(&file), None);
        write(&file, b"one", PUBLIC).unwrap();
        let first = Stamp::of(&file);
        assert!(first.is_some());
        assert_eq!(Stamp::of(&file), first);
        // Of the same length.
        write(&file, b"two", PUBLIC).unwrap();
        assert_ne!(Stamp::of(&file), first);
        fs::remove_file(&file).unwrap();
        assert_eq!(Stamp::of(&file), None);
    }
}
