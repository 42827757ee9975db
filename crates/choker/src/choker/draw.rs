//! Drawing peers for optimistic slots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Choker;
use crate::peer::Slot;
use crate::waiting::{Entry, weighted};

/// After this many times as many others as wait, a peer is drawn before those that waited less.
const OVERDUE: u64 = 3;

impl<P: Ord + Copy> Choker<P> {
    /// The peers that may be drawn, in their order: not those that are given a slot already, `next`, nor
    /// those whose turn is `over`.
    pub(super) fn open_to(
        &mut self,
        next: &BTreeMap<P, Slot>,
        over: &BTreeSet<P>,
    ) -> Vec<Entry<P>> {
        let mut open = self.waiting.all().to_vec();
        for key in next.keys() {
            if let Ok(at) = place(&open, *key) {
                open.remove(at);
            }
        }
        // Those that give way to peers that earn their slots may have another turn.
        for (peer, known) in self.candidates_of(&self.holders) {
            if next.contains_key(&peer) || over.contains(&peer) {
                continue;
            }
            if let Err(at) = place(&open, peer) {
                let is_new = !known.is_known;
                open.insert(at, Entry { peer, is_new });
            }
        }
        open
    }

    /// Draws peers for this many optimistic slots.
    pub(super) fn draw(&mut self, mut open: Vec<Entry<P>>, count: usize) -> Vec<P> {
        let mut drawn = Vec::new();
        let holders = self.holders.iter().copied();
        let mut holders: Vec<P> = holders.filter(|key| place(&open, *key).is_ok()).collect();
        while drawn.len() < count && !open.is_empty() {
            let at = match self.overdue(&open) {
                Some(at) => at,
                None => weighted(&mut self.rng, &open),
            };
            drawn.push(open.swap_remove(at).peer);
            self.waiting.count_draw();
            holders.retain(|holder| !drawn.contains(holder));
            for holder in &holders {
                if let Some(peer) = self.peers.get_mut(holder) {
                    peer.waited += 1;
                }
            }
        }
        drawn
    }

    /// The index of the peer that has waited longest, if it is to be drawn before those that waited less.
    fn overdue(&self, open: &[Entry<P>]) -> Option<usize> {
        let bound = OVERDUE * open.len() as u64;
        // Nobody has waited for more than all that were ever drawn.
        if self.waiting.draws() < bound {
            return None;
        }
        let waited = open.iter().map(|entry| self.waited(entry.peer));
        let longest = waited
            .enumerate()
            .max_by_key(|(at, waited)| (*waited, Reverse(*at)));
        longest
            .filter(|(_, waited)| *waited >= bound)
            .map(|(at, _)| at)
    }

    /// Number of optimistic slots that others were given while a peer waited.
    fn waited(&self, peer: P) -> u64 {
        self.peers.get(&peer).map_or(0, |known| {
            let draws = self.waiting.draws() - known.since;
            known.waited + if known.waits() { draws } else { 0 }
        })
    }
}

/// Where a peer is among `entries`, which are in order, or would be.
fn place<P: Ord + Copy>(entries: &[Entry<P>], peer: P) -> Result<usize, usize> {
    entries.binary_search_by_key(&peer, |entry| entry.peer)
}
