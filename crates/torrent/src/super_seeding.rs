//! Super-seeding (BEP 16): which piece a seeder reveals to which peer, so that it sends each piece
//! about once before others spread it.
//!
//! Pure. The seeder offers itself as a peer without pieces, and reveals one piece to each peer. A
//! peer gets the next one when the last one is seen at another peer, as then it has passed it on;
//! or when it has the last one and no other peer lacks it. So those that share are fed faster.
//!
//! A peer does not announce a piece that it was told of, as the seeder must have that one: it
//! counts as a piece of the peer once as many bytes were sent.

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::bitfield::Bitfield;
use crate::picker::GroupId;
use crate::pieces::Pieces;

/// What was revealed to the peers of a seeder. Bounded by the connected peers, each with two
/// bitfields.
#[derive(Debug)]
pub(crate) struct SuperSeeding {
    pieces: Pieces,
    peers: BTreeMap<GroupId, Known>,
    /// By piece: how many peers have it, or were told of it.
    copies: Vec<u32>,
    /// Whether anything happened since pieces were last revealed.
    has_changes: bool,
    rng: Rng,
}

#[derive(Debug)]
struct Known {
    has: Bitfield,
    told: Bitfield,
    /// The piece that it was told of last.
    last: Option<u32>,
    /// Bytes that were not sent yet since it was told of that piece, up to the size of the piece.
    unsent: u64,
}

impl SuperSeeding {
    /// Nothing is revealed yet of a torrent of these pieces. `seed` decides among equals.
    pub fn new(pieces: Pieces, seed: u64) -> Self {
        Self {
            pieces,
            peers: BTreeMap::new(),
            copies: vec![0; pieces.count() as usize],
            has_changes: false,
            rng: Rng::with_seed(seed),
        }
    }

    /// Adds a peer without pieces. A known one stays as it is.
    pub fn join(&mut self, peer: GroupId) {
        self.has_changes = true;
        let empty = || Bitfield::empty(self.pieces.count());
        self.peers.entry(peer).or_insert_with(|| Known {
            has: empty(),
            told: empty(),
            last: None,
            unsent: 0,
        });
    }

    /// Forgets a peer that has left.
    pub fn leave(&mut self, peer: GroupId) {
        if let Some(gone) = self.peers.remove(&peer) {
            self.has_changes = true;
            let counted = (0..self.pieces.count()).filter(|piece| gone.counts(*piece));
            counted.for_each(|piece| self.copies[piece as usize] -= 1);
        }
    }

    /// A peer has a piece.
    pub fn has(&mut self, peer: GroupId, piece: u32) {
        if let Some(known) = self.peers.get_mut(&peer)
            && piece < self.pieces.count()
        {
            self.copies[piece as usize] += u32::from(!known.counts(piece));
            self.has_changes |= known.has.set(piece);
        }
    }

    /// `bytes` of blocks were sent to a peer.
    pub fn sent(&mut self, peer: GroupId, bytes: u64) {
        if let Some(known) = self.peers.get_mut(&peer)
            && let Some(last) = known.last
            && bytes > 0
        {
            known.unsent = known.unsent.saturating_sub(bytes);
            if known.unsent == 0 {
                self.has(peer, last);
            }
        }
    }

    /// The pieces that a peer was told of, for a further connection to it.
    pub fn told(&self, peer: GroupId) -> impl Iterator<Item = u32> {
        let known = self.peers.get(&peer).into_iter();
        known.flat_map(|known| known.told.iter())
    }

    /// The pieces that are revealed now, each to a peer. They count as told.
    pub fn reveal(&mut self, offered: &Bitfield) -> Vec<(GroupId, u32)> {
        if !std::mem::take(&mut self.has_changes) {
            return Vec::new();
        }
        let ready: Vec<GroupId> = self.peers.keys().copied().collect();
        let ready = ready.into_iter().filter(|peer| self.is_ready(*peer));
        let ready: Vec<GroupId> = ready.collect();
        let mut revealed = Vec::new();
        for peer in ready {
            let Some(piece) = self.rarest(peer, offered) else {
                continue;
            };
            self.copies[piece as usize] += 1;
            if let Some(known) = self.peers.get_mut(&peer) {
                known.told.set(piece);
                known.last = Some(piece);
                known.unsent = u64::from(self.pieces.size(piece));
            }
            revealed.push((peer, piece));
        }
        revealed
    }

