//! The content of one session, sent.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::RateRecord;

use super::subflow::{SMALL, Subflow, Subflows};
use super::{DataEvent, Measured, SubflowKey};
use crate::content::{Source as Content, tree};
use crate::gate::{Gate, Loaded};
use crate::limit::{Allowance, Limit};
use crate::protocol::{Ack, DATA_OVERHEAD, Source, SourceError, Transmit};

/// Batches that one subflow sends before packets are received again.
const BATCHES: usize = 4;

/// The content of one session, sent.
pub(super) struct Outgoing {
    total: u64,
    /// `None` before it is listed.
    content: Option<Arc<Content>>,
    source: Source,
    gate: Arc<Gate>,
    /// Ranges that are read and not confirmed.
    loaded: BTreeMap<u64, Arc<Vec<u8>>>,
    /// Ranges that are read, and of which something was never sent.
    unsent: BTreeSet<u64>,
    /// For batches that reach over two ranges, or that are not loaded.
    scratch: Vec<u8>,
    allowance: Allowance,
    /// Batches that were sent while the rate was limited.
    turns: u64,
    /// The subflows, in the order in which they may send.
    order: Vec<SubflowKey>,
    /// What the paths of the subflows carry.
    rates: BTreeMap<SubflowKey, RateRecord>,
}

impl Outgoing {
    /// Sends content that is not known yet, `credit` bytes of it before anything is acknowledged.
    pub(super) fn new(credit: u64, gate: Arc<Gate>, allowance: Allowance) -> Self {
        Self {
            total: 0,
            content: None,
            source: Source::new(0, credit),
            gate,
            loaded: BTreeMap::new(),
            unsent: BTreeSet::new(),
            scratch: Vec::new(),
            allowance,
            turns: 0,
            order: Vec::new(),
            rates: BTreeMap::new(),
        }
    }

    /// Sets the content, of which nothing is wanted yet.
    pub(super) fn set_content(&mut self, content: Arc<Content>) {
        self.total = content.manifest().length();
        self.source.set_content(self.total);
        self.content = Some(content);
    }

    /// Sends no faster than the sink wants.
    pub(super) fn set_sink_limit(&mut self, limit: Option<Limit>) {
        self.allowance.set_sink(limit);
    }

    /// Adds a subflow whose lane is known. Content goes over it at once, in packets that every path
    /// takes until a probe has shown that this one takes larger ones.
    pub(super) fn add(&mut self, key: SubflowKey, subflow: &Subflow, now: Instant) {
        let (packet, start) = (subflow.datagram, subflow.start);
        let seed = fastrand::u64(..);
        let known = start.announced.with_rtt(subflow.rtt);
        let mut control = (start.algorithm).start(now, packet as u64, known, seed);
        if let Some(lane) = &subflow.lane {
            let rates = lane.rate_record();
            if let Some(carried) = rates.last(now) {
                control.remember(carried);
            }
            self.rates.insert(key, rates);
        }
        let content = |packet: usize| packet.saturating_sub(DATA_OVERHEAD);
        let source = &mut self.source;
        source.add_subflow(key, content(packet.min(SMALL)), control, subflow.rtt, now);
        source.set_next_number(key, subflow.sealer.next_number());
        source.try_larger(key, packet, content(packet));
    }

    pub(super) fn remove(&mut self, key: SubflowKey) {
        if let Some(rates) = self.rates.remove(&key) {
            rates.end(self.source.carried(key));
        }
        self.source.remove_subflow(key);
    }

    /// The round-trip time of a subflow over which content is sent.
    pub(super) fn rtt(&self, key: SubflowKey) -> Option<Duration> {
        Some(self.source.stats(key)?.rtt)
    }

    /// Sends nothing new over a subflow, or does so again.
    pub(super) fn hold(&mut self, key: SubflowKey, held: bool) {
        self.source.hold(key, held);
    }

