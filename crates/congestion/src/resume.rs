//! Careful resume (draft-ietf-tsvwg-careful-resume): a sender that has reason to expect what a path
//! carries jumps to a part of that, and finds out before it relies on it.
//!
//! The reason is a *hint*: the bandwidth that the ASes on the path announce, less a margin. The phases
//! are the draft's:
//!
//! - *Reconnaissance*: the first flight, until something of it is acknowledged. While too much of it is
//!   lost, or the application has less to send than the window allows, the hint is not used.
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
//!   has carried: it is full.
//! - In Validating the window grows by twice as much as in slow start, since packets are paced for the
//!   hint: acknowledgements that come in few batches would leave a part of the link idle.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::announced::Hint;
use super::bbr::tolerated;
use super::round::grown;

/// The part of the hint to which a sender jumps (the draft's 3.2: at most half).
const JUMP: f64 = 0.5;
/// The part that is left of what the path has carried when packets are lost (the draft's 3.4), and when
/// they wait in a queue, which shows that the path is full.
const AFTER_LOSSES: f64 = 0.5;
const WITH_QUEUE: f64 = 0.9;
/// Longest jump, in bytes: half of the largest window that receivers here give.
const MAX_JUMP: f64 = (128u64 << 20) as f64;
/// To how many times the hint the window grows early: acknowledgements that come in batches leave a part
/// of it unused.
const GROW: f64 = 1.25;

/// The state of a sender that may have a hint.
#[derive(Debug, Clone)]
pub(crate) struct Resume {
    hint: Option<Hint>,
    phase: Phase,
    /// Bytes delivered, lost, and in flight when it jumped.
    delivered: u64,
    lost: u64,
    in_flight: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Reconnaissance,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Raise the window to this many bytes, spread over a round trip.
    Jump(u64),
    /// Lower the window to this many bytes, which are used.
    Settle(u64),
    /// Raise the window to this many bytes.
    Grow(u64),
    /// The start is over: lower the window to this many bytes.
    Retreat(u64),
    /// All packets of the jump are acknowledged or lost: the window may grow to this many bytes at once,
    /// which the path has shown to hold.
    Recover(u64),
}

/// What an acknowledgement shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Bytes delivered and lost so far, and in flight now.
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) in_flight: u64,
    /// Bytes that this acknowledgement covers first.
    pub(crate) acked: u64,
    /// Bytes that were delivered when its newest packet was sent.
    pub(crate) prior: u64,
    /// The round-trip time of its newest packet, and the shortest.
    pub(crate) rtt: Duration,
    pub(crate) min_rtt: Duration,
    /// The window, and a full packet, in bytes.
    pub(crate) window: u64,
    pub(crate) packet: u64,
    /// The application has less to send than the window allows.
    pub(crate) app_limited: bool,
}

impl Resume {
    /// A sender that has not sent anything yet.
    pub(crate) fn new(hint: Option<Hint>) -> Self {
        Self {
            hint,
            phase: Phase::Reconnaissance,
            delivered: 0,
            lost: 0,
            in_flight: 0,
        }
    }

    /// Whether packets of a jump are on their way.
    pub(crate) fn is_jumping(&self) -> bool {
        !matches!(self.phase, Phase::Reconnaissance | Phase::Normal)
    }

    /// Ends it: the rate control has lost too much, or is another one from now on.
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Normal;
    }

    /// Handles an acknowledgement.
    pub(crate) fn acked(&mut self, seen: &Seen) -> Option<Order> {
        if let Phase::Unvalidated | Phase::Validating { .. } = self.phase
            && let Some(kept) = self.kept(seen)
        {
            let end = seen.delivered;
            self.phase = Phase::Retreat { end, kept };
            return Some(Order::Retreat(self.part_of_pipe(seen, kept)));
        }
        match self.phase {
            Phase::Normal => None,
            Phase::Reconnaissance => self.jump(seen),
            Phase::Retreat { end, kept } if seen.prior >= end => {
                self.phase = Phase::Normal;
                Some(Order::Recover(self.part_of_pipe(seen, kept)))
            }
            Phase::Retreat { .. } => None,
            Phase::Unvalidated if seen.prior >= self.delivered => {
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

    fn jump(&mut self, seen: &Seen) -> Option<Order> {
        let hint = self.hint?;
        let window = (JUMP * hint.holds(seen.min_rtt)).min(MAX_JUMP);
        // All of a flight that is not acknowledged yet may still be lost, too.
        let too_much = is_too_much(seen.lost, seen.delivered + seen.lost, seen.packet);
        if window <= seen.window as f64 {
            self.phase = Phase::Normal;
            return None;
        }
        if seen.app_limited || too_much {
            return None;
        }
        (self.delivered, self.lost) = (seen.delivered, seen.lost);
        self.in_flight = seen.in_flight;
        self.phase = Phase::Unvalidated;
        Some(Order::Jump(window as u64))
    }

    /// Each packet of the jump that arrives lets two more be sent than the start would, up to what the
    /// hint says. They are paced, so that this makes up for acknowledgements that come in few batches.
    fn grow(&self, seen: &Seen) -> Option<Order> {
        let most = (GROW * self.hint?.holds(seen.min_rtt)).min(2.0 * MAX_JUMP) as u64;
        let window = most.min(seen.window.saturating_add(2 * seen.acked));
        (window > seen.window).then_some(Order::Grow(window))
    }

    /// The part that is left of what the path has carried, if what is sent is more than it carries.
    fn kept(&self, seen: &Seen) -> Option<f64> {
        let lost = seen.lost - self.lost;
        if is_too_much(lost, self.pipe(seen) + lost, seen.packet) {
            return Some(AFTER_LOSSES);
        }
        // Acknowledgements of the few packets before the jump may have waited for company.
        let waits = seen.prior >= self.delivered && grown(seen.min_rtt, seen.rtt);
        waits.then_some(WITH_QUEUE)
    }

    /// What the path has shown to hold: what was in flight before the jump, and what was delivered since.
    fn pipe(&self, seen: &Seen) -> u64 {
        self.in_flight + (seen.delivered - self.delivered)
    }

    fn part_of_pipe(&self, seen: &Seen, kept: f64) -> u64 {
        (kept * self.pipe(seen) as f64) as u64
    }
}

fn is_too_much(lost: u64, of: u64, packet: u64) -> bool {
    lost as f64 > tolerated(of, packet)
}
