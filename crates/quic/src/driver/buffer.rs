//! What arrived on a stream and was not read yet.
//!
//! The protocol crate is drained at every receive, gaps and all: it keeps at most 1024 pieces of a
//! stream and ends the connection at more, while a path of 1 Gbit/s and 200 ms brings 18,000 packets
//! before a lost one is repaired. So the bound is kept here, by what the pieces take in memory: they
//! are copied out of the packets that brought them, which would stay whole for a single byte, and
//! joined to runs.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use bytes::{Bytes, BytesMut};
use noq_proto::VarInt;

/// Most bytes of a run that grows. What arrives together is read together.
const MAX_RUN: usize = 16 << 10;
/// Shorter runs are copied when the gap before them is filled, so that those in order are few.
const SHORT_RUN: usize = 1 << 10;
/// What a run takes beside its bytes: its place in the map here and in the protocol crate's list of
/// received ranges, both of which may be half empty, and the allocator's header.
const RUN_COST: usize = 256;

/// What arrived on one stream, in order as far as nothing is missing.
#[derive(Debug, Default)]
pub(super) struct StreamBuffer {
    /// Where the bytes in order end.
    next: u64,
    ready: VecDeque<Run>,
    /// Runs behind a gap, by offset. None overlaps another: the protocol crate sees to that.
    later: BTreeMap<u64, Run>,
    /// Bytes in both.
    len: usize,
    /// What the runs take, in bytes of memory.
    held: usize,
    end: Option<End>,
    /// Woken when something can be read.
    pub(super) reader: Option<Waker>,
}

/// Bytes that follow one another.
#[derive(Debug)]
struct Run {
    bytes: BytesMut,
    /// What `bytes` takes, however much of it was read.
    allocated: usize,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// All of it has arrived.
    Finished,
    /// The peer gave it up, with this code.
    Reset(VarInt),
}

impl Run {
    /// A run of `bytes`, with room up to `capacity`.
    fn new(bytes: &[u8], capacity: usize) -> Self {
        let mut run = BytesMut::with_capacity(capacity.max(bytes.len()));
        run.extend_from_slice(bytes);
        Self {
            allocated: run.capacity(),
            bytes: run,
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes.capacity() - self.bytes.len() >= bytes
    }

    /// Copies the bytes to an allocation of their size, if they are less than half of the present one.
    fn fit(&mut self) {
        if self.bytes.len() * 2 < self.allocated {
            *self = Self::new(&self.bytes, 0);
        }
    }

    fn cost(&self) -> usize {
        self.allocated + RUN_COST
    }
}

impl StreamBuffer {
    /// Puts `bytes`, which begin at `offset`, where they belong.
    pub(super) fn insert(&mut self, offset: u64, bytes: &[u8]) {
        self.len += bytes.len();
        if offset != self.next {
            self.insert_later(offset, bytes);
            return;
        }
        self.append(bytes);
        while let Some(first) = self.later.first_entry()
            && *first.key() == self.next
        {
            let run = first.remove();
            if run.bytes.len() < SHORT_RUN {
                self.held -= run.cost();
                self.append(&run.bytes);
            } else {
                self.next += run.bytes.len() as u64;
                self.fit_last();
                self.ready.push_back(run);
            }
        }
    }

    /// Puts bytes behind a gap, or behind bytes that are behind one.
    fn insert_later(&mut self, offset: u64, bytes: &[u8]) {
        if let Some((start, run)) = self.later.range_mut(..offset).next_back()
            && start + run.bytes.len() as u64 == offset
            && run.bytes.len() + bytes.len() <= MAX_RUN
        {
            let before = run.allocated;
            run.bytes.extend_from_slice(bytes);
            run.allocated = run.bytes.capacity();
            self.held += run.allocated - before;
            return;
        }
        let run = Run::new(bytes, bytes.len());
        self.held += run.cost();
        self.later.insert(offset, run);
    }

    /// Adds bytes that nothing is missing before.
    fn append(&mut self, bytes: &[u8]) {
        self.next += bytes.len() as u64;
        match self.ready.back_mut() {
            Some(last) if last.has_room(bytes.len()) => last.bytes.extend_from_slice(bytes),
            _ => {
                // As much as waits already: a reader that keeps up gets what came, without waste.
                let run = Run::new(bytes, self.len.min(MAX_RUN));
                self.held += run.cost();
                self.ready.push_back(run);
            }
        }
    }

    /// Gives back the room of the last run that is ready, if it is most of it: the run does not grow
    /// any more once another follows it.
    fn fit_last(&mut self) {
        if let Some(last) = self.ready.back_mut() {
            self.held -= last.cost();
            last.fit();
            self.held += last.cost();
        }
    }

    /// Notes the end. Nothing arrives after it.
    pub(super) fn end(&mut self, end: End) {
        self.end = Some(end);
    }

    /// Whether something is to be read: bytes, or the end.
    pub(super) fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.end.is_some()
    }

