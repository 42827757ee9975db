//! What is shown of a torrent.

use std::sync::Arc;
use std::time::Duration;

use hawser_torrent::{FilesProgress, Metainfo, PathState, PeerAddr, PeerState, Phase, Progress};
use hawser_tracker::{MAX_TRACKERS, TrackerStatus};

use crate::record::{Outcome, Record};
use crate::runner::Live;
use crate::torrents::Status;

/// A torrent at one moment. What changes quickly is read from `live` when it is asked for.
#[derive(Debug, Clone)]
pub struct View {
    /// What is kept of it. The totals may be a second old.
    pub record: Arc<Record>,
    /// What it does.
    pub status: Status,
    /// Its number: given once, and another one after each start of the program.
    pub number: u64,
    /// Its position in the queue, from 0.
    pub position: usize,
    /// Time since its record was last saved.
    pub changed: Duration,
    /// What can be seen of its task; `None` while it has none.
    pub live: Option<Live>,
}

/// The numbers of a torrent that runs; zeros for one that does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// Rate of blocks received, in bit/s.
    pub down: u64,
    /// Rate of blocks sent, in bit/s.
    pub up: u64,
    /// Path-level peers that are connected.
    pub peers: usize,
    /// Of these, those from which blocks are requested.
    pub sending: usize,
    /// Of these, those to which blocks are sent.
    pub getting: usize,
}

impl Rates {
    /// Those of a download.
    pub(crate) fn of(progress: &Progress) -> Self {
        let count = |which: fn(PathState) -> bool| {
            let paths = progress.paths.iter();
            paths.filter(|path| which(path.state)).count()
        };
        let served = &progress.uploads.peers;
        Self {
            down: rate_of(progress, progress.rate),
            up: progress.uploads.rate,
            peers: count(is_connected).max(served.len()),
            sending: count(|state| state == PathState::Active),
            getting: served.iter().filter(|peer| peer.rate > 0).count(),
        }
    }
}

/// A path-level peer that is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerNumbers {
    /// The address-level peer.
    pub peer: PeerAddr,
    /// The fingerprint of the path, in hexadecimal digits; the same for every IP peer.
    pub path: String,
    /// Rate of blocks received, in bit/s.
    pub down: u64,
    /// Rate of blocks sent, in bit/s.
    pub up: u64,
    /// Bytes of blocks received.
    pub downloaded: u64,
    /// Bytes of blocks sent.
    pub uploaded: u64,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// What it has, wants and does, as far as that is known.
    pub state: Option<PeerState>,
}

fn is_connected(state: PathState) -> bool {
    matches!(
        state,
        PathState::Idle | PathState::Active | PathState::Stalled
    )
}

/// A rate of blocks received: the engine leaves the last one standing when the download is complete.
pub(crate) fn rate_of(progress: &Progress, rate: u64) -> u64 {
    match progress.phase {
        Phase::Downloading => rate,
        _ => 0,
    }
}

impl View {
    /// Its trackers. Without its metainfo, those that it names are known while it runs.
    pub(crate) fn trackers(&self, metainfo: Option<&Metainfo>) -> Vec<TrackerStatus> {
        let live = self.live.as_ref();
        let asked = live.and_then(|live| live.trackers.as_ref());
        let asked = asked.map_or(Vec::new(), |trackers| trackers.borrow().clone());
        let Some(tiers) = self.record.trackers(metainfo) else {
            return asked;
        };
        let mut all: Vec<TrackerStatus> = Vec::new();
        for (tier, urls) in tiers.iter().enumerate() {
            for url in urls {
                if all.len() >= MAX_TRACKERS || all.iter().any(|it| it.url == *url) {
                    continue;
                }
                // Its task may not know yet what users have changed.
                let known = asked.iter().find(|it| it.url == *url).cloned();
                let known = known.unwrap_or_else(|| TrackerStatus::idle(url, tier));
                all.push(TrackerStatus { tier, ..known });
            }
        }
        all
    }

