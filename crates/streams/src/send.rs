//! The sending half of a stream: blocks that are not acknowledged, and the paths of each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use super::frame::{self, Frame};
use super::receive::MAX_WINDOW;
use super::{PathKey, StreamId};

/// Most bytes that one block has. A path is chosen for each block.
pub(super) const BLOCK: usize = 16 << 10;
/// Bytes that wait to be sent, above which no more is accepted.
const UNSENT: u64 = 256 << 10;
/// Most blocks that are looked at for one to be sent again.
const LOOKED_AT: usize = 64;

#[derive(Debug)]
struct Block {
    /// The whole frame.
    frame: Bytes,
    /// How much of the stream it is; the end counts as one byte.
    length: u64,
    /// The paths over which it is under way.
    paths: Vec<PathKey>,
    /// When the first of these is expected to deliver it.
    expected: Duration,
    /// Whether the other side has it; it is not acknowledged where something before it is missing.
    has_arrived: bool,
}

impl Block {
    fn is_under_way(&self) -> bool {
        !self.has_arrived && !self.paths.is_empty()
    }
}

/// A block that is to be sent.
#[derive(Debug)]
pub(super) struct Unsent {
    /// The whole frame.
    pub frame: Bytes,
    pub offset: u64,
    /// How much of the stream it is.
    pub length: u64,
}

/// The sending half of a stream.
#[derive(Debug)]
pub(super) struct SendHalf {
    id: StreamId,
    /// What is not acknowledged, by offset.
    blocks: BTreeMap<u64, Block>,
    /// Offsets of the blocks that are to be sent.
    due: BTreeSet<u64>,
    /// Bytes of these.
    unsent: u64,
    /// Where the next byte goes.
    next: u64,
    /// What the peer has room for.
    limit: u64,
    is_finished: bool,
    /// The first block that was sent and not acknowledged, as of the last [`retry`](Self::retry).
    waiting: Option<u64>,
}

impl SendHalf {
    pub(super) fn new(id: StreamId, limit: u64) -> Self {
        Self {
            id,
            blocks: BTreeMap::new(),
            due: BTreeSet::new(),
            unsent: 0,
            next: 0,
            limit,
            is_finished: false,
            waiting: None,
        }
    }

