//! The content of one session, received.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::subflow::{Subflow, Subflows};
use super::{DataEvent, Measured, SubflowKey};
use crate::content::tree;
use crate::protocol::{Sink, SinkError};
use crate::queues::{Arrived, Queues};

/// Ranges of which some bytes have arrived, at most. A source sends from front to back, so that few
/// are open beyond what the credit allows.
const OPEN: usize = 320;
/// Buffers kept for further ranges.
const KEPT: usize = 64;

/// The content of one session, received.
pub(super) struct Incoming {
    total: u64,
    sink: Sink,
    open: HashMap<u64, Open>,
    /// Buffers to use again.
    free: Vec<Vec<u8>>,
    /// Where complete ranges go; `None` before the files are known.
    arrived: Option<Queues>,
    /// Content that arrived over each subflow.
    delivered: HashMap<SubflowKey, u64>,
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
    /// anything is written.
    pub(super) fn new(credit: u64) -> Self {
        Self {
            total: 0,
            sink: Sink::new(0, credit),
            open: HashMap::new(),
            free: Vec::new(),
            arrived: None,
            delivered: HashMap::new(),
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

    /// Takes in content that arrived in a packet. Returns whether it is kept, so that the packet is to
    /// be [acknowledged](Self::acknowledge).
    ///
    /// # Errors
    /// When the source breaks the protocol.
    pub(super) fn on_data(
        &mut self,
        key: SubflowKey,
        (position, content): (u64, &[u8]),
    ) -> Result<bool, SinkError> {
        let end = position + content.len() as u64;
        let ranges = position / tree::RANGE..end.div_ceil(tree::RANGE);
        // What cannot be kept is not acknowledged, and sent again later.
        if self.open.len() >= OPEN && !self.are_open(ranges) {
            return Ok(false);
        }
        let mut complete = Vec::new();
        for part in self.sink.on_data(position..end)? {
            *self.delivered.entry(key).or_default() += part.end - part.start;
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
                arrived.give(Arrived::new(range, open.bytes));
            }
        }
        Ok(true)
    }

    fn are_open(&self, mut ranges: Range<u64>) -> bool {
        ranges.all(|range| self.open.contains_key(&range))
    }

    /// Sets how much is taken before anything is written, in bytes.
    pub(super) fn set_window(&mut self, window: u64, now: Instant) {
        self.sink.set_window(window, now);
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

    fn keep(&mut self, bytes: Vec<u8>) {
        if self.free.len() < KEPT {
            self.free.push(bytes);
        }
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
                delivered: self.delivered.get(&key).copied().unwrap_or_default(),
                sent: subflow.sent,
                received: subflow.received,
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
            bytes.resize((range.end - range.start) as usize, 0);
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
