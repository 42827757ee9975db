//! Probing for bandwidth: Down, Cruise, Refill, Up, and again (5.3.3).

use std::time::{Duration, Instant};

use super::{BETA, Bbr, BbrState, LOSS_THRESHOLD};
use crate::delivery::{Loss, Sample};
use crate::round::grown;

/// Time between two probes: at least this, and a random part of as much again as the second.
const WAIT: Duration = Duration::from_secs(2);
const MORE_WAIT: Duration = Duration::from_secs(1);
/// Round trips until the first probe where Startup has ended with what was expected.
const EXPECTED_ROUNDS: u32 = 4;
/// Rounds between two probes at most, so that flows of Reno get their share (5.3.3.5.3).
const MAX_PROBE_ROUNDS: u64 = 62;
/// Doublings of the growth of the long-term window, at most.
const MAX_DOUBLINGS: u32 = 30;

/// The cycle of Down, Cruise, Refill and Up.
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    /// Losses show how much the path takes.
    probing: bool,
    /// The last packets of a probe are being acknowledged.
    pub(super) stopping: bool,
    /// When the last probe ended, and how long until the next one.
    since: Instant,
    wait: Duration,
    /// Rounds since the last probe, and the most of them until the next one.
    rounds: u64,
    most_rounds: u64,
    /// When Cruise began.
    pub(super) cruise_round: u64,
    slope: Slope,
    random: fastrand::Rng,
}

/// How fast the long-term window grows in Up.
#[derive(Debug, Clone, Copy)]
struct Slope {
    /// Doublings.
    doublings: u32,
    /// Bytes acknowledged that it has not grown by yet.
    acked: u64,
    /// Bytes that must be acknowledged before it grows by a packet.
    cost: u64,
}

impl Cycle {
    pub(super) fn new(now: Instant, random: fastrand::Rng) -> Self {
        Self {
            probing: false,
            stopping: false,
            since: now,
            wait: Duration::ZERO,
            rounds: 0,
            most_rounds: 0,
            cruise_round: 0,
            slope: Slope {
                doublings: 0,
                acked: 0,
                cost: u64::MAX,
            },
            random,
        }
    }

    /// Counts a round.
    pub(super) fn count_round(&mut self) {
        self.rounds += 1;
    }

    /// Whether the losses of a probe show how much the path takes.
    pub(super) fn is_probing(&self) -> bool {
        self.probing
    }
}

impl Bbr {
    /// Goes on in the cycle (5.3.3.6).
    pub(super) fn update_probing(&mut self, now: Instant, sample: &Sample) {
        if !self.full.reached {
            return;
        }
        // Taken before the bound is raised.
        let bounded = self.rounds.limited && self.sending.window >= self.bounds.long_window;
        self.adapt_long_term(sample, bounded);
        match self.state {
            BbrState::Down | BbrState::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            BbrState::Down if self.is_time_to_cruise() => self.enter(BbrState::Cruise),
            BbrState::Refill if self.rounds.starts => {
                self.cycle.probing = true;
                self.start_up();
                self.full.rate = sample.rate.unwrap_or_default();
            }
            BbrState::Up => self.go_down_when_full(now, sample, bounded),
            _ => {}
        }
    }

    /// Learns from probing how much the path takes (5.3.3.6).
    fn adapt_long_term(&mut self, sample: &Sample, bounded: bool) {
        if self.cycle.stopping && self.rounds.starts {
            self.cycle.probing = false;
            self.cycle.stopping = false;
            let cycle = match self.state {
                BbrState::Startup | BbrState::Drain => false,
                BbrState::ProbeRtt => self.coupled.share == 1.0,
                _ => true,
            };
            if cycle && !sample.app_limited {
                self.bandwidth.max.advance();
            }
        }
        let too_much = self.is_too_much(sample.lost, sample.in_flight_then);
        let Some(bound) = self.long_window().filter(|_| !too_much) else {
            return;
        };
        self.bounds.long_window = bound.max(sample.in_flight_then);
        if self.state == BbrState::Up && bounded {
            self.raise_long_term(sample);
        }
    }

