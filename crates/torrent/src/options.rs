//! Options of downloads and seeders.

use std::path::PathBuf;
use std::time::Duration;

use hawser_manager::{PathOptions, SelectBy};
use hawser_path::Select;
use hawser_store::FileOptions;

use crate::limits::SeedLimits;
use crate::rate::RateLimits;
use crate::selection::Selection;

/// Options of a download.
#[derive(Debug, Clone, PartialEq)]
pub struct DownloadOptions {
    /// Which side chooses among paths. With [`SelectBy::Uploader`] one path is dialed to each peer,
    /// which then connects back over the paths that it assigns; for peers that cannot do that the
    /// download falls back to [`SelectBy::Downloader`].
    pub select_by: SelectBy,
    /// How the paths to each SCION peer are chosen and used; its `contact_only` follows from
    /// `select_by`.
    pub paths: PathOptions,
    /// Time without progress after which it gives up, unless a connected peer that still downloads
    /// itself is worth waiting for; [`Duration::MAX`] for never.
    pub give_up_after: Duration,
    /// Time without progress after which it gives up while a connected, complete peer chokes this
    /// side: it may serve others first.
    pub choked_patience: Duration,
    /// Whether peers that are not listed are expected to connect. It then needs no listed peer, and
    /// waits for `give_up_after` also while no connected peer has, or will ever get, what is
    /// missing; without, a few seconds.
    pub awaits_peers: bool,
    /// Whether peers are found while it runs, by [`crate::Download::found_peers`]. It then needs no listed
    /// peer either.
    pub finds_peers: bool,
    /// Whether web servers that the torrent names are used (BEP 19), the first 16 of them. It then needs no
    /// listed peer if it names one.
    pub uses_web_seeds: bool,
    /// Which files are fetched, and in which order.
    pub files: Selection,
    /// Whether peers are told of each other, and name others to this side (BEP 11), unless the torrent is
    /// private (BEP 27). It then needs no listed peer either.
    pub exchanges_peers: bool,
    /// How the files are put on disk. Those in the download folder that are not the torrent's (too long, or
    /// without any right piece) are refused, unless they may be overwritten.
    pub storage: FileOptions,
    /// A file that keeps what is verified from one run to the next: what has not changed on disk since is not
    /// hashed again. Its folder must exist. `None` to hash everything.
    pub record: Option<PathBuf>,
    /// Whether everything is hashed nevertheless.
    pub rechecks: bool,
    /// Whether, and for how long, to keep serving peers over the same connections once everything
    /// selected is verified.
    pub seed: Option<SeedLimits>,
    /// Most peers that are served at a time, 1 at least; `None` for 8, or fewer where that would be
    /// less than 16 KiB/s for each.
    pub slots: Option<usize>,
    /// How fast it sends and receives at first.
    pub limits: RateLimits,
}

impl Default for DownloadOptions {
    /// Paths chosen here; it dials listed peers alone, gives up after 60 s, and does not seed.
    fn default() -> Self {
        Self {
            select_by: SelectBy::Downloader,
            paths: PathOptions::default(),
            give_up_after: Duration::from_secs(60),
            choked_patience: Duration::from_secs(600),
            awaits_peers: false,
            finds_peers: false,
            uses_web_seeds: true,
            files: Selection::all(),
            exchanges_peers: false,
            storage: FileOptions::default(),
            record: None,
            rechecks: false,
            seed: None,
            slots: None,
            limits: RateLimits::default(),
        }
    }
}

/// Options of a seeder.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedOptions {
    /// Whether this side chooses paths to peers that let the uploader choose. With
    /// [`SelectBy::Downloader`] it never connects back to a peer.
    pub select_by: SelectBy,
    /// Which paths to such a peer come first: only the ranking of `select` counts, as the paths
    /// taken share nothing with those assigned to other peers. `policy` also applies to connections
    /// that peers open.
    pub paths: PathOptions,
    /// Whether peers are told of each other (BEP 11), unless the torrent is private (BEP 27).
    pub exchanges_peers: bool,
    /// Most peers that are served at a time, 1 at least; `None` for 8, or fewer where that would be
    /// less than 16 KiB/s for each.
    pub slots: Option<usize>,
    /// Whether IP peers are dialed that [`crate::Seed::found_peers`] gives. SCION peers connect to this side
    /// themselves.
    pub dials_found: bool,
    /// How fast it sends at first.
    pub limits: RateLimits,
    /// Whether it reveals one piece at a time to each peer (BEP 16), so that it sends each about
    /// once. Meant for the only seeder of new content: peers fetch more slowly, and those that
    /// cannot pass pieces on get few.
    pub super_seeding: bool,
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
            exchanges_peers: false,
            slots: None,
            dials_found: false,
            limits: RateLimits::default(),
            super_seeding: false,
        }
    }
}
