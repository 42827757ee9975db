//! A piece being fetched, and the names of connections, peers and blocks.

use hawser_wire::BLOCK;

/// A connection: one path-level peer.
pub type ConnId = u64;

/// All path-level peers of one peer.
pub type GroupId = u32;

/// A block: its piece, and its number in the piece.
pub(super) type BlockRef = (u32, u32);

/// The state of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// Not requested.
    Free,
    /// Requested over a connection that has stalled since: still expected over it, but other
    /// connections may request it too.
    Suspended(ConnId),
    /// Requested over one connection.
    Asked(ConnId),
    /// Requested over several connections, in the endgame.
    Shared(Vec<ConnId>),
    /// Received from this peer.
    Received(GroupId),
    /// Padding alone (BEP 47): counts as received.
    Padding,
}

/// Whether a piece must come from one peer alone, so that a bad hash identifies the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sole {
    /// From any peers.
    No,
    /// From one peer: the first from which a block is requested.
    Wanted,
    /// From this peer.
    By(GroupId),
}

/// A piece being fetched.
#[derive(Debug)]
pub(super) struct Piece {
    pub blocks: Vec<Block>,
    /// Number of [`Block::Free`] blocks.
    pub free: u32,
    /// Number of [`Block::Suspended`] blocks.
    pub suspended: u32,
    /// Number of [`Block::Received`] blocks, and of those that count so.
    pub received: u32,
    pub sole: Sole,
    /// No block before this one is free.
    cursor: u32,
}

impl Piece {
    /// A piece of `size` bytes, of which the blocks in `padding` are not requested.
    pub fn new(size: u32, padding: &[u32]) -> Self {
        let count = size.div_ceil(BLOCK);
        let mut blocks = vec![Block::Free; count as usize];
        for block in padding {
            blocks[*block as usize] = Block::Padding;
        }
        Self {
            blocks,
            free: count - padding.len() as u32,
            suspended: 0,
            received: padding.len() as u32,
            sole: Sole::No,
            cursor: 0,
        }
    }

    /// Takes the next free block in order, if `group` may send it.
    pub fn take(&mut self, conn: ConnId, group: GroupId) -> Option<u32> {
        if !self.is_open_to(group) {
            return None;
        }
        let at = (self.cursor..self.blocks.len() as u32)
            .find(|block| self.blocks[*block as usize] == Block::Free)?;
        self.cursor = at + 1;
        self.free -= 1;
        self.assign(at, conn, group);
        Some(at)
    }

    /// Takes the next block requested over a stalled connection, if `group` may send it. Returns
    /// the block and that connection.
    pub fn take_suspended(&mut self, conn: ConnId, group: GroupId) -> Option<(u32, ConnId)> {
        if self.suspended == 0 || !self.is_open_to(group) {
            return None;
        }
        let mut blocks = (0..).zip(&self.blocks);
        let (at, holder) = blocks.find_map(|(at, block)| match block {
            Block::Suspended(holder) => Some((at, *holder)),
            _ => None,
        })?;
        self.suspended -= 1;
        self.assign(at, conn, group);
        Some((at, holder))
    }

    /// Notes that a block is requested over `conn`, to a peer of `group`.
    fn assign(&mut self, block: u32, conn: ConnId, group: GroupId) {
        self.blocks[block as usize] = Block::Asked(conn);
        if self.sole == Sole::Wanted {
            self.sole = Sole::By(group);
        }
    }

    /// Suspends the request for `block` over `conn`. Returns whether that was the only request for
    /// it; otherwise the request is withdrawn.
    pub fn suspend(&mut self, conn: ConnId, block: u32) -> bool {
        let state = &mut self.blocks[block as usize];
        if *state != Block::Asked(conn) {
            self.give_back(conn, block);
            return false;
        }
        *state = Block::Suspended(conn);
        self.suspended += 1;
        true
    }

    /// Resumes the suspended request for `block` over `conn`. Returns whether there was one.
    pub fn resume(&mut self, conn: ConnId, block: u32) -> bool {
        let state = &mut self.blocks[block as usize];
        if *state != Block::Suspended(conn) {
            return false;
        }
        *state = Block::Asked(conn);
        self.suspended -= 1;
        true
    }

    /// Whether a peer of `group` may send blocks of it.
    pub fn is_open_to(&self, group: GroupId) -> bool {
        match self.sole {
            Sole::No | Sole::Wanted => true,
            Sole::By(only) => only == group,
        }
    }

    /// Withdraws the request for `block` over `conn`.
    pub fn give_back(&mut self, conn: ConnId, block: u32) {
        let state = &mut self.blocks[block as usize];
        match state {
            Block::Asked(holder) if *holder == conn => {
                *state = Block::Free;
                self.free += 1;
                self.cursor = self.cursor.min(block);
            }
            Block::Suspended(holder) if *holder == conn => {
                *state = Block::Free;
                self.suspended -= 1;
                self.free += 1;
                self.cursor = self.cursor.min(block);
            }
            Block::Shared(holders) => {
                holders.retain(|holder| *holder != conn);
                if let [last] = holders[..] {
                    *state = Block::Asked(last);
                }
            }
            _ => {}
        }
    }

    /// Looks for free blocks from the first one again.
    pub fn rewind(&mut self) {
        self.cursor = 0;
    }

    /// Drops all blocks: the piece must come from one peer, the first from which it is requested.
    pub fn restart(&mut self) {
        let blocks = (0..).zip(&self.blocks);
        let padding = blocks.filter(|(_, block)| **block == Block::Padding);
        let padding: Vec<u32> = padding.map(|(at, _)| at).collect();
        *self = Self {
            sole: Sole::Wanted,
            ..Self::new(self.blocks.len() as u32 * BLOCK, &padding)
        };
    }

    /// Whether any block is requested over a connection that delivers.
    pub fn is_asked(&self) -> bool {
        self.blocks.len() as u32 > self.free + self.suspended + self.received
    }
}