    /// Whether a peer gets the next piece.
    fn is_ready(&self, peer: GroupId) -> bool {
        let Some(known) = self.peers.get(&peer) else {
            return false;
        };
        let Some(last) = known.last else {
            return true;
        };
        let mut others = self.peers.iter().filter(|(other, _)| **other != peer);
        let is_passed_on = others.clone().any(|(_, other)| other.has.has(last));
        let is_alone = known.has.has(last) && others.all(|(_, other)| other.has.has(last));
        is_passed_on || is_alone
    }

    /// The piece that fewest have or were told of, of those that a peer lacks and was not told of.
    fn rarest(&mut self, peer: GroupId, offered: &Bitfield) -> Option<u32> {
        let known = self.peers.get(&peer)?;
        let lacks = |piece: &u32| offered.has(*piece) && !known.counts(*piece);
        let copies = |piece: &u32| self.copies[*piece as usize];
        let all = || 0..self.pieces.count();
        let least = all().filter(lacks).map(|it| copies(&it)).min()?;
        let rarest = all().filter(lacks).filter(|it| copies(it) == least);
        let rarest: Vec<u32> = rarest.collect();
        self.rng.choice(rarest)
    }
}

impl Known {
    /// Whether a piece is counted as one that it has, or will have.
    fn counts(&self, piece: u32) -> bool {
        self.has.has(piece) || self.told.has(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::{TestCaseError, any, prop, prop_assert, prop_assert_eq};
    use proptest::proptest;

    use super::*;

    /// Bytes of each piece.
    const PIECE: u32 = 16;

    fn seeding(pieces: u32, seed: u64) -> SuperSeeding {
        let pieces = Pieces {
            length: PIECE,
            total: u64::from(pieces * PIECE),
        };
        SuperSeeding::new(pieces, seed)
    }

    /// Lets pieces be revealed, and checks what holds always. Returns them.
    fn reveal(
        seeding: &mut SuperSeeding,
        offered: &Bitfield,
        has: &BTreeMap<GroupId, BTreeSet<u32>>,
        told: &mut BTreeSet<(GroupId, u32)>,
    ) -> Result<Vec<(GroupId, u32)>, TestCaseError> {
        let revealed = seeding.reveal(offered);
        for (peer, piece) in &revealed {
            prop_assert!(offered.has(*piece), "{piece} is not offered");
            prop_assert!(!has[peer].contains(piece), "{peer} has {piece}");
            prop_assert!(told.insert((*peer, *piece)), "{peer} was told of {piece}");
        }
        let again = seeding.reveal(offered);
        prop_assert!(again.is_empty(), "nothing happened: {again:?}");
        Ok(revealed)
    }

    proptest! {
        /// Whatever peers do: each is told of what it lacks, once, and of one piece at a time.
        #[test]
        fn peers_are_told_of_one_piece_at_a_time(
            pieces in 1..20u32,
            withheld in prop::collection::vec(0..20u32, 0..4),
            steps in prop::collection::vec((0..6u32, 0..20u32, 0..5u8), 1..120),
        ) {
            let mut offered = Bitfield::full(pieces);
            for piece in &withheld {
                offered.clear(*piece);
            }
            let mut seeding = seeding(pieces, 1);
            let mut has: BTreeMap<GroupId, BTreeSet<u32>> = BTreeMap::new();
            let mut told = BTreeSet::new();
            let mut last: BTreeMap<GroupId, u32> = BTreeMap::new();
            for (peer, piece, what) in steps {
                let peer = peer as GroupId;
                match what {
                    0 => {
                        seeding.leave(peer);
                        has.remove(&peer);
                        last.remove(&peer);
                        told.retain(|(of, _)| *of != peer);
                    }
                    1 => {
                        seeding.join(peer);
                        has.entry(peer).or_default();
                    }
                    2 => {
                        // Part of the piece, then the rest.
                        seeding.sent(peer, u64::from(PIECE) - 1);
                        prop_assert!(seeding.reveal(&offered).is_empty());
                        seeding.sent(peer, 1);
                        if let Some(last) = last.get(&peer) {
                            has.get_mut(&peer).unwrap().insert(*last);
                        }
                    }
                    _ => {
                        seeding.has(peer, piece);
                        if piece < pieces && let Some(has) = has.get_mut(&peer) {
                            has.insert(piece);
                        }
                    }
                }
                for (peer, piece) in reveal(&mut seeding, &offered, &has, &mut told)? {
                    if let Some(last) = last.insert(peer, piece) {
                        let mut others = has.iter().filter(|(other, _)| **other != peer);
                        let is_spread = others.clone().any(|(_, has)| has.contains(&last));
                        let is_everywhere = others.all(|(_, has)| has.contains(&last));
                        let is_done = is_everywhere && has[&peer].contains(&last);
                        prop_assert!(is_spread || is_done, "{peer} was told too early");
                    }
                }
                for (peer, piece) in &told {
                    prop_assert!(seeding.told(*peer).any(|told| told == *piece));
                }
            }
        }

        /// Where peers pass on what they get, all get everything, and the seeder sends each piece
        /// once, but for as many as there are peers.
        #[test]
        fn each_piece_is_sent_about_once(
            pieces in 1..40u32,
            peers in 1..10usize,
            seed in any::<u64>(),
        ) {
            let offered = Bitfield::full(pieces);
            let mut seeding = seeding(pieces, seed);
            let mut has: BTreeMap<GroupId, BTreeSet<u32>> = BTreeMap::new();
            let mut rng = fastrand::Rng::with_seed(seed);
            for peer in 0..peers {
                seeding.join(peer as GroupId);
                has.insert(peer as GroupId, BTreeSet::new());
            }
            let (mut told, mut sent) = (BTreeSet::new(), 0);
            loop {
                let revealed = reveal(&mut seeding, &offered, &has, &mut told)?;
                if revealed.is_empty() {
                    break;
                }
                // Each gets what it was told of, then passes it on to all others in some order.
                let mut arrivals = Vec::new();
                for (peer, piece) in revealed {
                    if has[&peer].contains(&piece) {
                        continue;
                    }
                    sent += 1;
                    let others = has.keys().filter(|other| **other != peer);
                    arrivals.extend(others.map(|other| (*other, piece)));
                    has.get_mut(&peer).unwrap().insert(piece);
                    seeding.sent(peer, u64::from(PIECE));
                }
                rng.shuffle(&mut arrivals);
                for (peer, piece) in arrivals {
                    has.get_mut(&peer).unwrap().insert(piece);
                    seeding.has(peer, piece);
                }
            }
            for has in has.values() {
                prop_assert_eq!(has.len() as u32, pieces);
            }
            prop_assert!(sent <= u64::from(pieces) + peers as u64, "{} of {}", sent, pieces);
        }
    }

    #[test]
    fn a_peer_that_passes_nothing_on_gets_one_piece() {
        let offered = Bitfield::full(10);
        let mut seeding = seeding(10, 3);
        (0..3).for_each(|peer| seeding.join(peer));
        let first: BTreeMap<GroupId, u32> = seeding.reveal(&offered).into_iter().collect();
        assert_eq!(first.len(), 3);
        // The first keeps what it has; the others exchange theirs.
        (0..3).for_each(|peer| seeding.sent(peer, u64::from(PIECE)));
        assert!(seeding.reveal(&offered).is_empty());
        seeding.has(1, first[&2]);
        let next: Vec<GroupId> = seeding
            .reveal(&offered)
            .into_iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(next, [2]);
        seeding.has(2, first[&1]);
        let next: Vec<GroupId> = seeding
            .reveal(&offered)
            .into_iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(next, [1]);
    }
}
