//! Why the torrents of a host do not run, or a command to them was not carried out.

use std::io;
use std::path::PathBuf;

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
    /// A file has the name of before. The text says why.
    #[error("not renamed: {0}")]
    NotRenamed(String),
    /// What is kept cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The torrents have ended.
    #[error("the daemon is stopping")]
    Stopping,
}

/// Why the torrents of a daemon cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The torrents cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The folder to be watched cannot be read.
    #[error(
        "cannot watch {folder}: {source}: make the folder, or name another one with --watch-dir"
    )]
    Watch {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program for completed torrents cannot be run.
    #[error("cannot run {program}: {source}: name a program that can be run with --on-complete")]
    OnComplete {
        /// The program.
        program: PathBuf,
        /// Why it cannot.
        source: io::Error,
    },
}