    /// Whether anything that was sent over a subflow is neither acknowledged nor lost.
    pub(super) fn has_in_flight(&self, key: SubflowKey) -> bool {
        let stats = self.source.stats(key);
        stats.is_some_and(|stats| stats.in_flight > 0)
    }

    /// `share` subflows, this one included, share a link.
    pub(super) fn couple(&mut self, key: SubflowKey, share: u32) {
        self.source.couple(key, share);
    }

    /// Others over a shared link have given something up: it may send at `rate` bytes per second.
    pub(super) fn take(&mut self, key: SubflowKey, rate: f64) {
        self.source.take(key, rate);
    }

    /// Sends these ranges.
    pub(super) fn want(&mut self, ranges: Range<u64>) {
        let start = tree::range(ranges.start, self.total).start;
        let end = tree::range(ranges.end - 1, self.total).end;
        self.source.want(start..end);
    }

    /// Does not send a range after all. `false` if some of it was sent before.
    pub(super) fn unwant(&mut self, range: u64) -> bool {
        self.source.unwant(tree::range(range, self.total))
    }

    /// Keeps a range that was read, until it is confirmed.
    pub(super) fn load(&mut self, loaded: Loaded) {
        self.loaded.insert(loaded.range, loaded.bytes);
        self.unsent.insert(loaded.range);
        // It may have been sent before: from the disk, or because the sink wants it again.
        self.report_sent();
    }

    /// Informs the gate of the ranges that were sent.
    fn report_sent(&mut self) {
        while let Some(&range) = self.unsent.first()
            && self.source.has_sent(&tree::range(range, self.total))
        {
            self.unsent.pop_first();
            self.gate.sent(range);
        }
    }

    /// Frees ranges that the sink has verified.
    pub(super) fn confirm(&mut self, ranges: Range<u64>) {
        for range in ranges {
            self.loaded.remove(&range);
            self.unsent.remove(&range);
        }
    }

    /// Takes an acknowledgement. Returns the bytes of content that are delivered with it.
    ///
    /// # Errors
    /// When the sink breaks the protocol.
    pub(super) fn on_ack(
        &mut self,
        key: SubflowKey,
        ack: &Ack,
        now: Instant,
    ) -> Result<u64, SourceError> {
        let acked = self.source.on_ack(key, ack, now)?;
        if let Some(rates) = self.rates.get_mut(&key) {
            rates.observe(now, || self.source.carried(key));
        }
        Ok(acked.delivered)
    }

    /// Sends what may be sent now. Returns when to look again.
    pub(super) fn send(&mut self, subflows: &mut Subflows, now: Instant) -> Option<Instant> {
        self.source.timeout(now);
        let mut deadline = self.source.next_timeout();
        let mut failed = Vec::new();
        let order = self.order(subflows);
        for key in &order {
            let subflow = subflows.get_mut(*key);
            let Some(subflow) = subflow.filter(|one| one.lane.is_some()) else {
                continue;
            };
            match self.send_over(*key, subflow, now) {
                Ok(at) => deadline = [deadline, at].into_iter().flatten().min(),
                Err(failure) => failed.push(failure),
            }
        }
        self.order = order;
        failed
            .into_iter()
            .for_each(|failure| subflows.report(failure));
        self.report_sent();
        self.report(subflows);
        deadline
    }