    /// Accepts as many of `bytes` as there is room for.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        for part in bytes.chunks(BLOCK) {
            if self.is_finished || !self.has_room() {
                break;
            }
            let frame = frame::data(self.id, self.next, part).freeze();
            self.push(frame, part.len() as u64);
            written += part.len();
        }
        written
    }

    pub(super) fn has_room(&self) -> bool {
        self.unsent < UNSENT
    }

    pub(super) fn finish(&mut self) {
        if !std::mem::replace(&mut self.is_finished, true) {
            let (id, offset) = (self.id, self.next);
            self.push(Frame::End { id, offset }.encode(), 1);
        }
    }

    fn push(&mut self, frame: Bytes, length: u64) {
        let block = Block {
            frame,
            length,
            paths: Vec::new(),
            expected: Duration::MAX,
            has_arrived: false,
        };
        self.blocks.insert(self.next, block);
        self.due.insert(self.next);
        self.next += length;
        self.unsent += length;
    }

    /// Bytes that may be sent now.
    pub(super) fn sendable(&self) -> u64 {
        match self.peek() {
            Some(_) => self.unsent,
            None => 0,
        }
    }

    fn peek(&self) -> Option<(u64, &Block)> {
        let offset = *self.due.first()?;
        let block = self.blocks.get(&offset)?;
        let is_end = self.is_finished && offset + block.length == self.next;
        let needed = offset + if is_end { 0 } else { block.length };
        (needed <= self.limit).then_some((offset, block))
    }

    /// Whether something is to be sent for which the other side has no room.
    pub(super) fn is_blocked(&self) -> bool {
        !self.due.is_empty() && self.peek().is_none()
    }

    /// Bytes that the other side takes from the first one on that it lacks: as many may be sent while
    /// that one is under way.
    pub(super) fn window(&self) -> u64 {
        self.limit.saturating_sub(self.acknowledged())
    }

    /// The next block that was not sent, or was lost with its path.
    pub(super) fn pop(&mut self) -> Option<Unsent> {
        let (offset, _) = self.peek()?;
        self.due.remove(&offset);
        let block = self.blocks.get_mut(&offset)?;
        self.unsent -= block.length;
        Some(Unsent {
            frame: block.frame.clone(),
            offset,
            length: block.length,
        })
    }

    /// The block at `offset` is sent over `path`, which is expected to deliver it then.
    pub(super) fn on_sent(&mut self, offset: u64, path: PathKey, expected: Duration) {
        if let Some(block) = self.blocks.get_mut(&offset) {
            block.paths.push(path);
            block.expected = block.expected.min(expected);
        }
    }

    /// Whether the block at `offset` is needed, and not under way over `path`.
    pub(super) fn lacks(&self, offset: u64, path: PathKey) -> bool {
        let block = self
            .blocks
            .get(&offset)
            .filter(|block| block.is_under_way());
        block.is_some_and(|block| !block.paths.contains(&path))
    }

    /// The block at `offset`, to be sent again.
    pub(super) fn again(&self, offset: u64) -> Option<Unsent> {
        let block = self.blocks.get(&offset)?;
        Some(Unsent {
            frame: block.frame.clone(),
            offset,
            length: block.length,
        })
    }

    /// Where nothing more may be sent, as the other side waits for a block: the first such block that
    /// is expected after `then` and not under way over `path`.
    pub(super) fn awaited(&self, path: PathKey, then: Duration) -> Option<u64> {
        if !self.is_blocked() {
            return None;
        }
        let mut blocks = self.blocks.iter().take(LOOKED_AT);
        let awaited = |block: &Block| block.expected > then && !block.paths.contains(&path);
        let found = blocks.find(|(_, block)| block.is_under_way() && awaited(block));
        found.map(|(offset, _)| *offset)
    }

    /// The other side has the block at `offset`.
    pub(super) fn on_arrived(&mut self, offset: u64) {
        if let Some(block) = self.blocks.get_mut(&offset) {
            block.has_arrived = true;
            if self.due.remove(&offset) {
                self.unsent -= block.length;
            }
        }
    }

    /// The peer has `received` without a gap and room up to `limit`, of which no more than the largest
    /// window counts: what is not acknowledged is kept. False if that cannot be.
    pub(super) fn acknowledge(&mut self, received: u64, limit: u64) -> bool {
        if received > self.next {
            return false;
        }
        self.limit = self.limit.max(limit.min(received + MAX_WINDOW));
        while let Some(entry) = self.blocks.first_entry() {
            if entry.key() + entry.get().length > received {
                break;
            }
            let (offset, block) = entry.remove_entry();
            if self.due.remove(&offset) {
                self.unsent -= block.length;
            }
        }
        true
    }

    /// Everything was received.
    pub(super) fn complete(&mut self) {
        self.acknowledge(self.next, self.limit);
    }

    /// Sends again what is under way over `path` alone.
    pub(super) fn lose(&mut self, path: PathKey) {
        for (offset, block) in &mut self.blocks {
            let was_under_way = block.is_under_way();
            block.paths.retain(|one| *one != path);
            if was_under_way && !block.is_under_way() {
                block.expected = Duration::MAX;
                self.due.insert(*offset);
                self.unsent += block.length;
            }
        }
    }

    /// Sends the first block again if it has been the first since the last call.
    pub(super) fn retry(&mut self) {
        let first = self.blocks.first_entry();
        let Some(mut first) = first.filter(|first| !self.due.contains(first.key())) else {
            self.waiting = None;
            return;
        };
        let offset = *first.key();
        if self.waiting.replace(offset) == Some(offset) {
            let block = first.get_mut();
            block.paths.clear();
            block.expected = Duration::MAX;
            block.has_arrived = false;
            self.due.insert(offset);
            self.unsent += block.length;
        }
    }

    /// Whether the end is acknowledged.
    pub(super) fn is_complete(&self) -> bool {
        self.is_finished && self.blocks.is_empty()
    }

    /// Bytes that the peer has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        let first = self.blocks.first_key_value().map(|(offset, _)| *offset);
        first.unwrap_or(self.next - u64::from(self.is_finished))
    }
}
