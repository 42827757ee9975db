//! The content of one session, received.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::subflow::{Subflow, Subflows};
use super::{DataEvent, Measured, SubflowKey};
use crate::content::tree;
use crate::protocol::{Sink, SinkError};
use crate::queues::{Arrived, Queues};

/// Memory of a sink beyond its credit: a range at either end of what is in flight may have arrived in
/// part.
pub(crate) const SLACK: u64 = 2 * tree::RANGE;
/// Buffers kept for further ranges, at most.
const MAX_FREE_BUFFERS: usize = 64;

/// The content of one session, received.
pub(super) struct Incoming {
    total: u64,
    sink: Sink,
    open: HashMap<u64, Open>,
    /// Ranges that are verified and written.
    queued: usize,
    /// Buffers to use again.
    free: Vec<Vec<u8>>,
    /// Bytes that may be held: what the credit promises, and [`SLACK`].
    promised: Arc<AtomicU64>,
    /// Where complete ranges go; `None` before the files are known.
    arrived: Option<Queues>,
}

/// What a packet says beside its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    pub number: u64,
    /// It asks for an answer at once.
    pub ask: bool,
    /// It has the congestion mark.
    pub marked: bool,
}

/// A range of which some bytes have arrived.
struct Open {
    bytes: Vec<u8>,
    missing: u64,
}

impl Incoming {
    /// Receives content of a size that is not known yet, of which `credit` bytes are taken before
    /// anything is written. `promised` is kept at the bytes that may be held.
    pub(super) fn new(credit: u64, promised: Arc<AtomicU64>) -> Self {
        let sink = Sink::new(0, credit);
        promised.store(sink.promised() + SLACK, Ordering::Relaxed);
        Self {
            total: 0,
            sink,
            open: HashMap::new(),
            queued: 0,
            free: Vec::new(),
            promised,
            arrived: None,
        }
    }

    /// Sets the size of the content, in bytes, and where complete ranges go.
    pub(super) fn set_content(&mut self, total: u64, arrived: Queues) {
        self.total = total;
        self.sink.set_content(total);
        self.arrived = Some(arrived);
    }

    pub(super) fn add(&mut self, key: SubflowKey, now: Instant) {
        self.sink.add_subflow(key, now);
    }

    pub(super) fn remove(&mut self, key: SubflowKey) {
        self.sink.remove_subflow(key);
    }

    pub(super) fn set_interval(&mut self, key: SubflowKey, interval: Duration) {
        self.sink.set_interval(key, interval);
    }

    /// Has a packet acknowledged whose content, if it has any, was kept. The subflow must have been
    /// added.
    pub(super) fn acknowledge(&mut self, key: SubflowKey, packet: Packet, now: Instant) {
        let Packet {
            number,
            ask,
            marked,
        } = packet;
        self.sink.on_packet(key, number, ask, marked, now);
    }

    /// Takes in content that arrived in a packet. If it is kept, so that the packet is to be
    /// [acknowledged](Self::acknowledge), returns how many bytes of it had not arrived before.
    ///
    /// # Errors
    /// When the source breaks the protocol.
    pub(super) fn on_data(
        &mut self,
        position: u64,
        content: &[u8],
    ) -> Result<Option<u64>, SinkError> {
        let end = position + content.len() as u64;
        let ranges = position / tree::RANGE..end.div_ceil(tree::RANGE);
        // What cannot be kept is not acknowledged, and sent again later. A source that sends from front
        // to back opens no more ranges than its credit is for.
        if !self.has_room(ranges) || !self.sink.has_room(&(position..end)) {
            return Ok(None);
        }
        let (mut complete, mut new) = (Vec::new(), 0);
        for part in self.sink.on_data(position..end)? {
            new += part.end - part.start;
            let from = (part.start - position) as usize;
            let bytes = &content[from..from + (part.end - part.start) as usize];
            copy(
                (&mut self.open, &mut self.free),
                self.total,
                (part.start, bytes),
                &mut complete,
            );
        }
        for range in complete {
            if let (Some(open), Some(arrived)) = (self.open.remove(&range), &self.arrived) {
                self.queued += 1;
                arrived.give(Arrived::new(range, open.bytes));
            }
        }
        Ok(Some(new))
    }

    /// Whether there are buffers for these ranges, or room for more.
    fn has_room(&self, ranges: Range<u64>) -> bool {
        let most = (self.promised.load(Ordering::Relaxed) / tree::RANGE) as usize;
        let held = self.open.len() + self.queued;
        let new = ranges.filter(|range| !self.open.contains_key(range));
        match new.count() {
            0 => true,
            new => held + new <= most,
        }
    }

    /// Sets how much is taken before anything is written, in bytes.
    pub(super) fn set_window(&mut self, window: u64, now: Instant) {
        self.sink.set_window(window, now);
        self.promise();
    }

    /// Records that a range was written.
    pub(super) fn written(&mut self, bytes: Vec<u8>, length: u64, now: Instant) {
        self.sink.release(length, now);
        self.keep(bytes);
    }

    /// Receives a range again that did not match.
    pub(super) fn again(&mut self, range: u64, bytes: Vec<u8>) {
        self.sink.forget(tree::range(range, self.total));
        self.keep(bytes);
    }

    fn promise(&self) {
        let promised = self.sink.promised() + SLACK;
        self.promised.store(promised, Ordering::Relaxed);
    }

