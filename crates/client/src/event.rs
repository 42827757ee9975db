//! Events for the owner of the torrents.

use hawser_torrent::Metainfo;
use tokio::sync::oneshot;

/// What a task reports of its torrent.
#[derive(Debug)]
pub(crate) enum Event {
    /// The metadata of a magnet link is there: a `.torrent` file to be kept.
    Resolved {
        metainfo: Box<Metainfo>,
        bytes: Vec<u8>,
        /// Whether it is kept: the content is fetched then.
        kept: oneshot::Sender<Result<(), String>>,
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
