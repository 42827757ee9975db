//! Downloading a torrent: verifying what is on disk, fetching the rest, seeding.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_address::PeerAddr;
use hawser_session::SharedPolicy;
use hawser_store::{Files, Resumed, Target, VerifiedFile};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::bitfield::Bitfield;
use crate::error::{DownloadError, RenameError, SelectError};
use crate::files::{FileTally, FilesProgress};
use crate::layout;
use crate::limits::Seeded;
use crate::metainfo::Metainfo;
use crate::network::Network;
use crate::options::DownloadOptions;
use crate::peer::Shared;
use crate::progress::{Phase, Progress, Summary};
use crate::rate::{OuterLimits, RateLimits, Rates};
use crate::recording::Recording;
use crate::selection::Selection;
use crate::source::{Found, FoundPeers};
use crate::swarm::{Reporter, Select, Swarm};
use crate::transport::Transport;

/// Time between progress reports while verifying.
const EVERY: Duration = Duration::from_millis(100);

/// Selections that may wait: one is in force before the next is looked at.
const MAX_SELECTS: usize = 4;

/// A download at work. Dropping it stops it; verified pieces stay on disk.
#[derive(Debug)]
pub struct Download {
    progress: watch::Receiver<Progress>,
    stop: DropGuard,
    completed: oneshot::Receiver<Summary>,
    policy: SharedPolicy,
    rates: Arc<Rates>,
    found: FoundPeers,
    selects: mpsc::Sender<Select>,
    files: watch::Receiver<Option<Arc<Files>>>,
    max_peers: watch::Sender<usize>,
    task: JoinHandle<Result<Summary, DownloadError>>,
}

impl Download {
    /// Starts to fetch the torrent into `dir`, which is created if it does not exist, from `peers`
    /// and from peers that connect to `network`. Files on disk are verified first, and their right
    /// pieces not fetched again. [`Download::wait`] returns errors.
    ///
    /// `network` is for this torrent alone: the download accepts all its connections.
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
            total_bytes: metainfo.pieces.total,
            files: FileTally::new(&metainfo).progress().clone(),
            ..Progress::default()
        });
        let stop = CancellationToken::new();
        let (sends_completed, completed) = oneshot::channel();
        let policy = SharedPolicy::new(options.paths.policy.clone());
        let rates = Arc::new(Rates::new(options.limits, transport.rates()));
        let (found, finds) = FoundPeers::channel();
        let (selects, selected) = mpsc::channel(MAX_SELECTS);
        let (opened, files) = watch::channel(None);
        let (max_peers, followed) = watch::channel(usize::MAX);
        let job = Job {
            transport,
            metainfo: Arc::new(metainfo),
            dir,
            peers,
            options,
            progress: sender,
            completed: sends_completed,
            policy: policy.clone(),
            rates: Arc::clone(&rates),
            found: finds,
            selects: selected,
            opened,
            max_peers: followed,
        };
        let task = tokio::spawn(job.run(stop.clone()));
        Self {
            progress,
            stop: stop.drop_guard(),
            completed,
            policy,
            rates,
            found,
            selects,
            files,
            max_peers,
            task,
        }
    }

    /// Which paths to SCION peers may be used, by either side: at first the policy of the options. It can be
    /// changed at any time; connections over paths that are denied then are closed, and others are opened.
    pub fn policy(&self) -> SharedPolicy {
        self.policy.clone()
    }

    /// Sets how fast it sends and receives, from now on: at first as its options say.
    pub fn set_limits(&self, limits: RateLimits) {
        self.rates.set(limits);
    }

    /// Sets which limits its own are within, from now on: at first those of its session, if it has one.
    pub fn set_outer_limits(&self, limits: &OuterLimits) {
        self.rates.set_outer(limits);
    }

    /// Sets how many address-level peers may be connected, from now on: any number at first. Where more are,
    /// the least useful ones are closed: those that transfer least.
    pub fn set_max_peers(&self, max: usize) {
        self.max_peers
            .send_if_modified(|kept| std::mem::replace(kept, max) != max);
    }

    /// Gives it peers while it runs. They are ignored unless its options say that peers are found.
    pub fn found_peers(&self) -> FoundPeers {
        self.found.clone()
    }

    /// Fetches the files of another selection from now on, and no others. The selection at first is that
    /// of the options. Files that become selected are created, and what is on disk of them moves to
    /// their places; files that are no longer selected stay as they are. Waits until that is done; while
    /// the disk is checked, until that is over.
    ///
    /// # Errors
    /// If the selection does not fit the torrent, if something is in the way of a file, or if the
    /// download is complete or has ended. The selection is then as it was.
    pub async fn set_files(&self, selection: Selection) -> Result<(), SelectError> {
        let (reply, result) = oneshot::channel();
        let sent = self.selects.send((selection, reply)).await;
        sent.map_err(|_| SelectError::Ended)?;
        result.await.unwrap_or(Err(SelectError::Ended))
    }

    /// Gives a file or folder of the torrent another path in the same folder, relative to the download folder, on
    /// disk and for what is written later. Nothing else of the torrent may have it. Waits until that is done;
    /// while the disk is checked, until that is over.
    ///
    /// # Errors
    /// If something has the path, or the file cannot be renamed, then nothing is changed; or if the
    /// download has ended.
    pub async fn rename(&self, from: PathBuf, to: PathBuf) -> Result<(), RenameError> {
        let mut files = self.files.clone();
        let opened = files.wait_for(Option::is_some).await;
        let opened = opened.map_or(None, |files| files.clone());
        let files = opened.ok_or(RenameError::Ended)?;
        let renamed = tokio::task::spawn_blocking(move || files.rename(&from, &to)).await;
        Ok(renamed.map_err(|_| RenameError::Ended)??)
    }

    /// How much of each file is selected and verified, as last reported.
    pub fn files(&self) -> FilesProgress {
        self.progress.borrow().files.clone()
    }

    /// The progress, updated about ten times a second.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Waits until everything selected is verified, and returns the summary; `None` if the download ends
    /// before that ([`Download::wait`] returns why), and on later calls.
    pub async fn completed(&mut self) -> Option<Summary> {
        if self.completed.is_terminated() {
            return None;
        }
        (&mut self.completed).await.ok()
    }

    /// Waits until the download, and seeding afterwards, has ended.
    ///
    /// # Errors
    /// The reason why it did not finish.
    pub async fn wait(mut self) -> Result<Summary, DownloadError> {
        (&mut self.task).await?
    }

    /// Ends the download; [`Download::wait`] then returns [`DownloadError::Stopped`], unless
    /// everything is verified.
    pub fn stop(&self) {
        self.stop.token().cancel();
    }
}

