//! The routing table (BEP 5): nodes that answer, many near to the own id and ever fewer farther
//! away.
//!
//! A node is *good* while it has answered in the last 15 minutes, or has ever answered and asked in
//! the last 15 minutes; *questionable* after that; *bad* once it has failed to answer
//! [`node::MAX_FAILURES`] times in a row. Only a node that answered enters the table. In a full
//! bucket it takes the place of a bad node, or, if its id follows from its address (BEP 42), of one
//! whose id does not; otherwise it is a replacement, and questionable nodes of the bucket are
//! pinged.

mod bucket;
mod node;
#[cfg(test)]
mod tests;

use std::time::Instant;

use fastrand::Rng;

use self::bucket::Bucket;
pub(crate) use self::node::{FRESH, K, MAX_UNVERIFIED};
use self::node::{TableNode, outranks};
use crate::address::Address;
use crate::id::Id;
use crate::message::Node;
use crate::secure::{Standing, standing};

/// The routing table of a node.
#[derive(Debug)]
pub(crate) struct Table<A> {
    own: Id,
    /// The bucket at `i` holds nodes that share `i` bits with the own id, the last one those that
    /// share more, too. Never empty; at most 160.
    buckets: Vec<Bucket<A>>,
}

impl<A: Address> Table<A> {
    pub fn new(own: Id, now: Instant) -> Self {
        Self {
            own,
            buckets: vec![Bucket::new(now)],
        }
    }

    /// The own id.
    pub fn own(&self) -> Id {
        self.own
    }

    /// Takes another own id, and sorts the nodes anew.
    pub fn set_own(&mut self, own: Id, now: Instant) {
        let before = std::mem::replace(self, Self::new(own, now));
        let nodes = before.buckets.into_iter().flat_map(Bucket::into_nodes);
        nodes.for_each(|node| self.insert(node, now));
    }

    fn index(&self, id: Id) -> usize {
        let shared = self.own.shared_bits(id) as usize;
        shared.min(self.buckets.len() - 1)
    }

    fn nodes(&self) -> impl Iterator<Item = &TableNode<A>> {
        self.buckets.iter().flat_map(|bucket| bucket.live.iter())
    }

    /// A node has answered. Returns a questionable node to be pinged, whose place the other can
    /// take.
    pub fn answered(&mut self, id: Id, addr: A, now: Instant) -> Option<A> {
        if id == self.own {
            return None;
        }
        let at = self.index(id);
        if let Some(node) = self.buckets[at].find(id) {
            if node.addr == addr {
                node.answered(now);
                self.buckets[at].changed = now;
                return None;
            }
            // The place is that of the first with this id while it answers.
            if !node.is_bad() {
                return None;
            }
        }
        self.remove_host(id, addr)?;
        self.insert(TableNode::new(id, addr, standing(addr, id), now), now);
        let at = self.index(id);
        self.buckets[at].questionable_to_ping(now)
    }

    /// Makes room for a node at this address: removes a node that had another id there, or the same
    /// id elsewhere. `None` if the node is not to be added: another port of the host has a node in
    /// the table, or the id at this address followed from it and the new one does not.
    fn remove_host(&mut self, id: Id, addr: A) -> Option<()> {
        let (host, new) = (addr.host(), standing(addr, id));
        let keeps = |node: &TableNode<A>| {
            let same_host = node.addr.host() == host && !node.is_bad();
            same_host && (node.addr != addr || outranks(node.standing, new))
        };
        if self.nodes().any(keeps) {
            return None;
        }
        for bucket in &mut self.buckets {
            bucket.retain(|node| node.id != id && node.addr.host() != host);
        }
        Some(())
    }

    fn insert(&mut self, node: TableNode<A>, now: Instant) {
        loop {
            let at = self.index(node.id);
            let is_last = at + 1 == self.buckets.len();
            let can_split = is_last && self.buckets.len() < Id::BITS as usize;
            if self.buckets[at].insert(node, can_split, now) {
                return;
            }
            if !can_split {
                return self.buckets[at].keep(node);
            }
            self.split(now);
        }
    }

    /// Splits the last bucket.
    fn split(&mut self, now: Instant) {
        let depth = self.buckets.len() - 1;
        let Some(last) = self.buckets.last_mut() else {
            return;
        };
        let own = self.own;
        let deeper = |node: &TableNode<A>| own.shared_bits(node.id) as usize > depth;
        let moved = last.split_off(deeper, now);
        self.buckets.push(moved);
    }

