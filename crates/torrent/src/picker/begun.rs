//! All pieces being fetched, with counts of their free and received blocks.

use std::collections::{HashMap, VecDeque};

use super::piece::{Block, BlockRef, ConnId, GroupId, Piece, Sole};
use crate::bitfield::Bitfield;

/// Most connections over which the same block is requested at once.
pub(super) const MAX_HOLDERS: usize = 3;

/// The pieces being fetched.
#[derive(Debug, Default)]
pub(super) struct Begun {
    pieces: HashMap<u32, Piece>,
    /// Pieces with free blocks, in the order in which they are finished.
    open: VecDeque<u32>,
    /// Free blocks of all pieces.
    free: u64,
    /// Received blocks of all pieces.
    received: u64,
    /// Blocks of all pieces.
    blocks: u64,
}

impl Begun {
    /// The pieces, by number.
    #[cfg(test)]
    pub fn pieces(&self) -> &HashMap<u32, Piece> {
        &self.pieces
    }

    /// The pieces that have free blocks.
    #[cfg(test)]
    pub fn open(&self) -> &VecDeque<u32> {
        &self.open
    }

    /// Number of free blocks.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Number of blocks received, of pieces that are not verified yet.
    #[cfg(test)]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Number of blocks requested, each counted once.
    pub fn asked(&self) -> u64 {
        self.blocks - self.free - self.received
    }

    /// Begins a piece of `size` bytes.
    pub fn begin(&mut self, number: u32, size: u32) {
        let piece = Piece::new(size);
        self.free += u64::from(piece.free);
        self.blocks += u64::from(piece.free);
        self.pieces.insert(number, piece);
        self.open.push_back(number);
    }

    /// The first piece in `has` of which a peer of `group` may send a free block.
    pub fn first_open(&self, has: &Bitfield, group: GroupId) -> Option<u32> {
        let mut open = self.open.iter().copied();
        open.find(|number| has.has(*number) && self.is_open_to(*number, group))
    }

    /// Whether a peer of `group` may send blocks of a piece.
    fn is_open_to(&self, number: u32, group: GroupId) -> bool {
        let piece = self.pieces.get(&number);
        piece.is_some_and(|piece| piece.is_open_to(group))
    }

    /// Takes the next free block of a piece in order, if `group` may send it.
    pub fn take(&mut self, number: u32, conn: ConnId, group: GroupId) -> Option<u32> {
        let piece = self.pieces.get_mut(&number)?;
        let block = piece.take(conn, group)?;
        self.free -= 1;
        if piece.free == 0 {
            self.close(number);
        }
        Some(block)
    }

    /// Whether a block is free, and a peer of `group` may send it.
    pub fn is_free(&self, (number, block): BlockRef, group: GroupId) -> bool {
        let piece = self.pieces.get(&number);
        piece.is_some_and(|piece| {
            piece.is_open_to(group) && piece.blocks[block as usize] == Block::Free
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
            Block::Free | Block::Received(_) => false,
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
            Block::Free | Block::Received(_) => return None,
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
        let piece = self.pieces.get_mut(&number)?;
        let state = &mut piece.blocks[block as usize];
        // A late block may belong to an earlier, bad attempt at the piece.
        if matches!(state, Block::Received(_)) || is_late && piece.sole != Sole::No {
            return None;
        }
        let before = std::mem::replace(state, Block::Received(group));
        piece.received += 1;
        self.received += 1;
        let is_last = piece.received as usize == piece.blocks.len();
        if before == Block::Free {
            piece.free -= 1;
            self.free -= 1;
            if piece.free == 0 {
                self.close(number);
            }
        }
        Some((before, is_last))
    }

    /// Withdraws the request for a block over `conn`.
    pub fn give_back(&mut self, conn: ConnId, (number, block): BlockRef) {
        let Some(piece) = self.pieces.get_mut(&number) else {
            return;
        };
        let free = piece.free;
        piece.give_back(conn, block);
        self.free += u64::from(piece.free - free);
        if free == 0 && piece.free > 0 {
            self.open.push_front(number);
        }
    }

    /// Restarts the pieces that must come from the peer `group` alone and are not requested over
    /// any of its paths: they would wait for ever. Another peer may then begin them anew.
    pub fn restart_waiting_for(&mut self, group: GroupId) {
        let waiting = self.pieces.iter().filter(|(_, piece)| {
            piece.sole == Sole::By(group) && piece.free > 0 && !piece.is_asked()
        });
        let waiting: Vec<u32> = waiting.map(|(number, _)| *number).collect();
        waiting.into_iter().for_each(|number| self.restart(number));
    }

    /// Fetches a piece again, from one peer alone.
    pub fn restart(&mut self, number: u32) {
        let Some(piece) = self.pieces.get_mut(&number) else {
            return;
        };
        self.received -= u64::from(piece.received);
        let free = piece.free;
        piece.restart();
        self.free += u64::from(piece.free - free);
        if free == 0 {
            self.open.push_front(number);
        }
    }

    /// Takes a piece out of those with free blocks. It nearly always is the first.
    fn close(&mut self, number: u32) {
        let place = self.open.iter().position(|open| *open == number);
        place.map(|place| self.open.remove(place));
    }

    /// The peers that sent the blocks of a piece.
    pub fn senders(&self, number: u32) -> Vec<GroupId> {
        let blocks = self.pieces.get(&number).into_iter();
        let blocks = blocks.flat_map(|piece| &piece.blocks);
        let senders = blocks.filter_map(|block| match block {
            Block::Received(group) => Some(*group),
            _ => None,
        });
        senders.collect()
    }

    /// Removes a piece that is complete and verified.
    pub fn remove(&mut self, number: u32) {
        if let Some(piece) = self.pieces.remove(&number) {
            self.received -= u64::from(piece.received);
            self.blocks -= piece.blocks.len() as u64;
        }
    }
}
