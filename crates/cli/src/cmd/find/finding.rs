//! Peers being found for one torrent, by all its ways.

use std::collections::BTreeSet;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use hawser_discovery::{
    Client, ClientOptions, Datagrams, DhtNodes, LocalDiscovery, LocalError, LocalOptions,
    PeerFinder, PeerSearch, ScionDatagrams,
};
use hawser_torrent::{FoundPeers, PeerAddr, Progress, SeedProgress};
use hawser_tracker::{Host, Stats, TrackerStatus, TrackerUrl};
use tokio::sync::watch;

use super::dht::Dht;
use super::{Sought, Ways};
use crate::cmd::network::Sockets;
use crate::failure::{Doing, Failure};
use crate::out::{errln, plain};

/// Peers being found for one torrent.
pub struct Finding {
    search: PeerSearch,
    stats: watch::Sender<Stats>,
    dht: Option<Dht>,
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
        dht: Option<Dht>,
    ) -> Result<Self, Failure> {
        let stats = watch::Sender::new(Stats {
            left: sought.left,
            ..Stats::default()
        });
        let is_over_scion = names_scion(&sought.trackers);
        let finder = finder(ways, is_over_scion, sockets, dht.as_ref().map(Dht::nodes))?;
        let sought = hawser_discovery::Sought {
            info_hash: sought.info_hash.0,
            peer_id: hawser_torrent::new_peer_id(),
            trackers: sought.trackers.clone(),
            is_private: sought.is_private,
            downloads: sought.downloads,
        };
        Ok(Self {
            search: finder.search(sought, stats.subscribe()),
            stats,
            dht,
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

    /// The metadata of a magnet link says whether the torrent is private, as [`PeerSearch::learn`] takes it.
    pub fn learn(&mut self, is_private: bool) {
        self.search.learn(is_private);
    }

    /// Whether a peer was found by other means than a tracker.
    pub fn is_untracked(&self, peer: PeerAddr) -> bool {
        self.search.is_untracked(peer)
    }

    /// Gives what is found to a download, if there is one, and shows why trackers fail. Never ends.
    pub async fn feed(&mut self, to: Option<&FoundPeers>) -> ! {
        let mut status = self.search.status();
        if let Some(status) = &mut status {
            // Those that cannot be asked at all never change.
            let trackers = status.borrow_and_update().clone();
            self.show(&trackers);
        }
        loop {
            let changed = async {
                if let Some(status) = &mut status
                    && status.changed().await.is_ok()
                {
                    return status.borrow_and_update().clone();
                }
                pending().await
            };
            tokio::select! {
                (peers, source) = self.search.found() => if let Some(to) = to {
                    to.add(peers, source).await;
                },
                trackers = changed => self.show(&trackers),
            }
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
        for (source, peers) in self.search.kept() {
            to.add(peers, source).await;
        }
    }

    /// Tells the trackers that this side leaves, which takes three seconds at most, and keeps the nodes of
    /// the DHT for the next run.
    pub async fn stop(self) {
        if let Some(dht) = self.dht {
            dht.stop().await;
        }
        self.search.stop().await;
    }
}

/// Finds peers by these ways; over SCION, too, where trackers are there and this host is in a network.
///
/// # Errors
/// When no socket for trackers or for the own network can be opened.
pub fn finder(
    ways: Ways,
    trackers_over_scion: bool,
    sockets: &Sockets,
    dht: Option<DhtNodes>,
) -> Result<PeerFinder, Failure> {
    let tcp = sockets.addresses.tcp;
    let mut finder = PeerFinder::new(tcp, sockets.addresses.scion);
    if ways.trackers {
        let scion: Option<Arc<dyn Datagrams>> = match sockets.host() {
            Some(host) if trackers_over_scion => Some(Arc::new(ScionDatagrams::bind(host, None)?)),
            _ => None,
        };
        let options = ClientOptions {
            scion,
            ..ClientOptions::default()
        };
        finder = finder.with_trackers(Client::new(options).doing("trackers")?);
    }
    if let Some(nodes) = dht {
        finder = finder.with_dht(nodes);
    }
    if ways.local {
        finder = finder.with_local(open_local(tcp)?);
    }
    Ok(finder)
}

/// Joins local discovery, for peers that connect at `tcp`.
///
/// # Errors
/// When no interface can be used.
pub fn open_local(tcp: Option<SocketAddr>) -> Result<LocalDiscovery, LocalError> {
    LocalDiscovery::open(LocalOptions {
        port: tcp.map(|tcp| tcp.port()),
        ip: tcp.map(|tcp| tcp.ip()).filter(|ip| !ip.is_unspecified()),
    })
}

/// Whether a tracker is in the SCION network.
fn names_scion(trackers: &[Vec<String>]) -> bool {
    trackers.iter().flatten().any(|url| {
        let url = url.parse::<TrackerUrl>();
        url.is_ok_and(|url| matches!(url.host, Host::Scion(_)))
    })
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
