//! The task of a torrent that runs: metadata, content, trackers.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hawser_discovery::{DhtNode, PeerSearch, Sought};
use hawser_magnet::{Magnet, MagnetPeer};
use hawser_torrent::{
    Download, DownloadError, DownloadOptions, FoundPeers, InfoHash, Metainfo, PeerAddr, PeerSource,
    Phase, Progress, RenameError, Resolve, ResolveError, ResolveProgress, SelectError, new_peer_id,
};
use hawser_tracker::{Stats, TrackerStatus};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, verify_options};
use crate::event::Event;
use crate::files::FileChoice;
use crate::metainfo::from_link;
use crate::record::{Origin, Record};
use crate::renames::Rename;
use crate::settings::Settings;
use crate::state::StateFolder;
use crate::trackers::{Tiers, of_link};
use crate::windows::Windows;

/// What can be seen of a torrent that runs, without its task. Each receiver has the latest state.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// The fetch of the metadata.
    pub resolve: Option<watch::Receiver<ResolveProgress>>,
    /// The download, and seeding after it.
    pub download: Option<watch::Receiver<Progress>>,
    /// The trackers.
    pub trackers: Option<watch::Receiver<Vec<TrackerStatus>>>,
    /// Whether its trackers alone can name peers: no other search runs, and no peer was named.
    pub only_trackers: bool,
}

/// What a task is given.
pub(crate) struct Job {
    pub engine: Arc<Engine>,
    pub state: Arc<StateFolder>,
    pub record: Record,
    pub events: mpsc::Sender<(InfoHash, Event)>,
    pub live: watch::Sender<Live>,
    /// The settings of the record, also those that change while the task runs.
    pub settings: watch::Receiver<Settings>,
    /// How many peers it may be connected to, also as that changes while the task runs.
    pub max_peers: watch::Receiver<usize>,
    /// The bytes that are being read while they are fetched.
    pub windows: watch::Receiver<Windows>,
    /// The peers that users have named, also those that they name while the task runs.
    pub named_peers: watch::Receiver<Vec<PeerAddr>>,
    /// Asks for an announce to the trackers.
    pub reannounce: Arc<Notify>,
    /// The files that get other names while it runs.
    pub renames: watch::Receiver<Option<Rename>>,
    pub stop: CancellationToken,
}

impl Job {
    /// Fetches and serves a torrent until it is stopped.
    ///
    /// # Errors
    /// Why it has failed.
    pub async fn run(self) -> Result<(), String> {
        let known = match &self.record.origin {
            Origin::Metainfo => Known::Metainfo(Box::new(self.metainfo().await?)),
            Origin::Magnet(link) => {
                let magnet: Magnet = link.parse().map_err(|error| format!("{error}"))?;
                Known::Link {
                    info_hash: self.record.info_hash,
                    magnet: Box::new(magnet),
                }
            }
        };
        let reannounce = Arc::clone(&self.reannounce);
        let named_peers = self.named_peers.clone();
        let mut finding = Finding::new(&known, self.settings.clone(), named_peers, reannounce);
        let ended = self.fetch(known, &mut finding).await;
        if let Some(search) = finding.search {
            search.stop().await;
        }
        ended
    }

    /// Verifies the content on disk.
    ///
    /// # Errors
    /// Why that has failed.
    pub async fn verify(self) -> Result<(), String> {
        let metainfo = self.metainfo().await?;
        let count = metainfo.files.len();
        let folder = self.record.folder.clone();
        let options = DownloadOptions {
            storage: self.engine.storage,
            ..verify_options(&self.record.settings, count, self.verified_path())
        };
        let session = &self.engine.session;
        let download = session.download(metainfo, folder, Vec::new(), options);
        let download = download.map_err(|error| error.to_string())?;
        let mut progress = self.watch(&download);
        loop {
            tokio::select! {
                changed = progress.changed() => if changed.is_err() { break },
                () = self.stop.cancelled() => break,
            }
            let checked = checked(&progress.borrow_and_update());
            if let Some(complete) = checked {
                self.report(Event::Checked { complete }).await;
                break;
            }
        }
        download.stop();
        ended(download.wait().await.map(drop))
    }

    fn verified_path(&self) -> PathBuf {
        self.state.verified_path(self.record.info_hash)
    }

    /// Reads the metainfo that is kept.
    async fn metainfo(&self) -> Result<Metainfo, String> {
        let (state, record) = (Arc::clone(&self.state), self.record.clone());
        let read = tokio::task::spawn_blocking(move || state.metainfo_of(&record)).await;
        let read = read.map_err(|error| error.to_string())?;
        read.map_err(|error| error.to_string())
    }

    async fn report(&self, event: Event) {
        // Its owner ends after all tasks.
        let _ = self.events.send((self.record.info_hash, event)).await;
    }

