//! The parts of the model: bandwidth, how much of it losses leave, the round-trip time.

use std::time::{Duration, Instant};

use super::{BETA, Bbr, BbrState};
use crate::delivery::Sample;

/// Age at which a shortest round-trip time is measured again (5.3.4.3).
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
/// Time between two ProbeRTT phases, and how long each lasts.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(120);
/// A round-trip time longer than the shortest by at most this part confirms it.
const CONFIRMS: u32 = 32;
/// Growth of the bandwidth in a round below which it is full, and after how many rounds (5.3.1.2).
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The part of the expected bandwidth with which Startup ends.
pub(super) const EXPECTED: f64 = 0.95;
/// Runs of lost packets in a round from which on they end Startup (5.3.1.3).
const STARTUP_RUNS: u32 = 6;
/// Rounds after which Drain ends in any case (5.3.2).
const DRAIN_ROUNDS: u64 = 3;

/// The highest bandwidth of the last two cycles of probing (5.5.5).
#[derive(Debug, Clone, Copy)]
pub(super) struct MaxBandwidth {
    last: f64,
    present: f64,
}

impl MaxBandwidth {
    pub(super) fn new(bandwidth: f64) -> Self {
        Self {
            last: 0.0,
            present: bandwidth,
        }
    }

    pub(super) fn get(&self) -> f64 {
        self.last.max(self.present)
    }

    pub(super) fn update(&mut self, rate: f64) {
        self.present = self.present.max(rate);
    }

    /// Begins another cycle, unless the present one has no sample.
    pub(super) fn advance(&mut self) {
        if self.present > 0.0 {
            self.last = self.present;
            self.present = 0.0;
        }
    }
}

/// How many more bytes than expected are acknowledged together (5.5.9).
#[derive(Debug, Clone, Copy)]
pub(super) struct Aggregation {
    since: Instant,
    acked: u64,
    /// The most of the last rounds and of the present ones.
    last: u64,
    present: u64,
    from: u64,
}

impl Aggregation {
    /// Rounds for which a maximum counts at least.
    const MIN_FILTER_ROUNDS: u64 = 5;

    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            acked: 0,
            last: 0,
            present: 0,
            from: 0,
        }
    }

    pub(super) fn restart(&mut self, now: Instant) {
        self.since = now;
        self.acked = 0;
    }

    pub(super) fn extra(&self) -> u64 {
        self.last.max(self.present)
    }

    /// Adds `acked` bytes to what was expected at `bandwidth`, in a round; `full`: the bandwidth is
    /// known, so that the extra counts for several rounds.
    pub(super) fn update(
        &mut self,
        now: Instant,
        bandwidth: f64,
        acked: u64,
        window: u64,
        (round, full): (u64, bool),
    ) {
        let since = now.saturating_duration_since(self.since);
        let mut expected = (bandwidth * since.as_secs_f64()) as u64;
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked += acked;
        let extra = self.acked.saturating_sub(expected).min(window);
        if !full {
            (self.last, self.present) = (0, extra);
            return;
        }
        if round >= self.from + Self::MIN_FILTER_ROUNDS {
            (self.from, self.last, self.present) = (round, self.present, 0);
        }
        self.present = self.present.max(extra);
    }
}

impl Bbr {
    /// The delivery signals of the present loss round (5.5.10.3).
    pub(super) fn update_latest(&mut self, sample: &Sample) {
        self.latest_bw = self.latest_bw.max(sample.rate.unwrap_or_default());
        self.latest_delivered = self.latest_delivered.max(sample.delivered);
        self.loss_round_start = sample.prior >= self.loss_round_end;
        if self.loss_round_start {
            self.loss_round_end = self.delivered;
        }
    }

    /// Lowers the short-term bounds after a round of congestion (5.5.10.3).
    pub(super) fn lower_bounds(&mut self) {
        if matches!(
            self.state,
            BbrState::Startup | BbrState::Refill | BbrState::Up
        ) {
            return;
        }
        let losses = &self.losses;
        let delivered = self.delivered.saturating_sub(losses.before);
        let many = self.is_too_much(losses.bytes, delivered + losses.bytes);
        // Until packets are acknowledged that were sent while cruising, the queue is one's own, and
        // the rate that of Down.
        let cruised = self.state == BbrState::Cruise && self.round >= self.cruise_round + 2;
        if losses.bytes == 0 || !(many || losses.grown && cruised) {
            return;
        }
        if self.short_bw.is_infinite() {
            self.short_bw = self.max_bw.get();
        }
        if self.short_window == u64::MAX {
            self.short_window = self.window;
        }
        self.short_bw = self.latest_bw.max(BETA * self.short_bw);
        let kept = (BETA * self.short_window as f64) as u64;
        self.short_window = self.latest_delivered.max(kept);
    }

