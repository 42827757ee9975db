//! What is sent of the own direction: bytes that wait, segments that are not acknowledged, and which of them
//! are lost.
//!
//! A segment is cut when it is first sent. Its number, its bytes and its length never change once a packet with
//! it may have left this host: a packet that is only late may arrive beside the one that repeats it, and both
//! say the same. Segments that the device has refused are cut again, if there is none behind them that may have
//! left.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::packet::SelectiveAck;

/// Most segments that are not acknowledged: some programs keep no more than 1024 that arrive early.
pub(crate) const MAX_OUTSTANDING: usize = 1000;
/// How many packets sent later than another one arrive before that counts as lost (BEP 29: three duplicates).
const REORDERING: u64 = 3;

/// What is known of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    InFlight,
    /// It is to be sent again.
    Lost,
    /// It has arrived, and earlier ones have not.
    Arrived,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Where it begins in the stream.
    offset: u64,
    /// 0 for the end of the stream.
    length: usize,
    sent_at: Instant,
    /// The number of its first transmission and of the last one, among those of all segments.
    first: u64,
    transmission: u64,
    /// How often it was given to the device, and refused by it.
    sent: u32,
    refused: u32,
    status: Status,
    /// It was repeated long after all others that were in flight then.
    is_probe: bool,
}

impl Segment {
    fn is_repeated(&self) -> bool {
        self.sent > 1
    }

    /// Whether a packet with it may have left this host.
    fn may_have_left(&self) -> bool {
        self.refused < self.sent
    }
}

/// The end of the own direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// It follows the bytes that wait.
    Queued,
    Sent,
}

/// How much may be sent now, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of a segment.
    pub payload: usize,
    /// In flight.
    pub congestion: usize,
    /// Not acknowledged, as the peer has room for them.
    pub peer: usize,
    /// One byte may be sent although the peer has no room, to hear whether it has.
    pub probes: bool,
}

/// A segment to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// The number of its packet.
    pub sequence: u64,
    /// Its bytes; 0 for the end of the stream.
    pub length: usize,
    /// It ends the stream.
    pub is_end: bool,
    /// Where it is among those not acknowledged; `None` if it was not cut yet.
    index: Option<usize>,
}

/// What an acknowledgement has brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    /// Bytes in flight before.
    pub in_flight: usize,
    /// Bytes acknowledged that were not before, also by selective acknowledgements.
    pub bytes: usize,
    /// Segments acknowledged that were not before.
    pub segments: usize,
    /// The round trip of the one that was sent last, if it was sent once.
    pub rtt: Option<Duration>,
    /// The number of the last transmission among them.
    last: u64,
    /// Segments were lost that were sent after the last reduction of the window.
    pub is_congestion: bool,
}

/// The sending direction.
#[derive(Debug)]
pub(crate) struct Sender {
    capacity: usize,
    /// Bytes of segments that are not acknowledged, and behind them those that wait.
    buffer: VecDeque<u8>,
    /// Where the buffer begins in the stream.
    start: u64,
    /// Where the bytes that wait begin in the stream.
    cut: u64,
    /// Those not acknowledged, in the order of their numbers.
    segments: VecDeque<Segment>,
    /// The number of the next segment.
    next: u64,
    end: End,
    /// Bytes of segments that are neither lost nor arrived.
    in_flight: usize,
    lost: usize,
    duplicates: u8,
    /// The number of the next transmission.
    transmission: u64,
    /// The last transmission known to have arrived.
    arrived: u64,
    /// Losses of earlier transmissions belong to the last reduction of the window.
    recovery: u64,
}

impl Sender {
    /// Numbers segments from `next`, and keeps `capacity` bytes.
    pub fn new(next: u64, capacity: usize) -> Self {
        Self {
            capacity,
            buffer: VecDeque::new(),
            start: 0,
            cut: 0,
            segments: VecDeque::new(),
            next,
            end: End::Open,
            in_flight: 0,
            lost: 0,
            duplicates: 0,
            transmission: 1,
            arrived: 0,
            recovery: 0,
        }
    }

