//! Careful resume (draft-ietf-tsvwg-careful-resume): a sender that has reason to expect what a path
//! carries jumps to a part of that, and finds out before it relies on it.
//!
//! The reason is a *hint*: the bandwidth that the ASes on the path announce, less a margin, or what a train
//! of packets has shown (see [`train`](super::train)). The phases are the draft's, and one before them:
//!
//! - *Reconnaissance*: the first flight, until something of it is acknowledged. While too much of it is
//!   lost, or the application has less to send than the window allows, the hint is not used.
//! - *Train*: where nothing is announced, trains of packets show what the path carries. Their losses say
//!   nothing else. Where they show nothing, or others fill a queue, the start has no hint.
//! - *Unvalidated*: half of what the hint says is sent in one round trip, paced.
//! - *Validating*: the first packet of the jump is acknowledged. The window is what is in flight, and
//!   grows up to the hint, until all packets of the jump are acknowledged, and those of the round trip
//!   after it.
//! - *Safe Retreat*: packets were lost, or wait in a queue. The window falls to a part of what the path
//!   has carried since the jump, and the start is over. Once all packets of the jump are acknowledged or
//!   lost, the window may grow to that part of all that was carried.
//! - *Normal*: the rate control is left alone.
//!
//! It differs from the draft in these points:
//!
//! - Losses are too many only where they exceed 2 % by more than chance, as for BBR. A path that loses
//!   0.1 % at random would never see a jump of a thousand packets through.
//! - A queue that grows after the jump is a reason to retreat, too, but to nine tenths of what the path
//!   has carried: it is full. After a train others fill it, and seven tenths are left; BBR finds out in
//!   Startup, as if nothing had been shown, how much it may have in flight beside them.
//! - What the path has carried before (the draft's saved parameters) is no reason to jump: it may have
//!   been a share, or may be gone. The first train is half as fast again as that. It is a 48th of a round
//!   trip, where half of one would be lost on a path that carries less now; and it shows the rate at once
//!   if the path carries the same. If it carries more, larger trains follow, as after any other. Where lumps
//!   make a train long, the first is half as fast as that, and the second exceeds it.
//! - A packet may have waited for an acknowledgement, where they come in lumps: it waits in a queue only if
//!   its round trip is longer by more than that.
//! - In Validating the window grows by twice as much as in slow start, since packets are paced for the
//!   hint: acknowledgements that come in few batches would leave a part of the link idle.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::announced::Hint;
use super::carried::Carried;
use super::seen::{LUMP, Seen, is_too_much};
use super::train::{Train, Verdict};

/// The part of the hint to which a sender jumps (the draft's 3.2: at most half).
const JUMP: f64 = 0.5;
/// The part that is left of what the path has carried when packets are lost (the draft's 3.4), and when
/// they wait in a queue, which shows that the path is full.
const AFTER_LOSSES: f64 = 0.5;
const WITH_QUEUE: f64 = 0.9;
/// The part that is left with a queue where only a train has shown what the path carries: others fill it.
const AMONG_OTHERS: f64 = 0.7;
/// Acknowledgements that are late by up to a round trip divided by this are no sign of a queue.
const MAX_LUMP: u32 = 2;
/// Longest jump, in bytes: half of the largest window that receivers here give.
const MAX_JUMP: f64 = (128u64 << 20) as f64;
/// To how many times the hint the window grows early: acknowledgements that come in batches leave a part
/// of it unused.
const GROW: f64 = 1.25;

/// The state of a sender that may have a hint.
#[derive(Debug, Clone)]
pub(crate) struct Resume {
    hint: Option<Hint>,
    /// What the path has carried before.
    carried: Option<Carried>,
    /// Only a train has shown it.
    is_learned: bool,
    phase: Phase,
    /// Bytes delivered, lost, and in flight when it jumped.
    delivered: u64,
    lost: u64,
    in_flight: u64,
    /// The longest time within which packets were sent that one acknowledgement covered, within bounds.
    lump: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a sender has one of them, and only while it starts"
)]
enum Phase {
    Reconnaissance,
    /// A train is on its way, which shows what may be hinted at.
    Train(Train),
    Unvalidated,
    /// Packets sent until this much was delivered are of the jump; if `is_last`, of the round in which the
    /// window has grown.
    Validating {
        end: u64,
        is_last: bool,
    },
    /// So are these.
    Retreat {
        end: u64,
        kept: f64,
    },
    Normal,
}

