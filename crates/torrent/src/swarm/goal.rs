//! What the owner of a torrent is to do.

use std::time::Duration;

use hawser_manager::{PathOptions, SelectBy};

/// What the owner of a torrent is to do.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// End when everything is verified, rather than serve until stopped. A download that goes on
    /// seeding gives it up then.
    pub until_complete: bool,
    /// End after this long without progress and without a peer to wait for.
    pub give_up_after: Duration,
    /// Which side chooses paths. A downloader lets uploaders know whether they may.
    pub select_by: SelectBy,
    /// How the paths to each SCION peer are chosen and used.
    pub paths: PathOptions,
}
