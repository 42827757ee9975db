//! Errors of downloads and seeders.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_store::StoreError;
use thiserror::Error;
use tokio::task::JoinError;

use crate::metainfo::InfoHash;
use crate::selection::SelectionError;

/// From where content can be fetched. Displayed as an address or a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContentSource {
    /// A peer.
    Peer(PeerAddr),
    /// A web seed (BEP 19), by its URL.
    WebSeed(String),
}

impl fmt::Display for ContentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(peer) => peer.fmt(f),
            Self::WebSeed(url) => url.fmt(f),
        }
    }
}

/// Why a download failed, in one line each. Peers and web seeds are listed with their reasons.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// [`Download::stop`](crate::Download::stop) was called before everything was verified.
    #[error("the download was stopped; what was verified is kept")]
    Stopped,
    /// The session has the torrent already.
    #[error("the torrent {0} is there already")]
    Duplicate(InfoHash),
    /// No peers were given, and the torrent has no web seed in use.
    #[error("there is no peer to download from: name at least one")]
    NoPeers,
    /// The selection of files does not fit the torrent.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The download folder or a file in it cannot be used, or the disk is full.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no path to any of the peers.
    #[error("no path to any peer: {}", listed(.0))]
    NoPath(Vec<(ContentSource, String)>),
    /// No peer could be reached for this long.
    #[error("no peer could be reached for {} s; what was verified is kept: {}", .0.as_secs(), listed(.1))]
    NoPeer(Duration, Vec<(ContentSource, String)>),
    /// Peers are connected, but none has sent a block or had a piece missing here for this long.
    #[error("gave up after {} s without progress; what was verified is kept: {}", .0.as_secs(), listed(.1))]
    NoProgress(Duration, Vec<(ContentSource, String)>),
    /// All peers are connected or dropped, and none has, or will ever get, the missing pieces.
    #[error("no peer has the missing pieces; what was verified is kept: {}", listed(.0))]
    Incomplete(Vec<(ContentSource, String)>),
    /// All peers were dropped for breaking the protocol or sending wrong data.
    #[error("no peer is left: {}", listed(.0))]
    AllDropped(Vec<(ContentSource, String)>),
    /// The endpoint was closed.
    #[error("the endpoint was closed while downloading")]
    EndpointClosed,
    /// A defect in this program.
    #[error("the download broke off: {0}")]
    Internal(String),
}

/// Why other files could not be selected, in one line each. The selection is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The selection does not fit the torrent.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// Something is in the way of a file, or a file cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Everything that was selected is verified.
    #[error(
        "selecting files after a download is complete is not supported yet: start it again with the other selection"
    )]
    Complete,
    /// The download has ended.
    #[error("the download has ended")]
    Ended,
}

/// Why a file or folder did not get another name, in one line each.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RenameError {
    /// Something has that name, or the system refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The download has ended.
    #[error("the download has ended")]
    Ended,
}

impl From<JoinError> for DownloadError {
    fn from(error: JoinError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Most peers and web seeds named in a message.
const MAX_LISTED: usize = 8;

pub(crate) fn listed<S: fmt::Display>(sources: &[(S, String)]) -> String {
    let named = sources.iter().take(MAX_LISTED);
    let named = named.map(|(source, why)| format!("{source} ({why})"));
    let named = named.collect::<Vec<_>>().join(", ");
    match sources.len().saturating_sub(MAX_LISTED) {
        0 => named,
        more => format!("{named}, and {more} more"),
    }
}

/// Why content cannot be seeded, in one line each.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SeedError {
    /// A file is missing, has another length, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session has the torrent already.
    #[error("the torrent {0} is there already")]
    Duplicate(InfoHash),
    /// The content does not match the torrent.
    #[error(
        "{content} is not what the torrent describes: {wrong} of {pieces} pieces differ, the first in {file}"
    )]
    Differs {
        /// The content.
        content: PathBuf,
        /// Number of pieces that differ.
        wrong: u32,
        /// Number of pieces in all.
        pieces: u32,
        /// The file in which the first of them begins.
        file: PathBuf,
    },
    /// The endpoint was closed.
    #[error("the endpoint was closed while seeding")]
    EndpointClosed,
    /// A defect in this program.
    #[error("the seeder broke off: {0}")]
    Internal(String),
}