    /// Shows a download to those that look at the torrent.
    fn watch(&self, download: &Download) -> watch::Receiver<Progress> {
        let progress = download.progress();
        self.live.send_modify(|live| {
            live.resolve = None;
            live.download = Some(download.progress());
        });
        progress
    }

    /// Has peers found from now on, unless they are.
    fn find(&self, finding: &mut Finding) {
        if finding.search.is_some() {
            return;
        }
        let (sought, stats) = (finding.sought.clone(), finding.stats.subscribe());
        let search = self.engine.finder().search(sought, stats);
        let status = search.status();
        let only_trackers = !search.goes_beyond_trackers() && self.record.peers.is_empty();
        self.live.send_modify(|live| {
            live.trackers = status;
            live.only_trackers = only_trackers;
        });
        finding.search = Some(search);
    }

    async fn fetch(&self, known: Known, finding: &mut Finding) -> Result<(), String> {
        let (mut peers, mut folder) = (self.record.peers.clone(), self.record.folder.clone());
        let metainfo = match known {
            Known::Metainfo(metainfo) => *metainfo,
            Known::Link { magnet, .. } => {
                self.find(finding);
                let named = link_peers(&magnet).await;
                if !named.is_empty() {
                    self.live.send_modify(|live| live.only_trackers = false);
                }
                peers.extend(named);
                let resolved = self.resolve(&magnet, peers.clone(), finding).await?;
                let Some((metainfo, had, to)) = resolved else {
                    return Ok(());
                };
                folder = to;
                peers.extend(finding.learn(metainfo.private, had));
                metainfo
            }
        };
        let mut settings = self.settings.clone();
        let (begun, count) = (settings.borrow_and_update().clone(), metainfo.files.len());
        let options = DownloadOptions {
            rechecks: self.record.rechecks,
            ..self.engine.options(&begun, count, self.verified_path())
        };
        let nodes = nodes(&metainfo);
        let session = &self.engine.session;
        let download = session.download(metainfo, folder, peers, options);
        let download = download.map_err(|error| error.to_string())?;
        download.set_outer_limits(&self.engine.outer_limits(&begun));
        download.set_max_peers(*self.max_peers.borrow());
        tokio::select! {
            () = self.follow(&download, finding, &nodes) => {}
            () = self.stop.cancelled() => {}
            never = self.obey(&mut settings, &download, begun.files, count) => match never {},
            never = self.rename(&download) => match never {},
        }
        download.stop();
        ended(download.wait().await.map(drop))
    }

