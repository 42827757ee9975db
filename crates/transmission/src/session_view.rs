//! What a client is shown of the session. Units are as in [`TorrentView`].
//!
//! [`TorrentView`]: crate::TorrentView

use crate::torrent::Limit;

/// The session: what holds for all torrents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionView {
    /// Name and version of the program, such as `hawser 0.1.0`, in characters that need no escapes.
    pub software: String,
    /// Where its settings are.
    pub config_dir: String,
    /// Limits of rate.
    pub speed: SpeedLimits,
    /// Where content goes.
    pub folders: Folders,
    /// What happens to added torrents.
    pub adding: Adding,
    /// When seeding ends.
    pub seeding: SeedLimits,
    /// How many torrents run at once.
    pub queues: Queues,
    /// How peers are found and reached.
    pub network: Network,
    /// The program that is run for each torrent whose download is complete; empty for none.
    pub done_script: String,
}

/// Limits of rate of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeedLimits {
    /// Download.
    pub down: Limit,
    /// Upload.
    pub up: Limit,
    /// Others, that hold at times.
    pub alternative: AlternativeLimits,
}

/// Limits of rate that hold at times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlternativeLimits {
    /// Whether they hold now.
    pub is_enabled: bool,
    /// Download, in thousands of bytes a second.
    pub down: u64,
    /// Upload, in thousands of bytes a second.
    pub up: u64,
    /// Whether they hold by a timetable.
    pub is_scheduled: bool,
    /// From when, in minutes after midnight.
    pub begin: u64,
    /// Until when.
    pub end: u64,
    /// On which days: bits from Sunday (1) to Saturday (64).
    pub days: u64,
}

/// Where content goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folders {
    /// The folder for torrents that are added without one.
    pub download_dir: String,
    /// Bytes free there, if it is known.
    pub free_space: Option<u64>,
    /// The folder for what is not complete.
    pub incomplete_dir: String,
    /// Whether that folder is used.
    pub uses_incomplete_dir: bool,
    /// Whether files that are not complete have `.part` after their names.
    pub renames_partial: bool,
}

/// What happens to added torrents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adding {
    /// Whether they are started.
    pub starts: bool,
    /// Whether the file that one was added from is deleted.
    pub deletes_original: bool,
    /// Whether their pieces are downloaded in order.
    pub is_sequential: bool,
    /// Trackers of all torrents that are not private: URLs in lines, with empty lines between
    /// tiers.
    pub trackers: String,
}

/// When seeding ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeedLimits {
    /// The ratio at which it ends.
    pub ratio: f64,
    /// Whether that holds.
    pub has_ratio: bool,
    /// Minutes without an upload after which it ends.
    pub idle_minutes: u64,
    /// Whether that holds.
    pub has_idle: bool,
}

/// How many torrents run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Downloads.
    pub download: Count,
    /// Seeds.
    pub seed: Count,
    /// Minutes without a transfer after which a torrent does not count.
    pub stalled: Count,
}

/// A number that may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Whether it holds.
    pub is_enabled: bool,
    /// The number.
    pub value: u64,
}

/// How peers are found and reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The port that peers connect to.
    pub port: u16,
    /// Whether it is another one at each start.
    pub port_is_random: bool,
    /// Whether the gateway is asked to forward it.
    pub is_forwarded: bool,
    /// Whether the DHT is used (BEP 5).
    pub dht: bool,
    /// Whether peers are looked for on the local network (BEP 14).
    pub lpd: bool,
    /// Whether peers are exchanged with peers (BEP 11).
    pub pex: bool,
    /// Whether uTP is used (BEP 29).
    pub utp: bool,
    /// Whether TCP is used.
    pub tcp: bool,
    /// Whether connections are encrypted.
    pub encryption: Encryption,
    /// The most peers of all torrents.
    pub peer_limit: u64,
    /// The most peers of a torrent that does not say.
    pub torrent_peer_limit: u64,
    /// Requests of one peer that may be outstanding (`reqq` of BEP 10).
    pub request_queue: u64,
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// All must be.
    Required,
    /// Those that can be are.
    #[default]
    Preferred,
    /// Those are that the peer wants to be.
    Allowed,
}

/// Transfers of the session in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Torrents.
    pub torrents: u64,
    /// Torrents that are not stopped.
    pub active: u64,
    /// Bytes a second downloaded.
    pub down_rate: u64,
    /// Bytes a second uploaded.
    pub up_rate: u64,
    /// Since the daemon was started.
    pub current: Totals,
    /// Ever.
    pub cumulative: Totals,
}

/// Sums over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes uploaded.
    pub uploaded: u64,
    /// Bytes downloaded.
    pub downloaded: u64,
    /// Files added.
    pub files: u64,
    /// Seconds run.
    pub seconds: u64,
    /// Times started.
    pub sessions: u64,
}

/// A group of torrents that share limits of rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupView {
    /// Its name.
    pub name: String,
    /// Whether the limits of the session hold for it too.
    pub honors_session_limits: bool,
    /// Download.
    pub down: Limit,
    /// Upload.
    pub up: Limit,
}

/// Room in a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes that are free.
    pub free: u64,
    /// Bytes of the whole.
    pub total: u64,
}
