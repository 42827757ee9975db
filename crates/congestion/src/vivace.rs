//! PCC Vivace-Latency (Dong et al., *PCC Vivace: Online-Learning Congestion Control*, NSDI 2018):
//! climbs the gradient of a utility of rate, loss and growth of the round-trip time. Sections are
//! the paper's.
//!
//! It differs from the paper in these points:
//!
//! - The first rate is that of RFC 9002's initial window, and where ASes announce the path's
//!   bandwidth, the rate grows gently beyond it in slow start.
//! - Slow start ends with the rate at which its last packets arrived.
//! - The tolerance for growth of the round-trip time is 0.05, not 0.01: beside CUBIC, whose window
//!   grows all the time, 0.01 leaves Vivace less than a tenth of a link, and 0.05 about a half.
//! - A round-trip time that falls is no merit. The queue of an earlier interval may drain in it, and
//!   the next step down would look good: a path of 194 ms would lose a tenth of its rate.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::announced::Announced;
use super::line::Slope;
use super::monitor::Outcome;
use super::pcc::{Learner, Plan, bounded};

/// Bytes per second of a Mbit/s, the unit of the paper's parameters.
const MEGABIT: f64 = 125_000.0;
/// The utility x^t − b·x·(dRTT/dT) − c·x·L (3.1, 4.1).
const EXPONENT: f64 = 0.9;
const LATENCY: f64 = 900.0;
const LOSS: f64 = 11.35;
/// Rates that are compared are higher and lower by this part (4.1, ε).
const PROBE_STEP: f64 = 0.05;
/// Mbit/s for each unit of the gradient (4.1, θ0).
const CONVERSION: f64 = 1.0;
/// The confidence grows by one with each step in the same direction, and by two after this many
/// (4.2).
const SLOW_STEPS: f64 = 3.0;
/// Most that a step changes the rate, as a part of it: the first bound, and what each step beyond
/// it adds (4.2, ω0 and δ).
const BOUND: f64 = 0.05;
const MORE_BOUND: f64 = 0.1;
/// A growth of the round-trip time below this is taken for none (5). It is what trials of a higher rate
/// add on a full link.
const TOLERANCE: f64 = 0.05;
/// One below this many standard errors is, too.
const ERRORS: f64 = 2.0;
/// Length of an interval in round trips (5).
const LENGTH: f64 = 1.0;

/// The state of the learner. Rates are in bytes per second.
#[derive(Debug)]
pub(crate) struct Vivace {
    packet: f64,
    announced: Announced,
    random: fastrand::Rng,
    phase: Phase,
    /// Counts phases: intervals of an earlier one say nothing any more.
    epoch: u64,
    /// The rate that the next step starts from; 0 before the first.
    rate: f64,
    /// The direction of the last step, and how many had it.
    direction: f64,
    steps: f64,
    /// By how many times `MORE_BOUND` the bound is extended.
    extended: f64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Slow start: doubles the rate until the utility falls from this.
    Starting { last: f64 },
    /// Compares a higher and a lower rate, in a random order.
    Trying {
        higher_first: bool,
        begun: usize,
        tried: [Option<Tried>; 2],
    },
}

/// A rate in Mbit/s and its utility.
#[derive(Debug, Clone, Copy)]
struct Tried {
    rate: f64,
    utility: f64,
}

/// What an interval is for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Step {
    epoch: u64,
    kind: IntervalKind,
}

#[derive(Debug, Clone, Copy, Default)]
enum IntervalKind {
    /// Nothing: it is sent while results are awaited.
    #[default]
    Wait,
    Start,
    Trial(usize),
}

/// What growth of the round-trip time counts (5).
fn counts(slope: Option<Slope>) -> f64 {
    match slope {
        Some(slope) if slope.value >= TOLERANCE.max(ERRORS * slope.error) => slope.value,
        _ => 0.0,
    }
}

/// The utility of a rate in Mbit/s.
fn utility(rate: f64, growth: f64, loss: f64) -> f64 {
    rate.powf(EXPONENT) - LATENCY * rate * growth - LOSS * rate * loss
}

impl Vivace {
    /// For packets of `packet` bytes.
    pub(crate) fn new(packet: u64, announced: Announced, random: fastrand::Rng) -> Self {
        Self {
            packet: packet as f64,
            announced,
            random,
            phase: Phase::Starting { last: 0.0 },
            epoch: 0,
            rate: 0.0,
            direction: 0.0,
            steps: 0.0,
            extended: 0.0,
        }
    }

