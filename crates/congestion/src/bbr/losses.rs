//! What losses and congestion marks change (5.5.10, 5.5.11).

use std::time::Instant;

use super::bounds::Bounds;
use super::{Bbr, BbrState, LOSS_THRESHOLD};
use crate::delivery::Loss;
use crate::round::grown;

/// By how many standard deviations losses exceed what is tolerated until they are more than chance.
pub(super) const CHANCE: f64 = 2.0;

/// Losses of the present round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Losses {
    pub(super) bytes: u64,
    /// Runs of lost packets, and the number of the last one.
    pub(super) runs: u32,
    pub(super) last: u64,
    /// Some came with a longer round-trip time.
    pub(super) grown: bool,
    /// Bytes delivered before the round.
    pub(super) before: u64,
}

/// A round of losses, and what was delivered meanwhile (5.5.10.3).
#[derive(Debug, Clone, Copy)]
pub(super) struct LossRound {
    /// Most bytes per second, and most bytes, that were delivered.
    pub(super) bandwidth: f64,
    pub(super) delivered: u64,
    /// The last acknowledgement began one.
    pub(super) starts: bool,
    /// Bytes delivered when the present round ends.
    pub(super) end: u64,
    pub(super) losses: Losses,
    undo: Option<Undo>,
}

impl LossRound {
    /// Rounds that begin once `delivered` bytes are delivered.
    pub(super) fn new(delivered: u64) -> Self {
        Self {
            bandwidth: 0.0,
            delivered: 0,
            starts: false,
            end: delivered,
            losses: Losses {
                before: delivered,
                ..Losses::default()
            },
            undo: None,
        }
    }
}

/// What losses changed, in case they turn out to be spurious (5.5.11).
#[derive(Debug, Clone, Copy)]
struct Undo {
    state: BbrState,
    bounds: Bounds,
}

impl Bbr {
    /// Handles the loss of a packet (5.5.10.2).
    pub(crate) fn lost(&mut self, now: Instant, loss: &Loss) {
        if self.loss_round.losses.bytes == 0 {
            self.loss_round.end = self.flight.delivered;
            self.loss_round.undo = Some(Undo {
                state: self.state,
                bounds: self.bounds,
            });
        }
        let losses = &mut self.loss_round.losses;
        losses.runs += u32::from(losses.runs == 0 || loss.number != losses.last + 1);
        losses.last = loss.number;
        losses.bytes += loss.bytes;
        losses.grown |= grown(self.rtt.min, self.flight.rtt);
        if self.cycle.is_probing() && self.is_too_much(loss.lost, loss.in_flight_then) {
            self.probed_too_much(now, loss);
        }
    }

    /// Handles a congestion mark: as losses of a round in which a queue has grown.
    pub(crate) fn marked(&mut self) {
        if self.loss_round.losses.bytes == 0 {
            self.loss_round.end = self.flight.delivered;
        }
        self.loss_round.losses.bytes += self.mtu;
        self.loss_round.losses.grown = true;
    }

    /// Handles persistent congestion (RFC 9002, 7.6): the window starts again, the model stays.
    pub(crate) fn persistent_congestion(&mut self) {
        self.sending.window = self.least();
    }

    /// Takes back what losses did that turn out to be spurious (5.5.11.2).
    pub(crate) fn spurious(&mut self) {
        let Some(undo) = self.loss_round.undo.take() else {
            return;
        };
        self.loss_round.losses.bytes = 0;
        self.full.reset();
        self.bounds.raise(&undo.bounds);
        if self.state != BbrState::ProbeRtt && self.state != undo.state {
            match undo.state {
                BbrState::Startup => self.enter(BbrState::Startup),
                BbrState::Up => self.start_up(),
                _ => {}
            }
        }
    }
}

/// Bytes of `sent` that may be lost, in packets of `packet` bytes: a part of them, and what chance adds
/// to it.
pub(crate) fn tolerated(sent: u64, packet: u64) -> f64 {
    let part = LOSS_THRESHOLD * sent as f64;
    part + CHANCE * (part * packet as f64).sqrt()
}

impl Bbr {
    /// Bytes of `sent` that may be lost without a reaction (5.5.10.2): a part of them, and what chance
    /// adds to it.
    pub(super) fn tolerated(&self, sent: u64) -> f64 {
        tolerated(sent, self.mtu)
    }

    /// Whether `lost` of `sent` bytes are more than chance.
    pub(super) fn is_too_much(&self, lost: u64, sent: u64) -> bool {
        lost as f64 > self.tolerated(sent)
    }
}
