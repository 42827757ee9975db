//! Fetching a torrent.

use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, RwLock};
use std::time::{Duration, Instant};

use hawser_manager::SelectBy;
use hawser_path::{Policy, Select, SlotOptions};
use hawser_store::{Budget, Files, Resumed, StoreError, Target};
use thiserror::Error;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::address::PeerAddr;
use crate::bitfield::Bitfield;
use crate::layout;
use crate::limits::{SeedLimits, Seeded};
use crate::metainfo::Metainfo;
use crate::network::Network;
use crate::peer::Shared;
use crate::progress::{Phase, Progress, SeedProgress, Summary};
use crate::swarm::{Goal, Reporter, Swarm, SwarmError, Tally};
use crate::transport::Transport;
use crate::wire::{Handshake, PeerId};

/// How often progress is told while checking.
const EVERY: Duration = Duration::from_millis(100);

/// How to fetch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DownloadOptions {
    /// Most paths used at once to each peer; at least 1.
    pub paths: usize,
    /// Which of the offered paths are used.
    pub select: Select,
    /// Which side chooses among paths. With [`SelectBy::Uploader`] one path is dialed to each peer,
    /// which then connects back over those it assigns; peers that cannot are left to
    /// [`SelectBy::Downloader`].
    pub select_by: SelectBy,
    /// Which of the offered paths may be used at all.
    pub policy: Option<Policy>,
    /// How connected paths are weighed; those too light wait (000, section 3.3.2).
    pub slots: SlotOptions,
    /// Whether paths that share interfaces with those used are tried, and kept if the others lose
    /// nothing (001, section VIII).
    pub sensing: bool,
    /// Give up after this long without progress, and without a peer that may bring it.
    pub give_up_after: Duration,
    /// Whether files in the download folder that are not the torrent's are overwritten instead of
    /// refused.
    pub overwrite: bool,
    /// Whether to go on serving others, over the same connections, once everything is verified, and
    /// for how long.
    pub seed: Option<SeedLimits>,
}

impl Default for DownloadOptions {
    fn default() -> Self {
        Self {
            paths: 4,
            select: Select::disjoint(),
            select_by: SelectBy::Downloader,
            policy: None,
            slots: SlotOptions::default(),
            sensing: true,
            give_up_after: Duration::from_secs(60),
            overwrite: false,
            seed: None,
        }
    }
}

impl DownloadOptions {
    /// The defaults: up to 4 disjoint paths to each peer, chosen here, giving up after 60 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most paths used at once to each peer; 0 counts as 1.
    pub fn with_paths(mut self, paths: usize) -> Self {
        self.paths = paths.max(1);
        self
    }

    /// Which of the offered paths are used.
    pub fn with_select(mut self, select: Select) -> Self {
        self.select = select;
        self
    }

    /// Who chooses among paths.
    pub fn with_select_by(mut self, select_by: SelectBy) -> Self {
        self.select_by = select_by;
        self
    }

    /// Which of the offered paths may be used at all.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// A path waits when it carries less than this share of what the best one to the same peer
    /// carries: 0 (never) to 1. Unless said, 0.01.
    pub fn with_min_weight(mut self, share: f64) -> Self {
        self.slots.min_weight = share;
        self
    }

    /// How often paths are weighed. Unless said, every second.
    pub fn with_time_slot(mut self, time_slot: Duration) -> Self {
        self.slots.time_slot = time_slot;
        self
    }

    /// Whether to try paths that share interfaces with those used. Unless said, yes.
    pub fn with_sensing(mut self, sensing: bool) -> Self {
        self.sensing = sensing;
        self
    }

    /// Whether to overwrite files in the download folder that are not the torrent's: too long, or
    /// without a piece of it. Unless said, they are refused.
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// How long to go on without any connection and without progress.
    pub fn with_give_up_after(mut self, timeout: Duration) -> Self {
        self.give_up_after = timeout;
        self
    }

    /// Go on serving others once everything is verified, until a limit is reached. Unless said, the
    /// download ends then.
    pub fn with_seed(mut self, limits: SeedLimits) -> Self {
        self.seed = Some(limits);
        self
    }
}

/// Why a download ended before its end, in one line each.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// [`Download::stop`] was called before everything was verified.
    #[error("the download was stopped; what was verified is kept")]
    Stopped,
    /// No peers were given.
    #[error("there is nobody to fetch from: name at least one peer")]
    NoPeers,
    /// The download folder or a file in it cannot be used, or the disk is full.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no path to any of the peers.
    #[error("no path to any peer: {}", listed(.peers))]
    NoPath {
        /// Each peer with the reason.
        peers: Vec<(PeerAddr, String)>,
    },
    /// No peer could be reached for too long.
    #[error("no peer could be reached for {} s; what was verified is kept: {}", .after.as_secs(), listed(.peers))]
    NoPeer {
        /// How long.
        after: Duration,
        /// Each peer with the last reason.
        peers: Vec<(PeerAddr, String)>,
    },
    /// Peers are connected, but none sends anything, or has what is missing, for too long.
    #[error("gave up after {} s without progress; what was verified is kept: {}", .after.as_secs(), listed(.peers))]
    NoProgress {
        /// How long.
        after: Duration,
        /// Each peer with the reason.
        peers: Vec<(PeerAddr, String)>,
    },
    /// All peers were dropped for breaking the protocol or sending wrong data.
    #[error("no peer is left: {}", listed(.peers))]
    AllDropped {
        /// Each peer with the reason.
        peers: Vec<(PeerAddr, String)>,
    },
    /// The endpoint was closed.
    #[error("the endpoint was closed while downloading")]
    EndpointClosed,
    /// A defect in this program.
    #[error("the download broke off: {0}")]
    Internal(String),
}

