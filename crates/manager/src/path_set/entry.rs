//! One path of a set: its properties, the decisions about it, and its subflows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_path::{Decision, Fingerprint, Path, Reason, Verdict};

use super::lag::Lag;
use super::loss::Loss;
use super::options::{Demand, Replace};
use crate::backoff::{Backoff, Failure, Pace};
use crate::order::{Action, Cause, Order, SubflowId};

/// A subflow over a path that is no longer offered is closed after delivering nothing for this
/// long: until then the path may prove to work.
pub(super) const NOT_OFFERED: Duration = Duration::from_secs(2);

/// A dial over a path with a known round-trip time takes at most this long, and four round trips, before
/// it is begun anew: one or two are enough if the path works.
const KNOWN_DIAL: Duration = Duration::from_secs(1);
/// The same where the round-trip time is unknown: more than four of them by satellite.
const UNKNOWN_DIAL: Duration = Duration::from_secs(3);
/// Round trips that a dial which the remote has answered may take: of the handshake, of the session, of the
/// first data, and as many for what is lost or queued.
const ANSWERED_DIAL: u32 = 6;

/// The paths of a set, by fingerprint.
pub(super) type Entries<P> = BTreeMap<Fingerprint, PathStatus<P>>;

/// One path to the remote, offered now or before.
#[derive(Debug)]
pub struct PathStatus<P> {
    /// The fingerprint of the path.
    pub fingerprint: Fingerprint,
    /// The latest copy of it.
    pub path: P,
    /// Whether it is offered now.
    pub offered: bool,
    pub(super) obstacles: Obstacles,
    /// Whether the selection takes it.
    pub taken: bool,
    /// Whether it is used on trial, or since a trial, though the selection does not take it.
    pub(super) sensed: bool,
    pub(super) decisions: Decisions,
    /// The shortest round-trip time measured right after connecting, before queues build up.
    pub(super) rtt: Option<Duration>,
    /// The subflow that is connected.
    pub open: Option<Open>,
    /// The subflow that is being dialed.
    pub dialing: Option<Dialing>,
    pub(super) backoff: Backoff,
    /// Bytes received over all its subflows.
    pub bytes: u64,
    pub(super) quota: Quota,
    /// Why the last subflow ended or could not be connected.
    pub error: Option<String>,
}

/// Why a path must not be dialed.
#[derive(Debug, Default)]
pub(super) struct Obstacles {
    /// Since when it is no longer offered.
    pub(super) withdrawn: Option<Instant>,
    /// Why nothing can be sent over it.
    pub(super) unfit: Option<Reason>,
    /// Why the policy does not allow it.
    pub(super) denied: Option<Reason>,
}

/// What was decided about a path.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// By the selection.
    pub(super) selected: Option<Decision>,
    /// Later, by weighing or sensing: it takes precedence over `selected`.
    pub(super) weighed: Option<Decision>,
    /// The decision last published.
    pub(super) published: Option<Decision>,
}

/// How much of the bytes a path must carry.
#[derive(Debug, Default)]
pub(super) struct Quota {
    /// The share of the bytes, 0 to 1, not counting its first `from` bytes; `None` if it has none.
    pub(super) share: Option<f64>,
    pub(super) from: u64,
}

/// A subflow that is connected.
#[derive(Debug, Clone, Copy)]
pub struct Open {
    /// Its identifier.
    pub subflow: SubflowId,
    /// How long it took to connect.
    pub(super) handshake: Duration,
    /// Since when it delivers nothing of what was requested; `None` if it delivers.
    pub(super) stalled: Option<Instant>,
    /// Whether the remote answers over it though it delivers nothing of what was requested.
    pub(super) late: bool,
    pub(super) held: bool,
    /// Whether it counts as stalled only because its path is not offered, which the transfer, for which it
    /// was held already, does not know.
    pub(super) withdrawn_held: bool,
    pub(super) lag: Lag,
    pub(super) loss: Loss,
    /// When it was connected.
    pub(super) since: Instant,
    /// The bytes that were received over its path until then.
    pub(super) before: u64,
}

/// A subflow that is being dialed.
#[derive(Debug, Clone, Copy)]
pub struct Dialing {
    pub(super) subflow: SubflowId,
    pub(super) since: Instant,
    /// The round-trip time, once the remote has answered.
    pub(super) answered: Option<Duration>,
}

impl<P: AsRef<Path>> PathStatus<P> {
    /// A path that is not offered yet.
    pub(super) fn new(path: P) -> Self {
        Self {
            fingerprint: path.as_ref().fingerprint(),
            path,
            offered: false,
            obstacles: Obstacles::default(),
            taken: false,
            sensed: false,
            decisions: Decisions::default(),
            rtt: None,
            open: None,
            dialing: None,
            backoff: Backoff::new(Pace::Own),
            bytes: 0,
            quota: Quota::default(),
            error: None,
        }
    }

    /// Why it must not be dialed, if so.
    pub(super) fn unusable(&self) -> Option<&Reason> {
        let Obstacles { denied, unfit, .. } = &self.obstacles;
        denied.as_ref().or(unfit.as_ref())
    }