/// What the rate control is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    /// Raise the window to this many bytes, for a train beside what is in flight.
    Train(u64),
    /// Lower the window to this many bytes, until the train is judged.
    Hold(u64),
    /// The path carries this many bytes per second: set the window to this many bytes, spread over a round
    /// trip.
    Fill(f64, u64),
    /// Raise the window to this many bytes, spread over a round trip.
    Jump(u64),
    /// Lower the window to this many bytes, which are used.
    Settle(u64),
    /// Raise the window to this many bytes; without a control of the queue, to that many at most.
    Grow(u64, u64),
    /// The start is over: lower the window to this many bytes.
    Retreat(u64),
    /// All packets of the jump are acknowledged or lost: the window may grow to this many bytes at once,
    /// which the path has shown to hold.
    Recover(u64),
}

impl Resume {
    /// A sender that has not sent anything yet.
    pub(crate) fn new(hint: Option<Hint>) -> Self {
        Self {
            hint,
            carried: None,
            is_learned: hint.is_none(),
            phase: Phase::Reconnaissance,
            delivered: 0,
            lost: 0,
            in_flight: 0,
            lump: Duration::ZERO,
        }
    }

    /// The path has carried this before.
    pub(crate) fn remember(&mut self, carried: Carried) {
        self.carried = Some(carried);
    }

    /// Whether packets of a jump are on their way.
    pub(crate) fn is_jumping(&self) -> bool {
        !matches!(self.phase, Phase::Reconnaissance | Phase::Normal)
    }

    /// What a train has shown the path to carry, in bytes per second.
    pub(crate) fn learned(&self) -> Option<f64> {
        let hint = self.hint.filter(|_| self.is_learned);
        hint.map(|hint| hint.bandwidth)
    }

    /// Whether a train may follow, or is on its way, so that acknowledgements should come soon after
    /// packets.
    pub(crate) fn is_probing(&self) -> bool {
        match self.phase {
            Phase::Reconnaissance => self.hint.is_none(),
            Phase::Train(_) => true,
            _ => false,
        }
    }

    /// Whether packets that are lost now are those of a train, whose losses say nothing but what the path
    /// carries.
    pub(crate) fn are_losses_of_train(&self) -> bool {
        match self.phase {
            Phase::Train(_) => true,
            Phase::Unvalidated => self.is_learned,
            _ => false,
        }
    }

    /// Bytes per second at which to send.
    pub(crate) fn pace(&self) -> Option<f64> {
        match self.phase {
            Phase::Train(train) => Some(train.rate()),
            _ => None,
        }
    }

