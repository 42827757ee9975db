//! What can go wrong on disk.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What went wrong on disk, in one line each.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StorageError {
    /// No space left, or over a quota.
    #[error(
        "the disk is full at {path}: what was verified is kept; free some space and start again"
    )]
    Full {
        /// The file being written.
        path: PathBuf,
    },
    /// The file system or a limit of the process allows no file of this length.
    #[error(
        "{path} may not grow to {length} bytes: the file system or a file size limit (ulimit -f) forbids it"
    )]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// How long it has to be.
        length: u64,
    },
    /// A folder, device or other thing stands where a file should be.
    #[error("{path} is in the way: it is no regular file; move it or choose another folder")]
    NotAFile {
        /// Where.
        path: PathBuf,
    },
    /// A file stands where a folder should be.
    #[error("{path} is in the way: a folder has to be there; move it or choose another folder")]
    NotAFolder {
        /// Where.
        path: PathBuf,
    },
    /// A file is longer than the torrent says, so it is likely another one.
    #[error(
        "{path} has {found} bytes, more than the {expected} of the torrent: it is left as it is; move it or choose another folder"
    )]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// The length in the torrent.
        expected: u64,
    },
    /// A file of this name is there, and nothing in it is the torrent's.
    #[error(
        "{path} is there, and no piece in it is the torrent's: it is left as it is; move it or choose another folder"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Something else stands where a symbolic link of the torrent should be.
    #[error(
        "{path} is in the way: a symbolic link to {target} has to be there; move it or choose another folder"
    )]
    NotTheLink {
        /// Where.
        path: PathBuf,
        /// Where the link leads.
        target: PathBuf,
    },
    /// Another program, or another download of this one, writes to the file.
    #[error(
        "{path} is being downloaded already, by another program: wait for it, stop it, or choose another folder"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A symbolic link on the way leads out of the folder.
    #[error(
        "{path} passes a symbolic link that leads out of {root}: nothing is written there; remove the link or choose another folder"
    )]
    LeadsOut {
        /// The file's path.
        path: PathBuf,
        /// The download folder.
        root: PathBuf,
    },
    /// A file to be read has another length than the torrent says.
    #[error("{path} has {found} bytes, but the torrent says {expected}")]
    WrongLength {
        /// The file.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// The length in the torrent.
        expected: u64,
    },
    /// Another failure of the system.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl StorageError {
    /// Whether a file is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The error of trying to `action` `path`.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_full_device_is_told_as_a_full_disk() {
        let path = Path::new("/dev/full");
        let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        let error = file.write_all(b"x").unwrap_err();
        let error = StorageError::io("write", path, error);
        assert!(matches!(error, StorageError::Full { .. }), "{error}");
    }
}
