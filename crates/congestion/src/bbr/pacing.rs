//! How fast to send (5.6.2).

use std::time::Duration;

use super::{Bbr, BbrState, MARGIN, STARTUP_GAIN, UP_GAIN, WINDOW_GAIN};
use crate::announced::default_window;
use crate::round::grown;

/// What may be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sending {
    /// Bytes in flight.
    pub(super) window: u64,
    /// Bytes per second.
    pub(super) rate: f64,
    /// What of the bandwidth is used, and the window in bandwidth-delay products.
    pub(super) gain: f64,
    pub(super) window_gain: f64,
}

impl Sending {
    /// What Startup begins with.
    pub(super) fn new(window: u64) -> Self {
        Self {
            window,
            rate: 0.0,
            gain: STARTUP_GAIN,
            window_gain: WINDOW_GAIN,
        }
    }
}

impl Bbr {
    /// The pacing rate for the window, when `rtt` is the round-trip time (5.6.2). Before anything is
    /// delivered, a first window that an announcement allows is spread over the round trip; the
    /// default one is sent faster, as the draft has it.
    pub(super) fn first_pacing_rate(&self, rtt: Duration) -> f64 {
        let rtt = rtt.as_secs_f64().max(1e-6);
        let nominal = self.sending.window as f64 / rtt;
        if self.bandwidth.used == 0.0 {
            let default = default_window(self.mtu).min(self.sending.window) as f64 / rtt;
            return nominal.max(self.startup_gain(default) * default);
        }
        let bandwidth = self.bandwidth.used.max(nominal);
        self.startup_gain(bandwidth) * bandwidth
    }

    pub(super) fn gain(&self) -> f64 {
        match self.state {
            BbrState::Startup => self.startup_gain(self.bandwidth.used),
            BbrState::Up if grown(self.rtt.min, self.flight.rtt) => {
                1.0 + (UP_GAIN - 1.0) / self.coupled.share
            }
            BbrState::Up if self.bandwidth.used > 0.0 => self
                .sending
                .gain
                .max(self.coupled.free / self.bandwidth.used),
            _ => self.sending.gain,
        }
    }

    /// The gain of Startup from `bandwidth` on: full up to what is expected, and none beyond it.
    fn startup_gain(&self, bandwidth: f64) -> f64 {
        match self.startup.expected {
            Some(expected) if bandwidth > 0.0 => (expected / bandwidth).clamp(1.0, STARTUP_GAIN),
            _ => STARTUP_GAIN,
        }
    }

    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth.used * MARGIN;
        if self.full.reached || rate > self.sending.rate {
            self.sending.rate = rate.max(self.mtu as f64);
        }
    }
}
