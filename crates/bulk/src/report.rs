//! What a transfer reports.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hawser_endhost::Path;
use hawser_path::{Decision, Fingerprint};

use crate::content::tree::ChainingValue;

/// How far a transfer is. Bytes are bytes of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes in all; 0 before the sink knows the files.
    pub total: u64,
    /// Bytes that are verified and written at the sink.
    pub verified: u64,
    /// Bytes of these that were there before the transfer.
    pub existing: u64,
    /// Number of files.
    pub files: u64,
    /// Bytes that are not sent, because their files are skipped.
    pub skipped: u64,
}

/// A file that was not transferred, although others were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedFile {
    /// Its path, relative to what is sent.
    pub path: PathBuf,
    /// Why, with its path on the host where it failed.
    pub reason: String,
    /// Whether it failed at the source; otherwise at the sink.
    pub at_source: bool,
    /// Its index in the manifest, if another attempt may work: it changed while it was read, or
    /// another transfer wrote to it.
    pub(crate) again: Option<usize>,
}

/// How far a transfer is over one path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathProgress {
    /// The path's identity, seen from here.
    pub fingerprint: Fingerprint,
    /// The path; `None` when it is unknown here.
    pub path: Option<Path>,
    /// Bytes of content delivered over it.
    pub delivered: u64,
    /// The round-trip time, at the source.
    pub rtt: Option<Duration>,
    /// The pacing rate in bytes per second, at the source.
    pub rate: f64,
    /// Packets sent, and those that count as lost, at the source.
    pub packets: u64,
    /// See `packets`.
    pub lost: u64,
    /// Packets received and dropped: forged, changed on the path, received before, or too old.
    pub rejected: u64,
    /// Connections over it that failed, or that the other side closed, while content was missing.
    pub failures: u32,
    /// Whether nothing gets through now.
    pub stalled: bool,
    /// Whether it is connected.
    pub open: bool,
}

/// What happens in a transfer.
#[derive(Debug, Clone)]
pub enum TransferEvent {
    /// Progress of the whole and of each path, ten times a second, and when the paths were measured.
    Progress(Progress, Vec<PathProgress>, Instant),
    /// The server has lost the session, and another one continues.
    Restarted,
    /// The server does not answer yet, and is waited for.
    Absent {
        /// Why it cannot be reached.
        reason: String,
        /// Time that is left.
        left: Duration,
    },
    /// The server can no longer be reached, and is tried again for some time.
    Waiting {
        /// Why it cannot be reached.
        reason: String,
        /// Time that is left.
        left: Duration,
    },
    /// The server is reached again after [`Waiting`](Self::Waiting).
    Continued,
    /// The sink limits the rate at which this host sends, in bit/s; `None`: it no longer does.
    Limited(Option<u64>),
    /// The decision about a path changed.
    Decided(Fingerprint, Option<Path>, Decision),
}

/// What a transfer did.
#[derive(Debug, Clone)]
pub struct Summary {
    /// What is at the sink.
    pub progress: Progress,
    /// BLAKE3 of the content.
    pub root: ChainingValue,
    /// How long it took.
    pub elapsed: Duration,
    /// What each path delivered.
    pub paths: Vec<PathProgress>,
    /// The files that were not transferred. If there are any, the transfer is not complete.
    pub failed: Vec<FailedFile>,
    /// Files of which owners, groups, ACLs or extended attributes were sent that they do not have at
    /// the sink: it does not take them, or may not set them.
    pub stripped: u64,
    /// Files that were at the sink and stayed as they were, as it was wanted.
    pub kept: u64,
}

impl FailedFile {
    /// Whether another attempt would fail as well, as far as that is known.
    pub fn is_lasting(&self) -> bool {
        self.again.is_none()
    }
}

impl Summary {
    /// Whether files failed that may succeed in another session. The client begins one for them, at most
    /// [`MAX_RESENDS`](crate::MAX_RESENDS) times in one transfer.
    pub fn is_to_be_continued(&self) -> bool {
        !self.failed.iter().all(FailedFile::is_lasting)
    }
}
