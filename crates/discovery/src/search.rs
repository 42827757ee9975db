//! Peers being found for one torrent, by all means of a program.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::pending;

use hawser_address::{PeerAddr, PeerSource};
use hawser_tracker::{Stats, TrackerStatus};
use tokio::sync::{mpsc, watch};

use crate::dht::DhtSearches;
use crate::finder::{AllowedWays, PeerFinder, Sought};
use crate::local::LocalSearch;
use crate::trackers::Trackers;

/// Answers of trackers, of the DHT, and of peers on the own network, that may wait, each.
const MAX_WAITING: usize = 16;

/// Most addresses that are remembered with their source.
const MAX_KEPT: usize = 2000;

/// The search for the peers of one torrent. It ends when it is dropped; trackers are then told that this
/// side leaves.
#[derive(Debug)]
pub struct PeerSearch {
    finder: PeerFinder,
    sought: Sought,
    trackers: Option<Trackers>,
    dht: Option<DhtSearches>,
    local: Option<LocalSearch>,
    answers: Answers,
    in_dht: Answers,
    nearby: Answers,
    allowed: watch::Receiver<AllowedWays>,
    /// Peers found so far and by what, at most [`MAX_KEPT`].
    kept: BTreeMap<PeerAddr, PeerSource>,
}

impl PeerFinder {
    /// Finds peers of a torrent from now on, until what is returned is dropped. Trackers are told the numbers
    /// in `stats`. Must be called inside a tokio runtime.
    pub fn search(&self, sought: Sought, stats: watch::Receiver<Stats>) -> PeerSearch {
        PeerSearch::begin(self.clone(), sought, stats)
    }
}

/// Peers found in one way, that wait to be taken.
#[derive(Debug)]
struct Answers {
    sink: mpsc::Sender<Vec<PeerAddr>>,
    found: mpsc::Receiver<Vec<PeerAddr>>,
}

impl Answers {
    fn new() -> Self {
        let (sink, found) = mpsc::channel(MAX_WAITING);
        Self { sink, found }
    }

    /// The next peers. Cancel safe.
    async fn next(&mut self) -> Vec<PeerAddr> {
        match self.found.recv().await {
            Some(peers) => peers,
            // Its own sender keeps it open.
            None => pending().await,
        }
    }

    /// Forgets what waits.
    fn clear(&mut self) {
        *self = Self::new();
    }
}

impl PeerSearch {
    pub(crate) fn begin(finder: PeerFinder, sought: Sought, stats: watch::Receiver<Stats>) -> Self {
        let (answers, in_dht, nearby) = (Answers::new(), Answers::new(), Answers::new());
        Self {
            allowed: finder.allowed(),
            trackers: finder.ask_trackers(&sought, stats, answers.sink.clone()),
            dht: finder.search_dht(&sought, &in_dht.sink),
            local: finder.search_locally(&sought, nearby.sink.clone()),
            answers,
            in_dht,
            nearby,
            finder,
            sought,
            kept: BTreeMap::new(),
        }
    }

    /// The trackers, for people, whenever that changes; `None` if none is ever asked.
    pub fn status(&self) -> Option<watch::Receiver<Vec<TrackerStatus>>> {
        self.trackers.as_ref().map(Trackers::status)
    }

    /// The metadata of a magnet link says whether the torrent is private. If so, its peers come from its
    /// trackers alone (BEP 27), and others are forgotten; if not, this side is announced everywhere.
    pub fn learn(&mut self, is_private: bool) {
        if self.sought.is_private == Some(is_private) {
            return;
        }
        self.sought.is_private = Some(is_private);
        if is_private {
            (self.dht, self.local) = (None, None);
            self.in_dht.clear();
            self.nearby.clear();
            self.kept.retain(|_, source| *source == PeerSource::Tracker);
            return;
        }
        self.dht = self.finder.search_dht(&self.sought, &self.in_dht.sink);
        if let Some(local) = &self.local {
            local.announce();
        }
    }

    /// Begins and ends what was switched on and off.
    fn follow_allowed(&mut self) {
        let AllowedWays { dht, local } = *self.allowed.borrow_and_update();
        match (dht, &self.dht) {
            (true, None) => self.dht = self.finder.search_dht(&self.sought, &self.in_dht.sink),
            (false, Some(_)) => {
                self.dht = None;
                self.in_dht.clear();
            }
            _ => {}
        }
        match (local, &self.local) {
            (true, None) => {
                let sink = self.nearby.sink.clone();
                self.local = self.finder.search_locally(&self.sought, sink);
            }
            (false, Some(_)) => {
                self.local = None;
                self.nearby.clear();
            }
            _ => {}
        }
    }

    /// Whether peers are found by other means than trackers.
    pub fn goes_beyond_trackers(&self) -> bool {
        self.dht.is_some() || self.local.is_some()
    }

    /// The torrent has these trackers from now on, in tiers (BEP 12).
    pub fn set_trackers(&mut self, tiers: Vec<Vec<String>>) {
        if let Some(trackers) = &self.trackers {
            trackers.set(tiers.clone());
        }
        self.sought.trackers = tiers;
    }

    /// Asks the trackers as soon as they allow it.
    pub fn refresh(&self) {
        if let Some(trackers) = &self.trackers {
            trackers.refresh();
        }
    }

    /// The torrent is complete: the DHT is searched no more often than announcing needs.
    pub fn end_downloading(&mut self) {
        if std::mem::replace(&mut self.sought.downloads, false) {
            self.dht = self.finder.search_dht(&self.sought, &self.in_dht.sink);
        }
    }

    /// The next peers to dial, and how they were found. Meanwhile it follows which ways are on. Cancel safe.
    pub async fn found(&mut self) -> (Vec<PeerAddr>, PeerSource) {
        let (peers, source) = loop {
            tokio::select! {
                peers = self.answers.next() => break (peers, PeerSource::Tracker),
                peers = self.nearby.next() => break (peers, PeerSource::Local),
                peers = self.in_dht.next() => break (peers, PeerSource::Dht),
                // The finder is its own, and has the sender.
                Ok(()) = self.allowed.changed() => self.follow_allowed(),
            }
        };
        for peer in &peers {
            if self.kept.len() < MAX_KEPT || self.kept.contains_key(peer) {
                let known = self.kept.entry(*peer).or_insert(source);
                *known = source.min(*known);
            }
        }
        (peers, source)
    }

    /// Whether a peer was found by other means than a tracker.
    pub fn is_untracked(&self, peer: PeerAddr) -> bool {
        let source = self.kept.get(&peer);
        source.is_some_and(|source| *source != PeerSource::Tracker)
    }

    /// The peers found so far, for a download that begins later.
    pub fn kept(&self) -> BTreeMap<PeerSource, Vec<PeerAddr>> {
        let mut by_source: BTreeMap<PeerSource, Vec<PeerAddr>> = BTreeMap::new();
        for (peer, source) in &self.kept {
            by_source.entry(*source).or_default().push(*peer);
        }
        by_source
    }

    /// Ends it, and tells the trackers that this side leaves, which takes three seconds at most.
    pub async fn stop(self) {
        if let Some(trackers) = self.trackers {
            trackers.stop().await;
        }
    }
}
