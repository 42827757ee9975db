//! A bucket of the routing table.

use std::time::Instant;

use super::node::{K, MAX_UNVERIFIED, TableNode, outranks};
use crate::address::Address;
use crate::id::Id;
use crate::secure::Standing;

/// Whether a bucket has room for a node.
enum Room {
    Free,
    Full,
    /// Only in place of one of these nodes.
    Limited(Vec<usize>),
}

/// Nodes of one range of ids.
#[derive(Debug)]
pub(super) struct Bucket<A> {
    /// At most `K`.
    pub live: Vec<TableNode<A>>,
    /// Replacements, the last to answer at the end. At most `K`.
    spare: Vec<TableNode<A>>,
    /// When a node last answered or was added, or the bucket was last refreshed.
    pub changed: Instant,
}

impl<A: Address> Bucket<A> {
    pub fn new(now: Instant) -> Self {
        Self {
            live: Vec::new(),
            spare: Vec::new(),
            changed: now,
        }
    }

    pub fn into_nodes(self) -> impl Iterator<Item = TableNode<A>> {
        self.live.into_iter().chain(self.spare)
    }

    pub fn find(&mut self, id: Id) -> Option<&mut TableNode<A>> {
        self.live.iter_mut().find(|node| node.id == id)
    }

    pub fn retain(&mut self, keep: impl Fn(&TableNode<A>) -> bool) {
        self.live.retain(&keep);
        self.spare.retain(&keep);
    }

    /// Adds a node whose id and host are not in the table, unless others against whose limit it
    /// counts keep their places. Returns `false` if the bucket is full; it must then be split, if
    /// it can be, or has no place for the node.
    pub fn insert(&mut self, node: TableNode<A>, can_split: bool, now: Instant) -> bool {
        let rivals = match self.room(node.addr, node.standing) {
            Room::Free => {
                self.live.push(node);
                self.changed = now;
                return true;
            }
            Room::Full if can_split => return false,
            Room::Full => (0..K).collect(),
            Room::Limited(rivals) => rivals,
        };
        let is_full = rivals.len() == K;
        let mut rivals = rivals.into_iter();
        let Some(at) = rivals.find(|at| self.gives_way(*at, node.standing)) else {
            return !is_full;
        };
        self.live[at] = node;
        self.changed = now;
        true
    }

    fn room(&self, addr: A, standing: Standing) -> Room {
        let network = addr.network();
        let of = |is: &dyn Fn(&TableNode<A>) -> bool| -> Vec<usize> {
            (0..self.live.len())
                .filter(|at| is(&self.live[*at]))
                .collect()
        };
        let in_network = of(&|node| node.addr.network() == network);
        if in_network.len() >= A::MAX_PER_BUCKET {
            return Room::Limited(in_network);
        }
        let unverified = of(&|node| node.standing == Standing::Unverified);
        if standing == Standing::Unverified && unverified.len() >= MAX_UNVERIFIED {
            return Room::Limited(unverified);
        }
        match self.live.len() < K {
            true => Room::Free,
            false => Room::Full,
        }
    }

    /// Keeps a replacement; the oldest one is dropped for it.
    pub fn keep(&mut self, node: TableNode<A>) {
        let (id, network) = (node.id, node.addr.network());
        self.spare
            .retain(|spare| spare.id != id && spare.addr.network() != network);
        if self.spare.len() == K {
            self.spare.remove(0);
        }
        self.spare.push(node);
    }

    fn gives_way(&self, at: usize, to: Standing) -> bool {
        let node = &self.live[at];
        node.is_bad() || outranks(to, node.standing)
    }

    /// Whether a node that is not in the table would be added.
    pub fn wants(&self, addr: A, standing: Standing) -> bool {
        let rivals = match self.room(addr, standing) {
            Room::Free => return true,
            Room::Full => (0..K).collect(),
            Room::Limited(rivals) => rivals,
        };
        rivals.into_iter().any(|at| self.gives_way(at, standing))
    }

    /// A questionable node, if a replacement waits for its place and it was not pinged lately.
    pub fn questionable_to_ping(&mut self, now: Instant) -> Option<A> {
        if self.spare.is_empty() {
            return None;
        }
        let due = self.live.iter_mut();
        let due = due.filter(|node| !node.is_good(now) && node.ping_is_due(now));
        let node = due.min_by_key(|node| node.answered)?;
        node.pinged = Some(now);
        Some(node.addr)
    }

    /// A node has not answered in time. A bad one gives its place to a replacement.
    pub fn failed(&mut self, addr: A, now: Instant) {
        self.spare.retain(|spare| spare.addr != addr);
        let Some(at) = self.live.iter().position(|node| node.addr == addr) else {
            return;
        };
        let node = &mut self.live[at];
        node.failures = node.failures.saturating_add(1);
        if node.is_bad() {
            self.replace(at, now);
        }
    }

    /// Replaces the node at `at` by the last replacement that no limit keeps out.
    fn replace(&mut self, at: usize, now: Instant) {
        let old = self.live.remove(at);
        let is_free =
            |spare: &TableNode<A>| matches!(self.room(spare.addr, spare.standing), Room::Free);
        let found = self.spare.iter().rposition(is_free);
        match found.map(|found| self.spare.remove(found)) {
            Some(spare) => {
                self.live.push(spare);
                self.changed = now;
            }
            None => self.live.push(old),
        }
    }

    /// Moves the nodes for which `deeper` holds to a new bucket.
    pub fn split_off(&mut self, deeper: impl Fn(&TableNode<A>) -> bool, now: Instant) -> Self {
        let mut moved = Self::new(self.changed);
        moved.live = self.live.extract_if(.., |node| deeper(node)).collect();
        moved.spare = self.spare.extract_if(.., |node| deeper(node)).collect();
        for bucket in [self, &mut moved] {
            for spare in std::mem::take(&mut bucket.spare) {
                if !bucket.insert(spare, false, now) {
                    bucket.keep(spare);
                }
            }
        }
        moved
    }

    #[cfg(test)]
    pub fn check(&self) {
        assert!(self.live.len() <= K && self.spare.len() <= K);
        for node in &self.live {
            let network = node.addr.network();
            let same = self.live.iter().filter(|one| one.addr.network() == network);
            assert!(same.count() <= A::MAX_PER_BUCKET);
        }
        let is_unverified = |node: &&TableNode<A>| node.standing == Standing::Unverified;
        assert!(self.live.iter().filter(is_unverified).count() <= MAX_UNVERIFIED);
    }
}
