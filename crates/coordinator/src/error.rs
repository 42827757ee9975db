//! Errors.

use std::path::PathBuf;

use thiserror::Error;

use crate::access::Denied;
use crate::limits::LimitError;

/// Why a stored state cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened or read.
    #[error("cannot open {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The folder cannot be made or used.
    #[error(
        "cannot use the folder {path}: {reason}; name a folder that this user may write as --state"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another process has it.
    #[error("{0} is in use by another hawser: stop that one, or name another folder as --state")]
    InUse(PathBuf),
    /// It is of a newer hawser.
    #[error("{path} has format {found}, and this hawser reads up to {newest}: use a newer hawser")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format that is known.
        newest: u64,
    },
    /// There are keys of a network, and no state that says whose they are.
    #[error(
        "there is no {path}, and {keys} has the keys of a network: restore the file from a backup, or move \
         the keys away to begin another network"
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The folder of the keys.
        keys: PathBuf,
    },
    /// It cannot be read, or an entry of it.
    #[error(
        "{path} is damaged: {reason}; restore the file from a backup, or move it away with all that is \
         beside it to begin another network"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, or with which entry.
        reason: String,
    },
}

/// Why a change is not made. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The actor may not do it.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A rate is out of bounds, or above its maximum.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// What is to be changed does not exist.
    #[error("there is no {0}")]
    Unknown(String),
    /// A value cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// It does not go together with what is there.
    #[error("{0}")]
    Conflict(String),
    /// It cannot be written to disk.
    #[error("the change cannot be stored: {0}")]
    Store(String),
}