    /// Reports the steps of a download, and its numbers to the trackers, and gives it the peers that are
    /// found, until it ends. The torrent names `nodes` of the DHT.
    async fn follow(&self, download: &Download, finding: &mut Finding, nodes: &[DhtNode]) {
        let (mut progress, found) = (self.watch(download), download.found_peers());
        if let Some(search) = &finding.search {
            for (source, peers) in search.kept() {
                found.add(peers, source).await;
            }
        }
        let named = self.engine.finder().add_nodes(nodes);
        tokio::pin!(named);
        let (mut are_named, mut is_checked, mut is_complete) = (false, false, false);
        loop {
            tokio::select! {
                () = &mut named, if !are_named => are_named = true,
                (peers, source) = finding.found() => {
                    found.add(peers, source).await;
                }
                changed = progress.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let (checked, phase) = {
                        let progress = progress.borrow_and_update();
                        let checked = checked(&progress);
                        if checked.is_some() {
                            finding.stats.send_replace(numbers(&progress));
                        }
                        (checked, progress.phase)
                    };
                    let Some(complete) = checked else {
                        continue;
                    };
                    if !std::mem::replace(&mut is_checked, true) {
                        is_complete = complete;
                        self.report(Event::Checked { complete }).await;
                        // Not before: trackers would take what is on disk already for a finished download.
                        self.find(finding);
                    }
                    let completes = matches!(phase, Phase::Seeding | Phase::Done);
                    if completes && !std::mem::replace(&mut is_complete, true) {
                        self.report(Event::Completed).await;
                    }
                    if is_complete {
                        finding.end_downloading();
                    }
                }
            }
        }
    }

    /// Has a download, of a torrent with `count` files, obey its settings as they change, and fetch first what
    /// is being read. It has begun with `files`. Never ends.
    async fn obey(
        &self,
        settings: &mut watch::Receiver<Settings>,
        download: &Download,
        mut files: FileChoice,
        count: usize,
    ) -> Infallible {
        let (mut windows, mut max_peers) = (self.windows.clone(), self.max_peers.clone());
        max_peers.mark_changed();
        // What is being read from before this task began counts, too.
        windows.mark_changed();
        let mut window = None;
        loop {
            let changed = tokio::select! {
                changed = settings.changed() => changed,
                changed = windows.changed() => changed,
                changed = max_peers.changed() => changed,
            };
            if changed.is_err() {
                break;
            }
            download.set_max_peers(*max_peers.borrow_and_update());
            let wanted = settings.borrow_and_update().clone();
            let read = windows.borrow_and_update().latest();
            // The engine has no window in a file that it does not fetch.
            let read = read.filter(|read| wanted.files.wish(read.file).is_wanted);
            let outer = self.engine.outer_limits(&wanted);
            // Files first: what is not wanted any more must not be fetched faster before that is known.
            if wanted.files != files || read != window {
                let selection = wanted.files.selection(count).with_window(read);
                match download.set_files(selection).await {
                    Ok(()) => (files, window) = (wanted.files, read),
                    // All that is wanted is there.
                    Err(SelectError::Complete) if !files.grows_to(&wanted.files) => {}
                    // Its end is reported with the reason.
                    Err(SelectError::Ended) => break,
                    // The bytes that are read are fetched all the same, only later.
                    Err(error) if wanted.files == files => {
                        tracing::debug!("torrent {}: {error}", self.record.info_hash);
                        window = read;
                    }
                    Err(error) => {
                        let info_hash = self.record.info_hash;
                        tracing::debug!("torrent {info_hash}: {error}; it is run again");
                        self.report(Event::Unselected).await;
                    }
                }
            }
            download.set_outer_limits(&outer);
            download.set_limits(wanted.rates.into());
        }
        std::future::pending().await
    }

    /// Has a download give files other names, as that is ordered. Never ends.
    async fn rename(&self, download: &Download) -> Infallible {
        let mut renames = self.renames.clone();
        while renames.changed().await.is_ok() {
            let Some(rename) = renames.borrow_and_update().clone() else {
                continue;
            };
            match download.rename(rename.from().to_owned(), rename.to()).await {
                // It is done once it has ended.
                Err(RenameError::Ended) => {}
                done => {
                    let done = done.map_err(|error| error.to_string());
                    self.report(Event::Renamed(done)).await;
                }
            }
        }
        std::future::pending().await
    }

    /// Fetches the metadata of a magnet link, and has it kept. Also returns peers, and the folder for the content;
    /// `None` if it was stopped.
    async fn resolve(
        &self,
        magnet: &Magnet,
        peers: Vec<PeerAddr>,
        finding: &mut Finding,
    ) -> Result<Option<(Metainfo, Vec<PeerAddr>, PathBuf)>, String> {
        let network = self.engine.network.clone();
        let resolve = Resolve::start(magnet.info_hashes, peers, network, Duration::MAX);
        let (progress, found) = (resolve.progress(), resolve.found_peers());
        self.live.send_modify(|live| live.resolve = Some(progress));
        let resolved = tokio::select! {
            resolved = resolve.wait() => resolved,
            () = self.stop.cancelled() => return Ok(None),
            never = finding.feed(&found) => match never {},
        };
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(ResolveError::Stopped) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let bytes = from_link(&resolved.metainfo, magnet);
        let (kept, is_kept) = oneshot::channel();
        self.report(Event::Resolved {
            metainfo: Box::new(resolved.metainfo.clone()),
            bytes,
            kept,
        })
        .await;
        match is_kept.await {
            Ok(kept) => kept.map(|folder| {
                let mut metainfo = resolved.metainfo;
                metainfo.sources.web_seeds.clone_from(&magnet.web_seeds);
                Some((metainfo, resolved.peers, folder))
            }),
            // The program ends.
            Err(_) => Ok(None),
        }
    }
}

/// The numbers of a torrent of which nothing is known: it is not complete.
const UNKNOWN: Stats = Stats {
    uploaded: 0,
    downloaded: 0,
    left: 1,
    peers: 0,
};

/// The search for the peers of a torrent.
struct Finding {
    sought: Sought,
    stats: watch::Sender<Stats>,
    /// `None` before they are searched for.
    search: Option<PeerSearch>,
    /// The trackers that the torrent names.
    named: Tiers,
    /// With the trackers that are asked in their place.
    settings: watch::Receiver<Settings>,
    /// The peers that users have named; the task began with those that are marked as seen.
    named_peers: watch::Receiver<Vec<PeerAddr>>,
    reannounce: Arc<Notify>,
}

impl Finding {
    fn new(
        known: &Known,
        mut settings: watch::Receiver<Settings>,
        named_peers: watch::Receiver<Vec<PeerAddr>>,
        reannounce: Arc<Notify>,
    ) -> Self {
        let named = known.trackers();
        let set = settings.borrow_and_update().trackers.clone();
        let (info_hash, is_private) = match known {
            Known::Metainfo(metainfo) => (metainfo.info_hash, Some(metainfo.private)),
            Known::Link { info_hash, .. } => (*info_hash, None),
        };
        Self {
            sought: Sought {
                info_hash: info_hash.0,
                peer_id: new_peer_id(),
                trackers: set.unwrap_or_else(|| named.clone()),
                is_private,
                downloads: true,
            },
            stats: watch::Sender::new(UNKNOWN),
            search: None,
            named,
            settings,
            named_peers,
            reannounce,
        }
    }

