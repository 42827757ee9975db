//! How much may be in flight (5.6.4).

use std::time::Duration;

use super::{Bbr, BbrState, HEADROOM, MIN_WINDOW_PACKETS, SPREAD};
use crate::delivery::Sample;
use crate::quantum::quantum;

impl Bbr {
    /// What the path holds at `bandwidth`, times `gain`, in bytes.
    pub(super) fn holds(&self, bandwidth: f64, gain: f64) -> u64 {
        if self.rtt.min == Duration::MAX {
            return self.sending.window;
        }
        (gain * bandwidth * self.rtt.min.as_secs_f64()) as u64
    }

    pub(super) fn least(&self) -> u64 {
        MIN_WINDOW_PACKETS * self.mtu
    }

    /// A window with room for the batches in which packets are sent and acknowledged (5.6.4.2).
    pub(super) fn with_batches(&self, window: u64) -> u64 {
        let batches = 3 * quantum(self.sending.rate, self.mtu);
        let more = match self.state {
            BbrState::Up => 2 * self.mtu,
            _ => 0,
        };
        window.max(batches).max(self.least()) + more
    }

    /// The window that a gain over the estimated bandwidth-delay product means.
    pub(super) fn target(&self, gain: f64) -> u64 {
        self.with_batches(self.holds(self.bandwidth.max.get(), gain))
    }

    /// Sets the window (5.6.4.6).
    pub(super) fn set_window(&mut self, sample: &Sample) {
        let gain = self.bound_gain();
        let most = self.holds(self.bandwidth.max.get(), gain) + self.bandwidth.aggregation.extra();
        let most = self.with_batches(most);
        let grown = self.sending.window + sample.acked;
        if self.full.reached {
            self.sending.window = grown.min(most);
        } else if self.sending.window < most {
            self.sending.window = grown;
        }
        self.sending.window = self.sending.window.max(self.least());
        if self.state == BbrState::ProbeRtt {
            self.sending.window = self.sending.window.min(self.probe_rtt_window());
        }
        let bound = match self.state {
            BbrState::Startup | BbrState::Drain => u64::MAX,
            BbrState::ProbeRtt | BbrState::Cruise => self.with_headroom(),
            BbrState::Down | BbrState::Refill | BbrState::Up => self.bounds.long_window,
        };
        let bound = bound.min(self.bounds.short_window).max(self.least());
        self.sending.window = self.sending.window.min(bound);
        self.spread();
    }

    /// The window in bandwidth-delay products. Coupled subflows build no more queue together than one
    /// flow: each has its bandwidth from its own probes, in which it takes from the others too, so
    /// that the part of each falls faster than their number grows.
    fn bound_gain(&self) -> f64 {
        match self.state {
            BbrState::Startup | BbrState::Drain | BbrState::ProbeRtt => self.sending.window_gain,
            BbrState::Up if self.coupled.free > 0.0 => self.sending.window_gain,
            _ => self
                .sending
                .window_gain
                .min(1.0 + (self.sending.window_gain - 1.0) / self.coupled.share.powi(2)),
        }
    }

    /// Spreads a window that the long-term bound limits over the round trip while probing.
    fn spread(&mut self) {
        if self.state == BbrState::Up
            && self.long_window().is_some()
            && self.rtt.min < Duration::MAX
        {
            let round = self.rtt.min.as_secs_f64().max(1e-6);
            let spread = SPREAD * self.sending.window as f64 / round;
            self.sending.rate = self.sending.rate.min(spread);
        }
    }

    /// Most in flight while cruising (5.3.3.6).
    pub(super) fn with_headroom(&self) -> u64 {
        let Some(bound) = self.long_window() else {
            return u64::MAX;
        };
        let headroom = ((HEADROOM * bound as f64) as u64).max(self.mtu);
        bound.saturating_sub(headroom).max(self.least())
    }

    /// The long-term bound, if there is one.
    pub(super) fn long_window(&self) -> Option<u64> {
        (self.bounds.long_window < u64::MAX).then_some(self.bounds.long_window)
    }
}
