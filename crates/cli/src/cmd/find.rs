//! Finding peers while a torrent is downloaded or seeded.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use hawser_discovery::{Client, ClientOptions, Datagrams, ScionDatagrams, Trackers};
use hawser_torrent::{FoundPeers, InfoHash, PeerAddr, PeerSource, Progress, SeedProgress};
use hawser_tracker::{
    AnnounceOptions, Announcer, Host, Identity, Stats, TrackerStatus, TrackerUrl,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::network::Sockets;
use crate::failure::Failure;
use crate::out::{errln, plain};

/// Answers of trackers that may wait.
const MAX_WAITING: usize = 16;

/// Most addresses that are kept for a download which begins when the metadata is there.
const MAX_KEPT: usize = 2000;

#[derive(clap::Args)]
pub struct FindArgs {
    /// Ways to find peers: tracker, pex (from peers), or none; with commas between them [default:
    /// tracker,pex where the torrent or the link names trackers, else none]
    #[arg(long, value_name = "WAY,...", value_delimiter = ',')]
    find: Option<Vec<Way>>,
}

/// A way to find peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    Tracker,
    Pex,
    None,
}

/// The ways that are used for a torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways {
    pub trackers: bool,
    /// Peers tell each other of peers.
    pub pex: bool,
}

impl Ways {
    /// Whether peers are found at all.
    pub fn any(self) -> bool {
        self.trackers || self.pex
    }
}

impl FindArgs {
    /// The ways for a torrent that names trackers or does not.
    ///
    /// # Errors
    /// Wrong use, if `none` is given beside others, or trackers are to be asked and there is none.
    pub fn ways(&self, has_trackers: bool) -> Result<Ways, Failure> {
        let Some(given) = &self.find else {
            return Ok(Ways {
                trackers: has_trackers,
                pex: has_trackers,
            });
        };
        let has = |way| given.contains(&way);
        if has(Way::None) && (has(Way::Tracker) || has(Way::Pex)) {
            let text = "--find: none excludes the other ways: leave it out, or them";
            return Err(Failure::usage(text));
        }
        if has(Way::Tracker) && !has_trackers {
            let text = "--find tracker: the torrent names no tracker: leave it out";
            return Err(Failure::usage(text));
        }
        Ok(Ways {
            trackers: has(Way::Tracker),
            pex: has(Way::Pex),
        })
    }
}

/// Peers being found for one torrent.
pub struct Finding {
    trackers: Option<Trackers>,
    stats: watch::Sender<Stats>,
    answers: mpsc::Receiver<Vec<PeerAddr>>,
    /// Peers found so far, for a download that begins later.
    kept: BTreeSet<PeerAddr>,
    /// Errors of trackers that were shown, by URL.
    shown: BTreeSet<(String, String)>,
}

impl Finding {
    /// Asks `trackers`, in tiers, if `ways` say so. `left` are the bytes that are missing.
    ///
    /// # Errors
    /// When no socket for trackers can be opened.
    pub fn begin(
        ways: Ways,
        trackers: &[Vec<String>],
        info_hash: InfoHash,
        sockets: &Sockets,
        left: u64,
    ) -> Result<Self, Failure> {
        let stats = watch::Sender::new(Stats {
            left,
            ..Stats::default()
        });
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
                    info_hash: info_hash.0,
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
            kept: BTreeSet::new(),
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
            tokio::select! {
                Some(peers) = self.answers.recv() => self.take(peers, to).await,
                trackers = changed => self.show(&trackers),
            }
        }
    }

    async fn take(&mut self, peers: Vec<PeerAddr>, to: Option<&FoundPeers>) {
        for peer in &peers {
            if self.kept.len() < MAX_KEPT {
                self.kept.insert(*peer);
            }
        }
        if let Some(to) = to {
            to.add(peers, PeerSource::Tracker).await;
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

    /// The peers found so far.
    pub fn kept(&self) -> Vec<PeerAddr> {
        self.kept.iter().copied().collect()
    }

    /// Tells the trackers that this side leaves, which takes three seconds at most.
    pub async fn stop(self) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(find: Option<Vec<Way>>, has_trackers: bool) -> Result<Ways, String> {
        let ways = FindArgs { find }.ways(has_trackers);
        ways.map_err(|error| error.to_string())
    }

    #[test]
    fn trackers_are_asked_where_there_are_any_unless_others_are_named() {
        let both = |it| Ways {
            trackers: it,
            pex: it,
        };
        assert_eq!(ways(None, true), Ok(both(true)));
        assert_eq!(ways(None, false), Ok(both(false)));
        assert_eq!(ways(Some(vec![Way::None]), true), Ok(both(false)));
        let pex = ways(Some(vec![Way::Pex]), false).unwrap();
        assert!(pex.pex && !pex.trackers && pex.any());
        for (wrong, hint) in [
            (vec![Way::None, Way::Pex], "none"),
            (vec![Way::Tracker], "no tracker"),
        ] {
            let error = ways(Some(wrong), false).unwrap_err();
            assert!(error.contains(hint), "{error}");
        }
    }
}
