//! The paths to one remote: which are selected, dialed, held, or given up for a while.
//!
//! The transfer owns the connections, the set the decisions. The transfer reports what happens to
//! its subflows, and executes the orders.
//!
//! # The life of a path
//!
//! 1. *Offered*: the selection takes the best of the paths that are fit, allowed by the policy and
//!    not failing again and again. It runs anew when offers, policy, round-trip times or failures
//!    change.
//! 2. *Dialing*, while there is demand: a path that the selection takes, that is on trial, or that
//!    keeps failing, once its pause is over. A dial that fails begins a pause, longer with each
//!    failure in a row. While any subflow delivers, or did in the last minute, pauses that neither
//!    side asked for are short, and slow dials are begun anew.
//! 3. *Connected*: the subflow delivers, until it is reported as late or stalled, and again when it
//!    has recovered. Beside a stalled one another is dialed, beside a late one none; with
//!    [`Replace::After`] either is closed after that time. While it delivers, `tick` holds and
//!    resumes it, as time slots, sensing, lag and loss say. It is closed at once when the policy
//!    denies its path, and drained when the selection takes others and all of those deliver, or
//!    more deliver than are wanted.
//! 4. *Not offered*: its dial ends; its subflow is held, and closed after [`entry::NOT_OFFERED`]
//!    unless it recovers. What is known of the path is kept for when it is offered again.
//!
//! The set keeps an entry for each path that is offered or has a subflow, of which a path has at
//! most two, and for [`MAX_FORMER`] others.

mod eager;
mod entry;
mod hold;
mod lag;
mod loss;
#[cfg(test)]
mod operations;
mod options;
mod select;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod weigh;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hawser_path::{Decision, Fingerprint, Path, Policy, Reason};

use self::eager::Delivery;
pub use self::entry::PathStatus;
use self::entry::{Dialing, Entries, Open};
use self::lag::Lag;
use self::loss::Loss;
pub use self::options::{Demand, PathOptions, Replace};
pub use self::select::Room;
use self::select::{choose, room};
pub use self::weigh::Carried;
use self::weigh::Weighing;
use crate::backoff::{Failure, STANDBY};
use crate::order::{Action, Cause, Order, SubflowId};
use crate::policy::denied;

/// Most paths that are remembered though they are no longer offered and have no subflow, for what
/// they carried and why they failed. Where paths come and go, the oldest are forgotten.
const MAX_FORMER: usize = 64;

/// The paths to one remote, each with a decision and its reason.
///
/// `P` is what the transfer needs to dial a path.
#[derive(Debug)]
pub struct PathSet<P> {
    options: PathOptions,
    demand: Demand,
    entries: Entries<P>,
    weighing: Weighing,
    orders: Vec<Order>,
    next_subflow: u64,
    /// Whether a decision may differ from the one last published.
    unpublished: bool,
    /// Whether anything happened since the last orders.
    changed: bool,
    /// When orders are due even if nothing happens.
    due: Option<Instant>,
    delivery: Delivery,
}

impl<P: AsRef<Path> + Clone> PathSet<P> {
    /// A set without paths.
    pub fn new(options: PathOptions) -> Self {
        Self {
            weighing: Weighing::new(options.slots, options.sensing),
            options,
            demand: Demand::Transfer,
            entries: BTreeMap::new(),
            orders: Vec::new(),
            next_subflow: 0,
            unpublished: false,
            changed: false,
            due: None,
            delivery: Delivery::Never,
        }
    }

    /// Sets the paths that are offered. `fits` says why nothing can be sent over a path, if so.
    /// Subflows over paths that are no longer offered are held, and closed unless they deliver.
    pub fn offer(&mut self, paths: &[P], fits: impl Fn(&P) -> Result<(), String>, now: Instant) {
        self.changed = true;
        self.forget(now);
        let mut offered = BTreeSet::new();
        for path in paths {
            let fingerprint = path.as_ref().fingerprint();
            offered.insert(fingerprint);
            let entries = self.entries.entry(fingerprint);
            let entry = entries.or_insert_with(|| PathStatus::new(path.clone()));
            entry.path = path.clone();
            entry.obstacles.unfit = fits(path).err().map(|why| Reason::Unfit { why });
            entry.obstacles.withdrawn = None;
            if !std::mem::replace(&mut entry.offered, true) {
                entry.readmit();
            }
        }
        for (path, entry) in &mut self.entries {
            if !offered.contains(path) && std::mem::take(&mut entry.offered) {
                self.orders.extend(entry.withdraw(now));
            }
        }
        self.judge();
    }

