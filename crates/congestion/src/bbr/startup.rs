//! Startup and Drain: how the bandwidth is found (5.3.1, 5.3.2).

use std::time::Instant;

use super::{Bbr, BbrState};
use crate::announced::Announced;
use crate::delivery::Sample;

/// Growth of the bandwidth in a round below which it is full, and after how many rounds (5.3.1.2).
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The part of the expected bandwidth with which Startup ends.
const EXPECTED: f64 = 0.95;
/// Runs of lost packets in a round from which on they end Startup (5.3.1.3).
const STARTUP_RUNS: u32 = 6;
/// Rounds after which Drain ends in any case (5.3.2).
const DRAIN_ROUNDS: u64 = 3;

/// The state of Startup and Drain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Startup {
    /// Bytes per second that a hint makes one expect.
    pub(super) expected: Option<f64>,
    /// Startup has ended with what was expected: there may be more.
    pub(super) is_as_expected: bool,
    /// The round in which Drain began.
    drain_round: u64,
}

impl Startup {
    /// Startup on a path that announces `announced`, of which `bandwidth` bytes per second have arrived.
    pub(super) fn new(announced: Announced, bandwidth: f64) -> Self {
        let expected = announced.hint().map(|hint| hint.bandwidth);
        Self {
            // More than that has arrived: it is of no use.
            expected: expected.filter(|expected| bandwidth < EXPECTED * expected),
            is_as_expected: false,
            drain_round: 0,
        }
    }
}

/// Whether the bandwidth still grows, in Startup and in Up (5.3.1.2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FullBandwidth {
    /// It has stopped growing once.
    pub(super) reached: bool,
    /// It has stopped growing since it was last reset.
    pub(super) now: bool,
    /// The bandwidth from which it should grow, and rounds in which it did not.
    pub(super) rate: f64,
    rounds: u32,
}

impl FullBandwidth {
    /// Notes that it has stopped growing.
    pub(super) fn reach(&mut self) {
        self.reached = true;
        self.now = true;
    }

    /// Waits again until it stops growing.
    pub(super) fn reset(&mut self) {
        self.rate = 0.0;
        self.rounds = 0;
        self.now = false;
    }

    /// Handles the rate of a round.
    fn update(&mut self, rate: f64) {
        if rate >= self.rate * GROWTH {
            self.reset();
            self.rate = rate;
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }
}

impl Bbr {
    /// Finds out whether the bandwidth has stopped growing (5.3.1.2).
    pub(super) fn check_full_bandwidth(&mut self, sample: &Sample) {
        if self.full.now || !self.rounds.starts || sample.app_limited {
            return;
        }
        self.full.update(sample.rate.unwrap_or_default());
    }

    /// Ends Startup when the bandwidth is full, or many packets are lost (5.3.1.3).
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        let many = self.loss_round.starts
            && self.loss_round.losses.runs >= STARTUP_RUNS
            && self.is_too_much(sample.lost, sample.in_flight_then);
        if !self.full.reached && many {
            let holds = self.holds(self.bandwidth.max.get(), 1.0);
            self.bounds.long_window = holds.max(self.loss_round.delivered);
            self.full.reach();
        }
        let expected = self
            .startup
            .expected
            .filter(|_| self.state == BbrState::Startup);
        if expected.is_some_and(|expected| self.bandwidth.max.get() >= EXPECTED * expected) {
            self.full.reach();
            self.startup.is_as_expected = true;
        }
        if self.state == BbrState::Startup && self.full.reached {
            self.enter(BbrState::Drain);
            self.startup.drain_round = self.rounds.count;
        }
    }

    pub(super) fn check_drain_done(&mut self, now: Instant) {
        let done = || self.flight.bytes <= self.target(1.0);
        if self.state == BbrState::Drain
            && (done() || self.rounds.count > self.startup.drain_round + DRAIN_ROUNDS)
        {
            self.start_down(now);
        }
    }
}
