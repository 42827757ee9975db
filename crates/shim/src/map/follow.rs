//! A map's file that is read anew when it changes.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file::{MapFile, MapFileError};

/// Reads a map's file, and again after each change of it. Without the file the map is empty.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// The file when it was read last; the inner `None` if there was none.
    seen: Option<Option<Stamp>>,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    /// A file that is written anew by a rename has another one.
    inode: (u64, u64),
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self {
            inode: (found.dev(), found.ino()),
            len: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

impl Follower {
    /// Follows the file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            seen: None,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file if it changed since the last call; `None` if it did not. The first call reads
    /// it always. Changes of policies' files are not seen.
    ///
    /// # Errors
    /// When the file cannot be used: once for each change. The former entries should stay in force.
    pub fn poll(&mut self) -> Option<Result<MapFile, MapFileError>> {
        // Before reading: a change meanwhile is seen by the next call.
        let stamp = fs::metadata(&self.path).ok().map(|found| Stamp::of(&found));
        if self.seen.replace(stamp) == Some(stamp) {
            return None;
        }
        Some(match MapFile::read(&self.path) {
            Err(error) if error.is_missing() => MapFile::parse(&self.path, ""),
            read => read,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_change_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.toml");
        let mut follower = Follower::new(&path);
        let mut poll = || {
            let read = follower.poll()?;
            Some(
                read.map(|file| file.entries().len())
                    .map_err(|error| error.to_string()),
            )
        };
        // No file is an empty map.
        assert_eq!(poll(), Some(Ok(0)));
        assert_eq!(poll(), None);
        let write = |text: &str| {
            // As commands write files: another file of the same name.
            let new = folder.path().join("new");
            fs::write(&new, text).unwrap();
            fs::rename(&new, &path).unwrap();
        };
        write("[destinations]\na = \"1-ff00:0:4\"\n");
        assert_eq!(poll(), Some(Ok(1)));
        assert_eq!(poll(), None);
        // Of the same length, and within the same tick of the clock.
        write("[destinations]\na = \"1-ff00:0:4'\n");
        assert!(poll().unwrap().unwrap_err().contains("map.toml:2: "));
        assert_eq!(poll(), None);
        let other = folder.path().join("other");
        fs::write(
            &other,
            "[destinations]\na = \"1-ff00:0:4\"\nb = \"1-ff00:0:4\"\n",
        )
        .unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert_eq!(poll(), Some(Ok(2)));
        fs::remove_file(&path).unwrap();
        assert_eq!(poll(), Some(Ok(0)));
        assert_eq!(poll(), None);
    }
}
