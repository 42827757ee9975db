//! What a client is shown of a torrent. The default of each type is Transmission's neutral value.
//!
//! Bytes are whole bytes, rates bytes a second, dates seconds since 1970 with 0 for never,
//! fractions from 0 to 1.

use crate::ids::TorrentId;
use crate::parts::{FileView, PeerView, Priority, TrackerView};

/// A torrent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TorrentView {
    /// Its number.
    pub id: TorrentId,
    /// Its info-hash (BEP 3).
    pub hash: [u8; 20],
    /// Its name.
    pub name: String,
    /// The folder that its content is in.
    pub download_dir: String,
    /// What it does.
    pub state: State,
    /// What is wrong with it.
    pub error: Option<TorrentError>,
    /// What the metainfo says; zeros until it is there.
    pub content: Content,
    /// How much of the content there is.
    pub progress: Progress,
    /// What was and is transferred.
    pub traffic: Traffic,
    /// When what happened.
    pub dates: Dates,
    /// Its peers in numbers.
    pub swarm: Swarm,
    /// What users have set.
    pub options: Options,
    /// What costs more to tell, as far as a call asks for it.
    pub detail: Detail,
}

/// What a torrent does; the numbers are Transmission's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    #[default]
    Stopped = 0,
    /// It waits for its turn to be verified.
    CheckWait = 1,
    /// It is verified.
    Check = 2,
    /// It waits for its turn to download.
    DownloadWait = 3,
    /// It downloads, content or metadata.
    Download = 4,
    /// It waits for its turn to seed.
    SeedWait = 5,
    /// It seeds.
    Seed = 6,
}

/// What is wrong with a torrent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorrentError {
    /// Where.
    pub kind: ErrorKind,
    /// What.
    pub text: String,
}

/// Where something is wrong; the numbers are Transmission's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A tracker warns.
    TrackerWarning = 1,
    /// A tracker refuses or cannot be reached.
    Tracker = 2,
    /// Here: content cannot be read or written.
    Local = 3,
}

/// What the metainfo says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Content {
    /// Bytes of all files.
    pub size: u64,
    /// Bytes of the wanted files.
    pub wanted_size: u64,
    /// Number of files.
    pub files: u64,
    /// Number of pieces.
    pub pieces: u64,
    /// Bytes of a piece.
    pub piece_size: u64,
    /// Whether it is private (BEP 27).
    pub is_private: bool,
    /// When the metainfo was made.
    pub created: i64,
    /// The fraction of the metadata that is there; 1 unless it comes from peers (BEP 9).
    pub metadata: f64,
}

/// How much of the content there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Bytes of verified pieces.
    pub valid: u64,
    /// Bytes of pieces that are not complete yet.
    pub unchecked: u64,
    /// Bytes of wanted files that are missing.
    pub left: u64,
    /// Bytes of the missing ones that a connected peer has.
    pub available: u64,
    /// The fraction that is verified, in [`State::Check`].
    pub checked: f64,
    /// Seconds until it is complete, or until it has seeded enough; `None` if it is not known.
    pub eta: Option<u64>,
    /// Seconds until it has been idle for long enough.
    pub eta_idle: Option<u64>,
    /// Whether it has seeded enough and was stopped for that reason.
    pub is_finished: bool,
    /// Whether it has transferred nothing for a while though it runs.
    pub is_stalled: bool,
}

/// What was and is transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes a second downloaded.
    pub down_rate: u64,
    /// Bytes a second uploaded.
    pub up_rate: u64,
    /// Bytes downloaded ever.
    pub downloaded: u64,
    /// Bytes uploaded ever.
    pub uploaded: u64,
    /// Bytes downloaded that failed verification.
    pub corrupt: u64,
}

/// When what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dates {
    /// It was added.
    pub added: i64,
    /// It was started last.
    pub started: i64,
    /// It became complete.
    pub done: i64,
    /// It transferred something last.
    pub active: i64,
    /// Its settings were changed last.
    pub edited: i64,
    /// Seconds it has downloaded.
    pub downloading: u64,
    /// Seconds it has seeded.
    pub seeding: u64,
}

