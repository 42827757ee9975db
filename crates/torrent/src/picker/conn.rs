//! The pieces of the peer at the other end of a connection, and the blocks requested from it.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use super::piece::{BlockRef, GroupId};
use crate::bitfield::Bitfield;

/// Most blocks remembered per connection as possibly still arriving after they were requested over
/// another one. A peer that honours every cancel leaves them here for good.
pub(super) const MAX_LATE: usize = 1 << 15;

/// A connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub group: GroupId,
    /// The pieces of the peer.
    pub has: Bitfield,
    /// Whether its pieces are counted in [`Rarity`](super::rarity::Rarity): not if its first
    /// bitfield was full.
    pub counted: bool,
    /// Pieces it has that are not verified here.
    pub wanted: u32,
    /// Whether each of its pieces is begun, so that looking for another one is useless.
    pub exhausted: bool,
    /// Requested blocks, in the order requested.
    pub asked: VecDeque<Asked>,
    /// Blocks that are no longer expected but may still arrive, with the number of copies: one for
    /// each request that was given up.
    pub late: HashMap<BlockRef, u32>,
    /// Whether `late` was ever full: an unexpected block may since then be one that was requested.
    pub forgot: bool,
}

/// A block requested over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub block: BlockRef,
    /// When the first block requested after this one arrived. In the queue of a connection, blocks
    /// with a time come before those without.
    pub passed: Option<Instant>,
}

impl Conn {
    /// A connection to a peer without any known piece, in a torrent of `pieces` pieces.
    pub fn new(group: GroupId, pieces: u32) -> Self {
        Self {
            group,
            has: Bitfield::empty(pieces),
            counted: true,
            wanted: 0,
            exhausted: false,
            asked: VecDeque::new(),
            late: HashMap::new(),
            forgot: false,
        }
    }

    /// Adds a requested block.
    pub fn ask(&mut self, block: BlockRef) {
        let passed = None;
        self.asked.push_back(Asked { block, passed });
    }

    /// Notes that the block at `place` arrived: it overtook all blocks before it.
    pub fn pass(&mut self, place: usize, now: Instant) {
        let before = self.asked.iter_mut().take(place).rev();
        before
            .take_while(|asked| asked.passed.is_none())
            .for_each(|asked| asked.passed = Some(now));
    }

    /// Takes out the requested blocks for which `which` (given the pieces of the peer) is true.
    pub fn take_asked(&mut self, which: impl Fn(&Bitfield, &Asked) -> bool) -> Vec<BlockRef> {
        let asked = std::mem::take(&mut self.asked).into_iter();
        let (taken, kept): (Vec<Asked>, Vec<Asked>) =
            asked.partition(|asked| which(&self.has, asked));
        self.asked = kept.into();
        taken.into_iter().map(|asked| asked.block).collect()
    }

    /// Remembers that a requested block is no longer expected.
    pub fn remember_late(&mut self, block: BlockRef) {
        if self.late.len() >= MAX_LATE {
            self.late.clear();
            self.forgot = true;
        }
        *self.late.entry(block).or_default() += 1;
    }

    /// Whether a copy of `block` could still arrive; counts the one that arrived now.
    pub fn take_late(&mut self, block: BlockRef) -> bool {
        let Some(copies) = self.late.get_mut(&block) else {
            return false;
        };
        *copies -= 1;
        if *copies == 0 {
            self.late.remove(&block);
        }
        true
    }
}
