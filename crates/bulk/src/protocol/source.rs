//! The sending side: what is sent over which subflow, when, and again.
//!
//! Content is *new* once it is wanted. When it is first sent it counts against the credit, and is
//! *in flight* over a subflow until it is acknowledged. What is lost, possibly lost, or in flight
//! over a subflow that is removed waits for *repair* over any subflow. What the sink wants again is
//! new or to be repaired once more, and older packets with it count no more. At the end of the
//! transfer fast subflows send copies of what slow ones have in flight (`tail`).
//!
//! A subflow sends, or is *held* and sends no content, or is *stalled*: what it had in flight
//! counts as lost, and it sends nothing but probes until one is acknowledged. A source without
//! credit and with nothing in flight asks for some with probes.
//!
//! The data thread drives it: it polls each subflow for what to send, passes acknowledgements in,
//! and calls [`Source::timeout`] at [`Source::next_timeout`]. Time is an argument; there is no I/O
//! and no lock. It keeps ranges, no content. Of each subflow it keeps the packets in flight, which
//! the window of rate control bounds, and those lost within four probe timeouts. Its sets of ranges
//! have as many runs as acknowledgements and losses leave gaps. It ends by being dropped.

mod flight;
mod interval;
mod loss;
mod pace;
mod probing;
mod rtt;
mod size;
mod subflow;
mod tail;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use hawser_congestion::{Carried, RateControl};
use thiserror::Error;

use self::flight::Run;
use self::pace::MIN_PACKETS;
use self::subflow::SourceSubflow;
pub use self::subflow::SubflowStats;
use super::SubflowKey;
use super::ack::Ack;
use super::ranges::RangeSet;
use crate::limit::Allowance;

/// What is to be sent over a subflow now. What carries a packet counts as sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// A batch of data packets: [`Sealer::seal_data`](super::Sealer::seal_data) with the same
    /// fields.
    Data {
        /// The number of the first packet, which the sealer gives it too.
        number: u64,
        /// The content of all packets: one run of bytes.
        content: Range<u64>,
        /// The number of packets.
        packets: u64,
        /// Bytes of content in each packet, but for the last.
        per_packet: usize,
        /// The last packet asks for an answer.
        ask: bool,
    },
    /// A probe of `size` bytes.
    Probe {
        /// The number of the packet.
        number: u64,
        /// The size of the packet, in bytes.
        size: usize,
    },
    /// Nothing before this time; `None` until an acknowledgement, a timeout or new content.
    Wait(Option<Instant>),
}

/// What an acknowledgement changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acked {
    /// Bytes of content delivered for the first time.
    pub delivered: u64,
    /// Packets acknowledged for the first time.
    pub packets: u64,
    /// Packets that count as lost since the acknowledgement.
    pub lost: u64,
    /// Packets acknowledged that had counted as lost.
    pub spurious: u64,
    /// A measured round trip.
    pub rtt: Option<Duration>,
}

/// How the sink breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// It acknowledged a packet that was not sent.
    #[error("packet {acknowledged} is acknowledged, and {sent} packets were sent")]
    NotSent {
        /// The number acknowledged.
        acknowledged: u64,
        /// The number of the next packet.
        sent: u64,
    },
}

/// The sending state machine of a session.
///
/// Content that is [wanted](Self::want) is sent over all subflows until it is acknowledged. Its user
/// [polls](Self::poll) each subflow for what to send, passes acknowledgements to
/// [`on_ack`](Self::on_ack), and calls [`timeout`](Self::timeout) at
/// [`next_timeout`](Self::next_timeout). Methods ignore keys of subflows that were not added.
#[derive(Debug)]
pub struct Source {
    content: u64,
    credit: u64,
    /// Wanted, and not acknowledged.
    missing: RangeSet,
    /// Wanted, and never sent.
    new: RangeSet,
    /// Wanted, sent before, and lost, possibly lost, or wanted again.
    repair: RangeSet,
    /// Sent at least once: counts against the credit.
    sent: RangeSet,
    subflows: BTreeMap<SubflowKey, SourceSubflow>,
}

impl Source {
    /// A source of `content` bytes, of which nothing is wanted yet. It sends no more than `credit`
    /// bytes until acknowledgements raise that.
    pub fn new(content: u64, credit: u64) -> Self {
        Self {
            content,
            credit,
            missing: RangeSet::new(),
            new: RangeSet::new(),
            repair: RangeSet::new(),
            sent: RangeSet::new(),
            subflows: BTreeMap::new(),
        }
    }

    /// Sets the size of the content, in bytes, once it is known. Nothing may have been wanted before.
    pub fn set_content(&mut self, content: u64) {
        self.content = content;
    }