    /// Sets which paths may be used at all. Subflows over denied paths are closed at once, also those
    /// over paths that are no longer offered.
    pub fn set_policy(&mut self, policy: Option<Policy>) {
        self.changed = true;
        self.options.policy = policy;
        self.judge();
    }

    /// Sets what the transfer wants of the remote.
    pub fn set_demand(&mut self, demand: Demand) {
        self.changed = true;
        self.demand = demand;
        if demand == Demand::None {
            for entry in self.entries.values_mut() {
                self.orders.extend(entry.end_dial(Cause::Ended));
            }
        }
    }

    /// Chooses paths here, because the remote does not. Returns whether that is new.
    pub fn choose_here(&mut self) -> bool {
        self.changed = true;
        let new = std::mem::take(&mut self.options.contact_only);
        if new {
            self.choose();
        }
        new
    }

    /// Reports that the remote has answered a dial, with this round-trip time, though the subflow is not
    /// connected yet: what is left to do has as long as that needs.
    pub fn answered(&mut self, subflow: SubflowId, rtt: Duration) {
        self.changed = true;
        let dialing = find(&mut self.entries, subflow).and_then(|entry| entry.dialing.as_mut());
        if let Some(dialing) = dialing.filter(|dialing| dialing.subflow == subflow) {
            dialing.answered = Some(rtt);
        }
    }

    /// Reports that a dialed subflow is connected. `rtt` is its measured round-trip time, if any:
    /// paths are then selected again, since it may differ from the announced latency.
    pub fn connected(&mut self, subflow: SubflowId, rtt: Option<Duration>, now: Instant) {
        self.changed = true;
        let Some(entry) = find(&mut self.entries, subflow) else {
            return;
        };
        let Some(dialing) = entry.dialing.take_if(|dialing| dialing.subflow == subflow) else {
            return;
        };
        let open = Open {
            subflow,
            handshake: now.saturating_duration_since(dialing.since),
            stalled: None,
            late: false,
            held: false,
            withdrawn_held: false,
            lag: Lag::default(),
            loss: Loss::default(),
            since: now,
            before: entry.bytes,
        };
        if let Some(before) = entry.open.replace(open) {
            self.orders.push(Order::close(
                before.subflow,
                entry.fingerprint,
                Cause::Replaced,
            ));
        }
        entry.backoff.reset();
        self.delivery = Delivery::Now;
        entry.rtt = [entry.rtt, rtt].into_iter().flatten().min();
        self.choose();
    }

    /// Reports that a subflow could not be connected, or has ended. `error` says why, for people.
    pub fn lost(&mut self, subflow: SubflowId, failure: Failure, error: String, now: Instant) {
        self.changed = true;
        // The remote can dial as well.
        let at_least = match (self.demand, failure) {
            (Demand::Transfer, _) | (_, Failure::Interrupted) => Duration::ZERO,
            (Demand::Standby | Demand::None, _) => STANDBY,
        };
        let Some(entry) = find(&mut self.entries, subflow) else {
            return;
        };
        entry.lose(subflow, failure, at_least, now);
        entry.error = Some(error);
        self.choose();
    }

    /// Reports that the transfer itself ended a subflow, for a reason that has nothing to do with
    /// the path. While there is [demand](Self::set_demand), the path may be dialed again at once.
    pub fn closed(&mut self, subflow: SubflowId) {
        self.changed = true;
        if let Some(entry) = find(&mut self.entries, subflow) {
            entry.remove(subflow);
        }
    }

    /// Reports that a subflow delivers nothing of what was requested though the remote answers over it:
    /// the remote is late, and would be over any other subflow. None is dialed beside it unless
    /// [`stalled`](Self::stalled) reports that it no longer answers.
    pub fn late(&mut self, subflow: SubflowId, now: Instant) {
        self.changed = true;
        let Some((entry, was_late)) = stall(&mut self.entries, subflow, true, now) else {
            return;
        };
        if !was_late {
            self.orders.extend(entry.end_dial(Cause::Late));
            entry.backoff.reset();
            self.choose();
        }
    }

    /// Reports that a subflow delivers nothing of what was requested, and that nothing shows that the
    /// remote still answers over it. Another subflow, or another path, takes its place until it recovers.
    pub fn stalled(&mut self, subflow: SubflowId, now: Instant) {
        self.changed = true;
        let Some((entry, _)) = stall(&mut self.entries, subflow, false, now) else {
            return;
        };
        entry.backoff.fail(Failure::Stalled, Duration::ZERO, now);
        self.choose();
    }