    /// The next peers to dial, found or named by users. Meanwhile it obeys what users change of the trackers. Cancel
    /// safe.
    async fn found(&mut self) -> (Vec<PeerAddr>, PeerSource) {
        loop {
            let search = &mut self.search;
            let next = async {
                match search {
                    Some(search) => search.found().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                found = next => return found,
                // What gives them ends later.
                Ok(()) = self.settings.changed() => self.set_trackers(),
                Ok(()) = self.named_peers.changed() => {
                    let named = self.named_peers.borrow_and_update().clone();
                    return (named, PeerSource::Listed);
                }
                () = self.reannounce.notified() => if let Some(search) = &self.search {
                    search.refresh();
                },
            }
        }
    }

    /// Has the trackers of the settings asked.
    fn set_trackers(&mut self) {
        let set = self.settings.borrow_and_update().trackers.clone();
        let tiers = set.unwrap_or_else(|| self.named.clone());
        if tiers == self.sought.trackers {
            return;
        }
        self.sought.trackers.clone_from(&tiers);
        if let Some(search) = &mut self.search {
            search.set_trackers(tiers);
        }
    }

    /// Gives what is found to the fetch of metadata. Never ends.
    async fn feed(&mut self, to: &FoundPeers) -> Infallible {
        loop {
            let (peers, source) = self.found().await;
            to.add(peers, source).await;
        }
    }

    /// The metadata of a link says whether the torrent is private: returns which of the peers that had it
    /// may be dialed again (BEP 27).
    fn learn(&mut self, is_private: bool, mut had: Vec<PeerAddr>) -> Vec<PeerAddr> {
        self.sought.is_private = Some(is_private);
        if let Some(search) = &mut self.search {
            had.retain(|peer| !is_private || !search.is_untracked(*peer));
            search.learn(is_private);
        }
        had
    }

    /// Nothing is missing any more.
    fn end_downloading(&mut self) {
        self.sought.downloads = false;
        if let Some(search) = &mut self.search {
            search.end_downloading();
        }
    }
}

/// The nodes of the DHT that a torrent names (BEP 5); none of a private one.
fn nodes(metainfo: &Metainfo) -> Vec<DhtNode> {
    let named = metainfo.sources.nodes.iter().filter(|_| !metainfo.private);
    let nodes = named.filter_map(|(host, port)| DhtNode::at(host, *port));
    nodes.collect()
}

/// What is known of a torrent when its task begins.
enum Known {
    Metainfo(Box<Metainfo>),
    Link {
        info_hash: InfoHash,
        magnet: Box<Magnet>,
    },
}

impl Known {
    /// Its trackers, in tiers (BEP 12).
    fn trackers(&self) -> Vec<Vec<String>> {
        match self {
            Self::Metainfo(metainfo) => metainfo.sources.trackers.clone(),
            Self::Link { magnet, .. } => of_link(magnet),
        }
    }
}

/// The peers that a link names. Those of host names that are not known are left out.
pub(crate) async fn link_peers(magnet: &Magnet) -> Vec<PeerAddr> {
    let mut peers = Vec::new();
    for peer in &magnet.peers {
        match peer {
            MagnetPeer::Addr(addr) => peers.push(*addr),
            MagnetPeer::Name(name) => match tokio::net::lookup_host(name.as_str()).await {
                Ok(found) => peers.extend(found.map(PeerAddr::Ip)),
                Err(error) => tracing::warn!("the peer {name} of a magnet link: {error}"),
            },
        }
    }
    peers
}

/// Whether all that is wanted was on disk; `None` while the content is verified, and if that was broken off.
fn checked(progress: &Progress) -> Option<bool> {
    match progress.phase {
        Phase::Checking | Phase::Stopped => None,
        _ => {
            let files = &progress.files;
            let is_complete = files.wanted_verified_bytes >= files.wanted_bytes;
            Some(is_complete && progress.fetched_bytes == 0)
        }
    }
}

/// The numbers for trackers.
fn numbers(progress: &Progress) -> Stats {
    Stats {
        uploaded: progress.uploads.uploaded_bytes,
        downloaded: progress.fetched_bytes,
        left: progress.total_bytes.saturating_sub(progress.verified_bytes),
        peers: u32::try_from(progress.paths.len()).unwrap_or(u32::MAX),
    }
}

/// How a download has ended: it is no failure that it was stopped.
fn ended(ended: Result<(), DownloadError>) -> Result<(), String> {
    match ended {
        Ok(()) | Err(DownloadError::Stopped) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