    /// Takes bytes to send, as many as there is room for. Returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(self.room());
        self.buffer.extend(&bytes[..length]);
        length
    }

    /// Bytes that can be written.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.buffer.len())
    }

    /// Ends the stream behind what was written.
    pub fn finish(&mut self) {
        if self.end == End::Open {
            self.end = End::Queued;
        }
    }

    /// Whether nothing can be written any more.
    pub fn is_finished(&self) -> bool {
        self.end != End::Open
    }

    /// Whether the end was sent, and all is acknowledged.
    pub fn is_done(&self) -> bool {
        self.end == End::Sent && self.segments.is_empty()
    }

    /// The number of the next segment.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The last number up to which all is acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.next - self.segments.len() as u64 - 1
    }

    /// Whether segments are not acknowledged.
    pub fn is_outstanding(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Whether bytes wait that no segment has.
    pub fn is_waiting(&self) -> bool {
        self.waiting() > 0
    }

    fn waiting(&self) -> usize {
        self.buffer.len() - self.outstanding()
    }

    /// Bytes of segments that are not acknowledged.
    fn outstanding(&self) -> usize {
        (self.cut - self.start) as usize
    }

    /// The segment to send now, if one may be: first those that were lost.
    pub fn outgoing(&self, limits: &Limits) -> Option<Outgoing> {
        let fits =
            |length: usize| self.in_flight == 0 || self.in_flight + length <= limits.congestion;
        let first = self.acknowledged() + 1;
        if self.lost > 0 {
            let is_lost = |it: &Segment| it.status == Status::Lost;
            let index = self.segments.iter().position(is_lost)?;
            let length = self.segments[index].length;
            return fits(length).then_some(Outgoing {
                sequence: first + index as u64,
                length,
                is_end: self.is_end(index),
                index: Some(index),
            });
        }
        if self.segments.len() >= MAX_OUTSTANDING {
            return None;
        }
        let waiting = self.waiting();
        let new = |length, is_end| {
            Some(Outgoing {
                sequence: self.next,
                length,
                is_end,
                index: None,
            })
        };
        if waiting == 0 {
            return match self.end {
                End::Queued => new(0, true),
                _ => None,
            };
        }
        let whole = waiting.min(limits.payload);
        let room = limits.peer.saturating_sub(self.outstanding());
        let length = match (whole <= room, self.segments.is_empty()) {
            (true, _) => whole,
            // A little room is used only when nothing will bring more.
            (false, true) if room > 0 => room,
            (false, true) if limits.probes => 1,
            _ => return None,
        };
        fits(length).then(|| new(length, false))?
    }

    fn is_end(&self, index: usize) -> bool {
        self.end == End::Sent && index + 1 == self.segments.len()
    }

    /// Appends the bytes of `outgoing` to `out`, and counts it as sent.
    pub fn send(&mut self, outgoing: &Outgoing, out: &mut Vec<u8>, now: Instant) {
        let transmission = self.transmission;
        self.transmission += 1;
        let offset = match outgoing.index {
            Some(index) => {
                let segment = &mut self.segments[index];
                segment.sent_at = now;
                segment.transmission = transmission;
                segment.sent = segment.sent.saturating_add(1);
                segment.status = Status::InFlight;
                self.lost -= 1;
                segment.offset
            }
            None => {
                let offset = self.cut;
                self.segments.push_back(Segment {
                    offset,
                    length: outgoing.length,
                    sent_at: now,
                    first: transmission,
                    transmission,
                    sent: 1,
                    refused: 0,
                    status: Status::InFlight,
                    is_probe: false,
                });
                self.cut += outgoing.length as u64;
                self.next += 1;
                if outgoing.is_end {
                    self.end = End::Sent;
                }
                offset
            }
        };
        self.in_flight += outgoing.length;
        let begin = (offset - self.start) as usize;
        let end = begin + outgoing.length;
        let (first, second) = self.buffer.as_slices();
        let split = first.len();
        out.extend(&first[begin.min(split)..end.min(split)]);
        out.extend(&second[begin.max(split) - split..end.max(split) - split]);
    }

    /// Takes an acknowledgement of all up to `acknowledged`, which was sent. `is_bare` says that its packet
    /// brought nothing else, so that it counts as a duplicate if it acknowledges nothing.
    pub fn acknowledge(
        &mut self,
        acknowledged: u64,
        selective: &SelectiveAck<'_>,
        is_bare: bool,
        now: Instant,
    ) -> Acked {
        let before = self.acknowledged();
        let mut acked = Acked {
            in_flight: self.in_flight,
            ..Acked::default()
        };
        for _ in before..acknowledged.max(before) {
            let Some(mut segment) = self.segments.pop_front() else {
                break;
            };
            self.arrive(&mut segment, &mut acked, now);
            self.buffer.drain(..segment.length);
            self.start += segment.length as u64;
        }
        let first = self.acknowledged() + 1;
        let mut last_arrived = None;
        for offset in selective.offsets() {
            let index = (acknowledged + offset).checked_sub(first);
            let Some(index) = index.and_then(|index| usize::try_from(index).ok()) else {
                continue;
            };
            // What was never sent is false, and ignored.
            let Some(mut segment) = self.segments.get(index).copied() else {
                break;
            };
            last_arrived = Some(index);
            self.arrive(&mut segment, &mut acked, now);
            self.segments[index] = segment;
        }
        if let Some(last) = last_arrived {
            acked.is_congestion |= self.find_losses(last, self.arrived);
        } else if acknowledged + 1 == first {
            acked.is_congestion |= self.find_losses_before(selective);
        }
        self.duplicates = match acked.segments == 0 && is_bare && acknowledged == before {
            true => self.duplicates.saturating_add(1),
            false => 0,
        };
        if u64::from(self.duplicates) == REORDERING && self.is_outstanding() {
            acked.is_congestion |= self.lose(0);
        }
        acked
    }

    fn arrive(&mut self, segment: &mut Segment, acked: &mut Acked, now: Instant) {
        match segment.status {
            Status::InFlight => self.in_flight -= segment.length,
            Status::Lost => self.lost -= 1,
            Status::Arrived => return,
        }
        segment.status = Status::Arrived;
        acked.bytes += segment.length;
        acked.segments += 1;
        // Which transmission of a repeated one has arrived is not known (Karn): at least the first.
        // Once a probe is acknowledged, what was in flight before it and is not acknowledged is lost, also if it was
        // the first transmission that arrived.
        let arrived = match segment.is_probe {
            true => segment.transmission + REORDERING,
            false => segment.first,
        };
        self.arrived = self.arrived.max(arrived);
        // Earlier ones may have arrived long ago, and have waited for the last one.
        if segment.transmission > acked.last {
            acked.last = segment.transmission;
            let is_known = !segment.is_repeated();
            acked.rtt = is_known.then(|| now.saturating_duration_since(segment.sent_at));
        }
    }

    /// A selective acknowledgement without a bit set says that a packet behind those that it has bits for has
    /// arrived, and all these are missing: some programs send no more than 32 bits. Returns as
    /// [`Self::find_losses`] does.
    fn find_losses_before(&mut self, selective: &SelectiveAck<'_>) -> bool {
        let covered = selective.covered();
        if selective.is_empty() || self.segments.len() <= covered {
            return false;
        }
        let arrived = self.segments.range(covered..).map(|it| it.first).min();
        arrived.is_some_and(|arrived| self.find_losses(covered, arrived))
    }

    /// Segments before `last` that were sent long enough before the transmission `arrived` are lost. Returns
    /// whether that says something new of the path.
    fn find_losses(&mut self, last: usize, arrived: u64) -> bool {
        let mut is_congestion = false;
        for index in 0..last {
            let segment = &self.segments[index];
            let is_late = segment.transmission + REORDERING <= arrived;
            if segment.status == Status::InFlight && is_late {
                is_congestion |= self.lose(index);
            }
        }
        is_congestion
    }

    fn lose(&mut self, index: usize) -> bool {
        let segment = &mut self.segments[index];
        if segment.status != Status::InFlight {
            return false;
        }
        segment.status = Status::Lost;
        segment.is_probe = false;
        self.in_flight -= segment.length;
        self.lost += 1;
        let is_congestion = segment.transmission >= self.recovery;
        if is_congestion {
            self.recovery = self.transmission;
        }
        is_congestion
    }

    /// Whether segments are in flight, and none is to be sent again.
    pub fn is_in_flight(&self) -> bool {
        self.lost == 0 && self.segments.iter().any(|it| it.status == Status::InFlight)
    }

    /// Whether a single segment is not acknowledged.
    pub fn is_single(&self) -> bool {
        self.segments.len() == 1
    }

    /// Has the last segment in flight sent again: its acknowledgement says which of those before it have arrived.
    pub fn repeat_last(&mut self) {
        let mut segments = self.segments.iter_mut();
        if let Some(segment) = segments.rfind(|it| it.status == Status::InFlight) {
            segment.status = Status::Lost;
            segment.is_probe = true;
            self.in_flight -= segment.length;
            self.lost += 1;
        }
    }

    /// Nothing was acknowledged in time: all that is in flight counts as lost.
    pub fn on_timeout(&mut self) {
        for index in 0..self.segments.len() {
            self.lose(index);
        }
        self.recovery = self.transmission;
        self.duplicates = 0;
    }

    /// The device has refused the packet of this number, which is too large for it: the packet has not left
    /// this host. Segments at the end that never have, and are longer than `payload`, are to be cut again.
    pub fn on_refused(&mut self, sequence: u64, payload: usize) {
        let index = sequence.checked_sub(self.acknowledged() + 1);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let Some(segment) = index.and_then(|index| self.segments.get_mut(index)) else {
            return;
        };
        segment.refused += 1;
        let last = self.segments.iter().rposition(Segment::may_have_left);
        let unsent = last.map_or(0, |last| last + 1);
        let mut behind = self.segments.range(unsent..);
        if !behind.any(|it| it.length > payload) {
            return;
        }
        for segment in self.segments.drain(unsent..) {
            match segment.status {
                Status::InFlight => self.in_flight -= segment.length,
                Status::Lost => self.lost -= 1,
                Status::Arrived => {}
            }
            self.cut -= segment.length as u64;
            self.next -= 1;
            if segment.length == 0 {
                self.end = End::Queued;
            }
        }
    }

    /// Gives back memory that is not used.
    pub fn shrink(&mut self) {
        self.buffer.shrink_to_fit();
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.buffer.len()
    }
}

#[cfg(test)]
mod tests;