/// The peers of a torrent in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swarm {
    /// Connected ones.
    pub connected: u64,
    /// Those that send to us.
    pub sending: u64,
    /// Those that get from us.
    pub getting: u64,
    /// Web seeds that send to us (BEP 19).
    pub webseeds_sending: u64,
    /// Where the connected ones are known from.
    pub sources: Sources,
}

/// Numbers of peers by where they are known from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// An earlier run.
    pub cache: u64,
    /// The DHT (BEP 5).
    pub dht: u64,
    /// They have connected to us.
    pub incoming: u64,
    /// Local service discovery (BEP 14).
    pub lpd: u64,
    /// The extension handshake (BEP 10).
    pub ltep: u64,
    /// Other peers (BEP 11).
    pub pex: u64,
    /// Trackers.
    pub tracker: u64,
}

/// A limit of rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Whether it holds.
    pub is_enabled: bool,
    /// Thousands of bytes a second.
    pub kilobytes: u64,
}

/// Which limit of seeding holds for a torrent; the numbers are Transmission's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeedMode {
    /// The session's.
    #[default]
    Session = 0,
    /// Its own.
    Own = 1,
    /// None.
    Unlimited = 2,
}

/// What users have set for a torrent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How much it gets of the limits of rates that it shares with others; not its place in the queue.
    pub priority: Priority,
    /// Its position in the queue, from 0.
    pub queue_position: u64,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its bandwidth group, or nothing.
    pub group: String,
    /// Its limit of download.
    pub down: Limit,
    /// Its limit of upload.
    pub up: Limit,
    /// Whether the limits of the session hold for it too.
    pub honors_session_limits: bool,
    /// The most peers it connects to.
    pub peer_limit: u64,
    /// Which ratio ends its seeding.
    pub ratio_mode: SeedMode,
    /// Its own ratio.
    pub ratio: f64,
    /// Which time without uploads ends its seeding.
    pub idle_mode: SeedMode,
    /// Its own such time in minutes.
    pub idle_minutes: u64,
    /// Whether pieces are downloaded in order, and from which on.
    pub sequential: Option<u64>,
}

/// What costs more to tell. Each field is filled if its part is asked for, and may be otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// [`Parts::TEXTS`].
    pub texts: Texts,
    /// [`Parts::FILES`]: in the order of the metainfo.
    pub files: Vec<FileView>,
    /// [`Parts::PEERS`]: connected ones.
    pub peers: Vec<PeerView>,
    /// [`Parts::TRACKERS`]: in the order of their tiers (BEP 12).
    pub trackers: Vec<TrackerView>,
    /// [`Parts::PIECES`]: which pieces are there, as a bitfield of BEP 3; empty without metadata.
    pub pieces: Vec<u8>,
    /// [`Parts::AVAILABILITY`]: for each piece, how many connected peers have it, or -1 if it is
    /// here.
    pub availability: Vec<i32>,
}

/// Texts about a torrent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// The comment of the metainfo.
    pub comment: String,
    /// The program that made the metainfo.
    pub creator: String,
    /// `source` of the metainfo.
    pub source: String,
    /// A magnet link (BEP 9).
    pub magnet_link: String,
    /// Where the metainfo is kept.
    pub metainfo_path: String,
    /// The media type of most of the content, or nothing.
    pub media_type: String,
    /// URLs of web seeds (BEP 19).
    pub webseeds: Vec<String>,
}

/// Which parts of [`Detail`] a call asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u8);

impl Parts {
    /// None.
    pub const NONE: Self = Self(0);
    /// Texts.
    pub const TEXTS: Self = Self(1);
    /// Files.
    pub const FILES: Self = Self(1 << 1);
    /// Peers.
    pub const PEERS: Self = Self(1 << 2);
    /// Trackers.
    pub const TRACKERS: Self = Self(1 << 3);
    /// The bitfield of pieces.
    pub const PIECES: Self = Self(1 << 4);
    /// The availability of pieces.
    pub const AVAILABILITY: Self = Self(1 << 5);

    /// Whether all of these are asked for.
    pub const fn contains(self, parts: Self) -> bool {
        self.0 & parts.0 == parts.0
    }

    /// The parts of both.
    #[must_use]
    pub const fn union(self, parts: Self) -> Self {
        Self(self.0 | parts.0)
    }
}
