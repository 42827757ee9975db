//! Fetching the piece layers of a torrent of version 2 (BEP 52), which are not in its info dictionary.
//!
//! Events in, steps out; no I/O, no clock. Each answer is proven by the root of its file, so a false one
//! is recognized at once, also where others come from other peers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use hawser_magnet::ConnectionId;

use crate::merkle::{Hash, HashRange, MAX_HASHES};
use crate::metainfo::LayerShape;
use crate::wire::HashRequest;

/// Time after which a request is made to another peer. A late answer is still taken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which a peer that has rejected a request, or is late, gets no other.
const BACKOFF: Duration = Duration::from_secs(5);

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Request hashes of a peer.
    Ask(ConnectionId, HashRequest),
    /// Drop a peer: it sent hashes that are not those of the root.
    Ban(ConnectionId),
    /// All are there: the nodes over the pieces of each file, by its root.
    Done(BTreeMap<Hash, Vec<Hash>>),
}

/// The fetch of the layers of one torrent.
#[derive(Debug)]
pub(super) struct LayerFetch {
    /// The nodes of each file, as many as it has pieces; zeros where they are not known yet.
    nodes: BTreeMap<Hash, Vec<Hash>>,
    /// What is requested at once, and whether it is missing.
    parts: Vec<(HashRequest, bool)>,
    index: HashMap<HashRequest, usize>,
    /// The parts that are missing and not requested.
    free: VecDeque<usize>,
    missing: usize,
    peers: BTreeMap<ConnectionId, Peer>,
    banned: Vec<ConnectionId>,
}

#[derive(Debug, Default)]
struct Peer {
    /// The part that is requested of it, and until when it is awaited.
    asked: Option<(usize, Instant)>,
    /// Until when it gets no request.
    backoff: Option<Instant>,
    /// How many requests in a row it has left unanswered: those that answer are asked first.
    failures: u32,
}

impl Peer {
    /// It has not sent what it was asked for.
    fn fail(&mut self, now: Instant) {
        self.backoff = Some(now + BACKOFF);
        self.failures = self.failures.saturating_add(1);
    }
}

impl LayerFetch {
    /// For files of these shapes, at least one. Their nodes are kept in memory.
    pub fn new(shapes: &[LayerShape]) -> Self {
        let mut parts = Vec::new();
        for shape in shapes {
            let all = shape.count.next_power_of_two();
            let length = all.min(MAX_HASHES);
            let starts = (0..shape.count).step_by(length as usize);
            parts.extend(starts.map(|start| {
                let range = HashRange::proven(shape.base, start, length, shape.height);
                let root = shape.root;
                (HashRequest { root, range }, true)
            }));
        }
        let nodes = shapes
            .iter()
            .map(|it| (it.root, vec![[0; 32]; it.count as usize]));
        let index = parts.iter().zip(0..);
        Self {
            nodes: nodes.collect(),
            index: index.map(|((request, _), at)| (*request, at)).collect(),
            free: (0..parts.len()).collect(),
            missing: parts.len(),
            parts,
            peers: BTreeMap::new(),
            banned: Vec::new(),
        }
    }

    /// A peer can be asked.
    pub fn on_peer(&mut self, id: ConnectionId) {
        self.peers.entry(id).or_default();
    }

    /// A peer has left.
    pub fn on_gone(&mut self, id: ConnectionId) {
        if let Some((part, _)) = self.peers.remove(&id).and_then(|peer| peer.asked) {
            self.release(part);
        }
    }

    /// A peer does not send what it was asked for.
    pub fn on_reject(&mut self, id: ConnectionId, request: &HashRequest, now: Instant) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        let index = self.index.get(request);
        if let Some((part, _)) = peer.asked.take_if(|(part, _)| index == Some(part)) {
            peer.fail(now);
            self.release(part);
        }
    }

    /// A peer has sent hashes.
    pub fn on_hashes(&mut self, id: ConnectionId, request: &HashRequest, hashes: &[Hash]) {
        let (Some(peer), Some(&part)) = (self.peers.get_mut(&id), self.index.get(request)) else {
            return;
        };
        peer.asked.take_if(|(asked, _)| *asked == part);
        if request.range.root(hashes) != Some(request.root) {
            self.on_gone(id);
            self.banned.push(id);
            return self.release(part);
        }
        (peer.backoff, peer.failures) = (None, 0);
        let Some(nodes) = self.nodes.get_mut(&request.root) else {
            return;
        };
        // Nodes past the last piece are padding.
        let start = request.range.index as usize;
        let place = nodes.iter_mut().skip(start);
        let hashes = hashes.iter().take(request.range.length as usize);
        place.zip(hashes).for_each(|(node, hash)| *node = *hash);
        let (_, is_missing) = &mut self.parts[part];
        self.missing -= usize::from(std::mem::replace(is_missing, false));
    }

    /// What is to be done now.
    pub fn advance(&mut self, now: Instant) -> Vec<Step> {
        let mut steps: Vec<Step> = self.banned.drain(..).map(Step::Ban).collect();
        if self.missing == 0 {
            steps.push(Step::Done(std::mem::take(&mut self.nodes)));
            return steps;
        }
        let mut late = Vec::new();
        for peer in self.peers.values_mut() {
            peer.backoff.take_if(|until| *until <= now);
            if let Some((part, _)) = peer.asked.take_if(|(_, until)| *until <= now) {
                peer.fail(now);
                late.push(part);
            }
        }
        late.into_iter().for_each(|part| self.release(part));
        let idle = self.peers.iter_mut();
        let idle = idle.filter(|(_, peer)| peer.asked.is_none() && peer.backoff.is_none());
        let mut idle: Vec<_> = idle.collect();
        idle.sort_by_key(|(_, peer)| peer.failures);
        for (id, peer) in idle {
            // What came late is not asked for again.
            let missing = |part: &usize| self.parts[*part].1;
            let Some(part) = std::iter::from_fn(|| self.free.pop_front()).find(missing) else {
                break;
            };
            peer.asked = Some((part, now + ANSWER_TIMEOUT));
            steps.push(Step::Ask(*id, self.parts[part].0));
        }
        steps
    }

    /// When [`Self::advance`] is due although nothing happens.
    pub fn next_due(&self) -> Option<Instant> {
        let peers = self.peers.values();
        let due = peers.filter_map(|peer| peer.asked.map(|(_, until)| until).or(peer.backoff));
        due.min()
    }

    /// Number of answers received, and of all.
    pub fn progress(&self) -> (usize, usize) {
        (self.parts.len() - self.missing, self.parts.len())
    }

    /// Gives up waiting for a part.
    fn release(&mut self, part: usize) {
        let is_asked = |peer: &Peer| peer.asked.is_some_and(|(asked, _)| asked == part);
        if self.parts[part].1 && !self.peers.values().any(is_asked) && !self.free.contains(&part) {
            self.free.push_front(part);
        }
    }
}

#[cfg(test)]
mod tests;