    /// The next bytes in order, at most `max`.
    pub(super) fn take(&mut self, max: usize) -> Option<Bytes> {
        let first = self.ready.front_mut()?;
        let taken = match first.bytes.len() > max {
            true => first.bytes.split_to(max),
            false => {
                self.held -= first.cost();
                self.ready.pop_front()?.bytes
            }
        };
        self.len -= taken.len();
        self.shrink();
        Some(taken.freeze())
    }

    /// Copies the rest of a run that was read in part, once it is less than half.
    fn shrink(&mut self) {
        if let Some(first) = self.ready.front_mut() {
            self.held -= first.cost();
            first.fit();
            self.held += first.cost();
        }
    }

    /// How the stream ended, once everything before is read.
    pub(super) fn ended(&self) -> Option<End> {
        self.end.filter(|_| self.ready.is_empty())
    }

    /// Bytes that arrived and were not read.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What they take, in bytes of memory.
    pub(super) fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn single_bytes_behind_gaps_are_accounted_by_what_they_take() {
        let mut buffer = StreamBuffer::default();
        for offset in 1..=1000 {
            buffer.insert(offset * 2, b"x");
        }
        assert_eq!(buffer.len(), 1000);
        assert!(buffer.held() >= 1000 * RUN_COST);
        // The gaps are filled: what is in order takes little more than its bytes.
        for offset in 0..=1000 {
            let (at, bytes) = match offset {
                0 => (0, &b"xx"[..]),
                offset => (offset * 2 + 1, &b"x"[..]),
            };
            buffer.insert(at, bytes);
        }
        assert_eq!(buffer.len(), 2002);
        assert!(buffer.held() < 16 * 1024, "{}", buffer.held());
    }

    #[test]
    fn a_byte_between_long_runs_takes_little() {
        let mut buffer = StreamBuffer::default();
        let run = [7; SHORT_RUN];
        let stride = SHORT_RUN as u64 + 1;
        for number in 0..64 {
            buffer.insert(number * stride + 1, &run);
        }
        for number in 0..64 {
            buffer.insert(number * stride, b"x");
        }
        assert_eq!(buffer.len(), 64 * (SHORT_RUN + 1));
        assert!(buffer.held() <= 2 * buffer.len(), "{}", buffer.held());
    }

    #[test]
    fn pieces_that_follow_one_another_are_joined_behind_a_gap() {
        let mut buffer = StreamBuffer::default();
        let piece = [7; 1000];
        for number in 1..=100 {
            buffer.insert(number * 1000, &piece);
        }
        let most = buffer.len() / MAX_RUN + 1;
        assert!(buffer.later.len() <= most, "{}", buffer.later.len());
        assert!(buffer.held() <= 2 * buffer.len() + most * RUN_COST);
    }

    proptest! {
        /// Pieces in any order come out as the bytes they were cut from, and what they take is
        /// accounted.
        #[test]
        fn pieces_come_out_in_order(
            cuts in prop::collection::vec(1usize..3000, 1..60),
            order in prop::collection::vec(any::<prop::sample::Index>(), 60),
            max in 1usize..5000,
            reads in 0usize..4,
        ) {
            let total: usize = cuts.iter().sum();
            let content: Vec<u8> = (0..total).map(|at| at as u8).collect();
            let mut pieces = Vec::new();
            let mut at = 0;
            for cut in &cuts {
                pieces.push((at as u64, &content[at..at + cut]));
                at += cut;
            }
            let (mut buffer, mut read, mut inserted) = (StreamBuffer::default(), Vec::new(), 0);
            for index in order.iter().cycle() {
                if pieces.is_empty() {
                    break;
                }
                let (offset, bytes) = pieces.swap_remove(index.index(pieces.len()));
                inserted += bytes.len();
                buffer.insert(offset, bytes);
                prop_assert_eq!(buffer.len(), inserted - read.len());
                prop_assert!(buffer.held() >= buffer.len());
                for _ in 0..reads {
                    let Some(bytes) = buffer.take(max) else {
                        break;
                    };
                    prop_assert!(!bytes.is_empty() && bytes.len() <= max);
                    read.extend(bytes);
                }
                let runs = || buffer.ready.iter().chain(buffer.later.values());
                prop_assert_eq!(buffer.held(), runs().map(Run::cost).sum::<usize>());
                let most = 4 * buffer.len() + runs().count() * RUN_COST + MAX_RUN;
                prop_assert!(buffer.held() <= most, "{} of {most}", buffer.held());
            }
            while let Some(bytes) = buffer.take(max) {
                read.extend(bytes);
            }
            prop_assert_eq!(buffer.ended(), None);
            buffer.end(End::Finished);
            prop_assert_eq!(buffer.ended(), Some(End::Finished));
            prop_assert_eq!(read, content);
            prop_assert_eq!((buffer.len(), buffer.held()), (0, 0));
        }
    }
}
