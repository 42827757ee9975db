//! The pieces of the peer at the other end of a connection, and the blocks requested from it.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use super::AddressFamily;
use super::piece::{BlockRef, GroupId};
use hawser_wire::Bitfield;

/// Most blocks remembered per connection as requested once and given up since. If such a block
/// arrives after all it is accepted; one that is not remembered is dropped.
pub(super) const MAX_LATE: usize = 1 << 13;

/// Copies of every block requested over a connection that the peer may send. It may answer each
/// request twice, and once more for one that it did not drop at a cancel.
const COPIES: u64 = 3;

/// Bytes of blocks that the peer may send in addition to [`COPIES`] of what was requested, before
/// it counts as flooding us.
pub(super) const ALLOWANCE: u64 = 64 << 20;

/// A connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub group: GroupId,
    /// The pieces of the peer.
    pub has: Bitfield,
    /// Whether its pieces are counted in [`Rarity`](super::rarity::Rarity): not if its first
    /// bitfield was full.
    pub counted: bool,
    /// The kind of its address, if it is a peer whose id is known; `None` for a web seed.
    pub family: Option<AddressFamily>,
    /// Pieces it has that are not verified here.
    pub wanted: u32,
    /// Whether each of its pieces is begun, so that looking for another one is useless.
    pub exhausted: bool,
    /// Requested blocks, in the order requested.
    pub asked: VecDeque<Asked>,
    /// Blocks requested before the connection stalled, in the order requested. Some may have been
    /// requested anew since, as their pieces failed.
    pub suspended: VecDeque<BlockRef>,
    /// The block requested while it is stalled, to see whether the peer answers again.
    pub probe: Option<BlockRef>,
    /// Blocks that were requested, are not expected any more, but may still arrive.
    pub late: HashSet<BlockRef>,
    /// Those of `late` that it was expected to deliver until another connection was asked for them too.
    pub repeated: HashSet<BlockRef>,
    /// Requests that the peer has answered, of those made since the connection last stalled.
    pub answered: u64,
    /// Whether the connection has stalled and the peer has answered no request made since.
    pub is_late: bool,
    /// Bytes of blocks ever requested over it, each request counted.
    pub requested_bytes: u64,
    /// Bytes of blocks received over it.
    pub received_bytes: u64,
}

/// A block requested over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub block: BlockRef,
    /// When the first block requested after this one arrived. In the queue of a connection, blocks
    /// with a time come before those without.
    pub passed: Option<Instant>,
    /// Whether it was requested before the connection last stalled.
    pub before_stall: bool,
}

impl Asked {
    /// A block requested now.
    fn new(block: BlockRef) -> Self {
        Self {
            block,
            passed: None,
            before_stall: false,
        }
    }

    /// A block requested before the connection stalled.
    pub fn before_stall(block: BlockRef) -> Self {
        Self {
            before_stall: true,
            ..Self::new(block)
        }
    }
}

/// How a block that arrived was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// It was requested; `before` blocks requested earlier have not arrived.
    Asked { before: usize, before_stall: bool },
    /// It was requested before the connection stalled.
    Suspended,
}

impl Conn {
    /// A connection to a peer without any known piece, in a torrent of `pieces` pieces.
    pub fn new(group: GroupId, pieces: u32) -> Self {
        Self {
            group,
            has: Bitfield::empty(pieces),
            counted: true,
            family: None,
            wanted: 0,
            exhausted: false,
            asked: VecDeque::new(),
            suspended: VecDeque::new(),
            probe: None,
            late: HashSet::new(),
            repeated: HashSet::new(),
            answered: 0,
            is_late: false,
            requested_bytes: 0,
            received_bytes: 0,
        }
    }

    /// Whether it is a peer that has had every piece from the beginning.
    pub fn is_seeder(&self) -> bool {
        self.family.is_some() && !self.counted
    }

    /// Adds a requested block of `bytes` bytes.
    pub fn ask(&mut self, block: BlockRef, bytes: u32) {
        self.asked.push_back(Asked::new(block));
        self.requested_bytes += u64::from(bytes);
    }

    /// Notes that the block at `place` arrived: it overtook all blocks before it.
    pub fn pass(&mut self, place: usize, now: Instant) {
        let before = self.asked.iter_mut().take(place).rev();
        before
            .take_while(|asked| asked.passed.is_none())
            .for_each(|asked| asked.passed = Some(now));
    }

    /// Takes out the requested blocks, suspended ones included, for which `which` (given the pieces
    /// of the peer) is true.
    pub fn take_asked(&mut self, which: impl Fn(&Bitfield, &Asked) -> bool) -> Vec<BlockRef> {
        let suspended = std::mem::take(&mut self.suspended).into_iter();
        let suspended = suspended.map(Asked::before_stall);
        let (mut taken, kept): (Vec<Asked>, Vec<Asked>) =
            suspended.partition(|asked| which(&self.has, asked));
        self.suspended = kept.into_iter().map(|asked| asked.block).collect();
        let asked = std::mem::take(&mut self.asked).into_iter();
        let (of_asked, kept): (Vec<Asked>, Vec<Asked>) =
            asked.partition(|asked| which(&self.has, asked));
        self.asked = kept.into();
        taken.extend(of_asked);
        taken.into_iter().map(|asked| asked.block).collect()
    }

    /// Takes a block that arrived out of the requested ones; `None` if it is not one of them.
    pub fn take(&mut self, block: BlockRef, now: Instant) -> Option<Expected> {
        // Peers answer in order, so it is nearly always the first one.
        if let Some(at) = self.asked.iter().position(|asked| asked.block == block) {
            self.pass(at, now);
            let taken = self.asked.remove(at);
            return Some(Expected::Asked {
                before: at,
                before_stall: taken.is_some_and(|asked| asked.before_stall),
            });
        }
        let at = self.suspended.iter().position(|held| *held == block)?;
        self.suspended.remove(at);
        Some(Expected::Suspended)
    }

    /// Withdraws the request for a block that arrived over another connection. Returns whether
    /// there was one.
    pub fn withdraw(&mut self, block: BlockRef) -> bool {
        let before = self.asked.len() + self.suspended.len();
        self.asked.retain(|asked| asked.block != block);
        self.suspended.retain(|held| *held != block);
        self.asked.len() + self.suspended.len() < before
    }

    /// Whether a block was requested, and the connection has not stalled since.
    pub fn is_expected(&self, block: BlockRef) -> bool {
        let mut asked = self.asked.iter();
        asked.any(|asked| asked.block == block && !asked.before_stall)
    }

    /// Notes that the peer answered a request made since the connection last stalled.
    pub fn answer(&mut self) {
        self.answered += 1;
        self.is_late = false;
    }

    /// Remembers that a requested block is no longer expected; `is_missing` says which blocks are
    /// worth remembering.
    pub fn remember_late(&mut self, block: BlockRef, is_missing: impl Fn(BlockRef) -> bool) {
        if self.late.len() >= MAX_LATE {
            self.late.retain(|block| is_missing(*block));
            if self.late.len() >= MAX_LATE / 2 {
                self.late.clear();
            }
            self.repeated.retain(|block| self.late.contains(block));
        }
        self.late.insert(block);
        self.repeated.remove(&block);
    }

    /// Whether the peer has sent far more than was requested.
    pub fn is_flooding(&self) -> bool {
        self.received_bytes > self.requested_bytes * COPIES + ALLOWANCE
    }
}
