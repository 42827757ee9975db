//! Reports of a download or a seeder, about ten times a second.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_path::{Fingerprint, Interface};
use hawser_quic::CongestionState;

use crate::files::FilesProgress;
use crate::limits::Seeded;
use crate::reason::Decision;

/// What a download is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Hashing what is already on disk.
    #[default]
    Checking,
    /// Fetching pieces, or waiting for a peer.
    Downloading,
    /// Every piece of the selected files is verified; peers are still served.
    Seeding,
    /// Every piece of the selected files is verified; peers are no longer served.
    Done,
    /// Stopped before the end, by [`crate::Download::stop`] or an error.
    Stopped,
}

/// The state of a download.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Bytes hashed so far while [`Phase::Checking`], of `total_bytes`.
    pub checked_bytes: u64,
    /// Bytes on disk whose piece is verified.
    pub verified_bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// What is selected and verified of each file.
    pub files: FilesProgress,
    /// Bytes that were verified on disk at the start and so not fetched.
    pub resumed_bytes: u64,
    /// Bytes of blocks received since the start, including duplicates and bad pieces.
    pub fetched_bytes: u64,
    /// Bytes of blocks dropped: duplicates of the endgame, and pieces with a wrong hash.
    pub wasted_bytes: u64,
    /// Rate over all paths, in bit/s of block data, averaged over about a second.
    pub rate: u64,
    /// Time since the start, up to the last verified piece.
    pub elapsed: Duration,
    /// Time since [`Phase::Seeding`] began; `None` before.
    pub seeding: Option<Duration>,
    /// Blocks sent to peers, in all phases.
    pub uploads: SeedProgress,
    /// Every path offered to a peer, taken or left, and every path in use. Grouped by peer in the
    /// order given to [`crate::Download::start`]; of each peer, those taken before those left.
    pub paths: Vec<PathProgress>,
    /// Peers without an entry in `paths`, each with the reason: no path to it is known, it is
    /// banned, and so on.
    pub idle_peers: Vec<(PeerAddr, String)>,
    /// The web seeds of the torrent that are used or were, in its order.
    pub web_seeds: Vec<WebSeedProgress>,
}

/// The state of one web seed (BEP 19).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebSeedProgress {
    /// Its URL, as the torrent has it.
    pub url: String,
    /// What it is doing.
    pub state: WebSeedState,
    /// Bytes of blocks received from it.
    pub bytes: u64,
    /// Rate in bit/s of block data, averaged over half a second.
    pub rate: u64,
    /// Why it was dropped, or the last request failed; `None` after one that did not.
    pub last_error: Option<String>,
}

/// What a web seed is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WebSeedState {
    /// It is asked for some blocks.
    Fetching,
    /// It has nothing that is missing here and not requested already.
    Idle,
    /// It has failed, and is asked again later.
    Waiting,
    /// It is not asked any more: it has sent wrong data, or its URL is not one of HTTP.
    Dropped,
}

impl fmt::Display for WebSeedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetching => "active",
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::Dropped => "dropped",
        })
    }
}

/// The state of one path-level peer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PathProgress {
    /// The address-level peer.
    pub peer: PeerAddr,
    /// The path; the same for every IP peer.
    pub fingerprint: Fingerprint,
    /// ASes on the path, both ends included; 0 on a connection opened by the peer if neither the
    /// daemon nor the peer has reported them.
    pub hops: usize,
    /// The interfaces on it, in the direction in which it was announced: from here if the daemon or this
    /// side knows it, from the peer if only that has reported it, which is not verified. Empty if neither
    /// did.
    pub interfaces: Vec<Interface>,
    /// What the connection over it is doing.
    pub state: PathState,
    /// Bytes of blocks received over it, over all its connections.
    pub bytes: u64,
    /// Rate in bit/s of block data, averaged over about a second.
    pub rate: u64,
    /// Smoothed round-trip time as QUIC or TCP measures it; `None` while not connected.
    pub rtt: Option<Duration>,
    /// Why the path was taken or left, as the uploader says if it chose; `None` for a path that
    /// cannot be dialed (`last_error` says why) or is no longer offered, and for a connection that
    /// the peer opened without a reason.
    pub decision: Option<Decision>,
    /// Why the last connection or attempt over it ended, if one did.
    pub last_error: Option<String>,
}

/// What the connection over a path is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathState {
    /// Not taken by the selection, not in use.
    Left,
    /// Being dialed.
    Dialing,
    /// Connected, but no block is requested: the peer chokes this side or has no piece missing
    /// here, or the path waits (as its decision says) or has carried its share for now.
    Idle,
    /// Connected, with blocks requested.
    Active,
    /// Connected, but requested blocks have not arrived for a long time; they are requested over
    /// other paths.
    Stalled,
    /// Taken, but not connected; dialed again after a backoff.
    Waiting,
}

impl fmt::Display for PathState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "left",
            Self::Dialing => "dialing",
            Self::Idle => "idle",
            Self::Active => "active",
            Self::Stalled => "stalled",
            Self::Waiting => "waiting",
        })
    }
}