    /// The sink wants `range`, as far as it is content: it is sent, also if it was sent before.
    ///
    /// Subflows finish together if all that is wanted is known early: the source takes what is
    /// queued as the rest of the transfer.
    pub fn want(&mut self, range: Range<u64>) {
        let range = range.start..range.end.min(self.content);
        // The sink may have forgotten what is acknowledged from now on.
        if self.sent.overlaps(range.clone()).next().is_some() {
            for subflow in self.subflows.values_mut() {
                let stale = subflow.disown(&range);
                self.repair.extend_within(&self.missing, stale);
            }
        }
        self.repair.extend(self.sent.overlaps(range.clone()));
        self.new.extend(self.sent.gaps(range.clone()));
        self.missing.insert(range);
    }

    /// None of `range` is to be sent any more. `false`, and nothing changes, if some of it was sent
    /// before: the sink waits for the rest then.
    pub fn unwant(&mut self, range: Range<u64>) -> bool {
        if self.sent.overlaps(range.clone()).next().is_some() {
            return false;
        }
        self.new.remove(range.clone());
        self.missing.remove(range);
        true
    }

    /// Adds a subflow whose data packets have `per_packet` bytes of content. `rtt` is its round trip
    /// if that was measured, as by its QUIC connection.
    pub fn add_subflow(
        &mut self,
        key: SubflowKey,
        per_packet: usize,
        control: Box<dyn RateControl>,
        rtt: Option<Duration>,
        now: Instant,
    ) {
        let subflow = SourceSubflow::new(per_packet, control, rtt, now);
        self.subflows.insert(key, subflow);
    }

    /// Removes a subflow. What it has in flight is sent over others.
    pub fn remove_subflow(&mut self, key: SubflowKey) {
        if let Some(mut subflow) = self.subflows.remove(&key) {
            let lost = subflow.abandon();
            self.repair.extend_within(&self.missing, lost);
        }
    }

    /// Sends no content over a subflow from now on, or does so again. What it has in flight still
    /// arrives, and nothing is left to it.
    pub fn hold(&mut self, key: SubflowKey, held: bool) {
        if let Some(subflow) = self.subflows.get_mut(&key) {
            subflow.is_held = held;
        }
    }

    /// From now on `share` subflows, this one included, share a link, and take one flow's share of it
    /// together.
    pub fn couple(&mut self, key: SubflowKey, share: u32) {
        if let Some(subflow) = self.subflows.get_mut(&key) {
            subflow.control(|control| control.couple(share));
        }
    }

    /// Others over a link that the subflow shares have given something up: it may send at `rate` bytes
    /// per second.
    pub fn take(&mut self, key: SubflowKey, rate: f64) {
        if let Some(subflow) = self.subflows.get_mut(&key) {
            subflow.control(|control| control.take(rate));
        }
    }

    /// The path is announced to take packets of `packet` bytes, `per_packet` of them content. The next
    /// poll sends a probe of that size, and once one is acknowledged data packets have it. Its loss is
    /// not reported to the rate control; after three losses the size stays as it is.
    pub fn try_larger(&mut self, key: SubflowKey, packet: usize, per_packet: usize) {
        if let Some(subflow) = self.subflows.get_mut(&key) {
            subflow.probing.try_larger(packet, per_packet);
        }
    }

    /// The next packet of the subflow has `number` at least: smaller ones were used for packets that
    /// are not the source's, as acknowledgements of a sink's probe.
    pub fn set_next_number(&mut self, key: SubflowKey, number: u64) {
        if let Some(subflow) = self.subflows.get_mut(&key) {
            subflow.next_number = subflow.next_number.max(number);
        }
    }

    /// What to send over the subflow now. To be called until it is [`Transmit::Wait`].
    pub fn poll(&mut self, key: SubflowKey, now: Instant) -> Transmit {
        self.poll_within(key, now, &mut Allowance::default())
    }

    /// As [`poll`](Self::poll), with no more content than `allowance` has. Rate control is informed
    /// that it is not the path that limits the rate.
    pub(crate) fn poll_within(
        &mut self,
        key: SubflowKey,
        now: Instant,
        allowance: &mut Allowance,
    ) -> Transmit {
        let Some(subflow) = self.subflows.get_mut(&key) else {
            return Transmit::Wait(None);
        };
        if let Some(size) = subflow.probing.take_due() {
            let number = subflow.on_send(Run::probe(size, now), now);
            return Transmit::Probe { number, size };
        }
        if subflow.is_held {
            // It is not the path that limits the rate.
            subflow.on_idle(now, false);
            return Transmit::Wait(None);
        }
        if subflow.is_stalled() {
            return Transmit::Wait(None);
        }
        if let Some(at) = subflow.pacing.wait(now) {
            return Transmit::Wait(Some(at));
        }
        let (most, per_packet) = (subflow.room(), subflow.per_packet() as u64);
        if most == 0 {
            return Transmit::Wait(None);
        }
        if !self.has_candidates() {
            return Transmit::Wait(self.nothing_to_send(key, now));
        }
        let most = match allowance.ask(now) {
            Ok(bytes) => most.min((bytes / per_packet).max(MIN_PACKETS) * per_packet),
            Err(at) => {
                if let Some(subflow) = self.subflows.get_mut(&key) {
                    subflow.on_limited(at);
                }
                return Transmit::Wait(Some(at));
            }
        };
        let Some(content) = self.choose(key, most, now) else {
            allowance.leave();
            return Transmit::Wait(self.nothing_to_send(key, now));
        };
        allowance.spend(content.end - content.start, now);
        let nothing_left = self.repair.is_empty() && (self.new.is_empty() || self.available() == 0);
        let Some(subflow) = self.subflows.get_mut(&key) else {
            return Transmit::Wait(None);
        };
        let run = Run::data(content.clone(), subflow.per_packet(), now);
        let ask = subflow.wants_answer(run.bytes()) || nothing_left;
        let (packets, per_packet) = (run.packets, subflow.per_packet());
        Transmit::Data {
            number: subflow.on_send(run, now),
            content,
            packets,
            per_packet,
            ask,
        }
    }