    /// Reports that a stalled subflow delivers again.
    pub fn recovered(&mut self, subflow: SubflowId) {
        self.changed = true;
        let Some(entry) = find(&mut self.entries, subflow) else {
            return;
        };
        let Some(open) = entry.open.as_mut().filter(|open| open.subflow == subflow) else {
            return;
        };
        (open.stalled, open.late, open.withdrawn_held) = (None, false, false);
        if std::mem::take(&mut open.held) {
            let order = Order::new(subflow, entry.fingerprint, Action::Resume, Cause::Recovered);
            self.orders.push(order);
        }
        self.orders.extend(entry.end_dial(Cause::Recovered));
        entry.backoff.reset();
        self.delivery = Delivery::Now;
        self.choose();
    }

    /// Reports the round-trip time of a subflow as it is now. Those that are much longer than others
    /// are held by [`tick`](Self::tick) if the [options](PathOptions::most_lag) say so.
    pub fn measured(&mut self, subflow: SubflowId, rtt: Duration, now: Instant) {
        let entry = find(&mut self.entries, subflow);
        let open = entry.and_then(|entry| entry.open.as_mut());
        if let Some(open) = open.filter(|open| open.subflow == subflow) {
            open.lag.measure(rtt, now);
        }
    }

    /// Reports how many packets are known to have been sent over a subflow, in the direction that is
    /// observed, and how many of them have arrived, both in all. Those over which more are lost than over
    /// others are held by [`tick`](Self::tick) if the [options](PathOptions::most_loss) say so.
    pub fn arrived(&mut self, subflow: SubflowId, sent: u64, arrived: u64, now: Instant) {
        let Some(most) = self.options.most_loss else {
            return;
        };
        let entry = find(&mut self.entries, subflow);
        let open = entry.and_then(|entry| entry.open.as_mut());
        if let Some(open) = open.filter(|open| open.subflow == subflow) {
            open.loss.measure(sent, arrived, most, now);
        }
    }

    /// Reports bytes of the content received over a path. Shares of paths are shares of these.
    pub fn delivered(&mut self, path: Fingerprint, bytes: u64) {
        if let Some(entry) = self.entries.get_mut(&path) {
            entry.bytes += bytes;
        }
    }

    /// Ends the time slots that are over. `carried` returns what a subflow has carried. A path that
    /// was not usable at some tick of a slot is not weighed in that slot.
    pub fn tick(&mut self, carried: impl Fn(SubflowId) -> Carried, now: Instant) {
        if !self.is_weighed() {
            return;
        }
        let most = self.options.subflows.max(1);
        let decided = self.weighing.tick(&mut self.entries, most, carried, now);
        self.unpublished |= decided;
        self.changed |= decided;
        // First: the round trip of a path that is held for its loss is no measure for the others.
        if self.options.most_loss.is_some() {
            self.unpublished |= hold::judge_loss(&mut self.entries, now);
        }
        if let Some(most) = self.options.most_lag {
            self.unpublished |= hold::judge_lag(&mut self.entries, most);
        }
        for (path, entry) in &mut self.entries {
            let open = entry.open;
            let lags = open.is_some_and(|open| open.lag.is_held() || open.loss.is_held());
            let held = entry.offered && (lags || self.weighing.is_held(*path));
            let Some(open) = entry.delivering().filter(|open| open.held != held) else {
                continue;
            };
            let action = match held {
                true => Action::Hold,
                false => Action::Resume,
            };
            let cause = Cause::Decided(entry.decision().reason);
            entry.open = Some(Open { held, ..open });
            self.orders
                .push(Order::new(open.subflow, *path, action, cause));
            self.changed = true;
        }
    }

    /// The orders due now. Must be called after each event, and at [`next_due`](Self::next_due).
    pub fn orders(&mut self, now: Instant) -> Vec<Order> {
        if !std::mem::take(&mut self.changed) && self.due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.give_up(now);
        self.hasten(now);
        self.retire();
        self.dial(now);
        self.due = self.order_due();
        std::mem::take(&mut self.orders)
    }

    /// Decisions that changed since the last call, each with its path.
    pub fn changes(&mut self) -> Vec<(Fingerprint, Decision)> {
        let changed = |(path, entry): (&Fingerprint, &mut PathStatus<P>)| {
            let decision = entry.decision();
            if entry.decisions.published.as_ref() == Some(&decision) {
                return None;
            }
            entry.decisions.published = Some(decision.clone());
            Some((*path, decision))
        };
        match std::mem::take(&mut self.unpublished) {
            true => self.entries.iter_mut().filter_map(changed).collect(),
            false => Vec::new(),
        }
    }

