//! How the window grows after a loss (RFC 9438, 4).

use std::time::{Duration, Instant};

/// Packets per cubic second (RFC 9438, 5.1).
const C: f64 = 0.4;

/// The curve that the window follows from one loss to the next. Windows are in bytes.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    /// Time zero: moved on by the time in which the sender had nothing to send.
    epoch: Instant,
    idle_since: Option<Instant>,
    /// Where the curve is flat (W_max).
    plateau: f64,
    /// Seconds until the plateau (K).
    k: f64,
    /// The window of Reno at this time (W_est).
    reno: f64,
    /// The window before the loss (cwnd_prior).
    prior: f64,
    /// Packets that Reno adds per round trip to be as fast as one that halves its window.
    gain: f64,
}

impl Curve {
    /// A curve from `window` on, over `plateau`; `prior` was the window before the loss.
    pub(super) fn new(now: Instant, window: f64, plateau: f64, prior: f64, mtu: f64) -> Self {
        let kept = (window / prior).min(1.0);
        Self {
            epoch: now,
            idle_since: None,
            plateau,
            k: ((plateau - window) / mtu / C).cbrt(),
            reno: window,
            prior,
            gain: 3.0 * (1.0 - kept) / (1.0 + kept),
        }
    }

    /// The window after `bytes` more are acknowledged.
    pub(super) fn grow(
        &mut self,
        now: Instant,
        rtt: Duration,
        window: f64,
        bytes: u64,
        mtu: f64,
    ) -> f64 {
        if let Some(since) = self.idle_since.take() {
            self.epoch += now.saturating_duration_since(since);
        }
        let bytes = bytes as f64;
        let gain = if self.reno < self.prior {
            self.gain
        } else {
            1.0
        };
        self.reno += gain * mtu * bytes / window;
        let ahead = now.saturating_duration_since(self.epoch) + rtt;
        let target = self.plateau + C * (ahead.as_secs_f64() - self.k).powi(3) * mtu;
        let target = target.clamp(window, 1.5 * window);
        (window + (target - window) * bytes / window).max(self.reno.min(window + bytes))
    }

    /// The application has nothing to send: the curve pauses (RFC 9438, 5.8).
    pub(super) fn idle(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }
}
