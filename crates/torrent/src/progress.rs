//! What a download or a seeder tells of itself, about ten times a second.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hawser_path::{Fingerprint, Interface};

use crate::address::PeerAddr;
use crate::limits::Seeded;
use crate::reason::Decision;

/// What a download is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Hashing what is on disk already.
    Checking,
    /// Fetching pieces, or waiting for a peer.
    Downloading,
    /// Every piece is on disk and verified, and others go on being served.
    Seeding,
    /// Every piece is on disk and verified, and nobody is served any more.
    Done,
    /// Stopped before the end, by [`crate::Download::stop`] or an error.
    Stopped,
}

/// How far a download is.
#[derive(Debug, Clone, PartialEq)]
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
    /// Bytes of blocks thrown away: duplicates of the end game, and pieces that failed their hash.
    pub wasted_bytes: u64,
    /// All paths together, in bits of blocks per second, averaged over about a second.
    pub rate: u64,
    /// Since the start; from the last verified piece on, until then.
    pub elapsed: Duration,
    /// Since [`Phase::Seeding`] began; `None` before.
    pub seeding: Option<Duration>,
    /// What others fetch from here, in all phases.
    pub uploads: SeedProgress,
    /// Every path that is offered to every peer, taken or left, and every path in use. Grouped by
    /// peer in the order given to [`crate::Download::start`], then taken before left.
    pub paths: Vec<PathProgress>,
    /// Peers to which no path is known, banned peers, and others without a line in `paths`: each
    /// with the reason.
    pub idle_peers: Vec<(PeerAddr, String)>,
}

impl Progress {
    /// At the start of a download of `total_bytes` bytes.
    pub(crate) fn of(total_bytes: u64) -> Self {
        Self {
            phase: Phase::Checking,
            checked_bytes: 0,
            verified_bytes: 0,
            total_bytes,
            resumed_bytes: 0,
            fetched_bytes: 0,
            wasted_bytes: 0,
            rate: 0,
            elapsed: Duration::ZERO,
            seeding: None,
            uploads: SeedProgress::default(),
            paths: Vec::new(),
            idle_peers: Vec::new(),
        }
    }
}

/// How one path-level peer is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PathProgress {
    /// The address-level peer.
    pub peer: PeerAddr,
    /// The path; the same for every IP peer.
    pub fingerprint: Fingerprint,
    /// ASes on the path, both ends included; 0 on a connection the peer opened, where neither the
    /// daemon nor the peer told.
    pub hops: usize,
    /// What the connection over it is doing.
    pub state: PathState,
    /// Bytes of blocks received over it, over all its connections.
    pub bytes: u64,
    /// Bits of blocks per second, averaged over about a second.
    pub rate: u64,
    /// Smoothed round-trip time as QUIC or TCP measures it; `None` while not connected.
    pub rtt: Option<Duration>,
    /// Why the path was taken or left, as the uploader told where it chose; `None` for a path that
    /// cannot be connected (then `last_error` tells why) or is no longer offered, and for a
    /// connection the peer opened without a reason.
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
    /// Connected; the peer sends no blocks because it chokes us or has nothing we lack, because the
    /// path waits, as its decision then says, or because it has carried its share for now.
    Idle,
    /// Connected and asked for blocks.
    Active,
    /// Connected, but nothing came for long although blocks were asked for; those are asked for
    /// elsewhere.
    Stalled,
    /// Taken, but not connected; dialed again after a pause.
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
    /// Bytes of blocks thrown away: duplicates of the end game, and pieces that failed their hash.
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
    /// How seeding afterwards ended; `None` without, and before.
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
    /// ASes on the path, both ends included; 0 on connections the peer opened, where neither the
    /// daemon nor the peer told.
    pub hops: usize,
    /// The interfaces on the way from the peer to here, as the peer told; empty where it told
    /// nothing. Nothing of it is checked.
    pub interfaces: Vec<Interface>,
    /// Bytes of blocks received over it.
    pub bytes: u64,
}

/// How a seeder is doing.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SeedProgress {
    /// Bytes sent in blocks since the start, to everyone.
    pub uploaded_bytes: u64,
    /// All peers together, in bits of blocks per second, averaged over about a second.
    pub rate: u64,
    /// The path-level peers connected now.
    pub peers: Vec<SeedPeer>,
    /// The paths that are not used, though known here, to peers that leave the choice to this side.
    pub left: Vec<LeftPath>,
    /// Files that are not what was verified at the start any more, or are so again: each as last
    /// found.
    pub changed: Vec<ChangedFile>,
    /// Connections since the start.
    pub connections: u64,
}

/// A file that is not, or not wholly, what the torrent describes, or is so again.
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
    /// Whom it leads to.
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
    /// Where it speaks from.
    pub peer: PeerAddr,
    /// The path, as seen from here.
    pub fingerprint: Fingerprint,
    /// The key of its certificate, the same for all path-level peers of one peer; of an IP peer a
    /// hash of its address.
    pub key: [u8; 32],
    /// Bytes sent to it in blocks.
    pub bytes: u64,
    /// Bits of blocks per second, averaged over about a second.
    pub rate: u64,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Why the path is used or waits, where it is chosen here; `None` where the peer chooses, and
    /// on a path that is not known here.
    pub decision: Option<Decision>,
}
