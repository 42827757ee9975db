//! All paths of all peers, which are in use, and which conflict.

use std::collections::BTreeSet;
use std::ops::Range;

use super::stuck::{Class, Stuck};

/// A path of a peer: its place in [`Table::items`].
pub(super) type Item = usize;

/// All paths of all peers, and which are in use.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub items: Vec<Entry>,
    pub seats: Vec<Seat>,
    /// By number of a peer: its place in [`Table::seats`].
    pub peers: Vec<Option<usize>>,
    /// Whether each path is in use.
    pub taken: Vec<bool>,
    /// Pairs, smaller first, that may share interfaces.
    pub allowed: BTreeSet<(Item, Item)>,
    /// The links of all paths, one after another.
    crossed: Vec<u32>,
    /// By link: the paths in use that cross it.
    holders: Vec<Vec<Item>>,
}

/// A path of a peer.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Its peer's place in [`Table::seats`].
    pub seat: usize,
    /// Whether it was in use before the change.
    pub held: bool,
    /// Its part of [`Table::crossed`].
    crossed: Range<usize>,
}

/// A peer.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    /// Its number, which stays the same.
    pub peer: usize,
    /// Its set of paths; `None` if some of them may share interfaces, which sets it apart from peers
    /// with the same paths.
    pub class: Option<Class>,
    /// Its paths, best first.
    pub items: Range<Item>,
    /// Most paths that it accepts.
    pub most: usize,
    /// How many of its paths are in use.
    pub count: usize,
    /// Whether it has a turn, so that it gets a path before all others.
    pub turn: bool,
    /// The order among peers with the same priority.
    pub order: (u64, u64),
}

impl Table {
    /// A table with room for links of numbers below `links`.
    pub fn new(links: usize) -> Self {
        Self {
            holders: vec![Vec::new(); links],
            ..Self::default()
        }
    }

    /// Adds a peer, without paths so far.
    pub fn seat(&mut self, seat: Seat) {
        if self.peers.len() <= seat.peer {
            self.peers.resize(seat.peer + 1, None);
        }
        self.peers[seat.peer] = Some(self.seats.len());
        let end = self.items.len();
        self.seats.push(Seat {
            items: end..end,
            ..seat
        });
    }

    /// Adds the next best path of the peer added last; `links` are those that count as shared.
    pub fn offer(&mut self, links: &[u32], held: bool) {
        let begin = self.crossed.len();
        self.crossed.extend_from_slice(links);
        self.items.push(Entry {
            seat: self.seats.len() - 1,
            held,
            crossed: begin..self.crossed.len(),
        });
        self.taken.push(false);
        if let Some(seat) = self.seats.last_mut() {
            seat.items.end += 1;
        }
    }

    /// The links of a path that count as shared.
    pub fn links(&self, item: Item) -> &[u32] {
        &self.crossed[self.items[item].crossed.clone()]
    }

    /// Whether these two paths may share links.
    pub fn may_share(&self, one: Item, other: Item) -> bool {
        !self.allowed.is_empty() && self.allowed.contains(&(one.min(other), one.max(other)))
    }

    /// The paths in use that share a link with this one, once for each such link, in its order.
    pub fn sharing(&self, item: Item) -> impl Iterator<Item = Item> {
        self.links(item)
            .iter()
            .flat_map(|&link| self.holders[link as usize].iter().copied())
            .filter(move |&holder| holder != item)
    }

    /// The paths in use that must be given up for this one, ascending.
    pub fn blockers(&self, item: Item) -> Vec<Item> {
        let mut blockers = Vec::new();
        self.blockers_into(item, &mut blockers);
        blockers.sort_unstable();
        blockers
    }

    /// Adds the paths in use that must be given up for this one, in its order.
    pub fn blockers_into(&self, item: Item, blockers: &mut Vec<Item>) {
        let begin = blockers.len();
        for holder in self.sharing(item) {
            if !blockers[begin..].contains(&holder) && !self.may_share(holder, item) {
                blockers.push(holder);
            }
        }
    }

    /// An upper bound for the paths in use together: each needs a first link that no other uses,
    /// and a last one, unless two may share it.
    pub fn most_together(&self) -> usize {
        let count = |end: fn(&[u32]) -> Option<&u32>| {
            let mut seen = vec![false; self.holders.len()];
            let needs_none = |item: &Item| match end(self.links(*item)) {
                Some(&link) => !std::mem::replace(&mut seen[link as usize], true),
                None => true,
            };
            (0..self.items.len()).filter(needs_none).count()
        };
        count(<[u32]>::first).min(count(<[u32]>::last)) + self.allowed.len()
    }

    /// Whether a path can be used without giving up another.
    pub fn is_free(&self, item: Item) -> bool {
        !self.taken[item]
            && self
                .sharing(item)
                .all(|holder| self.may_share(holder, item))
    }

    /// Whether a peer accepts one more path.
    pub fn has_room(&self, seat: usize) -> bool {
        self.seats[seat].count < self.seats[seat].most
    }

    /// Uses a path that is not in use.
    pub fn take(&mut self, item: Item) {
        debug_assert!(!self.taken[item]);
        self.taken[item] = true;
        self.seats[self.items[item].seat].count += 1;
        for at in self.items[item].crossed.clone() {
            self.holders[self.crossed[at] as usize].push(item);
        }
    }

    /// Gives up a path that is in use.
    pub fn drop(&mut self, item: Item) {
        debug_assert!(self.taken[item]);
        self.taken[item] = false;
        self.seats[self.items[item].seat].count -= 1;
        for at in self.items[item].crossed.clone() {
            self.holders[self.crossed[at] as usize].retain(|&holder| holder != item);
        }
    }

    /// The use of a path changed, or which others it may share with.
    pub fn changed(&self, item: Item, stuck: &mut Stuck) {
        for &link in self.links(item) {
            stuck.link_changed(link);
        }
        stuck.peer_changed(self.seats[self.items[item].seat].peer);
    }

    /// How even the shares are; greater is better. The first entry is the number of peers with a
    /// turn that have a path; entry `n` is the number of peers with at least `n` paths. The first
    /// entry in which two shares differ decides, so peers with the fewest paths count first
    /// (leximin).
    #[cfg(test)]
    pub fn score(&self) -> Vec<usize> {
        let mut score = vec![0];
        for seat in &self.seats {
            score[0] += usize::from(seat.turn && seat.count > 0);
            if score.len() <= seat.count {
                score.resize(seat.count + 1, 0);
            }
            for level in &mut score[1..=seat.count] {
                *level += 1;
            }
        }
        score
    }

    /// The seats of the peers: first those that have a turn, then by their order.
    pub fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.seats.len()).collect();
        order.sort_by_key(|&seat| (!self.seats[seat].turn, self.seats[seat].order));
        order
    }
}

#[cfg(test)]
pub(super) mod tests;