    /// Takes the buffer of a range back that was verified.
    fn keep(&mut self, bytes: Vec<u8>) {
        self.queued = self.queued.saturating_sub(1);
        self.promise();
        let most = (self.promised.load(Ordering::Relaxed) / tree::RANGE) as usize;
        let held = self.open.len() + self.queued;
        if self.free.len() < MAX_FREE_BUFFERS.min(most.saturating_sub(held)) {
            self.free.push(bytes);
        }
    }

    /// Bytes of buffers.
    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        let open = self.open.values().map(|open| open.bytes.capacity());
        let free = self.free.iter().map(Vec::capacity);
        open.chain(free).sum::<usize>() as u64 + self.queued as u64 * tree::RANGE
    }

    /// Sends the acknowledgements that are due. Returns when the next one is.
    pub(super) fn send(&mut self, subflows: &mut Subflows, now: Instant) -> Option<Instant> {
        let mut failed = Vec::new();
        for (key, subflow) in subflows.iter_mut() {
            if let Err(error) = self.send_ack(key, subflow, now) {
                failed.push((key, error.to_string()));
            }
        }
        for (key, error) in failed {
            subflows.report(DataEvent::Failed(key, error));
        }
        self.sink.next_timeout()
    }

    fn send_ack(
        &mut self,
        key: SubflowKey,
        subflow: &mut Subflow,
        now: Instant,
    ) -> std::io::Result<()> {
        subflow.flush()?;
        if subflow.is_blocked() || subflow.lane.is_none() {
            return Ok(());
        }
        let Some(ack) = self.sink.poll_ack(key, now) else {
            return Ok(());
        };
        let size = subflow.datagram;
        subflow.send(size, |sealer, out| {
            sealer.seal_ack(out, &ack, size);
        })
    }

    pub(super) fn measure(&self, subflows: &Subflows) -> Vec<(SubflowKey, Measured)> {
        let measure = |(key, subflow): (SubflowKey, &Subflow)| {
            let measured = Measured {
                delivered: subflow.traffic.delivered,
                sent: subflow.traffic.sent,
                received: subflow.traffic.received,
                rejected: subflow.rejected(),
                usable: true,
                ..Measured::default()
            };
            (key, measured)
        };
        subflows.iter().map(measure).collect()
    }
}

/// Copies content to the buffers of its ranges, and adds ranges that are complete to `complete`.
fn copy(
    (open, free): (&mut HashMap<u64, Open>, &mut Vec<Vec<u8>>),
    total: u64,
    (mut position, mut bytes): (u64, &[u8]),
    complete: &mut Vec<u64>,
) {
    while !bytes.is_empty() {
        let number = position / tree::RANGE;
        let range = tree::range(number, total);
        let one = open.entry(number).or_insert_with(|| {
            let mut bytes = free.pop().unwrap_or_default();
            let length = (range.end - range.start) as usize;
            bytes.reserve_exact(length.saturating_sub(bytes.len()));
            bytes.resize(length, 0);
            Open {
                bytes,
                missing: range.end - range.start,
            }
        });
        let from = (position - range.start) as usize;
        let count = bytes.len().min(one.bytes.len() - from);
        let (here, rest) = bytes.split_at(count);
        one.bytes[from..from + count].copy_from_slice(here);
        one.missing -= count as u64;
        if one.missing == 0 {
            complete.push(number);
        }
        position += count as u64;
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SubflowKey = SubflowKey(1);
    const CREDIT: u64 = 64 << 20;

    /// A session that receives 1 TiB, and takes [`CREDIT`] bytes.
    fn incoming() -> Incoming {
        let mut incoming = Incoming::new(CREDIT, Arc::default());
        incoming.set_content(1 << 40, Queues(Vec::new()));
        incoming.add(KEY, Instant::now());
        incoming
    }

    #[test]
    fn a_byte_in_each_range_takes_no_more_memory_than_the_credit() {
        let mut incoming = incoming();
        let kept = (0..1000).filter(|range| {
            let kept = incoming.on_data(range * tree::RANGE, &[7]);
            kept.unwrap().is_some()
        });
        let most = (CREDIT + SLACK) / tree::RANGE;
        assert_eq!(kept.count() as u64, most);
        assert!(incoming.held() <= CREDIT + SLACK, "{}", incoming.held());
        // More of a range that is there is taken.
        assert_eq!(incoming.on_data(1, &[7; 1000]), Ok(Some(1000)));
    }

    #[test]
    fn every_second_byte_takes_a_bounded_number_of_gaps() {
        let mut incoming = incoming();
        let last = (0..400_000_u64)
            .take_while(|number| incoming.on_data(2 * number, &[7]).unwrap().is_some());
        let last = last.last().unwrap();
        assert!(last < 100_000, "{last}");
        // What closes a gap is taken.
        assert_eq!(incoming.on_data(1, &[7]), Ok(Some(1)));
        assert_eq!(incoming.on_data(2 * last + 2, &[7]), Ok(Some(1)));
    }

    #[test]
    fn a_source_that_sends_from_front_to_back_always_finds_room() {
        let now = Instant::now();
        let mut incoming = incoming();
        let (mut position, mut written) = (700_000_u64, 0);
        // As much as the credit allows, a range written whenever it is used up.
        while position < 300 << 20 {
            let packet = vec![7; 1400];
            if position + 1400 - 700_000 > CREDIT + written * tree::RANGE {
                incoming.written(Vec::new(), tree::RANGE, now);
                written += 1;
            }
            assert_eq!(incoming.on_data(position, &packet), Ok(Some(1400)));
            position += 1400;
        }
    }
}
