//! PCC Allegro (Dong et al., *PCC: Re-architecting Congestion Control for Consistent High
//! Performance*, NSDI 2015): compares rates by a utility of throughput and loss. Sections are the
//! paper's.
//!
//! It differs from the paper in two points: the first rate is that of RFC 9002's initial window, not
//! of two packets, because an interval has ten packets at least; and where ASes announce the path's
//! bandwidth, the rate grows gently beyond it in the starting phase.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::announced::Announced;
use super::monitor::Outcome;
use super::pcc::{Learner, Plan, bounded};

/// Steps of the rate, as a part of it (3.2, ε_min and ε_max).
const MIN_STEP: f64 = 0.01;
const MAX_STEP: f64 = 0.05;
/// Length of an interval in round trips: a random one between these (3.1).
const LENGTH: (f64, f64) = (1.7, 2.2);
/// Losses beyond this part make a rate worthless (2.2).
const LOSS_THRESHOLD: f64 = 0.05;
/// How sharply they do (2.2, α).
const SHARPNESS: f64 = 100.0;
/// Trials of a decision, in pairs of a higher and a lower rate (3.2).
const TRIALS: usize = 4;

/// In what Hercules differs from the paper (003; `congestion_control.c` of its public version).
/// Hercules also sends 1000 packets per second at least, which this does not: a path of 1 Mbit/s
/// would be lost to everybody.
#[derive(Debug, Clone, Copy)]
struct Settings {
    /// The next interval waits for the result of the last one.
    waits: bool,
    /// Packets that the first rate sends in a round trip, without an announcement.
    first: Option<f64>,
    /// The starting phase ends with what arrived, not with the rate before.
    keeps_arrived: bool,
    /// Intervals at the rate itself before each decision.
    settles: bool,
    /// Fewest packets by which rates that are compared differ in an interval.
    step: f64,
    /// A rate adjustment that failed is taken back.
    reverts: bool,
    name: &'static str,
}

/// As the paper has it.
const PAPER_SETTINGS: Settings = Settings {
    waits: false,
    first: None,
    keeps_arrived: false,
    settles: false,
    step: 0.0,
    reverts: true,
    name: "pcc",
};
/// As Hercules has it.
const HERCULES: Settings = Settings {
    waits: true,
    first: Some(1460.0),
    keeps_arrived: true,
    settles: true,
    step: 10.0,
    reverts: false,
    name: "pcc-hercules",
};

/// The state of the learner. Rates are in bytes per second.
#[derive(Debug)]
pub(crate) struct Allegro {
    settings: Settings,
    packet: f64,
    announced: Announced,
    random: fastrand::Rng,
    phase: Phase,
    /// Counts phases: intervals of an earlier one say nothing any more.
    epoch: u64,
    /// The rate that the next step starts from; 0 before the first.
    rate: f64,
    /// An interval is under way whose result the next one waits for.
    waiting: bool,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Doubles the rate until the utility falls.
    Starting { last: Tried },
    /// Tries rates a little higher and lower.
    Deciding {
        /// ε.
        step: f64,
        settled: bool,
        /// Trials begun, and those with a result.
        begun: usize,
        done: usize,
        trials: [Tried; TRIALS],
    },
    /// Moves on in one direction with growing steps until the utility falls.
    Adjusting {
        direction: f64,
        steps: u32,
        last: Tried,
    },
}

/// A rate and its utility.
#[derive(Debug, Clone, Copy, Default)]
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
    Settle,
    Trial(usize),
    /// The starting phase or rate adjustment.
    Move,
}

/// The utility of a rate of which a part is lost (2.2).
fn utility(rate: f64, loss: f64) -> f64 {
    let sigmoid = 1.0 / (1.0 + (SHARPNESS * (loss - LOSS_THRESHOLD)).exp());
    rate * (1.0 - loss) * sigmoid - rate * loss
}

