//! The peers that wait for a slot, and drawing from them.

use std::collections::BTreeMap;

use fastrand::Rng;

/// The chance of a peer that never held a slot, compared with that of others.
const NEW: u64 = 3;

/// The peers that wait for a slot, in their order. Coming and going costs little however many wait: the list
/// is put in order when peers are drawn from it.
#[derive(Debug, Clone)]
pub(crate) struct Waiting<P> {
    /// Those at the last draw.
    listed: Vec<Entry<P>>,
    /// Those that have come since, each with whether it never held a slot; `None` for those listed that have gone.
    changed: BTreeMap<P, Option<bool>>,
    /// Number of peers that were ever drawn.
    draws: u64,
}

/// A peer that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<P> {
    pub peer: P,
    /// Whether it never held a slot.
    pub is_new: bool,
}

impl<P> Entry<P> {
    fn weight(&self) -> u64 {
        match self.is_new {
            true => NEW,
            false => 1,
        }
    }
}

impl<P: Ord + Copy> Waiting<P> {
    /// Nobody waits.
    pub fn new() -> Self {
        Self {
            listed: Vec::new(),
            changed: BTreeMap::new(),
            draws: 0,
        }
    }

    /// Adds a peer that does not wait yet.
    pub fn insert(&mut self, peer: P, is_new: bool) {
        self.changed.insert(peer, Some(is_new));
    }

    /// Removes a peer.
    pub fn remove(&mut self, peer: P) {
        let listed = self.listed.binary_search_by_key(&peer, |entry| entry.peer);
        match listed {
            Ok(_) => self.changed.insert(peer, None),
            Err(_) => self.changed.remove(&peer),
        };
    }

    /// Number of peers that were ever drawn.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// Counts a peer that is drawn.
    pub fn count_draw(&mut self) {
        self.draws += 1;
    }

    /// All that wait, in their order.
    pub fn all(&mut self) -> &[Entry<P>] {
        if !self.changed.is_empty() {
            let before = std::mem::take(&mut self.listed);
            let changed = std::mem::take(&mut self.changed);
            self.listed.reserve_exact(before.len() + changed.len());
            let mut rest = before.as_slice();
            for (peer, is_new) in changed {
                let (lower, from) = rest.split_at(rest.partition_point(|entry| entry.peer < peer));
                self.listed.extend_from_slice(lower);
                let is_listed = from.first().is_some_and(|entry| entry.peer == peer);
                rest = &from[usize::from(is_listed)..];
                self.listed
                    .extend(is_new.map(|is_new| Entry { peer, is_new }));
            }
            self.listed.extend_from_slice(rest);
        }
        &self.listed
    }
}

/// Draws an index of `entries`, which are not empty, with a chance in proportion to their weights.
pub(crate) fn weighted<P>(rng: &mut Rng, entries: &[Entry<P>]) -> usize {
    let mut left = rng.u64(..entries.iter().map(Entry::weight).sum::<u64>().max(1));
    for (at, entry) in entries.iter().enumerate() {
        match left.checked_sub(entry.weight()) {
            Some(rest) => left = rest,
            None => return at,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_that_come_and_go_between_two_draws_leave_nothing() {
        let mut waiting = Waiting::new();
        (0..10).for_each(|peer| waiting.insert(peer, true));
        assert_eq!(waiting.all().len(), 10);
        (10..1000).for_each(|peer| {
            waiting.insert(peer, true);
            waiting.remove(peer);
        });
        assert!(waiting.changed.is_empty());
        waiting.remove(3);
        assert_eq!(waiting.changed.len(), 1);
        assert!(waiting.all().iter().all(|entry| entry.peer != 3));
        waiting.insert(3, false);
        assert_eq!(waiting.all().len(), 10);
    }
}
