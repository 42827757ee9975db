//! Errors of manifests.

use std::path::PathBuf;

use thiserror::Error;

use crate::protocol::DecodeError;

/// Why a manifest is invalid. Names are quoted: they may come from another host.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestError {
    /// The message ends too early, or has bytes behind its fields.
    #[error("an entry of the manifest is malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// A path that is absolute, too long, or has an invalid component.
    #[error("{0:?} is not a path below the folder of the transfer")]
    Path(PathBuf),
    /// A name that the sink uses for unfinished files.
    #[error("{0:?} has a name of unfinished files of hawser: rename or remove it at the source")]
    Reserved(PathBuf),
    /// An entry whose directory is not in the manifest before it.
    #[error("{0:?} is not below a directory of the manifest")]
    NoDirectory(PathBuf),
    /// Two entries have the same path.
    #[error("{0:?} is in the manifest twice")]
    Repeated(PathBuf),
    /// More mode bits than there are.
    #[error("{path:?} has the invalid mode {mode:o}")]
    Mode {
        /// The entry.
        path: PathBuf,
        /// Its mode.
        mode: u64,
    },
    /// A modification time with too many nanoseconds.
    #[error("{0:?} has an invalid modification time")]
    Modified(PathBuf),
    /// A hard link of what is no file before it, or with content of its own.
    #[error("{0:?} is a hard link of something that is no file before it, or has content")]
    HardLink(PathBuf),
    /// An owner that is none, or an extended attribute that is not carried.
    #[error("{0:?} has an owner or an extended attribute that is not carried")]
    Attributes(PathBuf),
    /// Extents that are empty, too many, or beyond the size of the file.
    #[error("{0:?} has extents that do not fit its size")]
    Extents(PathBuf),
    /// Sizes that overflow 62 bits, each or in all.
    #[error("{0:?} is too large: files have up to 2^62 - 1 bytes in all")]
    Size(PathBuf),
    /// A symbolic link that is absolute or leads out of the folder.
    #[error("the symbolic link {path:?} leads out of the folder of the transfer, to {target:?}")]
    LeadsOut {
        /// The link.
        path: PathBuf,
        /// What it leads to.
        target: PathBuf,
    },
    /// More entries than are handled.
    #[error("the manifest is larger than {0} bytes: transfer the folders in it one by one")]
    TooLarge(u64),
    /// The manifests of the peer's transfers take more memory than the others leave to it.
    #[error(
        "this host has no memory left for the list of files, beside those of other transfers: try \
         again when they have ended, or transfer the folders in it one by one"
    )]
    NoMemory,
    /// The end of the manifest does not match its entries.
    #[error("the manifest has {found} {what}, but {announced} were announced")]
    Count {
        /// What was counted.
        what: &'static str,
        /// Number at the end of the manifest.
        announced: u64,
        /// Number in the entries.
        found: u64,
    },
    /// The hash at the end of the manifest does not match its entries.
    #[error("the hash of the manifest does not match its entries")]
    Hash,
}