impl Phase {
    fn deciding(step: f64) -> Self {
        Self::Deciding {
            step,
            settled: false,
            begun: 0,
            done: 0,
            trials: Default::default(),
        }
    }
}

impl Allegro {
    /// As the paper has it, for packets of `packet` bytes.
    pub(crate) fn published(packet: u64, announced: Announced, random: fastrand::Rng) -> Self {
        Self::new(PAPER_SETTINGS, packet, announced, random)
    }

    /// As Hercules runs it.
    pub(crate) fn hercules(packet: u64, announced: Announced, random: fastrand::Rng) -> Self {
        Self::new(HERCULES, packet, announced, random)
    }

    fn new(settings: Settings, packet: u64, announced: Announced, random: fastrand::Rng) -> Self {
        Self {
            settings,
            packet: packet as f64,
            announced,
            random,
            phase: Phase::Starting {
                last: Tried::default(),
            },
            epoch: 0,
            rate: 0.0,
            waiting: false,
        }
    }

    fn enter(&mut self, phase: Phase, rate: f64) {
        self.phase = phase;
        self.epoch += 1;
        self.rate = bounded(rate, self.packet);
        self.waiting = false;
    }

    /// The rate `part` above `rate`, or below it.
    fn moved(&self, rate: f64, part: f64, interval: Duration) -> f64 {
        let least = self.settings.step * self.packet / interval.as_secs_f64().max(1e-6);
        let more = (rate * part).abs().max(least).copysign(part);
        // The least step must not stop a slow subflow.
        (rate + more).max(rate / 2.0)
    }

    /// What the next interval is for, and its rate.
    fn plan(&mut self, interval: Duration) -> (IntervalKind, f64) {
        if self.waiting {
            return (IntervalKind::Wait, self.rate);
        }
        self.waiting = self.settings.waits;
        match self.phase {
            Phase::Starting { .. } => {
                let rate = self.rate;
                self.rate = self.announced.grow(rate);
                (IntervalKind::Move, rate)
            }
            Phase::Deciding { settled: false, .. } if self.settings.settles => {
                (IntervalKind::Settle, self.rate)
            }
            Phase::Deciding { begun: TRIALS, .. } => (IntervalKind::Wait, self.rate),
            Phase::Deciding { step, begun, .. } => self.trial(step, begun, interval),
            Phase::Adjusting {
                direction, steps, ..
            } => {
                let part = direction * f64::from(steps) * MIN_STEP;
                self.rate = bounded(self.moved(self.rate, part, interval), self.packet);
                if let Phase::Adjusting { steps, .. } = &mut self.phase {
                    *steps += 1;
                }
                (IntervalKind::Move, self.rate)
            }
        }
    }

    /// Begins a trial. The order within a pair is random.
    fn trial(&mut self, step: f64, at: usize, interval: Duration) -> (IntervalKind, f64) {
        let rate = self.rate;
        let part = if self.random.bool() { step } else { -step };
        let first = self.moved(rate, part, interval);
        let second = self.moved(rate, -part, interval);
        if let Phase::Deciding { begun, trials, .. } = &mut self.phase {
            *begun += 1;
            if at.is_multiple_of(2) {
                (trials[at].rate, trials[at + 1].rate) = (first, second);
            }
            return (IntervalKind::Trial(at), trials[at].rate);
        }
        (IntervalKind::Wait, rate)
    }