    /// Takes an acknowledgement that arrived over the subflow.
    ///
    /// # Errors
    /// [`SourceError::NotSent`]; then nothing changes.
    pub fn on_ack(
        &mut self,
        key: SubflowKey,
        ack: &Ack,
        now: Instant,
    ) -> Result<Acked, SourceError> {
        let Some(subflow) = self.subflows.get_mut(&key) else {
            return Ok(Acked::default());
        };
        let (acknowledged, sent) = (ack.largest, subflow.next_number);
        if acknowledged >= sent {
            return Err(SourceError::NotSent { acknowledged, sent });
        }
        self.credit = self.credit.max(ack.credit);
        let before = self.missing.len();
        let mut acked = Acked::default();
        let (missing, repair) = (&mut self.missing, &mut self.repair);
        subflow.on_ack(ack, now, &mut acked, |content| {
            missing.remove(content.clone());
            repair.remove(content);
        });
        acked.delivered = before - self.missing.len();
        let lost = subflow.detect_losses(now, &mut acked.lost);
        self.repair.extend_within(&self.missing, lost);
        subflow.end(now);
        Ok(acked)
    }

    /// Handles the timeouts that are over.
    pub fn timeout(&mut self, now: Instant) {
        let starved = self.available() == 0 && !self.new.is_empty();
        for subflow in self.subflows.values_mut() {
            let lost = subflow.timeout(now, starved);
            self.repair.extend_within(&self.missing, lost);
        }
    }

    /// When [`timeout`](Self::timeout) is to be called. Pacing is not part of it.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.subflows
            .values()
            .filter_map(SourceSubflow::next_timeout)
            .min()
    }

    /// The interval of acknowledgements that the sink shall use for the subflow, if it changed
    /// enough to send it.
    pub fn poll_interval(&mut self, key: SubflowKey) -> Option<Duration> {
        self.subflows.get_mut(&key)?.poll_interval()
    }

    /// What the subflow does.
    pub fn stats(&self, key: SubflowKey) -> Option<SubflowStats> {
        self.subflows.get(&key).map(SourceSubflow::stats)
    }

    /// What the path of the subflow carries, once its start is over.
    pub fn carried(&self, key: SubflowKey) -> Option<Carried> {
        self.subflows.get(&key)?.carried()
    }

    /// Whether less is sent over the subflow than the path may carry: it is limited, see
    /// [`poll_within`](Self::poll_within).
    pub(crate) fn is_limited(&self, key: SubflowKey, now: Instant) -> bool {
        let subflow = self.subflows.get(&key);
        subflow.is_some_and(|subflow| subflow.is_limited(now))
    }

    /// Whether all that is wanted is acknowledged.
    pub fn is_delivered(&self) -> bool {
        self.missing.is_empty()
    }

    /// The content that is wanted and not acknowledged.
    pub fn missing(&self) -> &RangeSet {
        &self.missing
    }

    /// Content bytes that the sink takes in all.
    pub fn credit(&self) -> u64 {
        self.credit
    }

    /// Whether all of `range` was sent at least once.
    pub fn has_sent(&self, range: &Range<u64>) -> bool {
        self.sent.contains(range)
    }

    /// Content bytes sent, each counted once.
    pub fn sent(&self) -> u64 {
        self.sent.len()
    }

    /// New bytes that may be sent.
    fn available(&self) -> u64 {
        self.credit.saturating_sub(self.sent.len())
    }
}

impl RangeSet {
    /// Adds the parts of `ranges` that are in `limits`.
    fn extend_within(&mut self, limits: &Self, ranges: Vec<Range<u64>>) {
        for range in ranges {
            self.extend(limits.overlaps(range));
        }
    }
}

#[cfg(test)]
mod tests;
