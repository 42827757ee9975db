//! Why a file of links cannot be used.

use std::io;
use std::path::PathBuf;

use hawser_limit::Remote;

/// A file of links that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkFileError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its content is not valid. The text names the entry and the remedy.
    #[error("{path}: {reason}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl LinkFileError {
    /// Whether there is no such file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Links whose limits cannot be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// Two entries are for the same packets.
    #[error("{first} and {second} are both for {remote}: remove one, or tell them apart by port")]
    Twice {
        /// The far end.
        remote: Remote,
        /// The first entry.
        first: String,
        /// The second entry.
        second: String,
    },
    /// An entry names an interface of an AS, and no topology was given.
    #[error("{entry} is for interface {interface}: say in which topology.json it is (--from)")]
    NoTopology {
        /// The entry.
        entry: String,
        /// The interface's number.
        interface: u16,
    },
    /// The AS has no such interface.
    #[error("{entry} is for interface {interface}, which {isd_as} does not have")]
    NoInterface {
        /// The entry.
        entry: String,
        /// The interface's number.
        interface: u16,
        /// The AS.
        isd_as: String,
    },
}