    /// The subflows in the order in which they may send. If the rate is limited, the one that has waited
    /// longest is the first, so that also slow paths carry what they can.
    fn order(&mut self, subflows: &Subflows) -> Vec<SubflowKey> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(subflows.iter().map(|(key, _)| key));
        if self.allowance.is_limited() {
            order.sort_by_key(|key| subflows.get(*key).map(|subflow| subflow.turn));
        }
        order
    }

    /// Sends over one subflow. Returns when to look again.
    ///
    /// # Errors
    /// Why the subflow cannot be used, or the content not be read.
    fn send_over(
        &mut self,
        key: SubflowKey,
        subflow: &mut Subflow,
        now: Instant,
    ) -> Result<Option<Instant>, DataEvent> {
        let failed = |error: io::Error| DataEvent::Failed(key, error.to_string());
        for _ in 0..BATCHES {
            subflow.flush().map_err(failed)?;
            if subflow.is_blocked() {
                return Ok(None);
            }
            let transmit = self.source.poll_within(key, now, &mut self.allowance);
            let sent = match transmit {
                Transmit::Wait(at) => return Ok(at),
                Transmit::Probe { size, .. } => subflow.send(size, |sealer, out| {
                    sealer.seal_probe(out, size);
                }),
                Transmit::Data {
                    content,
                    per_packet,
                    ask,
                    ..
                } => {
                    let position = content.start;
                    let (loaded, scratch) = (&self.loaded, &mut self.scratch);
                    let bytes = match bytes(loaded, scratch, &content) {
                        true => &*scratch,
                        false => {
                            scratch.resize((content.end - content.start) as usize, 0);
                            if let Some(content) = &self.content {
                                let read = content.read_at(position, scratch);
                                read.map_err(DataEvent::Unreadable)?;
                            }
                            &*scratch
                        }
                    };
                    subflow.send(per_packet + DATA_OVERHEAD, |sealer, out| {
                        sealer.seal_data(out, position, bytes, per_packet, ask);
                    })
                }
            };
            sent.map_err(failed)?;
            if self.allowance.is_limited() {
                // The others have their turns first.
                self.turns += 1;
                subflow.turn = self.turns;
                break;
            }
        }
        Ok(Some(now))
    }

    /// Reports which subflows are stalled, and how often they are to be acknowledged.
    fn report(&mut self, subflows: &mut Subflows) {
        subflows.report_each(|key, subflow, report| {
            if let Some(interval) = self.source.poll_interval(key) {
                report(DataEvent::AckInterval(key, interval));
            }
            let stats = self.source.stats(key);
            let is_stalled = stats.is_some_and(|stats| stats.stalled);
            if std::mem::replace(&mut subflow.is_stalled, is_stalled) != is_stalled {
                report(match is_stalled {
                    true => DataEvent::Stalled(key),
                    false => DataEvent::Recovered(key),
                });
            }
        });
    }

    pub(super) fn measure(&self, subflows: &Subflows) -> Vec<(SubflowKey, Measured)> {
        let now = Instant::now();
        let measure = |(key, subflow): (SubflowKey, &Subflow)| {
            let stats = self.source.stats(key)?;
            tracing::trace!(?key, ?stats, credit = self.source.credit(), "sending");
            let measured = Measured {
                delivered: subflow.traffic.delivered,
                sent: subflow.traffic.sent,
                received: subflow.traffic.received,
                packets: stats.sent,
                lost: stats.lost - stats.spurious,
                rejected: subflow.rejected(),
                rtt: Some(stats.rtt),
                rate: stats.rate,
                usable: stats.in_flight > 0 && !self.source.is_limited(key, now),
            };
            Some((key, measured))
        };
        subflows.iter().filter_map(measure).collect()
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        for (key, rates) in &self.rates {
            rates.end(self.source.carried(*key));
        }
    }
}

/// Copies content to `out`; false when some of it is not loaded.
fn bytes(loaded: &BTreeMap<u64, Arc<Vec<u8>>>, out: &mut Vec<u8>, content: &Range<u64>) -> bool {
    out.clear();
    let ranges = content.start / tree::RANGE..content.end.div_ceil(tree::RANGE);
    for range in ranges {
        let begin = range * tree::RANGE;
        let from = content.start.max(begin) - begin;
        let to = content.end.min(begin + tree::RANGE) - begin;
        match loaded
            .get(&range)
            .and_then(|bytes| bytes.get(from as usize..to as usize))
        {
            Some(part) => out.extend_from_slice(part),
            None => return false,
        }
    }
    true
}
