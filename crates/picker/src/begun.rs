//! All pieces being fetched, with counts of their free and received blocks.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use super::piece::{Block, BlockRef, ConnId, GroupId, Piece, Sole};
use crate::wanted::Wanted;
use hawser_wire::Bitfield;

mod failing;

/// Most connections over which the same block is requested at once.
pub(super) const MAX_HOLDERS: usize = 3;

/// The pieces being fetched.
#[derive(Debug, Default)]
pub(super) struct Begun {
    pieces: BTreeMap<u32, Piece>,
    /// Pieces with free blocks, in the order in which they are finished.
    open: VecDeque<u32>,
    /// Pieces with suspended blocks.
    suspended: BTreeSet<u32>,
    /// Free blocks of all pieces.
    free: u64,
    /// Suspended blocks of all pieces.
    suspended_blocks: u64,
    /// Received blocks of all pieces.
    received: u64,
    /// Blocks of all pieces.
    blocks: u64,
}

impl Begun {
    /// The pieces, by number.
    #[cfg(test)]
    pub fn pieces(&self) -> &BTreeMap<u32, Piece> {
        &self.pieces
    }

    /// The pieces that have free blocks.
    #[cfg(test)]
    pub fn open(&self) -> &VecDeque<u32> {
        &self.open
    }

    /// The pieces that have suspended blocks.
    #[cfg(test)]
    pub fn suspended(&self) -> &BTreeSet<u32> {
        &self.suspended
    }

    /// Number of blocks that may be requested: free and suspended ones.
    pub fn free(&self) -> u64 {
        self.free + self.suspended_blocks
    }

    /// Number of blocks received, of pieces that are not verified yet.
    #[cfg(test)]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Number of blocks requested, each counted once.
    pub fn asked(&self) -> u64 {
        self.blocks - self.free() - self.received
    }

    /// Begins a piece of `size` bytes, of which the blocks in `padding` are not requested. At least
    /// one other is.
    pub fn begin(&mut self, number: u32, size: u32, padding: &[u32]) {
        let piece = Piece::new(size, padding);
        self.free += u64::from(piece.free);
        self.received += u64::from(piece.received);
        self.blocks += piece.blocks.len() as u64;
        self.pieces.insert(number, piece);
        self.open.push_back(number);
    }

    /// The first piece in `has` of which a peer of `group` may send a free block, of those with the
    /// greatest rank.
    pub fn first_open(&self, has: &Bitfield, group: GroupId, wanted: &Wanted) -> Option<u32> {
        let open = self.open.iter().copied();
        let mut open = open.filter(|number| has.has(*number) && self.is_open_to(*number, group));
        match wanted.is_uniform() {
            true => open.next(),
            // The first one of those that are equal.
            false => open.rev().max_by_key(|number| wanted.rank(*number)),
        }
    }

    /// The first of the pieces in `has` for which `which` is true, and of which a peer of `group` may send a free
    /// block.
    pub fn first_open_of(
        &self,
        has: &Bitfield,
        group: GroupId,
        which: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut open = self.open.iter().copied();
        open.find(|number| has.has(*number) && which(*number) && self.is_open_to(*number, group))
    }

    /// The numbers of the pieces of which a block is missing, and that are not wanted.
    pub fn unwanted(&self, wanted: &Wanted) -> HashSet<u32> {
        let pieces = self.pieces.iter();
        let unwanted = pieces.filter(|(number, piece)| {
            !wanted.has(**number) && (piece.received as usize) < piece.blocks.len()
        });
        unwanted.map(|(number, _)| *number).collect()
    }

    /// The first piece in `has` of which a peer of `group` may send a suspended block.
    pub fn first_suspended(&self, has: &Bitfield, group: GroupId) -> Option<u32> {
        let mut suspended = self.suspended.iter().copied();
        suspended.find(|number| has.has(*number) && self.is_open_to(*number, group))
    }

    /// Whether a peer of `group` may send blocks of a piece.
    fn is_open_to(&self, number: u32, group: GroupId) -> bool {
        let piece = self.pieces.get(&number);
        piece.is_some_and(|piece| piece.is_open_to(group))
    }

    /// Whether a piece must come from the peer `group` alone.
    pub fn is_bound_to(&self, number: u32, group: GroupId) -> bool {
        let piece = self.pieces.get(&number);
        piece.is_some_and(|piece| piece.sole == Sole::By(group))
    }

    /// Takes the next free block of a piece in order, if `group` may send it.
    pub fn take(&mut self, number: u32, conn: ConnId, group: GroupId) -> Option<u32> {
        self.change(number, |piece| piece.take(conn, group))?
    }

    /// Takes the next suspended block of a piece, if `group` may send it. Returns the block, and
    /// the connection over which it is requested already.
    pub fn take_suspended(
        &mut self,
        number: u32,
        conn: ConnId,
        group: GroupId,
    ) -> Option<(u32, ConnId)> {
        self.change(number, |piece| piece.take_suspended(conn, group))?
    }

    /// Suspends the request for a block over `conn`. Returns whether that was the only request for
    /// it; otherwise the request is withdrawn.
    pub fn suspend(&mut self, conn: ConnId, (number, block): BlockRef) -> bool {
        let suspended = self.change(number, |piece| piece.suspend(conn, block));
        suspended.unwrap_or(false)
    }

    /// Resumes the suspended request for a block over `conn`. Returns whether there was one.
    pub fn resume(&mut self, conn: ConnId, (number, block): BlockRef) -> bool {
        let resumed = self.change(number, |piece| piece.resume(conn, block));
        resumed.unwrap_or(false)
    }

