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

impl Bbr {
    /// Goes on in the cycle (5.3.3.6).
    pub(super) fn update_probing(&mut self, now: Instant, sample: &Sample) {
        if !self.full_bw_reached {
            return;
        }
        // Taken before the bound is raised.
        let bounded = self.limited && self.window >= self.long_window;
        self.adapt_long_term(sample, bounded);
        match self.state {
            BbrState::Down | BbrState::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            BbrState::Down if self.is_time_to_cruise() => self.enter(BbrState::Cruise),
            BbrState::Refill if self.round_start => {
                self.probing = true;
                self.start_up();
                self.full_bw = sample.rate.unwrap_or_default();
            }
            BbrState::Up => self.go_down_when_full(now, sample, bounded),
            _ => {}
        }
    }

    /// Learns from probing how much the path takes (5.3.3.6).
    fn adapt_long_term(&mut self, sample: &Sample, bounded: bool) {
        if self.stopping && self.round_start {
            self.probing = false;
            self.stopping = false;
            let cycle = match self.state {
                BbrState::Startup | BbrState::Drain => false,
                BbrState::ProbeRtt => self.share == 1.0,
                _ => true,
            };
            if cycle && !sample.app_limited {
                self.max_bw.advance();
            }
        }
        let too_much = self.is_too_much(sample.lost, sample.in_flight_then);
        let Some(bound) = self.long_window().filter(|_| !too_much) else {
            return;
        };
        self.long_window = bound.max(sample.in_flight_then);
        if self.state == BbrState::Up && bounded {
            self.raise_long_term(sample);
        }
    }

    fn raise_long_term(&mut self, sample: &Sample) {
        self.up_acked += sample.acked;
        if self.up_acked >= self.up_cost {
            let more = self.up_acked / self.up_cost;
            self.up_acked -= more * self.up_cost;
            self.long_window += more * self.mtu;
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    /// Doubles, each round, the packets by which the long-term window grows.
    fn raise_slope(&mut self) {
        let packets = 1u64 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(MAX_DOUBLINGS);
        self.up_cost = (self.window / packets).max(1);
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        let waited = now.saturating_duration_since(self.cycle_at) > self.probe_wait;
        let reno = self.holds(self.bw, 1.0).min(self.window) / self.mtu;
        waited || (reno > 0 && self.rounds_since_probe >= reno.min(self.most_rounds))
    }

    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.with_headroom() && self.in_flight <= self.target(1.0)
    }

    /// Ends Up when the bandwidth no longer grows, unless the window keeps it from growing. With a
    /// queue it does not.
    fn go_down_when_full(&mut self, now: Instant, sample: &Sample, bounded: bool) {
        if bounded && !grown(self.min_rtt, sample.rtt) {
            self.reset_full_bandwidth();
            self.full_bw = sample.rate.unwrap_or_default();
        } else if self.full_bw_now {
            self.start_down(now);
        }
    }

    fn start_refill(&mut self) {
        self.reset_short_term();
        self.up_rounds = 0;
        self.up_acked = 0;
        self.stopping = false;
        self.start_round();
        self.enter(BbrState::Refill);
    }

    /// Probes at once: the path is full enough.
    pub(super) fn start_probe(&mut self) {
        self.start_refill();
        self.probing = true;
        self.start_up();
        self.full_bw = self.latest_bw;
    }

    pub(super) fn start_up(&mut self) {
        self.stopping = false;
        self.start_round();
        self.reset_full_bandwidth();
        self.enter(BbrState::Up);
        self.raise_slope();
    }

    pub(super) fn start_down(&mut self, now: Instant) {
        self.free = 0.0;
        self.losses.bytes = 0;
        self.latest_bw = 0.0;
        self.latest_delivered = 0;
        self.up_cost = u64::MAX;
        self.rounds_since_probe = self.random.u64(0..2);
        self.most_rounds = MAX_PROBE_ROUNDS + self.random.u64(0..2);
        self.probe_wait = WAIT + MORE_WAIT.mul_f64(self.random.f64());
        if std::mem::take(&mut self.is_as_expected) {
            self.probe_wait = self
                .probe_wait
                .min(self.min_rtt.saturating_mul(EXPECTED_ROUNDS));
        }
        self.cycle_at = now;
        self.stopping = true;
        self.start_round();
        self.enter(BbrState::Down);
    }

    /// A probe has lost too much: `loss` is the packet at which that was so (5.5.10.2).
    pub(super) fn probed_too_much(&mut self, now: Instant, loss: &Loss) {
        self.probing = false;
        if !loss.app_limited {
            // What was in flight when the tolerated part was reached.
            let before = loss.in_flight_then.saturating_sub(loss.bytes);
            let lost = loss.lost.saturating_sub(loss.bytes) as f64;
            let more = (self.tolerated(before) - lost) / (1.0 - LOSS_THRESHOLD);
            let target = self.holds(self.bw, 1.0).min(self.window) as f64;
            self.long_window = (before as f64 + more).max(BETA * target) as u64;
        }
        if self.state == BbrState::Up {
            self.start_down(now);
        }
    }
}
