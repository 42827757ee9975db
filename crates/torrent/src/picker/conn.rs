//! What the peer at the other end of a connection has, and what it was asked for.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use super::piece::{BlockRef, GroupId};
use crate::bitfield::Bitfield;

/// Most blocks remembered per connection as possibly still coming, after they were asked for
/// elsewhere. A peer that honours every cancel leaves them here for good.
pub(super) const MAX_LATE: usize = 1 << 15;

/// A connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub group: GroupId,
    /// The pieces of the peer.
    pub has: Bitfield,
    /// Whether they are counted in [`Rarity`](super::rarity::Rarity): not if its first bitfield had
    /// every piece.
    pub counted: bool,
    /// Pieces it has that are not verified here.
    pub wanted: u32,
    /// Blocks asked for, in the order asked.
    pub asked: VecDeque<Asked>,
    /// Blocks that are not expected any more but may still come, and how many copies: one for each
    /// time they were asked for in vain.
    pub late: HashMap<BlockRef, u32>,
    /// Whether `late` was full once: what comes unexpected since then may have been asked for.
    pub forgot: bool,
}

/// A block asked for over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub block: BlockRef,
    /// When the first block asked for after it arrived. Those of a connection that have one come
    /// before those that have none.
    pub passed: Option<Instant>,
}

impl Conn {
    /// A connection to a peer of `pieces` pieces that is not known to have any yet.
    pub fn new(group: GroupId, pieces: u32) -> Self {
        Self {
            group,
            has: Bitfield::empty(pieces),
            counted: true,
            wanted: 0,
            asked: VecDeque::new(),
            late: HashMap::new(),
            forgot: false,
        }
    }

    /// A block is asked for.
    pub fn ask(&mut self, block: BlockRef) {
        let passed = None;
        self.asked.push_back(Asked { block, passed });
    }

    /// The block at `place` arrived: all before it were overtaken, now or earlier.
    pub fn pass(&mut self, place: usize, now: Instant) {
        let before = self.asked.iter_mut().take(place).rev();
        before
            .take_while(|asked| asked.passed.is_none())
            .for_each(|asked| asked.passed = Some(now));
    }

    /// Takes out the blocks asked for of which `which` (given what the peer has) is true.
    pub fn take_asked(&mut self, which: impl Fn(&Bitfield, &Asked) -> bool) -> Vec<BlockRef> {
        let asked = std::mem::take(&mut self.asked).into_iter();
        let (taken, kept): (Vec<Asked>, Vec<Asked>) =
            asked.partition(|asked| which(&self.has, asked));
        self.asked = kept.into();
        taken.into_iter().map(|asked| asked.block).collect()
    }

    /// A block that was asked for is not expected any more.
    pub fn remember_late(&mut self, block: BlockRef) {
        if self.late.len() >= MAX_LATE {
            self.late.clear();
            self.forgot = true;
        }
        *self.late.entry(block).or_default() += 1;
    }

    /// Whether a copy of `block`, which arrived now, could still come.
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