    /// Decides once all trials have results (3.2): all pairs must agree.
    fn decide(&mut self, step: f64, trials: [Tried; TRIALS]) {
        let votes = trials.chunks(2).map(|pair| {
            let (higher, lower) = match pair[0].rate > pair[1].rate {
                true => (pair[0], pair[1]),
                false => (pair[1], pair[0]),
            };
            match higher.utility.total_cmp(&lower.utility) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.0,
                std::cmp::Ordering::Less => -1.0,
            }
        });
        let sum: f64 = votes.sum();
        if sum == 0.0 {
            let wider = (step + MIN_STEP).min(MAX_STEP);
            return self.enter(Phase::deciding(wider), self.rate);
        }
        let direction = sum.signum();
        let wins = |one: &&Tried| (one.rate - self.rate) * direction > 0.0;
        let Some(last) = trials.iter().rev().find(wins).copied() else {
            return self.enter(Phase::deciding(step), self.rate);
        };
        let adjusting = Phase::Adjusting {
            direction,
            steps: 1,
            last,
        };
        self.enter(adjusting, last.rate);
    }

    /// Learns from an interval in which less was sent than planned: the rate is not to grow beyond
    /// what is used.
    fn judge_limited(&mut self, kind: IntervalKind, planned: f64, loss: f64) -> bool {
        let rate = match loss > LOSS_THRESHOLD {
            true => planned * (1.0 - loss),
            false => planned,
        };
        match self.phase {
            Phase::Starting { last } if loss <= LOSS_THRESHOLD => {
                self.enter(Phase::Starting { last }, rate);
            }
            Phase::Deciding { step, .. } => {
                let base = match kind {
                    IntervalKind::Trial(_) if loss <= LOSS_THRESHOLD => self.rate,
                    _ => rate,
                };
                self.enter(Phase::deciding(step), base);
            }
            _ => self.enter(Phase::deciding(MIN_STEP), rate),
        }
        true
    }
}

impl Learner for Allegro {
    type Step = Step;

    fn next(&mut self, rtt: Duration) -> Plan<Step> {
        if self.rate == 0.0 {
            let window = self.announced.initial_window(self.packet as u64) as f64;
            let window = match self.settings.first {
                Some(packets) if self.announced.bandwidth.is_none() => packets * self.packet,
                _ => window,
            };
            let rate = window / rtt.as_secs_f64().max(1e-6);
            self.rate = bounded(rate, self.packet);
        }
        let length = LENGTH.0 + (LENGTH.1 - LENGTH.0) * self.random.f64();
        let (kind, rate) = self.plan(rtt.mul_f64(length));
        let step = Step {
            epoch: self.epoch,
            kind,
        };
        Plan { step, rate, length }
    }

    fn judge(&mut self, outcome: &Outcome<Step>) -> bool {
        let Step { epoch, kind } = outcome.step;
        if epoch != self.epoch || matches!(kind, IntervalKind::Wait) {
            return false;
        }
        if outcome.limited {
            return self.judge_limited(kind, outcome.planned, outcome.loss);
        }
        self.waiting = false;
        let now = Tried {
            rate: outcome.rate,
            utility: utility(outcome.rate, outcome.loss),
        };
        match &mut self.phase {
            Phase::Starting { last } if now.utility > last.utility => *last = now,
            Phase::Starting { last } => {
                let rate = match self.settings.keeps_arrived || last.rate == 0.0 {
                    true => now.rate * (1.0 - outcome.loss),
                    false => last.rate,
                };
                self.enter(Phase::deciding(MIN_STEP), rate);
                return true;
            }
            Phase::Deciding {
                step,
                settled,
                done,
                trials,
                ..
            } => {
                let IntervalKind::Trial(at) = kind else {
                    *settled = true;
                    return self.settings.waits;
                };
                trials[at] = now;
                *done += 1;
                if *done == TRIALS {
                    let (step, trials) = (*step, *trials);
                    self.decide(step, trials);
                    return true;
                }
            }
            Phase::Adjusting { last, .. } if now.utility > last.utility => *last = now,
            Phase::Adjusting { last, .. } => {
                let rate = match self.settings.reverts {
                    true => last.rate,
                    false => now.rate,
                };
                self.enter(Phase::deciding(MIN_STEP), rate);
                return true;
            }
        }
        self.settings.waits
    }

    fn restart(&mut self) {
        self.enter(
            Phase::Starting {
                last: Tried::default(),
            },
            self.rate / 2.0,
        );
    }

    fn name(&self) -> &'static str {
        self.settings.name
    }
}
