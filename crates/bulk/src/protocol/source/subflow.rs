//! One subflow of a source: what it has in flight, and what became of it (RFC 9002).

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use hawser_congestion::{Carried, RateControl};

use super::super::ack::Ack;
use super::Acked;
use super::flight::{Flight, Run};
use super::interval::Interval;
use super::loss::LossDetection;
use super::pace::{Pacing, data_packet};
use super::probing::Probing;
use super::rtt::Rtt;

/// The shortest time after which a source that waits for credit asks for it.
const CREDIT_TIME: Duration = Duration::from_millis(250);

/// What a subflow does.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SubflowStats {
    /// The name of the rate control at work.
    pub control: &'static str,
    /// The pacing rate, in bytes per second.
    pub rate: f64,
    /// The rate at which packets are acknowledged, in bytes per second.
    pub delivery: f64,
    /// Most bytes in flight.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The smoothed round trip.
    pub rtt: Duration,
    /// The shortest round trip.
    pub min_rtt: Duration,
    /// Data packets sent.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Data packets acknowledged before they counted as lost.
    pub acked: u64,
    /// Data packets that counted as lost.
    pub lost: u64,
    /// Those of them that were acknowledged later.
    pub spurious: u64,
    /// Packets that arrived with the congestion mark.
    pub marked: u64,
    /// Acknowledgements received.
    pub acks: u64,
    /// Nothing is acknowledged although probes are sent.
    pub stalled: bool,
}

/// One subflow of a source.
pub(super) struct SourceSubflow {
    control: Box<dyn RateControl>,
    rtt: Rtt,
    pub(super) pacing: Pacing,
    pub(super) probing: Probing,
    pub(super) next_number: u64,
    flight: Flight,
    loss: LossDetection,
    /// When a source without credit asks for it.
    credit_at: Option<Instant>,
    /// No content is sent over it.
    pub(super) is_held: bool,
    app_limited: bool,
    /// Until when the subflow counts as limited by something else than its path.
    limited_until: Option<Instant>,
    /// Bytes sent since the last acknowledgement, and since one was asked for.
    unanswered: u64,
    interval: Interval,
    stats: SubflowStats,
}