    /// The latest time to call [`tick`](Self::tick) and [`orders`](Self::orders); `None` if neither
    /// is due.
    pub fn next_due(&self) -> Option<Instant> {
        let weighed = match self.is_weighed() {
            true => {
                let open = self.entries.values().filter_map(PathStatus::weighable);
                let tried = open.filter_map(|open| open.loss.held_until());
                tried.chain(self.weighing.next_due()).min()
            }
            false => None,
        };
        [self.order_due(), weighed].into_iter().flatten().min()
    }

    /// Whether [`tick`](Self::tick) decides anything. Holding a path also holds up the others whose shares
    /// then let them carry no more.
    fn is_weighed(&self) -> bool {
        self.demand == Demand::Transfer && !self.has_shares()
    }

    fn order_due(&self) -> Option<Instant> {
        let entries = self.entries.values();
        let due = |entry: &PathStatus<P>| {
            let dialed = entry.backoff.until();
            let given_up = entry.given_up(self.options.replace).map(|(at, _)| at);
            let dialed = dialed.filter(|_| entry.may_dial(self.demand, self.options.replace));
            // Without effect where tries are not worth it any more.
            let overdue = entry.dial_overdue();
            let overdue = overdue.filter(|at| self.is_eager(*at));
            [dialed, given_up, overdue].into_iter().flatten().min()
        };
        entries.filter_map(due).min()
    }

    /// Every path that is offered, and the latest of those that were.
    pub fn paths(&self) -> impl Iterator<Item = &PathStatus<P>> {
        self.entries.values()
    }

    /// The copy of a path to dial; `None` if it was never offered.
    pub fn path(&self, path: Fingerprint) -> Option<&P> {
        Some(&self.entries.get(&path)?.path)
    }

    /// The decision about a path; `None` if it was never offered.
    #[cfg(test)]
    pub fn decision(&self, path: Fingerprint) -> Option<Decision> {
        self.entries.get(&path).map(PathStatus::decision)
    }

    /// Whether no path was ever offered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether any path is known that may be dialed, now or when it is offered again.
    pub fn is_usable(&self) -> bool {
        let mut entries = self.entries.values();
        entries.any(|entry| entry.unusable().is_none())
    }

    /// One line on why there is no connection over any of the offered paths; `None` if nothing has
    /// failed.
    pub fn trouble(&self) -> Option<String> {
        let offered = || self.entries.values().filter(|entry| entry.offered);
        let unusable = || offered().find_map(|entry| Some(entry.unusable()?.to_string()));
        let last = offered().find_map(|entry| entry.error.clone());
        last.or_else(unusable)
    }

    /// Why a subflow over any path, offered or not, ended or could not be connected.
    pub fn last_error(&self) -> Option<String> {
        self.entries.values().find_map(|entry| entry.error.clone())
    }

    /// Whether each path must keep to a share of the bytes.
    pub fn has_shares(&self) -> bool {
        // All have one, or none has.
        let first = self.entries.values().next();
        first.is_some_and(|entry| entry.quota.share.is_some())
    }

    /// How much more may be requested over a path. `requested` returns how many bytes are requested
    /// over a subflow; at most `doubles` bytes are requested more than once.
    pub fn room(
        &self,
        path: Fingerprint,
        requested: impl Fn(SubflowId) -> u64,
        doubles: u64,
    ) -> Room {
        room(&self.entries, path, requested, doubles)
    }

    /// Runs the selection again.
    fn choose(&mut self) {
        self.unpublished = true;
        choose(&mut self.entries, &self.options);
    }

    /// Forgets the paths that are no longer offered and have no subflow, except the latest.
    fn forget(&mut self, now: Instant) {
        let former = |(path, entry): (&Fingerprint, &PathStatus<P>)| {
            let used = entry.open.is_some() || entry.dialing.is_some();
            let withdrawn = entry.obstacles.withdrawn.filter(|_| !used);
            withdrawn.map(|at| (at, *path))
        };
        let mut former: Vec<_> = self.entries.iter().filter_map(former).collect();
        former.sort_unstable();
        former.truncate(former.len().saturating_sub(MAX_FORMER));
        for (_, path) in former {
            self.entries.remove(&path);
            self.unpublished |= self.weighing.forget(&mut self.entries, path, now);
        }
    }

