//! The shortest round-trip time, and ProbeRTT, which measures it (5.3.4).

use std::time::{Duration, Instant};

use super::{Bbr, BbrState, PROBE_RTT_WINDOW_GAIN};
use crate::delivery::Sample;

/// Age at which a shortest round-trip time is measured again (5.3.4.3).
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
/// Time between two ProbeRTT phases, and how long each lasts.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(120);
/// A round-trip time longer than the shortest by at most this part confirms it.
const CONFIRMS: u32 = 32;

/// The shortest round-trip time.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundTrip {
    /// The shortest in [`MIN_RTT_AGE`], and when it was measured or confirmed.
    pub(super) min: Duration,
    min_at: Instant,
    /// The same in [`PROBE_RTT_INTERVAL`].
    recent: Duration,
    recent_at: Instant,
    /// The latter is to be measured again.
    is_old: bool,
}

impl RoundTrip {
    pub(super) fn new(now: Instant, min: Duration) -> Self {
        Self {
            min,
            min_at: now,
            recent: min,
            recent_at: now,
            is_old: false,
        }
    }

    /// Handles a measurement (5.3.4.3).
    pub(super) fn update(&mut self, now: Instant, rtt: Duration) {
        let age = now.saturating_duration_since(self.recent_at);
        self.is_old = age > PROBE_RTT_INTERVAL;
        if rtt < self.recent || self.is_old {
            self.recent = rtt;
            self.recent_at = now;
        } else if rtt <= self.recent + self.recent / CONFIRMS {
            self.recent_at = now;
            if self.recent == self.min {
                self.min_at = now;
            }
        }
        let old = now.saturating_duration_since(self.min_at) > MIN_RTT_AGE;
        if self.recent < self.min || old {
            self.min = self.recent;
            self.min_at = self.recent_at;
        }
    }
}

/// The state of ProbeRTT.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProbeRtt {
    /// When it ends, once the window is small, and a round has passed.
    done: Option<Instant>,
    round_done: bool,
    window_before: u64,
}

impl Bbr {
    /// The window in ProbeRTT, in bandwidth-delay products. Coupled subflows see the queue at the same
    /// times, so each gives way by its share of what one flow would.
    pub(super) fn probe_rtt_gain(&self) -> f64 {
        1.0 - (1.0 - PROBE_RTT_WINDOW_GAIN) / self.coupled.share
    }

    /// Enters, works and leaves ProbeRTT (5.3.4.3).
    pub(super) fn check_probe_rtt(&mut self, now: Instant, sample: &Sample) {
        if self.state == BbrState::ProbeRtt {
            if self.probe_rtt.done.is_none() && self.flight.bytes <= self.probe_rtt_window() {
                self.probe_rtt.done = Some(now + PROBE_RTT_TIME);
                self.probe_rtt.round_done = false;
                self.rounds.start(self.flight.delivered);
            } else if self.probe_rtt.done.is_some() {
                self.probe_rtt.round_done |= self.rounds.starts;
                if self.probe_rtt.round_done {
                    self.end_probe_rtt_if_done(now);
                }
            }
        } else if self.rtt.is_old && !self.flight.after_idle {
            self.probe_rtt.window_before = self.sending.window;
            self.enter(BbrState::ProbeRtt);
            self.probe_rtt.done = None;
            self.cycle.stopping = true;
            self.rounds.start(self.flight.delivered);
        }
        if sample.delivered > 0 {
            self.flight.after_idle = false;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.holds(self.bandwidth.used, self.probe_rtt_gain())
            .max(self.least())
    }

    pub(super) fn end_probe_rtt_if_done(&mut self, now: Instant) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.rtt.recent_at = now;
        self.sending.window = self.sending.window.max(self.probe_rtt.window_before);
        self.bounds.reset_short_term();
        if self.full.reached {
            self.start_down(now);
            self.enter(BbrState::Cruise);
        } else {
            self.enter(BbrState::Startup);
        }
    }
}
