//! Hashes of blocks that the disk was asked for.

use std::collections::{HashMap, VecDeque};

use crate::picker::ConnId;
use crate::wire::HashRequest;

/// What the hashes of the blocks of a piece are for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// To find the senders of wrong blocks.
    Blame,
    /// To answer a peer.
    Answer(ConnId, HashRequest),
}

/// What the hashes are for that the disk computes, by piece, in the order in which they come. Those of
/// peers are bounded with their answers.
#[derive(Debug, Default)]
pub(super) struct Digests(HashMap<u32, VecDeque<Purpose>>);

impl Digests {
    /// Notes that the disk was asked for the hashes of a piece.
    pub(super) fn expect(&mut self, piece: u32, purpose: Purpose) {
        self.0.entry(piece).or_default().push_back(purpose);
    }

    /// What the hashes of a piece are for that have arrived; `None` if nothing asked for them.
    pub(super) fn arrived(&mut self, piece: u32) -> Option<Purpose> {
        let purposes = self.0.get_mut(&piece)?;
        let purpose = purposes.pop_front();
        if purposes.is_empty() {
            self.0.remove(&piece);
        }
        purpose
    }
}