impl fmt::Debug for SourceSubflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceSubflow")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl SourceSubflow {
    pub(super) fn new(
        per_packet: usize,
        control: Box<dyn RateControl>,
        rtt: Option<Duration>,
        now: Instant,
    ) -> Self {
        let stats = SubflowStats {
            control: control.name(),
            rate: 0.0,
            delivery: 0.0,
            window: 0,
            in_flight: 0,
            rtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            sent: 0,
            sent_bytes: 0,
            acked: 0,
            lost: 0,
            spurious: 0,
            marked: 0,
            acks: 0,
            stalled: false,
        };
        Self {
            pacing: Pacing::new(control.rate(), now),
            control,
            rtt: Rtt::new(rtt),
            probing: Probing::new(per_packet),
            next_number: 0,
            flight: Flight::default(),
            loss: LossDetection::new(),
            credit_at: None,
            is_held: false,
            app_limited: false,
            limited_until: None,
            unanswered: 0,
            interval: Interval::new(now),
            stats,
        }
    }

    pub(super) fn per_packet(&self) -> usize {
        self.probing.per_packet()
    }

    /// Informs the rate control of something.
    pub(super) fn control(&mut self, inform: impl FnOnce(&mut dyn RateControl)) {
        inform(&mut *self.control);
        self.pacing.set_rate(self.control.rate());
    }

    /// What the path carries, once the start is over.
    pub(super) fn carried(&self) -> Option<Carried> {
        self.control.carried()
    }

    pub(super) fn stats(&self) -> SubflowStats {
        SubflowStats {
            control: self.control.name(),
            rate: self.pacing.rate(),
            delivery: self.interval.delivery(),
            window: self.control.window(),
            in_flight: self.flight.bytes(),
            rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            stalled: self.is_stalled(),
            ..self.stats
        }
    }

    /// Whether nothing was acknowledged for several probe timeouts.
    pub(super) fn is_stalled(&self) -> bool {
        self.probing.is_stalled()
    }

    /// Whether the arrival of packets can be expected.
    pub(super) fn is_reliable(&self) -> bool {
        !self.probing.is_in_doubt() && self.rtt.is_measured()
    }

    /// Whether a batch of `bytes` shall ask for an answer: nothing was answered yet, or a quarter of
    /// the window is sent without an answer. A small window must not wait for the interval.
    pub(super) fn wants_answer(&mut self, bytes: u64) -> bool {
        self.unanswered += bytes;
        let wants = !self.rtt.is_measured() || self.unanswered >= self.control.window() / 4;
        if wants {
            self.unanswered = 0;
        }
        wants
    }

    /// The time that a packet is expected to take to the sink.
    pub(super) fn one_way(&self) -> Duration {
        self.rtt.smoothed() / 2
    }

    /// The rate that window and pacing allow, in bytes per second.
    pub(super) fn throughput(&self) -> f64 {
        let rtt = self.rtt.smoothed().as_secs_f64().max(1e-6);
        self.pacing.rate().min(self.control.window() as f64 / rtt)
    }

    /// Bytes of content that the next batch may have.
    pub(super) fn room(&self) -> u64 {
        let packet = data_packet(self.per_packet() as u64);
        let batch = self.batch(packet);
        let window = self.control.window().saturating_sub(self.flight.bytes());
        let packets = match (window / packet).min(batch) {
            // A window of less than a batch is no reason to wait forever.
            0 | 1 if self.flight.bytes() == 0 => batch.min(2),
            // Waits for room for a batch worth its cost.
            1 if batch > 1 => 0,
            packets => packets,
        };
        packets * self.per_packet() as u64
    }

    /// The most packets of `packet` bytes that are sent at once.
    fn batch(&self, packet: u64) -> u64 {
        let window = self.control.window();
        self.pacing.packets(packet, self.rtt.min(), window)
    }

    /// Records packets as sent; returns the number of the first.
    pub(super) fn on_send(&mut self, run: Run, now: Instant) -> u64 {
        let number = self.next_number;
        self.next_number += run.packets;
        if !run.is_probe() {
            run.for_each_packet(number, |number, bytes| {
                self.control.sent(now, number, bytes)
            });
            self.pacing.set_rate(self.control.rate());
            self.pacing.on_send(run.bytes(), now);
            self.stats.sent += run.packets;
            self.stats.sent_bytes += run.bytes();
            self.app_limited = false;
            self.credit_at = None;
        }
        self.flight.insert(number, run);
        self.probing.on_send(&self.rtt, self.interval.named(), now);
        number
    }

    /// There is nothing to send, although window and pacing allow it. `starved`: for want of credit.
    pub(super) fn on_idle(&mut self, now: Instant, starved: bool) {
        self.app_limited = true;
        if starved && self.flight.is_empty() && self.credit_at.is_none() {
            self.credit_at = Some(now + self.probe_time().max(CREDIT_TIME));
        }
    }

    /// A limit does not let the subflow send before `until`, although window and pacing would. That
    /// counts for one more batch and a round trip: what is sent then is no sign that the path limits
    /// the rate.
    pub(super) fn on_limited(&mut self, until: Instant) {
        let packet = data_packet(self.per_packet() as u64);
        let batch = self.pacing.time(self.batch(packet) * packet);
        self.limited_until = Some(until + batch + self.rtt.smoothed());
    }

    /// Whether a limit has kept the subflow from sending of late.
    pub(super) fn is_limited(&self, now: Instant) -> bool {
        self.limited_until.is_some_and(|until| now <= until)
    }

    /// Takes the packets of an acknowledgement; `delivered` is called with their content.
    pub(super) fn on_ack(
        &mut self,
        ack: &Ack,
        now: Instant,
        acked: &mut Acked,
        mut delivered: impl FnMut(Range<u64>),
    ) {
        self.stats.acks += 1;
        self.unanswered = 0;
        self.stats.marked = self.stats.marked.max(ack.marked);
        let oldest = [
            self.flight.first().map(|(first, _)| first),
            self.loss.oldest(),
        ];
        let oldest = oldest.into_iter().flatten().min().unwrap_or(u64::MAX);
        let mut bytes = 0;
        for range in ack.ranges.iter().rev().filter(|range| range.end > oldest) {
            while let Some((first, run)) = self.flight.pop_within(range) {
                acked.packets += run.packets;
                if first + run.packets > ack.largest {
                    let sample = now.saturating_duration_since(run.sent);
                    self.rtt.update(sample, ack.delay);
                    acked.rtt = Some(sample);
                }
                if run.is_probe() {
                    self.probing.on_probe_acked(run.per_packet as usize);
                    continue;
                }
                self.stats.acked += run.packets;
                bytes += run.bytes();
                run.for_each_packet(first, |number, bytes| {
                    self.control.acked(now, number, run.sent, bytes);
                });
                if run.counts {
                    delivered(run.content);
                }
            }
            while let Some((first, run)) = self.loss.lost().pop_within(range) {
                acked.packets += run.packets;
                acked.spurious += run.packets;
                self.loss.on_spurious(first, &run, &self.rtt, now);
                if run.counts {
                    delivered(run.content);
                }
            }
        }
        self.loss.on_ack(ack.largest);
        self.stats.spurious += acked.spurious;
        if acked.packets > 0 {
            let waits = !self.flight.is_empty();
            self.probing
                .on_ack(waits, &self.rtt, self.interval.named(), now);
        }
        self.interval.on_ack(now, bytes, self.rtt.smoothed());
    }

    /// Finds the packets that count as lost by now. Returns the content to send again.
    pub(super) fn detect_losses(&mut self, now: Instant, lost: &mut u64) -> Vec<Range<u64>> {
        self.loss.forget(self.probe_time() * 4, now);
        let mut content = Vec::new();
        while let Some((first, run)) = self.loss.next(&mut self.flight, &self.rtt, now) {
            self.on_lost(first, run, now, lost, &mut content);
        }
        if self.flight.is_empty() {
            self.probing.on_nothing_in_flight();
        }
        content
    }

    fn on_lost(
        &mut self,
        first: u64,
        mut run: Run,
        now: Instant,
        lost: &mut u64,
        content: &mut Vec<Range<u64>>,
    ) {
        if run.is_probe() {
            return self.probing.on_probe_lost(run.per_packet as usize);
        }
        *lost += run.packets;
        self.stats.lost += run.packets;
        run.for_each_packet(first, |number, bytes| {
            self.control.lost(now, number, run.sent, bytes);
        });
        if std::mem::take(&mut run.owns) {
            content.push(run.content.clone());
        }
        self.loss.lost().insert(first, run);
    }

    /// An acknowledgement is handled.
    pub(super) fn end(&mut self, now: Instant) {
        let app_limited = self.app_limited || self.is_limited(now);
        self.control.end(now, self.flight.bytes(), app_limited);
        self.pacing.set_rate(self.control.rate());
    }

    /// Handles the timeouts that are over. `starved`: the source waits for credit. Returns the
    /// content to send again.
    pub(super) fn timeout(&mut self, now: Instant, starved: bool) -> Vec<Range<u64>> {
        let is_over = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let mut content = Vec::new();
        if is_over(self.loss.at) {
            let mut lost = 0;
            content = self.detect_losses(now, &mut lost);
            self.end(now);
        }
        if is_over(self.credit_at) {
            self.credit_at = None;
            if starved {
                self.probing.ask();
            }
        }
        if is_over(self.probing.at()) {
            let interval = self.interval.named();
            if self.probing.on_timeout(&self.rtt, interval, now) {
                self.control.timed_out(now);
                self.pacing.set_rate(self.control.rate());
                content.extend(self.give_up());
            } else {
                content.extend(self.doubt(now));
            }
        }
        content
    }

    /// When [`Self::timeout`] has something to handle.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [self.loss.at, self.probing.at(), self.credit_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Everything that should have been acknowledged is possibly lost.
    fn doubt(&mut self, now: Instant) -> Vec<Range<u64>> {
        let age = self.rtt.smoothed();
        let old = self
            .flight
            .iter_mut()
            .take_while(|run| run.sent + age <= now);
        old.filter_map(|run| std::mem::take(&mut run.owns).then(|| run.content.clone()))
            .collect()
    }

    /// Everything in flight is lost.
    fn give_up(&mut self) -> Vec<Range<u64>> {
        let mut content = Vec::new();
        while let Some((first, mut run)) = self.flight.pop_within(&(0..u64::MAX)) {
            if std::mem::take(&mut run.owns) {
                content.push(run.content.clone());
            }
            if run.is_probe() {
                self.probing.on_probe_lost(run.per_packet as usize);
            } else {
                self.stats.lost += run.packets;
                self.loss.lost().insert(first, run);
            }
        }
        self.loss.at = None;
        content
    }

    /// The subflow ends. Returns the content to send again.
    pub(super) fn abandon(&mut self) -> Vec<Range<u64>> {
        self.give_up()
    }

    /// What is in flight of `range` no longer counts when it is acknowledged. Returns the content of
    /// those packets.
    pub(super) fn disown(&mut self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut content = Vec::new();
        for run in self.flight.iter_mut().chain(self.loss.lost().iter_mut()) {
            if run.content.start < range.end && range.start < run.content.end {
                run.counts = false;
                if std::mem::take(&mut run.owns) {
                    content.push(run.content.clone());
                }
            }
        }
        content
    }

    /// When the latest packets that are not copied are expected to arrive: `Some(None)` if some are
    /// overdue, `None` if there are none.
    pub(super) fn latest(&self, now: Instant) -> Option<Option<Instant>> {
        let copyable = |run: &&Run| run.owns && !run.copied;
        let mut runs = self.flight.iter().map(|(_, run)| run).filter(copyable);
        let oldest = runs.next()?;
        if self.is_overdue(oldest, now) {
            return Some(None);
        }
        let newest = runs.next_back().unwrap_or(oldest);
        Some(Some(newest.sent + self.one_way()))
    }

    /// Takes the content of at most `most` bytes (one packet at least) of the packets that
    /// [`Self::latest`] means.
    pub(super) fn copy_latest(&mut self, most: u64, now: Instant) -> Option<Range<u64>> {
        let at = {
            let mut runs = (self.flight.iter()).filter(|(_, run)| run.owns && !run.copied);
            let oldest = runs.next()?;
            let (first, run) = match self.is_overdue(oldest.1, now) {
                true => oldest,
                false => runs.next_back().unwrap_or(oldest),
            };
            first + run.packets - (most / run.per_packet).clamp(1, run.packets)
        };
        self.flight.cut(at);
        let run = self.flight.get_mut(at)?;
        run.copied = true;
        // The copy takes its place: if that is lost too, it is sent again once.
        run.owns = false;
        Some(run.content.clone())
    }

    fn is_overdue(&self, run: &Run, now: Instant) -> bool {
        run.sent + self.rtt.probe_timeout(self.interval.named()) <= now
    }

    /// The interval to name to the sink, if it changed enough.
    pub(super) fn poll_interval(&mut self) -> Option<Duration> {
        if self.control.is_probing() && self.interval.is_new() {
            return self.interval.poll_shortest();
        }
        self.interval.poll(self.rtt.smoothed(), self.pacing.rate())
    }

    /// The time without an acknowledgement until the next probe.
    fn probe_time(&self) -> Duration {
        self.probing.time(&self.rtt, self.interval.named())
    }
}

#[cfg(test)]
impl SourceSubflow {
    /// The content that is sent again if the packets in flight are lost.
    pub(super) fn owned(&self) -> impl Iterator<Item = Range<u64>> {
        let owned = self.flight.iter().filter(|(_, run)| run.owns);
        owned.map(|(_, run)| run.content.clone())
    }
}
