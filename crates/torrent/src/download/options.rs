//! How to download.

use std::time::Duration;

use hawser_manager::SelectBy;
use hawser_path::{Policy, Select, SlotOptions};

use crate::limits::SeedLimits;

/// How to fetch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DownloadOptions {
    /// Most paths used at once to each peer; at least 1.
    pub paths: usize,
    /// Which of the offered paths are used.
    pub select: Select,
    /// Which side chooses among paths. With [`SelectBy::Uploader`] one path is dialed to each peer,
    /// which then connects back over those it assigns; peers that cannot are left to
    /// [`SelectBy::Downloader`].
    pub select_by: SelectBy,
    /// Which of the offered paths may be used at all.
    pub policy: Option<Policy>,
    /// How connected paths are weighed; those too light wait (000, section 3.3.2).
    pub slots: SlotOptions,
    /// Whether paths that share interfaces with those used are tried, and kept if the others lose
    /// nothing (001, section VIII).
    pub sensing: bool,
    /// Time without progress, and without a peer that may bring it, after which it gives up.
    pub give_up_after: Duration,
    /// Whether files in the download folder that are not the torrent's are overwritten instead of
    /// refused.
    pub overwrite: bool,
    /// Whether, and for how long, to go on serving peers over the same connections once everything
    /// is verified.
    pub seed: Option<SeedLimits>,
}

impl Default for DownloadOptions {
    fn default() -> Self {
        Self {
            paths: 4,
            select: Select::disjoint(),
            select_by: SelectBy::Downloader,
            policy: None,
            slots: SlotOptions::default(),
            sensing: true,
            give_up_after: Duration::from_secs(60),
            overwrite: false,
            seed: None,
        }
    }
}

impl DownloadOptions {
    /// The defaults: up to 4 disjoint paths to each peer, chosen here, giving up after 60 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most paths used at once to each peer; 0 counts as 1.
    pub fn with_paths(mut self, paths: usize) -> Self {
        self.paths = paths.max(1);
        self
    }

    /// Which of the offered paths are used.
    pub fn with_select(mut self, select: Select) -> Self {
        self.select = select;
        self
    }

    /// Which side chooses among paths.
    pub fn with_select_by(mut self, select_by: SelectBy) -> Self {
        self.select_by = select_by;
        self
    }

    /// Which of the offered paths may be used at all.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// A path waits when it carries less than this share of what the best one to the same peer
    /// carries: 0 (never) to 1. By default 0.01.
    pub fn with_min_weight(mut self, share: f64) -> Self {
        self.slots.min_weight = share;
        self
    }

    /// How often paths are weighed. By default every second.
    pub fn with_time_slot(mut self, time_slot: Duration) -> Self {
        self.slots.time_slot = time_slot;
        self
    }

    /// Whether to try paths that share interfaces with those used. By default yes.
    pub fn with_sensing(mut self, sensing: bool) -> Self {
        self.sensing = sensing;
        self
    }

    /// Whether to overwrite files in the download folder that are not the torrent's: too long, or
    /// without a piece of it. By default they are refused.
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// How long to wait without progress, and without a peer that may bring it. By default 60 s.
    pub fn with_give_up_after(mut self, timeout: Duration) -> Self {
        self.give_up_after = timeout;
        self
    }

    /// Goes on serving peers once everything is verified, until a limit is reached. By default the
    /// download ends then.
    pub fn with_seed(mut self, limits: SeedLimits) -> Self {
        self.seed = Some(limits);
        self
    }
}
