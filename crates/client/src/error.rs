//! Why a command to the torrents of a host was not carried out.

use thiserror::Error;

use crate::fetch::FetchError;
use crate::state::StateError;
use crate::torrents::CommandError;

/// Why a command was not carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It is refused.
    #[error(transparent)]
    Refused(#[from] CommandError),
    /// What is to be added is not a torrent.
    #[error("{0}")]
    Invalid(String),
    /// The `.torrent` file at a URL cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It holds, but is not on disk: saving is tried again.
    #[error("it is done, but cannot be stored now: {0}")]
    NotSaved(String),
    /// A torrent is still there. The text says why.
    #[error("not removed: {0}")]
    NotRemoved(String),
    /// What is kept cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The torrents have ended.
    #[error("the daemon is stopping")]
    Stopping,
}