    /// A node that can answer has asked. Returns whether it is worth a ping: it is not known, and
    /// its bucket has room.
    pub fn asked(&mut self, id: Id, addr: A, now: Instant) -> bool {
        if id == self.own {
            return false;
        }
        let (at, host) = (self.index(id), addr.host());
        if let Some(node) = self.buckets[at].find(id) {
            if node.addr == addr {
                node.asked = Some(now);
                return false;
            }
            return node.is_bad();
        }
        let known = self.nodes().any(|node| node.addr.host() == host);
        let splits = at + 1 == self.buckets.len();
        !known && (splits || self.buckets[at].wants(addr, standing(addr, id)))
    }

    /// A node has not answered in time.
    pub fn failed(&mut self, addr: A, now: Instant) {
        for bucket in &mut self.buckets {
            bucket.failed(addr, now);
        }
    }

    /// The `count` nodes nearest to `target`: those that do not fail, of these at most half with
    /// ids that do not follow from their addresses; others only if there are too few.
    pub fn nearest(&self, target: Id, count: usize) -> Vec<Node<A>> {
        let mut nodes: Vec<_> = self.nodes().collect();
        nodes.sort_by_cached_key(|node| (node.failures > 0, node.id.distance(target)));
        let mut unverified = 0;
        let is_surplus = |node: &mut &TableNode<A>| {
            unverified += usize::from(node.standing == Standing::Unverified);
            node.standing == Standing::Unverified && unverified > count / 2
        };
        let surplus: Vec<_> = nodes.extract_if(.., is_surplus).collect();
        let nearest = nodes.into_iter().chain(surplus).take(count);
        nearest.map(|node| (node.id, node.addr)).collect()
    }

    /// The `K` nodes nearest to `target`, for others: as [`nearest`](Self::nearest), without bad
    /// ones.
    pub fn nearest_answering(&self, target: Id) -> Vec<Node<A>> {
        let is_bad = |id: Id| {
            let mut nodes = self.buckets[self.index(id)].live.iter();
            nodes.any(|node| node.id == id && node.is_bad())
        };
        let mut nodes = self.nearest(target, K);
        nodes.retain(|(id, _)| !is_bad(*id));
        nodes
    }

    /// The good nodes.
    pub fn good(&self, now: Instant) -> Vec<Node<A>> {
        let good = self.nodes().filter(|node| node.is_good(now));
        good.map(|node| (node.id, node.addr)).collect()
    }

    /// Number of good and of questionable nodes.
    pub fn counts(&self, now: Instant) -> (usize, usize) {
        let good = self.nodes().filter(|node| node.is_good(now)).count();
        let alive = self.nodes().filter(|node| !node.is_bad()).count();
        (good, alive - good)
    }

    /// A questionable node to be pinged, if there is one: that with the oldest answer.
    pub fn ping_due(&mut self, now: Instant) -> Option<A> {
        let due = self.buckets.iter_mut().flat_map(|bucket| &mut bucket.live);
        let due = due.filter(|node| node.ping_is_due(now));
        let node = due.min_by_key(|node| node.answered)?;
        node.pinged = Some(now);
        Some(node.addr)
    }

    /// An id to search for, in a bucket that has not changed for long; the bucket counts as changed
    /// from now on.
    pub fn refresh_due(&mut self, now: Instant, rng: &mut Rng) -> Option<Id> {
        let stale = |bucket: &Bucket<A>| now.saturating_duration_since(bucket.changed) >= FRESH;
        let at = self.buckets.iter().position(stale)?;
        self.buckets[at].changed = now;
        match at + 1 == self.buckets.len() {
            true => Some(self.own),
            false => Some(self.own.random_beside(at as u32, rng)),
        }
    }

    /// How many bits the nearest of all nodes may be expected to share with any id: the logarithm
    /// of the number of nodes in the DHT, as the own surroundings show it.
    pub fn expected_bits(&self) -> u32 {
        let depth = self.buckets.len() as u32 - 1;
        let last = self.buckets.last().map_or(0, |bucket| bucket.live.len());
        depth + (last + 1).ilog2()
    }

    /// Panics unless all limits hold.
    #[cfg(test)]
    fn check(&self) {
        for (at, bucket) in self.buckets.iter().enumerate() {
            let is_last = at + 1 == self.buckets.len();
            bucket.check();
            for node in &bucket.live {
                let shared = self.own.shared_bits(node.id) as usize;
                assert!(shared == at || is_last && shared > at);
            }
        }
        let mut hosts: Vec<_> = self.nodes().map(|node| node.addr.host()).collect();
        let count = hosts.len();
        hosts.sort_unstable();
        hosts.dedup();
        assert_eq!(hosts.len(), count, "two nodes of a host");
        assert!(self.buckets.len() <= Id::BITS as usize);
    }
}