/// A download with its options.
struct Job<T> {
    transport: T,
    metainfo: Arc<Metainfo>,
    dir: PathBuf,
    peers: Vec<PeerAddr>,
    options: DownloadOptions,
    progress: watch::Sender<Progress>,
    /// Receives the summary once everything selected is verified.
    completed: oneshot::Sender<Summary>,
    policy: SharedPolicy,
    rates: Arc<Rates>,
    /// Peers that are found while it runs.
    found: mpsc::Receiver<Found>,
    /// Selections that take the place of that of the options.
    selects: mpsc::Receiver<Select>,
    /// Gets the files when they are open, and verified.
    opened: watch::Sender<Option<Arc<Files>>>,
    /// How many peers may be connected.
    max_peers: watch::Receiver<usize>,
}

impl<T: Transport> Job<T> {
    /// Downloads, then seeds if the options say so, until a limit is reached or it is stopped.
    ///
    /// # Errors
    /// The reason why the download or the seeding failed.
    async fn run(self, stop: CancellationToken) -> Result<Summary, DownloadError> {
        let options = &self.options;
        let finds_peers = options.finds_peers || options.exchanges_peers;
        let has_web_seeds = options.uses_web_seeds && !self.metainfo.sources.web_seeds.is_empty();
        if self.peers.is_empty() && !options.awaits_peers && !finds_peers && !has_web_seeds {
            return Err(DownloadError::NoPeers);
        }
        options.files.check(&self.metainfo)?;
        let (metainfo, options) = (self.metainfo, self.options);
        let skipped = (0..metainfo.files.len()).filter(|file| !options.files.has(*file));
        let begun = Instant::now();
        let (layout, mark) = (layout::in_folder(&metainfo), metainfo.info_hash.0.to_vec());
        let record = options.record.as_ref();
        let record = record.map(|path| VerifiedFile::new(path.clone(), mark.clone()));
        let target = Target {
            root: self.dir,
            layout,
            mark,
            skipped: skipped.collect(),
            parts: layout::part_file(&metainfo),
            options: options.storage,
            trusted: None,
        };
        let known = Known {
            record: record.clone(),
            rechecks: options.rechecks,
        };
        let resumed = prepare(&metainfo, target, known, &self.progress, &stop).await?;
        let check_time = begun.elapsed();
        let (files, trusted_pieces) = (Arc::clone(&resumed.files), resumed.trusted);
        self.opened.send_replace(Some(Arc::clone(&files)));
        let mut verified = Bitfield::empty(metainfo.pieces.count());
        for piece in &resumed.verified {
            verified.set(*piece);
        }

        let shared = Shared::new(&metainfo, Arc::clone(&files), verified.clone(), self.rates);
        let shared = Arc::new(shared);
        let recording =
            record.map(|file| Recording::begin(file, &metainfo, &resumed, &verified, &shared));
        // The files are locked until the last record is made.
        let _lock = resumed.lock;
        // A clone: the last sender is dropped at the end of this function, when the files are
        // unlocked.
        let reporter = Reporter::Download(self.progress.clone());
        let mut swarm = Swarm::new(
            self.transport,
            metainfo,
            shared,
            self.peers,
            options.select_by,
            options.paths,
            reporter,
        )?;
        swarm.begin(&options.files, Instant::now());
        swarm.take_selections(self.selects);
        swarm.follow_max_peers(self.max_peers);
        swarm.follow(&self.policy);
        swarm.set_slots(options.slots);
        match options.finds_peers {
            true => swarm.find_peers(self.found),
            false => drop(self.found),
        }
        if has_web_seeds {
            swarm.use_web_seeds();
        }
        if options.exchanges_peers {
            swarm.exchange_peers();
        }
        let complete = async {
            let (give_up_after, awaits_peers) = (options.give_up_after, options.awaits_peers);
            swarm
                .complete(give_up_after, options.choked_patience, awaits_peers, &stop)
                .await?;
            // Empty files may not exist yet, and others may have been removed meanwhile.
            let stamps = tokio::task::spawn_blocking(move || files.complete()).await??;
            Ok::<_, DownloadError>(stamps)
        };
        let stamps = match complete.await {
            Ok(stamps) => stamps,
            Err(error) => {
                swarm.close(false).await;
                end(recording).await;
                return Err(error);
            }
        };
        if let Some(recording) = &recording {
            recording.record().await;
        }
        let tally = swarm.tally();
        let summary = Summary {
            fetched_bytes: tally.verified_bytes - tally.resumed_bytes,
            resumed_bytes: tally.resumed_bytes,
            trusted_pieces,
            wasted_bytes: tally.wasted_bytes,
            download_time: tally.elapsed(Instant::now()),
            check_time,
            uploaded_bytes: tally.uploaded.bytes(),
            paths: tally.paths,
            other_bytes: tally.other_bytes,
            web_seeds: swarm.web_seeds(),
            seeded: None,
        };
        // Fails if the receiver is dropped.
        let _ = self.completed.send(summary.clone());
        let ended = match options.seed {
            None => Ok(None),
            Some(limits) => swarm.seed(limits, stamps, &stop).await.map(Some),
        };
        let time = swarm.seeded_for();
        let uploaded_bytes = swarm.close(ended.is_ok()).await.uploaded.bytes();
        end(recording).await;
        Ok(Summary {
            uploaded_bytes,
            seeded: ended?.zip(time).map(|(end, time)| Seeded { time, end }),
            ..summary
        })
    }
}

