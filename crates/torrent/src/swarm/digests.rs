//! Hashes of blocks that the disk was asked for.

use std::collections::{HashMap, VecDeque};

use super::recent::Recent;
use crate::merkle::Hash;
use crate::picker::ConnId;
use crate::wire::HashRequest;

/// Most pieces whose hashes of blocks are kept to answer peers: the last ones. Those of a piece have 256 KiB
/// at most.
const MAX_KEPT: usize = 4;

/// What the hashes of the blocks of a piece are for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To find the senders of wrong blocks.
    Blame,
    /// To answer peers.
    Answer(Vec<(ConnId, HashRequest)>),
}

/// What the hashes are for that the disk computes, by piece, in the order in which they come. Those of
/// peers are bounded with their answers.
#[derive(Debug)]
pub(super) struct Digests {
    expected: HashMap<u32, VecDeque<Purpose>>,
    /// Those of pieces whose hash they lead to.
    kept: Recent<u32, Vec<Hash>>,
}

impl Default for Digests {
    fn default() -> Self {
        Self {
            expected: HashMap::new(),
            kept: Recent::new(MAX_KEPT),
        }
    }
}

impl Digests {
    /// Notes that the disk was asked for the hashes of a piece.
    pub(super) fn expect(&mut self, piece: u32, purpose: Purpose) {
        self.expected.entry(piece).or_default().push_back(purpose);
    }

    /// Answers a peer, too, with hashes that the disk was asked for to answer others. Returns whether it was.
    pub(super) fn join(&mut self, piece: u32, conn: ConnId, wanted: HashRequest) -> bool {
        let mut purposes = self.expected.get_mut(&piece).into_iter().flatten();
        let asked = purposes.find_map(|purpose| match purpose {
            Purpose::Answer(asked) => Some(asked),
            Purpose::Blame => None,
        });
        asked.map(|asked| asked.push((conn, wanted))).is_some()
    }

    /// What the hashes of a piece are for that have arrived; `None` if nothing asked for them.
    pub(super) fn arrived(&mut self, piece: u32) -> Option<Purpose> {
        let purposes = self.expected.get_mut(&piece)?;
        let purpose = purposes.pop_front();
        if purposes.is_empty() {
            self.expected.remove(&piece);
        }
        purpose
    }

    /// Keeps the hashes of a piece, to which they lead, for further answers.
    pub(super) fn keep(&mut self, piece: u32, hashes: Vec<Hash>) {
        self.kept.insert(piece, hashes);
    }

    /// The hashes of a piece that are kept.
    pub(super) fn kept(&self, piece: u32) -> Option<&[Hash]> {
        self.kept.get(&piece).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::HashRange;

    #[test]
    fn a_piece_is_read_once_for_several_answers() {
        let wanted = |index| HashRequest {
            root: [9; 32],
            range: HashRange::proven(0, index, 512, 11),
        };
        let mut digests = Digests::default();
        digests.expect(3, Purpose::Blame);
        assert!(!digests.join(3, 1, wanted(0)));
        digests.expect(3, Purpose::Answer(vec![(1, wanted(0))]));
        assert!(digests.join(3, 1, wanted(512)));
        assert!(!digests.join(4, 1, wanted(512)));
        assert_eq!(digests.arrived(3), Some(Purpose::Blame));
        let both = Purpose::Answer(vec![(1, wanted(0)), (1, wanted(512))]);
        assert_eq!(digests.arrived(3), Some(both));
        assert_eq!(digests.arrived(3), None);
        assert!(!digests.join(3, 1, wanted(0)));
    }

    #[test]
    fn the_hashes_of_the_last_pieces_are_kept() {
        let mut digests = Digests::default();
        (0..=MAX_KEPT as u32).for_each(|piece| digests.keep(piece, vec![[piece as u8; 32]]));
        assert_eq!(digests.kept(0), None);
        assert_eq!(digests.kept(1), Some(&[[1; 32]][..]));
    }
}
