//! The sending half of a stream: blocks that are not acknowledged, and the path of each.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::frame::{self, Frame};
use super::{PathKey, StreamId};

/// Most bytes that one block has. A path is chosen for each block.
pub(super) const BLOCK: usize = 16 << 10;
/// Bytes that wait to be sent, above which no more is accepted.
const UNSENT: u64 = 256 << 10;

#[derive(Debug)]
struct Block {
    /// The whole frame.
    frame: Bytes,
    /// How much of the stream it is; the end counts as one byte.
    length: u64,
    /// Where it was sent last.
    path: Option<PathKey>,
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
            path: None,
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

    /// The next block, which goes over `path`.
    pub(super) fn pop(&mut self, path: PathKey) -> Option<Bytes> {
        let (offset, _) = self.peek()?;
        self.due.remove(&offset);
        let block = self.blocks.get_mut(&offset)?;
        block.path = Some(path);
        self.unsent -= block.length;
        Some(block.frame.clone())
    }

    /// The peer has `received` without a gap and room up to `limit`. False if that cannot be.
    pub(super) fn acknowledge(&mut self, received: u64, limit: u64) -> bool {
        if received > self.next {
            return false;
        }
        self.limit = self.limit.max(limit);
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

    /// Sends again what went over `path`.
    pub(super) fn lose(&mut self, path: PathKey) {
        for (offset, block) in &mut self.blocks {
            if block.path == Some(path) {
                block.path = None;
                self.due.insert(*offset);
                self.unsent += block.length;
            }
        }
    }

    /// Sends the first block again if it has been the first since the last call.
    pub(super) fn retry(&mut self) {
        let first = self.blocks.first_entry();
        let Some(mut first) = first.filter(|first| first.get().path.is_some()) else {
            self.waiting = None;
            return;
        };
        let offset = *first.key();
        if self.waiting.replace(offset) == Some(offset) {
            let block = first.get_mut();
            block.path = None;
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
