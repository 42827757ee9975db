//! The paths to one remote: which are selected, dialed, held, given up for a while.
//!
//! The transfer keeps the connections, the set keeps the decisions. The transfer says what happens
//! to its subflows, and does what it is ordered.

mod entry;
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

pub use self::entry::PathStatus;
use self::entry::{Dialing, Entries, Open};
pub use self::options::{Demand, PathOptions, Replace};
pub use self::select::Room;
use self::select::{choose, room};
pub use self::weigh::Carried;
use self::weigh::Weighing;
use crate::backoff::{Failure, STANDBY};
use crate::order::{Action, Cause, Order, SubflowId};
use crate::policy::denied;

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
    /// A decision may differ from what was published of it.
    news: bool,
    /// Something happened since the last orders.
    changed: bool,
    /// When there is something to order although nothing happens.
    due: Option<Instant>,
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
            news: false,
            changed: false,
            due: None,
        }
    }

    /// These paths are offered now, and no others; `fits` says why nothing can be sent over one of
    /// them. What is not offered any more is held, and closed unless it delivers.
    pub fn offer(&mut self, paths: &[P], fits: impl Fn(&P) -> Result<(), String>, now: Instant) {
        self.changed = true;
        let mut offered = BTreeSet::new();
        for path in paths {
            let fingerprint = path.as_ref().fingerprint();
            offered.insert(fingerprint);
            let entries = self.entries.entry(fingerprint);
            let entry = entries.or_insert_with(|| PathStatus::new(path.clone()));
            entry.path = path.clone();
            entry.unfit = fits(path).err().map(|why| Reason::Unfit { why });
            if !std::mem::replace(&mut entry.offered, true) {
                // It is back: what failed before says nothing any more.
                entry.backoff.reset();
            }
        }
        for (path, entry) in &mut self.entries {
            if !offered.contains(path) && std::mem::take(&mut entry.offered) {
                self.orders.extend(entry.withdraw(now));
            }
        }
        self.judge();
    }

    /// Which of the offered paths may be used at all changes. What is denied is closed at once.
    pub fn set_policy(&mut self, policy: Option<Policy>) {
        self.changed = true;
        self.options.policy = policy;
        self.judge();
    }

    /// What is wanted of the remote changes.
    pub fn set_demand(&mut self, demand: Demand) {
        self.changed = true;
        self.demand = demand;
        if demand == Demand::None {
            for entry in self.entries.values_mut() {
                self.orders.extend(entry.end_dial(Cause::Ended));
            }
        }
    }

    /// The remote does not choose paths: they are chosen here. Whether that is new.
    pub fn choose_here(&mut self) -> bool {
        self.changed = true;
        let new = std::mem::take(&mut self.options.contact_only);
        if new {
            self.choose();
        }
        new
    }

    /// A subflow that was dialed is connected. `rtt` is its round trip, if it was measured: paths
    /// are then chosen anew, since it may be other than announced.
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
            held: false,
        };
        if let Some(before) = entry.open.replace(open) {
            self.orders.push(Order::close(
                before.subflow,
                entry.fingerprint,
                Cause::Replaced,
            ));
        }
        entry.backoff.reset();
        entry.rtt = [entry.rtt, rtt].into_iter().flatten().min();
        self.choose();
    }

    /// A subflow could not be connected, or has ended. `error` says why, for people.
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
        entry.remove(subflow);
        entry.error = Some(error);
        entry.backoff.fail(failure, at_least, now);
        self.choose();
    }

    /// The transfer itself ended a subflow, for reasons of its own: that says nothing of the path.
    pub fn closed(&mut self, subflow: SubflowId) {
        self.changed = true;
        if let Some(entry) = find(&mut self.entries, subflow) {
            entry.remove(subflow);
        }
    }

    /// A subflow delivers nothing of what was requested: another one, or another path, takes its
    /// place until it recovers.
    pub fn stalled(&mut self, subflow: SubflowId, now: Instant) {
        self.changed = true;
        let Some(entry) = find(&mut self.entries, subflow) else {
            return;
        };
        let Some(open) = entry.open.as_mut().filter(|open| open.subflow == subflow) else {
            return;
        };
        open.stalled.get_or_insert(now);
        entry.backoff.fail(Failure::Stalled, Duration::ZERO, now);
        self.choose();
    }

    /// Something came over a subflow that had stalled.
    pub fn recovered(&mut self, subflow: SubflowId) {
        self.changed = true;
        let Some(entry) = find(&mut self.entries, subflow) else {
            return;
        };
        let Some(open) = entry.open.as_mut().filter(|open| open.subflow == subflow) else {
            return;
        };
        open.stalled = None;
        if std::mem::take(&mut open.held) {
            let order = Order::new(subflow, entry.fingerprint, Action::Resume, Cause::Recovered);
            self.orders.push(order);
        }
        self.orders.extend(entry.end_dial(Cause::Recovered));
        entry.backoff.reset();
        self.choose();
    }

    /// Bytes of the content came over a path; the shares of paths are of these.
    pub fn delivered(&mut self, path: Fingerprint, bytes: u64) {
        if let Some(entry) = self.entries.get_mut(&path) {
            entry.bytes += bytes;
        }
    }

    /// Time went by: ends the time slots that are over, where `carried` says of each subflow what
    /// it has carried. What was not usable at any tick of a slot is not weighed in it.
    pub fn tick(&mut self, carried: impl Fn(SubflowId) -> Carried, now: Instant) {
        // A path that is held would hold up those that may carry no more than it lets them.
        if self.demand != Demand::Transfer || self.has_shares() {
            return;
        }
        self.changed = true;
        let most = self.options.subflows.max(1);
        self.news |= self.weighing.tick(&mut self.entries, most, carried, now);
        for (path, entry) in &mut self.entries {
            let held = entry.offered && self.weighing.is_held(*path);
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
        }
    }

    /// What is to be done now. To be asked after each event, and when [`next_due`](Self::next_due)
    /// says.
    pub fn orders(&mut self, now: Instant) -> Vec<Order> {
        if !std::mem::take(&mut self.changed) && self.due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.give_up(now);
        self.retire();
        self.dial(now);
        self.due = self.order_due();
        std::mem::take(&mut self.orders)
    }

    /// Decisions that are new since this was last asked, each with its path.
    pub fn changes(&mut self) -> Vec<(Fingerprint, Decision)> {
        let changed = |(path, entry): (&Fingerprint, &mut PathStatus<P>)| {
            let decision = entry.decision();
            if entry.published.as_ref() == Some(&decision) {
                return None;
            }
            entry.published = Some(decision.clone());
            Some((*path, decision))
        };
        match std::mem::take(&mut self.news) {
            true => self.entries.iter_mut().filter_map(changed).collect(),
            false => Vec::new(),
        }
    }

    /// When [`tick`](Self::tick) and [`orders`](Self::orders) are to be called at the latest.
    pub fn next_due(&self) -> Option<Instant> {
        let due = [self.order_due(), self.weighing.next_due()];
        due.into_iter().flatten().min()
    }

    fn order_due(&self) -> Option<Instant> {
        let entries = self.entries.values();
        let due = |entry: &PathStatus<P>| {
            let dialed = entry.backoff.until();
            let given_up = entry.given_up(self.options.replace).map(|(at, _)| at);
            let dialed = dialed.filter(|_| entry.may_dial(self.demand, self.options.replace));
            [dialed, given_up].into_iter().flatten().min()
        };
        entries.filter_map(due).min()
    }

    /// Every path that is or was offered.
    pub fn paths(&self) -> impl Iterator<Item = &PathStatus<P>> {
        self.entries.values()
    }

    /// What is needed to dial a path.
    pub fn path(&self, path: Fingerprint) -> Option<&P> {
        Some(&self.entries.get(&path)?.path)
    }

    /// What is decided about a path, and why; `None` if it was never offered.
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

    /// One line on why there is no connection over any of the offered paths; `None` where nothing
    /// has failed.
    pub fn trouble(&self) -> Option<String> {
        let offered = || self.entries.values().filter(|entry| entry.offered);
        let unusable = || offered().find_map(|entry| Some(entry.unusable()?.to_string()));
        let last = offered().find_map(|entry| entry.error.clone());
        last.or_else(unusable)
    }

    /// Why a subflow over any path, offered or not, ended or did not come about.
    pub fn last_error(&self) -> Option<String> {
        self.entries.values().find_map(|entry| entry.error.clone())
    }

    /// Whether each path has a share of the bytes that it keeps to.
    pub fn has_shares(&self) -> bool {
        // All have one, or none has.
        let first = self.entries.values().next();
        first.is_some_and(|entry| entry.share.is_some())
    }

    /// What more may be requested over a path, where `requested` says how many bytes are over a
    /// subflow and at most `doubles` of them are requested more than once.
    pub fn room(
        &self,
        path: Fingerprint,
        requested: impl Fn(SubflowId) -> u64,
        doubles: u64,
    ) -> Room {
        room(&self.entries, path, requested, doubles)
    }

    /// Runs the selection anew.
    fn choose(&mut self) {
        self.news = true;
        choose(&mut self.entries, &self.options);
    }

    /// Applies the policy and selects anew.
    fn judge(&mut self) {
        let offered = self.entries.values().filter(|entry| entry.offered);
        let offered: Vec<P> = offered.map(|entry| entry.path.clone()).collect();
        let mut denied = denied(self.options.policy.as_ref(), &offered);
        for (path, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.offered) {
            entry.denied = denied.remove(path);
            let Some(reason) = &entry.denied else {
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

    /// Closes what has delivered nothing for too long.
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

    /// Closes what the selection takes no longer, once all that it takes delivers: a path that
    /// works is not closed for one that may not, unless there would be more than wanted. What has
    /// stalled is not closed: it may recover.
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

    /// Dials every path whose time has come, all at once.
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
            });
            self.orders
                .push(Order::new(subflow, *path, Action::Dial, cause));
        }
    }
}

/// The path of a subflow.
fn find<P>(entries: &mut Entries<P>, subflow: SubflowId) -> Option<&mut PathStatus<P>> {
    entries.values_mut().find(|entry| {
        let open = entry.open.map(|open| open.subflow);
        let dialing = entry.dialing.map(|dialing| dialing.subflow);
        open == Some(subflow) || dialing == Some(subflow)
    })
}