    fn enter(&mut self, phase: Phase, rate: f64) {
        self.phase = phase;
        self.epoch += 1;
        self.rate = bounded(rate, self.packet);
    }

    fn trying(&mut self) -> Phase {
        Phase::Trying {
            higher_first: self.random.bool(),
            begun: 0,
            tried: [None; 2],
        }
    }

    /// What the next interval is for, and its rate.
    fn plan(&mut self) -> (IntervalKind, f64) {
        match &mut self.phase {
            Phase::Starting { .. } => {
                let rate = self.rate;
                self.rate = self.announced.grow(rate);
                (IntervalKind::Start, rate)
            }
            Phase::Trying { begun: 2, .. } => (IntervalKind::Wait, self.rate),
            Phase::Trying {
                higher_first,
                begun,
                ..
            } => {
                let at = *begun;
                *begun += 1;
                let part = match *higher_first == (at == 0) {
                    true => PROBE_STEP,
                    false => -PROBE_STEP,
                };
                (IntervalKind::Trial(at), self.rate * (1.0 + part))
            }
        }
    }

    /// Takes a step along the gradient, within the bound (4.2).
    fn step(&mut self, one: Tried, other: Tried) {
        let gradient = (one.utility - other.utility) / (one.rate - other.rate);
        if gradient.is_nan() {
            return;
        }
        let direction = gradient.signum();
        if direction == self.direction {
            self.steps += 1.0;
        } else {
            (self.direction, self.steps, self.extended) = (direction, 1.0, 0.0);
        }
        let confidence = match self.steps <= SLOW_STEPS {
            true => self.steps,
            false => 2.0 * self.steps - SLOW_STEPS,
        };
        let wanted = (CONVERSION * MEGABIT * gradient * confidence / self.rate).abs();
        let bound = BOUND + self.extended * MORE_BOUND;
        let change = if wanted > bound {
            self.extended += 1.0;
            bound
        } else {
            self.extended = ((wanted - BOUND) / MORE_BOUND).ceil().max(0.0);
            wanted
        };
        self.rate = bounded(self.rate * (1.0 + direction * change).max(0.5), self.packet);
    }
}

impl Learner for Vivace {
    type Step = Step;

    fn next(&mut self, rtt: Duration) -> Plan<Step> {
        if self.rate == 0.0 {
            let window = self.announced.initial_window(self.packet as u64) as f64;
            self.rate = bounded(window / rtt.as_secs_f64().max(1e-6), self.packet);
        }
        let (kind, rate) = self.plan();
        let step = Step {
            epoch: self.epoch,
            kind,
        };
        Plan {
            step,
            rate,
            length: LENGTH,
        }
    }

    fn judge(&mut self, outcome: &Outcome<Step>) -> bool {
        let Step { epoch, kind } = outcome.step;
        if epoch != self.epoch || matches!(kind, IntervalKind::Wait) {
            return false;
        }
        let growth = counts(outcome.gradient);
        let now = Tried {
            rate: outcome.rate / MEGABIT,
            utility: utility(outcome.rate / MEGABIT, growth, outcome.loss),
        };
        // What arrived: the rest was lost or queued.
        let arrived = outcome.rate * (1.0 - outcome.loss) / (1.0 + growth);
        match &mut self.phase {
            Phase::Starting { last } if now.utility > *last => {
                *last = now.utility;
                if !outcome.limited {
                    return false;
                }
                // The rate is not to grow beyond what is used.
                let phase = self.phase;
                self.enter(phase, outcome.planned);
            }
            Phase::Starting { .. } => {
                let phase = self.trying();
                self.enter(phase, arrived);
            }
            Phase::Trying { tried, .. } => {
                let IntervalKind::Trial(at) = kind else {
                    return false;
                };
                tried[at] = Some(now);
                let [Some(one), Some(other)] = *tried else {
                    return false;
                };
                if outcome.limited {
                    self.rate = self.rate.min(outcome.planned / (1.0 - PROBE_STEP));
                } else {
                    self.step(one, other);
                }
                let phase = self.trying();
                self.enter(phase, self.rate);
            }
        }
        true
    }

    fn restart(&mut self) {
        self.enter(Phase::Starting { last: 0.0 }, self.rate / 2.0);
        (self.direction, self.steps, self.extended) = (0.0, 0.0, 0.0);
    }

    fn name(&self) -> &'static str {
        "vivace"
    }
}