    /// Why it cannot get on, and what helps; `None` if nothing is known that keeps it.
    pub fn hint(&self) -> Option<&'static str> {
        let live = self.live.as_ref()?;
        let wants_peers = matches!(self.status, Status::Resolving | Status::Downloading);
        let asks_trackers = live
            .trackers
            .as_ref()
            .is_some_and(|asked| !asked.borrow().is_empty());
        let finds_none = live.only_trackers && !asks_trackers;
        (wants_peers && finds_none && self.rates().peers == 0).then_some(
            "no peer is known and none can be found: the torrent has no tracker, and the daemon searches \
             neither the DHT nor the own network. Name a peer or a tracker, or start the daemon with --find dht",
        )
    }

    /// Why it does not run though it was started; `None` if it has not failed.
    pub fn error(&self) -> Option<&str> {
        match &self.record.outcome {
            Some(Outcome::Failed(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Whether nothing more comes of it by itself: it is complete, was stopped, or has failed.
    pub fn is_settled(&self) -> bool {
        let is_complete = self.record.dates.completed.is_some();
        // It is about to be moved to its folder.
        let waits = is_complete && self.record.settings.destination.is_some();
        match self.status {
            Status::Seeding if waits => false,
            Status::Seeding | Status::Stopped | Status::Finished | Status::Failed => true,
            Status::Queued => is_complete,
            _ => false,
        }
    }

    /// Calls `look` with the progress of its download, if it has one.
    pub fn with_progress<T>(&self, look: impl FnOnce(&Progress) -> T) -> Option<T> {
        let download = self.live.as_ref()?.download.as_ref()?;
        Some(look(&download.borrow()))
    }

    /// Bytes of its content that are verified, as far as that is known.
    pub fn verified(&self) -> u64 {
        let known = self.with_progress(|progress| {
            let is_known = progress.phase != Phase::Checking;
            is_known.then_some(progress.verified_bytes)
        });
        known.flatten().unwrap_or(self.record.totals.verified)
    }

    /// The bytes that are verified of those that are wanted, and these; `None` while that is not known.
    fn wanted(&self) -> Option<(u64, u64)> {
        let live = self.with_progress(|progress| {
            let (is_known, files) = (
                progress.phase != hawser_torrent::Phase::Checking,
                &progress.files,
            );
            is_known.then_some((files.wanted_verified_bytes, files.wanted_bytes))
        });
        let (record, whole) = (&self.record, self.record.settings.files.is_whole());
        let kept = || match record.dates.completed {
            Some(_) => Some((0, 0)),
            // What is verified of the wanted files is known of a torrent that runs.
            None => record
                .size
                .filter(|_| whole)
                .map(|size| (record.totals.verified, size)),
        };
        live.flatten().or_else(kept)
    }

    /// The fraction of what is wanted of its content that is verified, from 0 to 1; `None` while that is not
    /// known.
    pub fn done(&self) -> Option<f64> {
        self.wanted().map(|(verified, wanted)| match wanted {
            0 => 1.0,
            _ => verified as f64 / wanted as f64,
        })
    }

    /// The bytes that are wanted of its content and not verified; `None` while that is not known.
    pub fn left(&self) -> Option<u64> {
        let left = |(verified, wanted): (u64, u64)| wanted.saturating_sub(verified);
        self.wanted().map(left)
    }

    /// What of its files is verified; `None` while that is not known, as of one that does not run.
    pub(crate) fn files(&self) -> Option<FilesProgress> {
        let files = self.with_progress(|progress| {
            let is_known = progress.phase != Phase::Checking;
            is_known.then(|| progress.files.clone())
        });
        files.flatten()
    }

    /// The fraction of its content that is hashed, while it is verified.
    pub fn checked(&self) -> Option<f64> {
        let fraction = self.with_progress(|progress| match progress.phase {
            Phase::Checking => {
                Some(progress.checked_bytes as f64 / progress.total_bytes.max(1) as f64)
            }
            _ => None,
        });
        fraction
            .flatten()
            .filter(|_| self.status == Status::Checking)
    }

    /// Its ratio of bytes sent to bytes of content; 0 for one without content.
    pub fn ratio(&self) -> f64 {
        match self.record.size {
            None | Some(0) => 0.0,
            Some(size) => self.record.totals.uploaded as f64 / size as f64,
        }
    }

    /// Its rates, and its peers in numbers.
    pub fn rates(&self) -> Rates {
        self.with_progress(Rates::of).unwrap_or_default()
    }

    /// The path-level peers that are connected, each once.
    pub fn peers(&self) -> Vec<PeerNumbers> {
        let peers = self.with_progress(|progress| {
            let paths = progress
                .paths
                .iter()
                .filter(|path| is_connected(path.state));
            let mut peers: Vec<PeerNumbers> = paths
                .map(|path| PeerNumbers {
                    peer: path.peer,
                    path: path.fingerprint.to_string(),
                    down: rate_of(progress, path.rate),
                    up: 0,
                    downloaded: path.bytes,
                    uploaded: 0,
                    rtt: path.rtt,
                    state: None,
                })
                .collect();
            for served in &progress.uploads.peers {
                let path = served.fingerprint.to_string();
                let known = peers
                    .iter()
                    .position(|it| it.peer == served.peer && it.path == path);
                let at = known.unwrap_or_else(|| {
                    peers.push(PeerNumbers {
                        peer: served.peer,
                        path,
                        down: 0,
                        up: 0,
                        downloaded: 0,
                        uploaded: 0,
                        rtt: served.rtt,
                        state: None,
                    });
                    peers.len() - 1
                });
                peers[at].up = served.rate;
                peers[at].uploaded = served.bytes;
                peers[at].state = Some(served.state.clone());
            }
            peers
        });
        peers.unwrap_or_default()
    }
}
