//! The receiving half of a stream: bytes put in order, and how many more may come.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use super::Violation;
use super::room::{MIN_ROOM, Room, Share};

/// What a new stream gets room for as soon as it is known, while the session has much, in bytes.
pub(super) const INITIAL: u64 = 256 << 10;
/// The most that a stream has room for, in bytes: 1 Gbit/s over 130 ms.
pub(super) const MAX_WINDOW: u64 = 16 << 20;
/// Bytes that arrive before they are acknowledged, unless nothing follows.
const ACK_BYTES: u64 = 64 << 10;
/// What is added to a round trip for acknowledgements that wait, and for queues.
const SLACK: Duration = Duration::from_millis(50);
/// The round-trip time assumed until one is measured.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// The receiving half of a stream.
#[derive(Debug)]
pub(super) struct ReceiveHalf {
    /// In order, and not read.
    ready: BytesMut,
    /// The offset behind these.
    next: u64,
    /// Bytes that the reader is done with.
    consumed: u64,
    /// Bytes behind a gap, by offset.
    runs: BTreeMap<u64, BytesMut>,
    /// The offset behind everything that arrived.
    highest: u64,
    /// Bytes and ends that arrived for the first time.
    arrived: u64,
    /// The length of the stream, once it is known.
    total: Option<u64>,
    /// What the session has set aside for the stream: its window.
    share: Share,
    /// When the current round trip began, and what was consumed by then.
    round: (Duration, u64),
    /// What was announced last: received, and the limit.
    announced: (u64, u64),
    is_ended: bool,
}

impl ReceiveHalf {
    /// A stream of a session that has `room`.
    pub(super) fn new(room: &Room) -> Self {
        let mut share = room.share();
        share.begin(INITIAL - MIN_ROOM);
        Self {
            ready: BytesMut::new(),
            next: 0,
            consumed: 0,
            runs: BTreeMap::new(),
            highest: 0,
            arrived: 0,
            total: None,
            share,
            round: (Duration::ZERO, 0),
            announced: (0, MIN_ROOM),
            is_ended: false,
        }
    }

    /// Takes bytes in.
    pub(super) fn insert(&mut self, mut offset: u64, mut bytes: Bytes) -> Result<(), Violation> {
        let end = offset.saturating_add(bytes.len() as u64);
        if end > self.announced.1 {
            return Err(Violation::Window);
        }
        if self.total.is_some_and(|total| end > total) {
            return Err(Violation::Length);
        }
        self.highest = self.highest.max(end);
        while !bytes.is_empty() {
            // What is there already ends here.
            let before = self.runs.range(..=offset).next_back();
            let known = before.map_or(0, |(start, run)| start + run.len() as u64);
            let known = known.max(self.next).saturating_sub(offset);
            if known > 0 {
                let skipped = (known as usize).min(bytes.len());
                bytes.advance(skipped);
                offset += skipped as u64;
                continue;
            }
            let after = self.runs.range(offset..).next();
            let gap = after.map_or(u64::MAX, |(start, _)| start - offset);
            let part = bytes.split_to((gap.min(bytes.len() as u64)) as usize);
            self.arrived += part.len() as u64;
            self.place(offset, &part);
            offset += part.len() as u64;
        }
        if self.share.has_too_many_runs() {
            return Err(Violation::Pieces);
        }
        Ok(())
    }

    /// Puts bytes into a gap.
    fn place(&mut self, offset: u64, part: &[u8]) {
        if offset != self.next {
            let before = self.runs.range_mut(..offset).next_back();
            match before.filter(|(start, run)| *start + run.len() as u64 == offset) {
                Some((_, run)) => run.extend_from_slice(part),
                None => {
                    self.runs.insert(offset, BytesMut::from(part));
                    self.share.set_runs(self.runs.len());
                }
            }
            return;
        }
        self.ready.extend_from_slice(part);
        self.next += part.len() as u64;
        while let Some(run) = self.runs.remove(&self.next) {
            self.next += run.len() as u64;
            self.ready.extend_from_slice(&run);
        }
        self.share.set_runs(self.runs.len());
    }

    /// Takes the end in.
    pub(super) fn end(&mut self, total: u64) -> Result<(), Violation> {
        if total < self.highest || self.total.is_some_and(|known| known != total) {
            return Err(Violation::Length);
        }
        self.arrived += u64::from(self.total.replace(total).is_none());
        Ok(())
    }

    /// The next bytes in order, at most `max`; none if there are none yet.
    pub(super) fn read(&mut self, max: usize) -> BytesMut {
        match self.ready.len() <= max {
            // The buffer goes with them, so that a connection at rest has none.
            true => std::mem::take(&mut self.ready),
            false => self.ready.split_to(max),
        }
    }

    /// Whether everything up to the end was read.
    pub(super) fn read_end(&mut self) -> bool {
        let at_end = self.total == Some(self.next) && self.ready.is_empty();
        self.is_ended |= at_end;
        at_end
    }

    pub(super) fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.total == Some(self.next)
    }

    /// The reader is done with `bytes` that it read. The window is twice what it reads in a round trip
    /// (Fisk and Feng, *Dynamic Right-Sizing in TCP*, 2001), of which `rtt` is the longest, so that the
    /// sender does not wait for it; less where the session has no room for it.
    pub(super) fn consume(&mut self, bytes: usize, now: Duration, rtt: Option<Duration>) {
        self.consumed += bytes as u64;
        let (began, before) = self.round;
        if now.saturating_sub(began) >= rtt.unwrap_or(INITIAL_RTT) + SLACK {
            self.round = (now, self.consumed);
        } else if (self.consumed - before) * 2 > self.share.window() {
            let more = self.share.window().min(MAX_WINDOW - self.share.window());
            self.share.grow(more);
            self.round = (now, self.consumed);
        }
    }

    /// What arrived without a gap, and the limit.
    fn current(&self) -> (u64, u64) {
        let received = self.next + u64::from(self.total == Some(self.next));
        let limit = (self.consumed + self.share.window()).max(self.announced.1);
        (received, limit)
    }

    /// Whether what was announced is out of date: more than a little, unless `any`.
    pub(super) fn is_due(&self, any: bool) -> bool {
        let (received, limit) = self.current();
        let (arrived, room) = (received - self.announced.0, limit - self.announced.1);
        arrived >= ACK_BYTES
            || room >= self.share.window() / 4
            || arrived > 0 && (any || self.total == Some(self.next))
    }

    /// What is to be announced now.
    pub(super) fn announce(&mut self) -> (u64, u64) {
        self.announced = self.current();
        self.announced
    }

    /// What may still arrive, or has and is not done with, in bytes.
    #[cfg(test)]
    pub(super) fn promised(&self) -> u64 {
        self.announced.1 - self.consumed
    }

    /// What it has room for, in bytes.
    #[cfg(test)]
    pub(super) fn window(&self) -> u64 {
        self.share.window()
    }

    /// Whether everything was read, and its arrival announced.
    pub(super) fn is_complete(&self) -> bool {
        self.is_ended && self.announced.0 == self.current().0
    }

    /// Bytes that arrived, and one for the end. What arrives again does not count.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Whether the end has arrived, and everything before it.
    pub(super) fn has_all(&self) -> bool {
        self.total == Some(self.next)
    }

    /// Whether it was read to its end.
    pub(super) fn was_read(&self) -> bool {
        self.is_ended
    }

    /// Bytes that arrived without a gap.
    pub(super) fn received(&self) -> u64 {
        self.next
    }
}