    /// Ends it: the rate control has lost too much, or is another one from now on.
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Normal;
    }

    /// Handles an acknowledgement.
    pub(crate) fn acked(&mut self, seen: &Seen) -> Option<Order> {
        if self.phase == Phase::Normal {
            return None;
        }
        if seen.spread >= LUMP {
            self.lump = self.lump.max(seen.spread).min(seen.min_rtt / MAX_LUMP);
        }
        let seen = &Seen {
            lump: self.lump,
            ..*seen
        };
        if let Phase::Unvalidated | Phase::Validating { .. } = self.phase
            && !self.are_losses_of_train()
            && let Some(kept) = self.kept(seen)
        {
            let end = seen.delivered;
            self.phase = Phase::Retreat { end, kept };
            return Some(Order::Retreat(self.part_of_pipe(seen, kept)));
        }
        match self.phase {
            Phase::Normal => None,
            Phase::Reconnaissance if self.hint.is_none() => self.begin(seen),
            Phase::Reconnaissance => self.jump(seen),
            Phase::Train(train) if train.is_of(seen) => self.watch(train, seen),
            Phase::Train(_) => None,
            Phase::Retreat { end, kept } if seen.prior >= end => {
                self.phase = Phase::Normal;
                Some(Order::Recover(self.part_of_pipe(seen, kept)))
            }
            Phase::Retreat { .. } => None,
            Phase::Unvalidated if seen.prior >= self.delivered => {
                if self.is_learned {
                    // The last packets of the train are acknowledged or lost.
                    self.count_from(seen);
                }
                let end = seen.delivered;
                self.phase = Phase::Validating {
                    end,
                    is_last: false,
                };
                let used = seen.in_flight.max(self.pipe(seen));
                Some(Order::Settle(used.saturating_add(seen.acked)))
            }
            Phase::Validating { end, is_last } if seen.prior >= end => {
                self.phase = match is_last {
                    true => Phase::Normal,
                    false => Phase::Validating {
                        end: seen.delivered,
                        is_last: true,
                    },
                };
                None
            }
            Phase::Validating { is_last: false, .. } => self.grow(seen),
            Phase::Validating { .. } | Phase::Unvalidated => None,
        }
    }

    /// Sends the first train.
    fn begin(&mut self, seen: &Seen) -> Option<Order> {
        let carried = self.carried.and_then(|it| it.rate_at(seen.min_rtt));
        let Some(train) = Train::first(seen, carried) else {
            self.phase = Phase::Normal;
            return None;
        };
        (!seen.app_limited && !lost_too_much(seen)).then(|| self.send(train, seen))
    }

    fn send(&mut self, train: Train, seen: &Seen) -> Order {
        self.count_from(seen);
        self.phase = Phase::Train(train);
        Order::Train(seen.in_flight + train.bytes())
    }

    /// Handles the acknowledgement of packets of a train.
    fn watch(&mut self, mut train: Train, seen: &Seen) -> Option<Order> {
        let verdict = train.acked(seen);
        self.phase = Phase::Train(train);
        match verdict {
            Verdict::Waits => Some(Order::Hold(seen.in_flight + 2 * seen.packet)),
            Verdict::Next(next) => Some(self.send(next, seen)),
            Verdict::Carries(bandwidth) => {
                let hint = Hint { bandwidth };
                self.hint = Some(hint);
                self.count_from(seen);
                self.phase = Phase::Unvalidated;
                let window = (JUMP * hint.holds(seen.min_rtt)).min(MAX_JUMP);
                Some(Order::Fill(bandwidth, window as u64))
            }
            Verdict::Nothing => {
                // What is lost of it is no congestion. Nothing is to recover.
                let end = seen.delivered;
                self.phase = Phase::Retreat { end, kept: 0.0 };
                None
            }
        }
    }

    fn count_from(&mut self, seen: &Seen) {
        (self.delivered, self.lost) = (seen.delivered, seen.lost);
        self.in_flight = seen.in_flight;
    }

    fn jump(&mut self, seen: &Seen) -> Option<Order> {
        let hint = self.hint?;
        let window = (JUMP * hint.holds(seen.min_rtt)).min(MAX_JUMP);
        if window <= seen.window as f64 {
            self.phase = Phase::Normal;
            return None;
        }
        if seen.app_limited || lost_too_much(seen) {
            return None;
        }
        self.count_from(seen);
        self.phase = Phase::Unvalidated;
        Some(Order::Jump(window as u64))
    }

    /// Each packet of the jump that arrives lets two more be sent than the start would, up to what the
    /// hint says. They are paced, so that this makes up for acknowledgements that come in few batches.
    fn grow(&self, seen: &Seen) -> Option<Order> {
        // Packets wait for half of a lump until they are acknowledged.
        let holds = self.hint?.holds(seen.min_rtt + seen.lump / 2);
        let most = (GROW * holds).min(2.0 * MAX_JUMP) as u64;
        let window = most.min(seen.window.saturating_add(2 * seen.acked));
        (window > seen.window).then_some(Order::Grow(window, holds as u64))
    }

    /// The part that is left of what the path has carried, if what is sent is more than it carries.
    fn kept(&self, seen: &Seen) -> Option<f64> {
        let lost = seen.lost - self.lost;
        if is_too_much(lost, self.pipe(seen) + lost, seen.packet) {
            return Some(AFTER_LOSSES);
        }
        // Acknowledgements of the few packets before the jump may have waited for company.
        let waits = seen.prior >= self.delivered && seen.has_queue();
        waits.then_some(match self.is_learned {
            true => AMONG_OTHERS,
            false => WITH_QUEUE,
        })
    }

    /// What the path has shown to hold: what was in flight before the jump, and what was delivered since.
    fn pipe(&self, seen: &Seen) -> u64 {
        self.in_flight + (seen.delivered - self.delivered)
    }

    fn part_of_pipe(&self, seen: &Seen, kept: f64) -> u64 {
        (kept * self.pipe(seen) as f64) as u64
    }
}

/// Whether too much of the first flight is lost. All of it that is not acknowledged yet may still be, too.
fn lost_too_much(seen: &Seen) -> bool {
    is_too_much(seen.lost, seen.delivered + seen.lost, seen.packet)
}