    /// Applies the policy and runs the selection again.
    fn judge(&mut self) {
        let policy = self.options.policy.as_ref();
        let offered = self.entries.values().filter(|entry| entry.offered);
        let offered: Vec<P> = offered.map(|entry| entry.path.clone()).collect();
        let mut denied_paths = denied(policy, &offered);
        for (path, entry) in &mut self.entries {
            entry.obstacles.denied = match entry.offered {
                true => denied_paths.remove(path),
                // It is no alternative to those that are offered.
                false => denied(policy, std::slice::from_ref(&entry.path)).remove(path),
            };
            let Some(reason) = &entry.obstacles.denied else {
                continue;
            };
            let cause = Cause::Decided(reason.clone());
            let open = entry.open.take();
            let close = |open: Open| Order::close(open.subflow, *path, cause.clone());
            self.orders.extend(open.map(close));
            self.orders.extend(entry.end_dial(cause));
        }
        self.choose();
    }

    /// Closes subflows that have delivered nothing for too long.
    fn give_up(&mut self, now: Instant) {
        for (path, entry) in &mut self.entries {
            let given_up = entry.given_up(self.options.replace);
            let Some((_, patience)) = given_up.filter(|(at, _)| *at <= now) else {
                continue;
            };
            let cause = match entry.offered {
                true => Cause::Silent(patience),
                false => Cause::NotOffered,
            };
            if entry.offered {
                entry.error = Some(cause.to_string());
                entry.backoff.fail(Failure::Closed, Duration::ZERO, now);
            }
            let open = entry.open.take();
            self.orders
                .extend(open.map(|open| Order::close(open.subflow, *path, cause)));
        }
    }

    /// Closes subflows over paths that the selection no longer takes, once all paths that it takes
    /// deliver. A path that works is not closed for one that may not work, unless more deliver than
    /// wanted. Stalled subflows are not closed: they may recover.
    fn retire(&mut self) {
        if self.demand != Demand::Transfer {
            return;
        }
        let delivers = |entry: &&PathStatus<P>| entry.delivering().is_some();
        let mut taken = self.entries.values().filter(|entry| entry.taken).peekable();
        let ready = taken.peek().is_some() && taken.all(|entry| delivers(&entry));
        let mut many = self.entries.values().filter(delivers).count();
        for (path, entry) in &mut self.entries {
            let surplus = !entry.is_wanted() && entry.delivering().is_some();
            if !surplus || !(ready || many > self.options.subflows.max(1)) {
                continue;
            }
            many -= 1;
            let cause = Cause::Decided(entry.decision().reason);
            let (open, action) = (entry.open.take(), Action::Close { drain: true });
            self.orders
                .extend(open.map(|open| Order::new(open.subflow, *path, action, cause)));
        }
    }

    /// Dials every path that is due, all at once.
    fn dial(&mut self, now: Instant) {
        for (path, entry) in &mut self.entries {
            let due = entry.backoff.until().is_none_or(|until| until <= now);
            if !due || !entry.may_dial(self.demand, self.options.replace) {
                continue;
            }
            let cause = match (entry.open, entry.backoff.failures()) {
                (Some(_), _) => Cause::Stalled,
                (None, 0) => Cause::Decided(entry.decision().reason),
                (None, failures) => Cause::Retried { failures },
            };
            self.next_subflow += 1;
            let subflow = SubflowId(self.next_subflow);
            entry.dialing = Some(Dialing {
                subflow,
                since: now,
                answered: None,
            });
            self.orders
                .push(Order::new(subflow, *path, Action::Dial, cause));
        }
    }
}

/// Marks a connected subflow as stalled, `late` if the remote answers over it. Returns its path, and
/// whether it was late before.
fn stall<P>(
    entries: &mut Entries<P>,
    subflow: SubflowId,
    late: bool,
    now: Instant,
) -> Option<(&mut PathStatus<P>, bool)> {
    let entry = find(entries, subflow)?;
    let open = entry.open.as_mut().filter(|open| open.subflow == subflow)?;
    open.stalled.get_or_insert(now);
    let was_late = std::mem::replace(&mut open.late, late);
    Some((entry, was_late))
}

/// The path of a subflow.
fn find<P>(entries: &mut Entries<P>, subflow: SubflowId) -> Option<&mut PathStatus<P>> {
    entries.values_mut().find(|entry| {
        let open = entry.open.map(|open| open.subflow);
        let dialing = entry.dialing.map(|dialing| dialing.subflow);
        open == Some(subflow) || dialing == Some(subflow)
    })
}
