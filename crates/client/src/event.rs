//! Events for the owner of the torrents.

use std::path::PathBuf;

use hawser_torrent::Metainfo;
use tokio::sync::oneshot;

/// What a task reports of its torrent.
#[derive(Debug)]
pub(crate) enum Event {
    /// The metadata of a magnet link is there: a `.torrent` file to be kept.
    Resolved {
        metainfo: Box<Metainfo>,
        bytes: Vec<u8>,
        /// Gets the folder to which the content is fetched, once it is kept.
        kept: oneshot::Sender<Result<PathBuf, String>>,
    },
    /// The content on disk is verified.
    Checked { complete: bool },
    /// The download is complete.
    Completed,
    /// The program that is run for its completion has been begun.
    Announced,
    /// A file or folder has another name, or not, for this reason.
    Renamed(Result<(), String>),
    /// Other files cannot be downloaded before it is run again.
    Unselected,
}
