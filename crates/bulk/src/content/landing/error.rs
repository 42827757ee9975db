//! Errors of landings.

use std::path::PathBuf;

use hawser_store::StoreError;
use thiserror::Error;

/// Why content cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LandingError {
    /// The disk has too little space.
    #[error(
        "the disk is full at {path}: at least {missing} more bytes are needed; what was verified is kept; free some space and start again"
    )]
    Full {
        /// The folder or file.
        path: PathBuf,
        /// Bytes that are missing.
        missing: u64,
    },
    /// The file system has no room for as many files.
    #[error(
        "the file system of {path} has no room for {missing} of the files (inodes): remove some files and start again"
    )]
    TooManyFiles {
        /// The folder.
        path: PathBuf,
        /// Files for which there is no room.
        missing: u64,
    },
    /// The path in the destination is not one below its folder.
    #[error(
        "{0:?} is not a path below the folder of the receiver: use a relative one without `..`"
    )]
    Path(PathBuf),
    /// The mark of an unfinished directory is damaged.
    #[error(
        "{path} is damaged, which says whose unfinished transfer the folder beside it is: remove {path}, and the folder too if it is yours and is to be received anew",
        path = .0.display()
    )]
    Mark(PathBuf),
    /// Ranges were neither kept nor written.
    #[error("{0} bytes of the content are missing")]
    Incomplete(u64),
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LandingError {
    /// Whether space has to be freed before the transfer can continue.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(
            self,
            Self::Full { .. } | Self::TooManyFiles { .. } | Self::Store(StoreError::Full(_))
        )
    }
}