    pub(super) fn reset_short_term(&mut self) {
        self.short_bw = f64::INFINITY;
        self.short_window = u64::MAX;
    }

    /// Finds out whether the bandwidth has stopped growing (5.3.1.2).
    pub(super) fn check_full_bandwidth(&mut self, sample: &Sample) {
        if self.full_bw_now || !self.round_start || sample.app_limited {
            return;
        }
        let rate = sample.rate.unwrap_or_default();
        if rate >= self.full_bw * GROWTH {
            self.reset_full_bandwidth();
            self.full_bw = rate;
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_now = self.full_bw_rounds >= FULL_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    pub(super) fn reset_full_bandwidth(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_rounds = 0;
        self.full_bw_now = false;
    }

    /// Ends Startup when the bandwidth is full, or many packets are lost (5.3.1.3).
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        let many = self.loss_round_start
            && self.losses.runs >= STARTUP_RUNS
            && self.is_too_much(sample.lost, sample.in_flight_then);
        if !self.full_bw_reached && many {
            let holds = self.holds(self.max_bw.get(), 1.0);
            self.long_window = holds.max(self.latest_delivered);
            self.full_bw_reached = true;
            self.full_bw_now = true;
        }
        let expected = self.expected.filter(|_| self.state == BbrState::Startup);
        if expected.is_some_and(|expected| self.max_bw.get() >= EXPECTED * expected) {
            self.full_bw_reached = true;
            self.full_bw_now = true;
            self.is_as_expected = true;
        }
        if self.state == BbrState::Startup && self.full_bw_reached {
            self.enter(BbrState::Drain);
            self.drain_round = self.round;
        }
    }

    pub(super) fn check_drain_done(&mut self, now: Instant) {
        let done = || self.in_flight <= self.target(1.0);
        if self.state == BbrState::Drain && (done() || self.round > self.drain_round + DRAIN_ROUNDS)
        {
            self.start_down(now);
        }
    }

    /// Updates the shortest round-trip time (5.3.4.3).
    pub(super) fn update_min_rtt(&mut self, now: Instant, sample: &Sample) {
        let age = now.saturating_duration_since(self.probe_rtt_min_at);
        self.probe_rtt_expired = age > PROBE_RTT_INTERVAL;
        if sample.rtt < self.probe_rtt_min || self.probe_rtt_expired {
            self.probe_rtt_min = sample.rtt;
            self.probe_rtt_min_at = now;
        } else if sample.rtt <= self.probe_rtt_min + self.probe_rtt_min / CONFIRMS {
            self.probe_rtt_min_at = now;
            if self.probe_rtt_min == self.min_rtt {
                self.min_rtt_at = now;
            }
        }
        let old = now.saturating_duration_since(self.min_rtt_at) > MIN_RTT_AGE;
        if self.probe_rtt_min < self.min_rtt || old {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_min_at;
        }
    }

    /// Enters, works and leaves ProbeRTT (5.3.4.3).
    pub(super) fn check_probe_rtt(&mut self, now: Instant, sample: &Sample) {
        if self.state == BbrState::ProbeRtt {
            if self.probe_rtt_done.is_none() && self.in_flight <= self.probe_rtt_window() {
                self.probe_rtt_done = Some(now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.start_round();
            } else if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.end_probe_rtt_if_done(now);
                }
            }
        } else if self.probe_rtt_expired && !self.idle_restart {
            self.window_before_probe_rtt = self.window;
            self.enter(BbrState::ProbeRtt);
            self.probe_rtt_done = None;
            self.stopping = true;
            self.start_round();
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.holds(self.bw, self.probe_rtt_gain()).max(self.least())
    }

    pub(super) fn end_probe_rtt_if_done(&mut self, now: Instant) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_at = now;
        self.window = self.window.max(self.window_before_probe_rtt);
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(now);
            self.enter(BbrState::Cruise);
        } else {
            self.enter(BbrState::Startup);
        }
    }
}
