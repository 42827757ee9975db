//! What the owner of a torrent is to do.

use std::time::Duration;

use hawser_manager::SelectBy;
use hawser_path::{Policy, Select, SlotOptions};

/// What the owner of a torrent is to do.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// End when everything is verified, rather than serve until stopped. A download that goes on
    /// seeding gives it up then.
    pub until_complete: bool,
    /// End after this long without progress and without a peer to wait for.
    pub give_up_after: Duration,
    /// Which of the offered paths are used.
    pub select: Select,
    /// Most paths used at once to each peer.
    pub paths: usize,
    /// Which side chooses paths. A downloader lets uploaders know whether they may.
    pub select_by: SelectBy,
    /// Which paths may be used at all.
    pub policy: Option<Policy>,
    /// How connected paths are weighed.
    pub slots: SlotOptions,
    /// Whether paths that share interfaces are tried.
    pub sensing: bool,
}
