//! How to download, and how to seed.

use std::time::Duration;

use hawser_manager::{PathOptions, SelectBy};
use hawser_path::Select;

use crate::limits::SeedLimits;

/// How to download.
#[derive(Debug, Clone, PartialEq)]
pub struct DownloadOptions {
    /// Which side chooses among paths. With [`SelectBy::Uploader`] one path is dialed to each peer,
    /// which then connects back over those it assigns; peers that cannot are left to
    /// [`SelectBy::Downloader`].
    pub select_by: SelectBy,
    /// How the paths to each SCION peer are chosen and used; its `contact_only` follows from
    /// `select_by`.
    pub paths: PathOptions,
    /// Time without progress, and without a peer that may bring it, after which it gives up.
    pub give_up_after: Duration,
    /// Whether files in the download folder that are not the torrent's (too long, or without a
    /// piece of it) are overwritten instead of refused.
    pub overwrite: bool,
    /// Whether, and for how long, to go on serving peers over the same connections once everything
    /// is verified.
    pub seed: Option<SeedLimits>,
}

impl Default for DownloadOptions {
    /// Paths chosen here; it gives up after 60 s, and does not seed.
    fn default() -> Self {
        Self {
            select_by: SelectBy::Downloader,
            paths: PathOptions::default(),
            give_up_after: Duration::from_secs(60),
            overwrite: false,
            seed: None,
        }
    }
}

/// How to seed.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedOptions {
    /// Whether this side chooses paths to peers that let the uploader choose. With
    /// [`SelectBy::Downloader`] no peer is connected back to.
    pub select_by: SelectBy,
    /// Which paths to such a peer come first: only the ranking of `select` counts, as taken are
    /// paths that share nothing with those assigned to other peers. `policy` holds for peers that
    /// connect, too.
    pub paths: PathOptions,
}

impl Default for SeedOptions {
    /// Paths chosen here, the shortest first.
    fn default() -> Self {
        Self {
            select_by: SelectBy::Uploader,
            paths: PathOptions {
                select: Select::shortest(),
                ..PathOptions::default()
            },
        }
    }
}
