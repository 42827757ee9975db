//! Bounds of bandwidth and window that losses have shown (5.5.10.3).

use super::{BETA, Bbr, BbrState};
use crate::delivery::Sample;

/// Bounds of bandwidth and window, in bytes per second and bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Bounds by recent losses, until the next probe.
    pub(super) short_bw: f64,
    pub(super) short_window: u64,
    /// Most in flight that the path takes without many losses.
    pub(super) long_window: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            short_bw: f64::INFINITY,
            short_window: u64::MAX,
            long_window: u64::MAX,
        }
    }
}

impl Bounds {
    /// Lifts the bounds by recent losses.
    pub(super) fn reset_short_term(&mut self) {
        self.short_bw = f64::INFINITY;
        self.short_window = u64::MAX;
    }

    /// Raises each to that of `others`, where that is higher.
    pub(super) fn raise(&mut self, others: &Self) {
        self.short_bw = self.short_bw.max(others.short_bw);
        self.short_window = self.short_window.max(others.short_window);
        self.long_window = self.long_window.max(others.long_window);
    }
}

impl Bbr {
    /// The delivery signals of the present loss round (5.5.10.3).
    pub(super) fn update_latest(&mut self, sample: &Sample) {
        self.loss_round.bandwidth = self
            .loss_round
            .bandwidth
            .max(sample.rate.unwrap_or_default());
        self.loss_round.delivered = self.loss_round.delivered.max(sample.delivered);
        self.loss_round.starts = sample.prior >= self.loss_round.end;
        if self.loss_round.starts {
            self.loss_round.end = self.flight.delivered;
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
        let losses = &self.loss_round.losses;
        let delivered = self.flight.delivered.saturating_sub(losses.before);
        let many = self.is_too_much(losses.bytes, delivered + losses.bytes);
        // Until packets are acknowledged that were sent while cruising, the queue is one's own, and
        // the rate that of Down.
        let cruised =
            self.state == BbrState::Cruise && self.rounds.count >= self.cycle.cruise_round + 2;
        if losses.bytes == 0 || !(many || losses.grown && cruised) {
            return;
        }
        if self.bounds.short_bw.is_infinite() {
            self.bounds.short_bw = self.bandwidth.max.get();
        }
        if self.bounds.short_window == u64::MAX {
            self.bounds.short_window = self.sending.window;
        }
        self.bounds.short_bw = self.loss_round.bandwidth.max(BETA * self.bounds.short_bw);
        let kept = (BETA * self.bounds.short_window as f64) as u64;
        self.bounds.short_window = self.loss_round.delivered.max(kept);
    }
}
