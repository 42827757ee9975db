//! Errors of the store.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why an operation on disk failed, in one line each.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No space left, or over a quota, for this file.
    #[error(
        "the disk is full at {file}: what was verified is kept; free some space and start again",
        file = shown(.0)
    )]
    Full(PathBuf),
    /// The files are to have all their space when they are created, and the disk has less.
    #[error(
        "{folder}: the disk has {free} bytes free, and {needed} are to be allocated: free some space, choose another folder, or do not allocate in full",
        folder = shown(.folder)
    )]
    NoSpace {
        /// The folder of the files.
        folder: PathBuf,
        /// Bytes to be allocated.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The file system or a limit of the process does not allow a file of this length.
    #[error(
        "{path} may not grow to {length} bytes: the file system or a file size limit (ulimit -f) forbids it",
        path = shown(.path)
    )]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The length it must have.
        length: u64,
    },
    /// A folder, device or other non-file is at the path of a file.
    #[error(
        "{file} is in the way: it is not a regular file; move it or choose another folder",
        file = shown(.0)
    )]
    NotAFile(PathBuf),
    /// A file is at the path of a folder.
    #[error(
        "{file} is in the way: it has to be a folder; move it or choose another folder",
        file = shown(.0)
    )]
    NotAFolder(PathBuf),
    /// A symbolic link to nothing is in the path: what is written would be created elsewhere.
    #[error(
        "{path} is a symbolic link to {target}, which does not exist: create that, or choose another folder",
        path = shown(.path),
        target = shown(.target)
    )]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// Its target, as the link has it.
        target: PathBuf,
    },
    /// A file is longer than it should be, so it is probably another one.
    #[error(
        "{path} has {found} bytes, more than the {expected} of the file to be downloaded: it is left as it is; move it or choose another folder",
        path = shown(.path)
    )]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// The length it should have.
        expected: u64,
    },
    /// A file exists at this path, and none of its content belongs to the download.
    #[error(
        "{file} exists, and nothing in it belongs to the download: it is left as it is; move it or choose another folder",
        file = shown(.0)
    )]
    Foreign(PathBuf),
    /// Something else is at the path of a symbolic link.
    #[error(
        "{path} is in the way: it has to be a symbolic link to {target}; move it or choose another folder",
        path = shown(.path),
        target = shown(.target)
    )]
    NotTheLink {
        /// The path.
        path: PathBuf,
        /// The target of the link.
        target: PathBuf,
    },
    /// Another program, or another job of this one, writes to this file.
    #[error(
        "{file} is being downloaded already, by another program: wait for it, stop it, or choose another folder",
        file = shown(.0)
    )]
    InUse(PathBuf),
    /// A symbolic link in the path leads out of the folder.
    #[error(
        "{path} passes a symbolic link that leads out of {root}: nothing is written there; remove the link or choose another folder",
        path = shown(.path),
        root = shown(.root)
    )]
    LeadsOut {
        /// The path.
        path: PathBuf,
        /// The folder.
        root: PathBuf,
    },
    /// A symbolic link in the path of a folder in which none is followed.
    #[error(
        "{file} passes a symbolic link, which is not followed here: remove the link or choose another folder",
        file = shown(.0)
    )]
    Link(PathBuf),
    /// A file to be read does not have the length it should have.
    #[error(
        "{path} has {found} bytes, but it should have {expected}",
        path = shown(.path)
    )]
    WrongLength {
        /// The file.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// The length it should have.
        expected: u64,
    },
    /// Another system call failed.
    #[error(
        "cannot {action} {path}: {source}",
        path = shown(.path)
    )]
    Io {
        /// The action that failed, as in "open".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A path on one line: names may have any characters.
fn shown(path: &Path) -> String {
    let mut text = String::new();
    for c in path.display().to_string().chars() {
        match c.is_control() {
            true => text.extend(c.escape_default()),
            false => text.push(c),
        }
    }
    text
}

impl StoreError {
    /// The error of a failed `action` (as in "open") on the file or folder `path`.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path),
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }

    /// Whether the error means that a file does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn errors_are_one_line_whatever_the_names() {
        let path = PathBuf::from("line\nfeed\x1b");
        for error in [
            StoreError::NotAFile(path.clone()),
            StoreError::WrongLength {
                path: path.clone(),
                found: 1,
                expected: 2,
            },
        ] {
            let text = error.to_string();
            assert!(text.contains("line\\nfeed\\u{1b}"), "{text}");
            assert_eq!(text.lines().count(), 1);
        }
    }

    #[test]
    fn a_full_device_is_reported_as_a_full_disk() {
        let path = Path::new("/dev/full");
        let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        let error = file.write_all(b"x").unwrap_err();
        let error = StoreError::io("write", path, error);
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
    }
}
