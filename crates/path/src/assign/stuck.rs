//! Peers that need no new search, because nothing has changed that the last one depended on.

use std::collections::BTreeMap;

use crate::bits::Bits;

/// A hash of the paths of a peer, the same for peers with the same paths.
pub(super) type Class = [u8; 32];

/// The peers for which the last search found no chain, and what these searches looked at. Until some
/// of that changes, another search would find no chain either.
///
/// Peers have numbers, which are reused once they leave.
#[derive(Debug, Clone, Default)]
pub(super) struct Stuck {
    stuck: Bits,
    /// By link: the peers whose search looked at what crosses it.
    by_link: Vec<Bits>,
    /// By peer: the peers whose search looked at how many paths it has and which it could have.
    by_peer: Vec<Bits>,
    /// For each set of paths, a peer that has it, uses none of it, and is stuck.
    pub leaders: BTreeMap<Class, usize>,
}

impl Stuck {
    /// Whether a search would find nothing.
    pub fn is_stuck(&self, peer: usize) -> bool {
        self.stuck.contains(peer)
    }

    /// A search for a peer found nothing; what it looked at was recorded before.
    pub fn found_nothing(&mut self, peer: usize) {
        self.stuck.insert(peer);
        self.looked_at_peer(peer, peer);
    }

    /// The search for a peer looked at what crosses a link.
    pub fn looked_at_link(&mut self, peer: usize, link: u32) {
        at(&mut self.by_link, link as usize).insert(peer);
    }

    /// The search for a peer looked at another peer.
    pub fn looked_at_peer(&mut self, peer: usize, other: usize) {
        at(&mut self.by_peer, other).insert(peer);
    }

    /// The paths that cross a link changed, or those that may.
    pub fn link_changed(&mut self, link: u32) {
        if let Some(peers) = self.by_link.get_mut(link as usize) {
            self.stuck.remove_all(&std::mem::take(peers));
        }
    }

    /// A peer has more or fewer paths now, or other paths are offered to it.
    pub fn peer_changed(&mut self, peer: usize) {
        if let Some(peers) = self.by_peer.get_mut(peer) {
            self.stuck.remove_all(&std::mem::take(peers));
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

fn at(all: &mut Vec<Bits>, index: usize) -> &mut Bits {
    if all.len() <= index {
        all.resize(index + 1, Bits::default());
    }
    &mut all[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_looked_at_matters() {
        let mut stuck = Stuck::default();
        for peer in [3, 70] {
            stuck.looked_at_link(peer, 5);
            stuck.looked_at_peer(peer, 9);
            stuck.found_nothing(peer);
        }
        stuck.looked_at_link(70, 6);
        stuck.link_changed(7);
        stuck.peer_changed(8);
        assert!(stuck.is_stuck(3) && stuck.is_stuck(70) && !stuck.is_stuck(9));
        stuck.link_changed(6);
        assert!(stuck.is_stuck(3) && !stuck.is_stuck(70));
        stuck.peer_changed(9);
        assert!(!stuck.is_stuck(3));
        stuck.found_nothing(3);
        stuck.peer_changed(3);
        assert!(!stuck.is_stuck(3));
    }
}
