//! Peers being found for one torrent, by all its ways.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Instant;

use hawser_discovery::{Client, ClientOptions, Datagrams, ScionDatagrams, Trackers};
use hawser_torrent::{FoundPeers, PeerAddr, PeerSource, Progress, SeedProgress};
use hawser_tracker::{
    AnnounceOptions, Announcer, Host, Identity, Stats, TrackerStatus, TrackerUrl,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::dht::Dht;
use super::local::Local;
use super::{MAX_WAITING, Sought, Ways};
use crate::cmd::network::Sockets;
use crate::failure::Failure;
use crate::out::{errln, plain};

/// Most addresses that are kept for a download which begins when the metadata is there.
const MAX_KEPT: usize = 2000;

/// Peers being found for one torrent.
pub struct Finding {
    trackers: Option<Trackers>,
    stats: watch::Sender<Stats>,
    answers: mpsc::Receiver<Vec<PeerAddr>>,
    dht: Option<Dht>,
    local: Option<Local>,
    /// Whether found peers are dialed; a seeder dials those of its own network alone.
    dials: bool,
    /// Peers found so far, for a download that begins later, and by what.
    kept: BTreeMap<PeerAddr, PeerSource>,
    /// Errors of trackers that were shown, by URL.
    shown: BTreeSet<(String, String)>,
}

impl Finding {
    /// Asks the trackers of a torrent, in tiers, and searches the own network, if `ways` say so, and the
    /// DHT, if that is given. This side is announced in the latter two once it is known that the torrent is
    /// not private.
    ///
    /// # Errors
    /// When no socket for trackers or for the own network can be opened.
    pub fn begin(
        ways: Ways,
        sought: &Sought,
        sockets: &Sockets,
        mut dht: Option<Dht>,
    ) -> Result<Self, Failure> {
        let trackers = &sought.trackers;
        let stats = watch::Sender::new(Stats {
            left: sought.left,
            ..Stats::default()
        });
        let announces = sought.is_private == Some(false);
        if let Some(dht) = &mut dht {
            dht.search(announces);
        }
        let mut local = Local::new(ways, sought, sockets);
        if let Some(local) = &mut local {
            local.search(announces)?;
        }
        let (sink, answers) = mpsc::channel(MAX_WAITING);
        let trackers = match ways.trackers {
            false => None,
            true => {
                let options = ClientOptions {
                    scion: scion(trackers, sockets)?,
                    ..ClientOptions::default()
                };
                let client = Client::new(options);
                let client = client.map_err(|error| Failure::job(format!("trackers: {error}")))?;
                let addresses = sockets.addresses;
                let mut rng = fastrand::Rng::new();
                let identity = Identity {
                    info_hash: sought.info_hash.0,
                    peer_id: hawser_torrent::new_peer_id(),
                    port: addresses.tcp.map_or(0, |tcp| tcp.port()),
                    key: rng.u32(..),
                    scion: addresses.scion,
                };
                let options = AnnounceOptions::default();
                let announcer = Announcer::new(identity, trackers, options, rng, Instant::now());
                let stop = CancellationToken::new();
                let stats = stats.subscribe();
                Some(Trackers::spawn(client, announcer, stats, sink, &stop))
            }
        };
        Ok(Self {
            trackers,
            stats,
            answers,
            dht,
            local,
            dials: sought.dials,
            kept: BTreeMap::new(),
            shown: BTreeSet::new(),
        })
    }

    /// Reports the progress of a torrent to the trackers as `stats`, as long as it runs.
    pub fn follow<P: Send + Sync + 'static>(
        &self,
        mut progress: watch::Receiver<P>,
        stats: impl Fn(&P) -> Option<Stats> + Send + 'static,
    ) {
        let sender = self.stats.clone();
        tokio::spawn(async move {
            while progress.changed().await.is_ok() {
                if let Some(stats) = stats(&progress.borrow_and_update()) {
                    sender.send_replace(stats);
                }
            }
        });
    }

    /// The metadata of a magnet link says whether the torrent is private. If so, its peers come from its
    /// trackers alone (BEP 27), and others are forgotten; if not, this side is announced everywhere.
    ///
    /// # Errors
    /// When no socket for the own network can be opened.
    pub fn learn(&mut self, is_private: bool) -> Result<(), Failure> {
        if let Some(dht) = &mut self.dht {
            match is_private {
                true => dht.end_searches(),
                false => dht.search(true),
            }
        }
        if let Some(local) = &mut self.local {
            match is_private {
                true => local.end_search(),
                false => local.search(true)?,
            }
        }
        if is_private {
            self.kept.retain(|_, source| *source == PeerSource::Tracker);
        }
        Ok(())
    }

    /// Whether a peer was found by other means than a tracker.
    pub fn is_untracked(&self, peer: PeerAddr) -> bool {
        let source = self.kept.get(&peer);
        source.is_some_and(|source| *source != PeerSource::Tracker)
    }

    /// Gives what is found to a download, if there is one, and shows why trackers fail. Never ends.
    pub async fn feed(&mut self, to: Option<&FoundPeers>) -> ! {
        let mut status = self.trackers.as_ref().map(Trackers::status);
        loop {
            let changed = async {
                if let Some(status) = &mut status
                    && status.changed().await.is_ok()
                {
                    return status.borrow_and_update().clone();
                }
                pending().await
            };
            let in_dht = async {
                match &mut self.dht {
                    Some(dht) => dht.found().await,
                    None => pending().await,
                }
            };
            let nearby = async {
                match &mut self.local {
                    Some(local) => local.found().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                peers = nearby => self.take(peers, PeerSource::Local, to).await,
                Some(peers) = self.answers.recv() => self.take(peers, PeerSource::Tracker, to).await,
                peers = in_dht => self.take(peers, PeerSource::Dht, to).await,
                trackers = changed => self.show(&trackers),
            }
        }
    }

    async fn take(&mut self, peers: Vec<PeerAddr>, source: PeerSource, to: Option<&FoundPeers>) {
        for peer in &peers {
            if self.kept.len() < MAX_KEPT || self.kept.contains_key(peer) {
                let known = self.kept.entry(*peer).or_insert(source);
                *known = source.min(*known);
            }
        }
        let is_dialed = self.dials || source == PeerSource::Local;
        if let Some(to) = to.filter(|_| is_dialed) {
            to.add(peers, source).await;
        }
    }

    fn show(&mut self, trackers: &[TrackerStatus]) {
        for tracker in trackers {
            let error = tracker.error.as_ref().map(|(_, error)| error.clone());
            for text in error.into_iter().chain(tracker.warning.clone()) {
                if self.shown.insert((tracker.url.clone(), text.clone())) {
                    errln!("tracker {}: {}", plain(&tracker.url), plain(&text));
                }
            }
        }
    }

    /// Gives the peers found so far to a download that begins.
    pub async fn give_kept(&self, to: &FoundPeers) {
        let mut by_source: BTreeMap<PeerSource, Vec<PeerAddr>> = BTreeMap::new();
        for (peer, source) in &self.kept {
            by_source.entry(*source).or_default().push(*peer);
        }
        for (source, peers) in by_source {
            to.add(peers, source).await;
        }
    }

    /// Tells the trackers that this side leaves, which takes three seconds at most, and keeps the nodes of
    /// the DHT for the next run.
    pub async fn stop(self) {
        if let Some(dht) = self.dht {
            dht.stop().await;
        }
        if let Some(trackers) = self.trackers {
            trackers.stop().await;
        }
    }
}

/// A socket for trackers in the SCION network, if one is named and there is a network.
fn scion(
    trackers: &[Vec<String>],
    sockets: &Sockets,
) -> Result<Option<Arc<dyn Datagrams>>, Failure> {
    let mut urls = trackers.iter().flatten();
    let is_named = urls.any(|url| {
        let url = url.parse::<TrackerUrl>();
        url.is_ok_and(|url| matches!(url.host, Host::Scion(_)))
    });
    match sockets.host().filter(|_| is_named) {
        Some(host) => Ok(Some(Arc::new(ScionDatagrams::bind(host, None)?))),
        None => Ok(None),
    }
}

/// The numbers of a download; `None` while what is on disk is checked.
pub fn of_download(progress: &Progress) -> Option<Stats> {
    let checked = progress.checked_bytes >= progress.total_bytes;
    checked.then(|| Stats {
        uploaded: progress.uploads.uploaded_bytes,
        downloaded: progress.fetched_bytes,
        left: progress.total_bytes - progress.verified_bytes,
        peers: progress.paths.len() as u32,
    })
}

/// The numbers of a seeder.
pub fn of_seeder(progress: &SeedProgress) -> Option<Stats> {
    Some(Stats {
        uploaded: progress.uploaded_bytes,
        downloaded: 0,
        left: 0,
        peers: progress.peers.len() as u32,
    })
}