fn listed(peers: &[(PeerAddr, String)]) -> String {
    let peers = peers.iter().map(|(peer, why)| format!("{peer} ({why})"));
    peers.collect::<Vec<_>>().join(", ")
}

/// A download at work. Dropping it stops it; what was verified stays on disk.
#[derive(Debug)]
pub struct Download {
    progress: watch::Receiver<Progress>,
    /// `true` asks it to stop; so does dropping this.
    stop: watch::Sender<bool>,
    completed: oneshot::Receiver<Summary>,
    task: JoinHandle<Result<Summary, DownloadError>>,
}

impl Download {
    /// Starts to fetch the torrent into `dir`, which is created if it is not there, from `peers`
    /// and from who connects to `network`. What is on disk already is checked first and not fetched
    /// again. Errors come out of [`Download::wait`].
    ///
    /// `network` serves this one torrent, and its connections are the download's to accept.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        metainfo: Metainfo,
        dir: PathBuf,
        peers: Vec<PeerAddr>,
        network: Network,
        options: DownloadOptions,
    ) -> Self {
        Self::over(network, metainfo, dir, peers, options)
    }

    pub(crate) fn over<T: Transport>(
        transport: T,
        metainfo: Metainfo,
        dir: PathBuf,
        peers: Vec<PeerAddr>,
        options: DownloadOptions,
    ) -> Self {
        let (sender, progress) = watch::channel(Progress {
            phase: Phase::Checking,
            checked_bytes: 0,
            verified_bytes: 0,
            total_bytes: metainfo.total_length(),
            resumed_bytes: 0,
            fetched_bytes: 0,
            wasted_bytes: 0,
            rate: 0,
            elapsed: Duration::ZERO,
            seeding: None,
            uploads: SeedProgress::default(),
            paths: Vec::new(),
            idle_peers: Vec::new(),
        });
        let (stop, mut stopped) = watch::channel(false);
        let (completed, all) = oneshot::channel();
        let work = async move {
            let stop = async move {
                // An error means that the download was dropped.
                let _ = stopped.wait_for(|stop| *stop).await;
            };
            let observers = Observers {
                progress: sender,
                completed,
            };
            fetch(transport, metainfo, dir, peers, options, observers, stop).await
        };
        Self {
            progress,
            stop,
            completed: all,
            task: tokio::spawn(work),
        }
    }

    /// How it is doing, about ten times a second.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Waits until everything is verified, and tells how that went; `None` when the download ends
    /// before: [`Download::wait`] then tells why. Also `None` when asked again.
    pub async fn completed(&mut self) -> Option<Summary> {
        if self.completed.is_terminated() {
            return None;
        }
        (&mut self.completed).await.ok()
    }

    /// Waits for the end, that of seeding afterwards included.
    ///
    /// # Errors
    /// What kept it from finishing.
    pub async fn wait(self) -> Result<Summary, DownloadError> {
        let Self { stop, task, .. } = self;
        let result = task.await;
        drop(stop);
        result.unwrap_or_else(|error| Err(DownloadError::Internal(error.to_string())))
    }

    /// Ends the download; [`Download::wait`] then returns [`DownloadError::Stopped`], unless
    /// everything is verified.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

/// Where a download reports to.
struct Observers {
    progress: watch::Sender<Progress>,
    /// Once everything is verified.
    completed: oneshot::Sender<Summary>,
}