/// The result of a finished download.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Bytes of verified pieces that were fetched.
    pub fetched_bytes: u64,
    /// Bytes that were on disk before and not fetched.
    pub resumed_bytes: u64,
    /// Pieces among these that were not hashed: they were verified before, and have not changed on disk.
    pub trusted_pieces: u32,
    /// Bytes of blocks dropped: duplicates of the endgame, and pieces with a wrong hash.
    pub wasted_bytes: u64,
    /// Time from the end of checking the disk to the last verified piece, including path lookup,
    /// dialing and handshakes.
    pub download_time: Duration,
    /// Time that checking the disk took.
    pub check_time: Duration,
    /// The paths that carried blocks: of more than 1000 about those that carried most.
    pub paths: Vec<PathSummary>,
    /// Bytes of blocks over the paths that are not listed.
    pub other_bytes: u64,
    /// The web seeds of the torrent, and what came from each.
    pub web_seeds: Vec<WebSeedProgress>,
    /// Bytes of blocks sent to peers.
    pub uploaded_bytes: u64,
    /// How seeding afterwards ended; `None` before its end, and without seeding.
    pub seeded: Option<Seeded>,
}

/// What one path carried.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PathSummary {
    /// The address-level peer.
    pub peer: PeerAddr,
    /// The path; the same for every IP peer.
    pub fingerprint: Fingerprint,
    /// ASes on the path, both ends included; 0 on connections opened by the peer if neither the
    /// daemon nor the peer has reported them.
    pub hops: usize,
    /// The interfaces from the peer to here, as the peer reported them, not verified; empty if it
    /// reported none.
    pub interfaces: Vec<Interface>,
    /// Bytes of blocks received over it.
    pub bytes: u64,
}

/// The state of a seeder.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SeedProgress {
    /// Bytes of blocks sent since the start, to all peers.
    pub uploaded_bytes: u64,
    /// Rate to all peers, in bit/s of block data, averaged over about a second.
    pub rate: u64,
    /// The path-level peers connected now.
    pub peers: Vec<SeedPeer>,
    /// Known but unused paths to peers that leave the choice to this side.
    pub left: Vec<LeftPath>,
    /// Files that changed since they were verified, or are right again, in their latest state.
    pub changed: Vec<ChangedFile>,
    /// Connections since the start.
    pub connections: u64,
}

/// A file under a seeder that has changed, or is right again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFile {
    /// Its path.
    pub path: PathBuf,
    /// Number of its pieces that are no longer offered.
    pub lost: u32,
    /// Number of its pieces.
    pub pieces: u32,
    /// A fault other than its content: it has another length, or cannot be read.
    pub error: Option<String>,
}

impl From<hawser_store::ChangedFile> for ChangedFile {
    fn from(file: hawser_store::ChangedFile) -> Self {
        Self {
            path: file.path,
            lost: file.lost,
            pieces: file.ranges,
            error: file.error,
        }
    }
}

impl fmt::Display for ChangedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, lost, pieces) = (self.path.display(), self.lost, self.pieces);
        match (&self.error, lost) {
            (_, 0) => write!(f, "{path} is right again: all its pieces are offered"),
            (None, _) => write!(
                f,
                "{path} has changed: {lost} of its {pieces} pieces are not offered any more"
            ),
            (Some(error), _) => write!(
                f,
                "{error}: {lost} of its {pieces} pieces are not offered any more"
            ),
        }
    }
}

/// A path that a seeder does not use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftPath {
    /// The peer that it leads to.
    pub peer: PeerAddr,
    /// The path, as seen from here.
    pub fingerprint: Fingerprint,
    /// Why it is left, or waits.
    pub decision: Decision,
}

/// What a peer has, wants and does, as it is known over one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerState {
    /// The name of its program: as it says (BEP 10), or by its id (BEP 20). Not verified; at most 128 bytes.
    pub client: Option<Arc<str>>,
    /// Number of pieces that it has.
    pub pieces: u32,
    /// Whether it opened the connection.
    pub is_incoming: bool,
    /// Whether it wants blocks (BEP 3).
    pub is_interested: bool,
    /// Whether its requests are answered.
    pub is_served: bool,
    /// Whether it has a piece that is wanted here.
    pub is_interesting: bool,
    /// Whether it answers requests.
    pub serves: bool,
    /// Whether it downloads nothing (BEP 21).
    pub is_upload_only: bool,
}

/// A path-level peer connected to a seeder.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SeedPeer {
    /// Its address.
    pub peer: PeerAddr,
    /// The path, as seen from here.
    pub fingerprint: Fingerprint,
    /// The interfaces on it, as of [`PathProgress::interfaces`].
    pub interfaces: Vec<Interface>,
    /// What the peer has, wants and does.
    pub state: PeerState,
    /// The key of its certificate, which all path-level peers of one peer share; for an IP peer, a
    /// hash of its address.
    pub key: [u8; 32],
    /// Bytes of blocks sent to it.
    pub bytes: u64,
    /// Rate in bit/s of block data, averaged over about a second.
    pub rate: u64,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// How the rate to it is controlled, with the reason; `None` for an IP peer.
    pub congestion: Option<CongestionState>,
    /// Why the path is used or waits; `None` if the peer chooses, or the path is not known here.
    pub decision: Option<Decision>,
}