/// Records what is verified at the end of a download, if it is recorded.
async fn end(recording: Option<Recording>) {
    if let Some(recording) = recording {
        recording.end().await;
    }
}

/// What is known of the content on disk before it is verified.
struct Known {
    record: Option<VerifiedFile>,
    /// Whether everything is verified nevertheless.
    rechecks: bool,
}

/// Opens the target and verifies its files, on a thread that may wait for the disk.
///
/// # Errors
/// [`DownloadError::Stopped`], or the reason why the target cannot be used.
async fn prepare(
    metainfo: &Arc<Metainfo>,
    mut target: Target,
    known: Known,
    progress: &watch::Sender<Progress>,
    stop: &CancellationToken,
) -> Result<Resumed, DownloadError> {
    let (metainfo, sender, stop) = (Arc::clone(metainfo), progress.clone(), stop.clone());
    let verify = move || {
        if let Some(record) = known.record {
            match known.rechecks {
                // Before anything is hashed: what breaks that off must not leave it trusted.
                true => record.remove()?,
                false => target.trusted = record.read(&target.layout, &*metainfo),
            }
        }
        let (mut checked, mut verified, mut reported) = (0, 0, Instant::now());
        target.resume(&*metainfo, |piece, is_right| {
            let size = u64::from(metainfo.pieces.size(piece));
            checked += size;
            if is_right {
                verified += size;
            }
            if reported.elapsed() >= EVERY {
                reported = Instant::now();
                sender.send_modify(|progress| {
                    progress.checked_bytes = checked;
                    progress.verified_bytes = verified;
                    progress.resumed_bytes = verified;
                });
            }
            !stop.is_cancelled()
        })
    };
    // Waits even when stopped: nothing may touch the files after the end.
    let prepared = match tokio::task::spawn_blocking(verify).await {
        Ok(Ok(resumed)) => resumed.ok_or(DownloadError::Stopped),
        Ok(Err(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    };
    prepared.inspect_err(|_| progress.send_modify(|progress| progress.phase = Phase::Stopped))
}
