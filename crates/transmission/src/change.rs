//! What calls change, typed.

use crate::ids::TorrentId;
use crate::parts::Priority;
use crate::session_view::Encryption;
use crate::torrent::SeedMode;

/// A change to the settings of a torrent. Rates are in thousands of bytes a second.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// How much it gets of the limits of rates that it shares with others.
    Priority(Priority),
    /// Its bandwidth group; the empty name is none.
    Group(String),
    /// Its labels, without blanks around them; none is empty or has a comma.
    Labels(Vec<String>),
    /// Whether files are downloaded.
    Wanted(Files, bool),
    /// The priority of files.
    FilePriority(Files, Priority),
    /// The most peers it connects to.
    PeerLimit(u64),
    /// Its limit of download.
    DownLimit(u64),
    /// Whether that limit holds.
    DownLimited(bool),
    /// Its limit of upload.
    UpLimit(u64),
    /// Whether that limit holds.
    UpLimited(bool),
    /// Whether the limits of the session hold for it too.
    HonorsSessionLimits(bool),
    /// Minutes without an upload after which its seeding ends.
    IdleLimit(u64),
    /// Whether that holds.
    IdleMode(SeedMode),
    /// The ratio at which its seeding ends.
    RatioLimit(f64),
    /// Whether that holds.
    RatioMode(SeedMode),
    /// Its position in the queue, from 0; the end of the queue if it is shorter.
    QueuePosition(u64),
    /// Whether pieces are downloaded in order.
    Sequential(bool),
    /// The piece from which on they are.
    SequentialFrom(u64),
    /// Adds trackers, each as a tier of its own.
    TrackersAdded(Vec<String>),
    /// Removes the trackers of these ids.
    TrackersRemoved(Vec<u64>),
    /// Gives the trackers of these ids other URLs.
    TrackersReplaced(Vec<(u64, String)>),
    /// All of its trackers: URLs in tiers (BEP 12).
    Trackers(Vec<Vec<String>>),
}

/// Files of a torrent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// All.
    All,
    /// Those of these indices, which may be out of range.
    Some(Vec<u64>),
}

/// A torrent to add.
#[derive(Clone, Debug, PartialEq)]
pub struct Add {
    /// What it is added from.
    pub source: Source,
    /// The folder of its content, an absolute path, unless it is the session's.
    pub download_dir: Option<String>,
    /// Whether it is stopped, unless the session decides.
    pub is_paused: Option<bool>,
    /// Its settings, to be made in this order before it starts.
    pub changes: Vec<Change>,
}

/// What a torrent is added from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The bytes of a metainfo file, not checked.
    Metainfo(Vec<u8>),
    /// A magnet link (BEP 9), not checked. An info-hash alone comes as a link, too.
    Magnet(String),
    /// A URL of `http` or `https` to fetch the metainfo from, with the value of a `Cookie` header.
    /// The answer must be bounded.
    Url {
        /// The URL, not checked.
        url: String,
        /// Cookies, if any.
        cookies: Option<String>,
    },
    /// A path on the daemon's host.
    Path(String),
}

/// What has become of a torrent to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// Its number.
    pub id: TorrentId,
    /// Its info-hash.
    pub hash: [u8; 20],
    /// Its name.
    pub name: String,
    /// Whether it was there before.
    pub is_duplicate: bool,
}

/// A change to the session. Rates are in thousands of bytes a second.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Setting {
    /// The limit of download.
    DownLimit(u64),
    /// Whether it holds.
    DownLimited(bool),
    /// The limit of upload.
    UpLimit(u64),
    /// Whether it holds.
    UpLimited(bool),
    /// Whether the alternative limits hold now.
    Alternative(bool),
    /// The alternative limit of download.
    AlternativeDown(u64),
    /// The alternative limit of upload.
    AlternativeUp(u64),
    /// Whether the alternative limits hold by a timetable.
    Scheduled(bool),
    /// From when, in minutes after midnight.
    ScheduleBegin(u64),
    /// Until when.
    ScheduleEnd(u64),
    /// On which days: bits from Sunday (1) to Saturday (64).
    ScheduleDays(u64),
    /// The folder for torrents that are added without one, an absolute path.
    DownloadDir(String),
    /// The folder for what is not complete, an absolute path.
    IncompleteDir(String),
    /// Whether that folder is used.
    UsesIncompleteDir(bool),
    /// Whether files that are not complete have `.part` after their names.
    RenamesPartial(bool),
    /// Whether added torrents are started.
    StartsAdded(bool),
    /// Whether the file that one was added from is deleted.
    DeletesOriginal(bool),
    /// Whether pieces of added torrents are downloaded in order.
    SequentialAdded(bool),
    /// Trackers of all torrents that are not private, in tiers.
    DefaultTrackers(Vec<Vec<String>>),
    /// The ratio at which seeding ends.
    RatioLimit(f64),
    /// Whether it holds.
    RatioLimited(bool),
    /// Minutes without an upload after which seeding ends.
    IdleLimit(u64),
    /// Whether it holds.
    IdleLimited(bool),
    /// How many torrents download at once.
    DownloadQueue(u64),
    /// Whether it holds.
    DownloadQueued(bool),
    /// How many torrents seed at once.
    SeedQueue(u64),
    /// Whether it holds.
    SeedQueued(bool),
    /// Minutes without a transfer after which a torrent does not count.
    StalledMinutes(u64),
    /// Whether it holds.
    StalledEnabled(bool),
    /// The port that peers connect to.
    Port(u16),
    /// Whether it is another one at each start.
    RandomPort(bool),
    /// Whether the gateway is asked to forward it.
    PortForwarding(bool),
    /// Whether the DHT is used.
    Dht(bool),
    /// Whether peers are looked for on the local network.
    Lpd(bool),
    /// Whether peers are exchanged with peers.
    Pex(bool),
    /// Whether uTP is used.
    Utp(bool),
    /// Which of uTP and TCP are used, the preferred one first.
    Transports(Vec<Transport>),
    /// Whether a program is run for each torrent whose download is complete.
    RunsDoneScript(bool),
    /// That program.
    DoneScript(String),
    /// Whether connections are encrypted.
    Encryption(Encryption),
    /// The most peers of all torrents.
    PeerLimit(u64),
    /// The most peers of a torrent that does not say.
    TorrentPeerLimit(u64),
    /// Requests of one peer that may be outstanding.
    RequestQueue(u64),
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// uTP (BEP 29).
    Utp,
}

/// A change to a bandwidth group, which is made if it is not there. What is `None` stays; a new group has no
/// limits, and honors those of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// Its name, not empty.
    pub name: String,
    /// Whether the limits of the session hold for it too.
    pub honors_session_limits: Option<bool>,
    /// The limit of download.
    pub down_limit: Option<u64>,
    /// Whether it holds.
    pub is_down_limited: Option<bool>,
    /// The limit of upload.
    pub up_limit: Option<u64>,
    /// Whether it holds.
    pub is_up_limited: Option<bool>,
}