    fn raise_long_term(&mut self, sample: &Sample) {
        self.cycle.slope.acked += sample.acked;
        if self.cycle.slope.acked >= self.cycle.slope.cost {
            let more = self.cycle.slope.acked / self.cycle.slope.cost;
            self.cycle.slope.acked -= more * self.cycle.slope.cost;
            self.bounds.long_window += more * self.mtu;
        }
        if self.rounds.starts {
            self.raise_slope();
        }
    }

    /// Doubles, each round, the packets by which the long-term window grows.
    fn raise_slope(&mut self) {
        let packets = 1u64 << self.cycle.slope.doublings;
        self.cycle.slope.doublings = (self.cycle.slope.doublings + 1).min(MAX_DOUBLINGS);
        self.cycle.slope.cost = (self.sending.window / packets).max(1);
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        let waited = now.saturating_duration_since(self.cycle.since) > self.cycle.wait;
        let reno = self
            .holds(self.bandwidth.used, 1.0)
            .min(self.sending.window)
            / self.mtu;
        waited || (reno > 0 && self.cycle.rounds >= reno.min(self.cycle.most_rounds))
    }

    fn is_time_to_cruise(&self) -> bool {
        self.flight.bytes <= self.with_headroom() && self.flight.bytes <= self.target(1.0)
    }

    /// Ends Up when the bandwidth no longer grows, unless the window keeps it from growing. With a
    /// queue it does not.
    fn go_down_when_full(&mut self, now: Instant, sample: &Sample, bounded: bool) {
        if bounded && !grown(self.rtt.min, sample.rtt) {
            self.full.reset();
            self.full.rate = sample.rate.unwrap_or_default();
        } else if self.full.now {
            self.start_down(now);
        }
    }

    fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        self.cycle.slope.doublings = 0;
        self.cycle.slope.acked = 0;
        self.cycle.stopping = false;
        self.rounds.start(self.flight.delivered);
        self.enter(BbrState::Refill);
    }

    /// Probes at once: the path is full enough.
    pub(super) fn start_probe(&mut self) {
        self.start_refill();
        self.cycle.probing = true;
        self.start_up();
        self.full.rate = self.loss_round.bandwidth;
    }

    pub(super) fn start_up(&mut self) {
        self.cycle.stopping = false;
        self.rounds.start(self.flight.delivered);
        self.full.reset();
        self.enter(BbrState::Up);
        self.raise_slope();
    }

    pub(super) fn start_down(&mut self, now: Instant) {
        self.coupled.free = 0.0;
        self.loss_round.losses.bytes = 0;
        self.loss_round.bandwidth = 0.0;
        self.loss_round.delivered = 0;
        self.cycle.slope.cost = u64::MAX;
        self.cycle.rounds = self.cycle.random.u64(0..2);
        self.cycle.most_rounds = MAX_PROBE_ROUNDS + self.cycle.random.u64(0..2);
        self.cycle.wait = WAIT + MORE_WAIT.mul_f64(self.cycle.random.f64());
        if std::mem::take(&mut self.startup.is_as_expected) {
            self.cycle.wait = self
                .cycle
                .wait
                .min(self.rtt.min.saturating_mul(EXPECTED_ROUNDS));
        }
        self.cycle.since = now;
        self.cycle.stopping = true;
        self.rounds.start(self.flight.delivered);
        self.enter(BbrState::Down);
    }

    /// A probe has lost too much: `loss` is the packet at which that was so (5.5.10.2).
    pub(super) fn probed_too_much(&mut self, now: Instant, loss: &Loss) {
        self.cycle.probing = false;
        if !loss.app_limited {
            // What was in flight when the tolerated part was reached.
            let before = loss.in_flight_then.saturating_sub(loss.bytes);
            let lost = loss.lost.saturating_sub(loss.bytes) as f64;
            let more = (self.tolerated(before) - lost) / (1.0 - LOSS_THRESHOLD);
            let target = self
                .holds(self.bandwidth.used, 1.0)
                .min(self.sending.window) as f64;
            self.bounds.long_window = (before as f64 + more).max(BETA * target) as u64;
        }
        if self.state == BbrState::Up {
            self.start_down(now);
        }
    }
}
