//! What a download or a seeder reports, about ten times a second.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hawser_path::{Fingerprint, Interface};

use crate::address::PeerAddr;
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
    /// Every piece is verified; peers are still served.
    Seeding,
    /// Every piece is verified; peers are no longer served.
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
    /// Bytes that were verified on disk at the start and so not fetched.
    pub resumed_bytes: u64,
    /// Bytes of blocks received since the start, duplicates and bad pieces included.
    pub fetched_bytes: u64,
    /// Bytes of blocks dropped: duplicates of the endgame, and pieces with a wrong hash.
    pub wasted_bytes: u64,
    /// All paths together, in bits of blocks per second, averaged over about a second.
    pub rate: u64,
    /// Since the start; from the last verified piece on, until then.
    pub elapsed: Duration,
    /// Since [`Phase::Seeding`] began; `None` before.
    pub seeding: Option<Duration>,
    /// What peers fetch from here, in all phases.
    pub uploads: SeedProgress,
    /// Every path offered to a peer, taken or left, and every path in use. Grouped by peer in the
    /// order given to [`crate::Download::start`]; of each peer, those taken before those left.
    pub paths: Vec<PathProgress>,
    /// Peers without an entry in `paths`, each with the reason: no path to it is known, it is
    /// banned, and so on.
    pub idle_peers: Vec<(PeerAddr, String)>,
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
    /// What the connection over it is doing.
    pub state: PathState,
    /// Bytes of blocks received over it, over all its connections.
    pub bytes: u64,
    /// Bits of blocks per second, averaged over about a second.
    pub rate: u64,
    /// Smoothed round-trip time as QUIC or TCP measures it; `None` while not connected.
    pub rtt: Option<Duration>,
    /// Why the path was taken or left, from the uploader if it chose; `None` for a path that cannot
    /// be dialed (`last_error` says why) or is no longer offered, and for a connection that the
    /// peer opened without a reason.
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
    /// Connected, but no block is asked for: the peer chokes this side or has no piece that is
    /// missing, or the path waits (as its decision says) or has carried its share for now.
    Idle,
    /// Connected and asked for blocks.
    Active,
    /// Connected, but blocks asked for have not come for a long time; they are asked for over other
    /// paths.
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

/// What a finished download did.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Bytes of verified pieces that were fetched.
    pub fetched_bytes: u64,
    /// Bytes that were on disk before and not fetched.
    pub resumed_bytes: u64,
    /// Bytes of blocks dropped: duplicates of the endgame, and pieces with a wrong hash.
    pub wasted_bytes: u64,
    /// From the end of checking what was on disk to the last verified piece: path lookup, dialing
    /// and handshakes included.
    pub download_time: Duration,
    /// How long checking what was on disk took.
    pub check_time: Duration,
    /// Every path that carried blocks.
    pub paths: Vec<PathSummary>,
    /// Bytes sent to others in blocks.
    pub uploaded_bytes: u64,
    /// How seeding afterwards ended; `None` before, and without seeding.
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
    /// The interfaces from the peer to here, as the peer reported them, unchecked; empty if it did
    /// not.
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
    /// All peers together, in bits of blocks per second, averaged over about a second.
    pub rate: u64,
    /// The path-level peers connected now.
    pub peers: Vec<SeedPeer>,
    /// Known but unused paths to peers that leave the choice to this side.
    pub left: Vec<LeftPath>,
    /// Files that changed since they were verified, or are right again: each as last found.
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
    /// Pieces in it that are not offered any more.
    pub lost: u32,
    /// Pieces in it.
    pub pieces: u32,
    /// What is wrong with it, apart from its content: it has another length, or cannot be read.
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

/// A path-level peer connected to a seeder.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SeedPeer {
    /// Its address.
    pub peer: PeerAddr,
    /// The path, as seen from here.
    pub fingerprint: Fingerprint,
    /// The key of its certificate, which all path-level peers of one peer share; of an IP peer, a
    /// hash of its address.
    pub key: [u8; 32],
    /// Bytes sent to it in blocks.
    pub bytes: u64,
    /// Bits of blocks per second, averaged over about a second.
    pub rate: u64,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Why the path is used or waits; `None` if the peer chooses, or the path is not known here.
    pub decision: Option<Decision>,
}