async fn fetch<T: Transport>(
    transport: T,
    metainfo: Metainfo,
    dir: PathBuf,
    peers: Vec<PeerAddr>,
    options: DownloadOptions,
    observers: Observers,
    stop: impl Future<Output = ()>,
) -> Result<Summary, DownloadError> {
    if peers.is_empty() {
        return Err(DownloadError::NoPeers);
    }
    let Observers {
        progress,
        completed,
    } = observers;
    let metainfo = Arc::new(metainfo);
    let mut stop = std::pin::pin!(stop);
    let begun = Instant::now();
    let (sender, halt) = (progress.clone(), Arc::new(AtomicBool::new(false)));
    let (checked, halted) = (Arc::clone(&metainfo), Arc::clone(&halt));
    let target = Target {
        root: dir,
        layout: layout::in_folder(&metainfo),
        mark: metainfo.info_hash().0.to_vec(),
        overwrite: options.overwrite,
    };
    let mut checking =
        tokio::task::spawn_blocking(move || prepare(&checked, target, &sender, &halted));
    let prepared = tokio::select! {
        prepared = &mut checking => prepared,
        () = &mut stop => {
            halt.store(true, Ordering::Relaxed);
            // Nothing may touch the files after the end.
            let _ = checking.await;
            progress.send_modify(|progress| progress.phase = Phase::Stopped);
            return Err(DownloadError::Stopped);
        }
    };
    let prepared = prepared.map_err(|error| DownloadError::Internal(error.to_string()))?;
    let prepared = prepared.inspect_err(|_| {
        progress.send_modify(|progress| progress.phase = Phase::Stopped);
    })?;
    // `None` only where it was halted.
    let resumed = prepared.ok_or(DownloadError::Stopped)?;
    let (files, _lock) = (resumed.files, resumed.lock);
    let mut verified = Bitfield::empty(metainfo.piece_count());
    resumed.verified.into_iter().for_each(|piece| {
        verified.set(piece);
    });
    let check_time = begun.elapsed();

    let shared = Arc::new(shared(&metainfo, Arc::clone(&files), verified));
    let goal = Goal {
        until_complete: true,
        give_up_after: options.give_up_after,
        select: options.select,
        paths: options.paths.max(1),
        select_by: options.select_by,
        policy: options.policy,
        slots: options.slots,
        sensing: options.sensing,
    };
    // Kept here too: who sees the last of it closed finds the files unlocked.
    let reporter = Reporter::Download(progress.clone());
    let mut swarm = Swarm::new(transport, metainfo, shared, peers, goal, reporter)?;
    let checked = match swarm.complete(&mut stop).await {
        // Files without a byte may not exist yet; others may have been removed meanwhile.
        Ok(()) => match tokio::task::spawn_blocking(move || files.complete()).await {
            Ok(stamps) => stamps.map_err(DownloadError::Store),
            Err(error) => Err(DownloadError::Internal(error.to_string())),
        },
        Err(error) => Err(told(error)),
    };
    let stamps = match checked {
        Ok(stamps) => stamps,
        Err(error) => {
            swarm.close(false).await;
            return Err(error);
        }
    };
    let summary = summary(swarm.tally(), check_time);
    // Nobody need wait for it.
    let _ = completed.send(summary.clone());
    let ended = match options.seed {
        None => Ok(None),
        Some(limits) => swarm.seed(limits, stamps, stop).await.map(Some),
    };
    let time = swarm.seeded_for();
    let uploaded_bytes = swarm.close(ended.is_ok()).await.uploaded_bytes;
    let ended = ended.map_err(told)?;
    Ok(Summary {
        uploaded_bytes,
        seeded: ended.zip(time).map(|(end, time)| Seeded { time, end }),
        ..summary
    })
}

fn summary(tally: Tally, check_time: Duration) -> Summary {
    Summary {
        fetched_bytes: tally.verified_bytes - tally.resumed_bytes,
        resumed_bytes: tally.resumed_bytes,
        wasted_bytes: tally.wasted_bytes,
        download_time: tally.elapsed(Instant::now()),
        check_time,
        uploaded_bytes: tally.uploaded_bytes,
        paths: tally.paths,
        seeded: None,
    }
}

fn told(error: SwarmError) -> DownloadError {
    match error {
        SwarmError::Stopped => DownloadError::Stopped,
        SwarmError::Store(error) => DownloadError::Store(error),
        SwarmError::NoPeer(after, peers) => DownloadError::NoPeer { after, peers },
        SwarmError::NoProgress(after, peers) => DownloadError::NoProgress { after, peers },
        SwarmError::AllDropped(peers) => DownloadError::AllDropped { peers },
        SwarmError::NoPath(peers) => DownloadError::NoPath { peers },
        SwarmError::EndpointClosed => DownloadError::EndpointClosed,
    }
}

/// What the connections of a torrent share.
pub(crate) fn shared(metainfo: &Metainfo, files: Arc<Files>, verified: Bitfield) -> Shared {
    Shared {
        files,
        pieces: metainfo.pieces(),
        fetching: AtomicBool::new(!verified.is_full()),
        verified: RwLock::new(verified),
        content: OnceLock::new(),
        account: Budget::of_process().join(),
        ours: Handshake {
            info_hash: metainfo.info_hash(),
            peer_id: PeerId::random(),
            extended: true,
        },
    }
}

/// Opens the target and reports how far verifying it is, until `halt` is set.
fn prepare(
    metainfo: &Metainfo,
    target: Target,
    progress: &watch::Sender<Progress>,
    halt: &AtomicBool,
) -> Result<Option<Resumed>, StoreError> {
    let (mut checked, mut verified, mut reported) = (0, 0, Instant::now());
    target.resume(metainfo, |piece, is_right| {
        let size = u64::from(metainfo.piece_size(piece));
        checked += size;
        if is_right {
            verified += size;
        }
        if reported.elapsed() >= EVERY {
            reported = Instant::now();
            progress.send_modify(|progress| {
                progress.checked_bytes = checked;
                progress.verified_bytes = verified;
                progress.resumed_bytes = verified;
            });
        }
        !halt.load(Ordering::Relaxed)
    })
}