    /// Whether the request for a block over `conn` is suspended.
    pub fn is_suspended(&self, conn: ConnId, (number, block): BlockRef) -> bool {
        let piece = self.pieces.get(&number);
        piece.is_some_and(|piece| piece.blocks[block as usize] == Block::Suspended(conn))
    }

    /// Whether a block is wanted: its piece is begun, and it was not received.
    pub fn is_missing(&self, (number, block): BlockRef) -> bool {
        let piece = self.pieces.get(&number);
        piece.is_some_and(|piece| {
            let block = &piece.blocks[block as usize];
            !matches!(block, Block::Received(_) | Block::Padding)
        })
    }

    /// Whether a block requested over another connection may be requested over `conn` too.
    pub fn may_share(&self, (number, block): BlockRef, conn: ConnId, group: GroupId) -> bool {
        let Some(piece) = self.pieces.get(&number) else {
            return false;
        };
        let has_room = match &piece.blocks[block as usize] {
            Block::Asked(_) => true,
            Block::Shared(holders) => holders.len() < MAX_HOLDERS && !holders.contains(&conn),
            Block::Free | Block::Suspended(_) | Block::Received(_) | Block::Padding => false,
        };
        has_room && piece.is_open_to(group)
    }

    /// Notes that a block requested over another connection is requested over `conn` too; `None` if
    /// no connection has requested it.
    pub fn share(&mut self, (number, block): BlockRef, conn: ConnId) -> Option<()> {
        let state = &mut self.pieces.get_mut(&number)?.blocks[block as usize];
        match state {
            Block::Asked(first) => *state = Block::Shared(vec![*first, conn]),
            Block::Shared(holders) => holders.push(conn),
            Block::Free | Block::Suspended(_) | Block::Received(_) | Block::Padding => {
                return None;
            }
        }
        Some(())
    }

    /// Notes that a block arrived from a peer of `group`; `is_late` if it was no longer expected.
    /// Returns its state before, and whether it was the last block of its piece; `None` if it is
    /// not wanted.
    pub fn receive(
        &mut self,
        (number, block): BlockRef,
        group: GroupId,
        is_late: bool,
    ) -> Option<(Block, bool)> {
        self.change(number, |piece| {
            let state = &mut piece.blocks[block as usize];
            // A late block may belong to an earlier, bad attempt at the piece.
            if matches!(state, Block::Received(_) | Block::Padding)
                || is_late && piece.sole != Sole::No
            {
                return None;
            }
            let before = std::mem::replace(state, Block::Received(group));
            piece.received += 1;
            piece.free -= u32::from(before == Block::Free);
            piece.suspended -= u32::from(matches!(before, Block::Suspended(_)));
            Some((before, piece.received as usize == piece.blocks.len()))
        })?
    }

    /// Withdraws the request for a block over `conn`.
    pub fn give_back(&mut self, conn: ConnId, (number, block): BlockRef) {
        self.change(number, |piece| piece.give_back(conn, block));
    }

    /// Restarts the pieces that must come from the peer `group` alone and are not requested over
    /// any of its paths: they would wait for ever. Another peer may then begin them anew.
    pub fn restart_waiting_for(&mut self, group: GroupId) {
        let waiting = self.pieces.iter().filter(|(_, piece)| {
            let is_missing = piece.free + piece.suspended > 0;
            piece.sole == Sole::By(group) && is_missing && !piece.is_asked()
        });
        let waiting: Vec<u32> = waiting.map(|(number, _)| *number).collect();
        waiting.into_iter().for_each(|number| self.restart(number));
    }

    /// Fetches a piece again, from one peer alone.
    pub fn restart(&mut self, number: u32) {
        self.change(number, Piece::restart);
    }

    /// Changes a piece, and keeps the totals and lists in step with it; `None` if it is not begun.
    fn change<R>(&mut self, number: u32, change: impl FnOnce(&mut Piece) -> R) -> Option<R> {
        let piece = self.pieces.get_mut(&number)?;
        let (free, suspended, received) = (piece.free, piece.suspended, piece.received);
        let result = change(piece);
        self.free = self.free + u64::from(piece.free) - u64::from(free);
        self.suspended_blocks =
            self.suspended_blocks + u64::from(piece.suspended) - u64::from(suspended);
        self.received = self.received + u64::from(piece.received) - u64::from(received);
        match (free, piece.free) {
            (0, 1..) => self.open.push_front(number),
            (1.., 0) => {
                // It nearly always is the first.
                let place = self.open.iter().position(|open| *open == number);
                place.map(|place| self.open.remove(place));
            }
            _ => {}
        }
        match (suspended, piece.suspended) {
            (0, 1..) => drop(self.suspended.insert(number)),
            (1.., 0) => drop(self.suspended.remove(&number)),
            _ => {}
        }
        Some(result)
    }

    /// The peer that sent each block of a piece; `None` for padding, which nobody sent.
    pub fn senders(&self, number: u32) -> Vec<Option<GroupId>> {
        let blocks = self.pieces.get(&number).into_iter();
        let blocks = blocks.flat_map(|piece| &piece.blocks);
        let senders = blocks.map(|block| match block {
            Block::Received(group) => Some(*group),
            _ => None,
        });
        senders.collect()
    }

    /// Whether a piece is begun.
    pub fn contains(&self, number: u32) -> bool {
        self.pieces.contains_key(&number)
    }

    /// Removes a piece of which no block is requested.
    pub fn remove(&mut self, number: u32) {
        // Keeps the lists and the counts of free blocks in step.
        self.change(number, |piece| {
            let open = piece.free + piece.suspended;
            (piece.free, piece.suspended) = (0, 0);
            piece.received += open;
        });
        if let Some(piece) = self.pieces.remove(&number) {
            self.received -= u64::from(piece.received);
            self.blocks -= piece.blocks.len() as u64;
        }
    }
}