    /// Whether it is offered and may be dialed.
    pub(super) fn is_fit(&self) -> bool {
        self.offered && self.unusable().is_none()
    }

    /// Whether it counts against the number of subflows.
    pub(super) fn is_used(&self) -> bool {
        self.taken || self.sensed
    }

    /// Whether a connection over it is wanted. A failing path is dialed too, to find out when it
    /// works again.
    pub fn is_wanted(&self) -> bool {
        self.is_fit() && (self.is_used() || self.backoff.is_replaced())
    }

    /// Ends the dial under way, if there is one.
    pub(super) fn end_dial(&mut self, cause: Cause) -> Option<Order> {
        let dialing = self.dialing.take()?;
        Some(Order::close(dialing.subflow, self.fingerprint, cause))
    }

    /// When the dial under way is to be begun anew, if the remote still has a working path.
    pub(super) fn dial_overdue(&self) -> Option<Instant> {
        let longest = match self.rtt {
            Some(rtt) => KNOWN_DIAL.max(rtt * 4),
            None => UNKNOWN_DIAL,
        };
        let dialing = self.dialing?;
        let answered = dialing.answered.unwrap_or_default() * ANSWERED_DIAL;
        Some(dialing.since + longest.max(answered))
    }

    /// Holds its subflow because it is no longer offered. Most likely a link is down: other paths
    /// fetch what was requested over it.
    pub(super) fn withdraw(&mut self, now: Instant) -> Vec<Order> {
        self.obstacles.withdrawn = Some(now);
        let cause = Cause::NotOffered;
        let mut orders = Vec::from_iter(self.end_dial(cause.clone()));
        if let Some(open) = &mut self.open {
            let was_stalled = open.stalled.is_some();
            open.stalled.get_or_insert(now);
            match std::mem::replace(&mut open.held, true) {
                true => open.withdrawn_held |= !was_stalled,
                false => {
                    let order = Order::new(open.subflow, self.fingerprint, Action::Hold, cause);
                    orders.push(order);
                }
            }
        }
        orders
    }

    /// The path is offered again: earlier failures no longer count.
    pub(super) fn readmit(&mut self) {
        self.backoff.reset();
        if let Some(open) = &mut self.open
            && std::mem::take(&mut open.withdrawn_held)
        {
            open.stalled = None;
        }
    }

    /// When its subflow must be closed for delivering nothing, and after how long.
    pub(super) fn given_up(&self, replace: Replace) -> Option<(Instant, Duration)> {
        let patience = match replace {
            _ if !self.offered => NOT_OFFERED,
            Replace::Beside => return None,
            Replace::After(patience) => patience,
        };
        Some((self.open?.stalled? + patience, patience))
    }

    /// Whether it may be dialed once its pause is over.
    pub(super) fn may_dial(&self, demand: Demand, replace: Replace) -> bool {
        let free = match self.open {
            None => true,
            Some(open) => open.stalled.is_some() && !open.late && replace == Replace::Beside,
        };
        demand != Demand::None && self.is_wanted() && self.dialing.is_none() && free
    }

    /// Records that a subflow could not be connected, or has ended. Its path is not tried again before
    /// `at_least` is over.
    pub(super) fn lose(
        &mut self,
        subflow: SubflowId,
        failure: Failure,
        at_least: Duration,
        now: Instant,
    ) {
        let open = self.open.filter(|open| open.subflow == subflow);
        self.remove(subflow);
        self.backoff.fail(failure, at_least, now);
        if let Some(open) = open {
            let lasted = now.saturating_duration_since(open.since);
            let was_of_use = self.bytes > open.before || failure == Failure::Interrupted;
            self.backoff.ended(lasted, was_of_use, now);
        }
    }

    /// Removes a subflow that has ended.
    pub(super) fn remove(&mut self, subflow: SubflowId) {
        self.open.take_if(|open| open.subflow == subflow);
        self.dialing.take_if(|dialing| dialing.subflow == subflow);
    }

    /// The connected subflow, unless it is stalled.
    pub(super) fn delivering(&self) -> Option<Open> {
        self.open.filter(|open| open.stalled.is_none())
    }

    /// The connected subflow, unless it is stalled or the path is no longer offered.
    pub(super) fn weighable(&self) -> Option<Open> {
        self.delivering().filter(|_| self.offered)
    }

    /// The decision about it, and its reason.
    pub fn decision(&self) -> Decision {
        if let Some(reason) = self.unusable() {
            return Decision::left(reason.clone());
        }
        if !self.offered {
            return Decision::left(Reason::NotOffered);
        }
        // The result of weighing counts unless the selection contradicts it.
        let weighed = self.decisions.weighed.as_ref();
        let weighed = weighed.filter(|one| (one.verdict != Verdict::Left) == self.is_used());
        let decided = weighed.or(self.decisions.selected.as_ref());
        decided.cloned().unwrap_or_else(|| {
            let error = self.open.is_none().then(|| self.error.clone()).flatten();
            let why = error.unwrap_or_else(|| "nothing comes over it".into());
            Decision::left(Reason::Fails { why })
        })
    }
}
