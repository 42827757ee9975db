//! The uploader's side: paths assigned to all its downloaders (001, section VI).
//!
//! # The life of a downloader
//!
//! It joins, and the paths to it are offered. Those that fit, that the policy allows and that do
//! not pause after a failure may be assigned to it. It is *served* over those that are; it *waits*,
//! with its subflows held, while every one of its paths conflicts with those of others, until a
//! turn ([`TURN`]) or a change gives it one; and while it is *choked*, when others get its paths.
//! It *falls back* on the connections that it opened itself when none of its assigned paths has
//! been connected for 1 s, and on all of its connections when no path may be assigned. When it
//! leaves, its subflows are closed, and others get its paths.
//!
//! A subflow dialed from here is *dialing*, then *used*; one that the downloader opened is
//! *unknown* until its first order. Both are *held* and *used* as their path is taken back and
//! assigned. A dial whose path is taken back is closed, and so is a held subflow that was dialed
//! from here when the number of those that may be dialed is reached. A downloader that gets none is
//! remembered, and dialed when another subflow ends or is held.
//!
//! The owner calls [`Sharing::tick`] after each event and at [`Sharing::next_due`]: at the end of a
//! pause, of that second, of a time slot or of a turn. What is kept are the offered paths and an
//! entry for each subflow; the caller bounds how many downloaders there are and how many
//! connections they open.

mod downloader;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use hawser_path::{Change, Decision, Fingerprint, Path, Policy, SenseOptions, SensingAssignment};

use self::downloader::{Downloader, Fallback, Subflow, Use};
use crate::backoff::Failure;
use crate::order::{Action, Cause, Order, SubflowId};
use crate::path_set::{Carried, PathOptions};

/// Time between two turns of downloaders that wait for a path: BitTorrent's choking period (BEP 3),
/// about as long as the time slots of long downloads (000, section 3.3).
const TURN: Duration = Duration::from_secs(10);

/// Subflows that are no longer needed are closed at once: an uploader has requested nothing that it
/// could wait for.
const CLOSE: Action = Action::Close { drain: false };

/// The periods of the assignment.
#[derive(Debug)]
struct Turns {
    /// When a downloader that waits for a path may get that of another one.
    next: Instant,
    /// Turns that were given to such downloaders.
    given: u64,
    /// When the time slot began in which paths are sensed.
    slot_began: Instant,
}

/// The downloaders of one uploader and the paths to them: which paths each of them is assigned, and
/// the orders for its subflows.
///
/// An assigned path without a connection is dialed; a subflow over a path that is not assigned is
/// held, not closed, so that it can be resumed at once. A path that fails is taken from its
/// downloader for a while (see [`Backoff`](crate::Backoff)), so that others can use the paths it
/// blocked. A downloader is served over the connections it opened itself while no path can be
/// assigned to it, or while none of the assigned ones is connected.
///
/// `K` names a downloader, and is printed in reasons; `P` is a path as the transfer dials it.
/// Outcomes depend on nothing but the calls made and the times given.
#[derive(Debug)]
pub struct Sharing<K, P> {
    options: PathOptions,
    /// Most subflows dialed from here, connected or not, to all downloaders together.
    max_dialed: usize,
    assignment: SensingAssignment<K>,
    downloaders: BTreeMap<K, Downloader<P>>,
    /// The downloader and the path of each subflow.
    subflows: BTreeMap<SubflowId, (K, Fingerprint)>,
    last_subflow: u64,
    /// Number of subflows that were dialed from here.
    dialed: usize,
    /// Downloaders with an assigned path that is not dialed because there are too many subflows.
    short_of_subflows: BTreeSet<K>,
    /// Downloaders for which anything changed since the last orders.
    dirty: BTreeSet<K>,
    /// Orders that do not depend on the assignment.
    orders: Vec<(K, Order)>,
    /// Whether decisions may differ from those that [`Self::changes`] returned last.
    has_changes: bool,
    turns: Turns,
    /// When anything is due even if nothing happens.
    due: Option<Instant>,
}

impl<K: Copy + Ord + fmt::Display, P: AsRef<Path> + Clone> Sharing<K, P> {
    /// An uploader without downloaders, which dials at most `max_dialed` subflows to all of them
    /// together. Of the options, only those apply that are not about a single remote: how paths
    /// rank, the policy, whether sensing tries further paths, and the length of a time slot.
    pub fn new(options: PathOptions, max_dialed: usize, now: Instant) -> Self {
        Self {
            max_dialed,
            assignment: SensingAssignment::new(options.sensing.then(SenseOptions::default)),
            options,
            downloaders: BTreeMap::new(),
            subflows: BTreeMap::new(),
            last_subflow: 0,
            dialed: 0,
            short_of_subflows: BTreeSet::new(),
            dirty: BTreeSet::new(),
            orders: Vec::new(),
            has_changes: false,
            turns: Turns {
                next: now,
                given: 0,
                slot_began: now,
            },
            due: None,
        }
    }

    /// Adds a downloader, which is served over at most `max` paths at once; 0 counts as 1. For a
    /// known downloader, changes `max`.
    pub fn join(&mut self, key: K, max: usize, now: Instant) {
        if self.downloaders.is_empty() {
            self.turns.next = now + TURN;
            self.turns.slot_began = now;
        }
        let known = self.downloaders.entry(key);
        let known = known.or_insert_with(|| Downloader::new(max));
        if known.max != max {
            known.max = max;
            known.changed = true;
        }
        self.dirty.insert(key);
    }

    /// Removes a downloader: its subflows are closed, and others get its paths.
    pub fn leave(&mut self, key: K) {
        let Some(gone) = self.downloaders.remove(&key) else {
            return;
        };
        for (path, state) in gone.paths {
            for subflow in state.subflows {
                self.forget(&subflow);
                self.orders
                    .push((key, Order::close(subflow.id, path, Cause::Ended)));
            }
        }
        self.short_of_subflows.remove(&key);
        let changes = self.assignment.remove_peer(key);
        self.follow(changes);
    }

    /// Sets whether nothing is sent to a downloader for now: then no path is assigned to it, and
    /// its subflows are held, so that others get its paths and it can be served again at once.
    pub fn set_choked(&mut self, key: K, is_choked: bool) {
        if let Some(known) = self.downloaders.get_mut(&key)
            && known.is_choked != is_choked
        {
            known.is_choked = is_choked;
            known.changed = true;
            self.dirty.insert(key);
            self.has_changes = true;
        }
    }

    /// Sets the paths to a downloader, as seen from here. `fits` says why nothing can be sent over
    /// a path, if so, whichever side opens the connection.
    pub fn offer(&mut self, key: K, paths: &[P], fits: impl Fn(&P) -> Result<(), String>) {
        if let Some(known) = self.downloaders.get_mut(&key) {
            known.offer(paths, fits);
            known.judge(self.options.policy.as_ref());
            self.dirty.insert(key);
        }
    }

    /// Sets which paths may be used.
    pub fn set_policy(&mut self, policy: Option<Policy>) {
        self.options.policy = policy;
        for (key, known) in &mut self.downloaders {
            known.judge(self.options.policy.as_ref());
            self.dirty.insert(*key);
        }
    }

    /// Reports that a downloader opened a connection over a path, which need not be offered here.
    /// The first order for the subflow, [`Action::Hold`] or [`Action::Resume`], says whether it is
    /// used. Returns `None` for an unknown downloader.
    pub fn accepted(&mut self, key: K, path: Fingerprint) -> Option<SubflowId> {
        let known = self.downloaders.get_mut(&key)?;
        self.last_subflow += 1;
        let id = SubflowId(self.last_subflow);
        let state = known.path(path);
        state.subflows.push(Subflow::new(id, Use::Unknown));
        state.reported = None;
        self.subflows.insert(id, (key, path));
        self.dirty.insert(key);
        self.has_changes = true;
        Some(id)
    }

    /// Reports that a dialed subflow is connected. It is used until it is held.
    pub fn connected(&mut self, id: SubflowId) {
        if let Some(&(key, path)) = self.subflows.get(&id)
            && let Some(known) = self.downloaders.get_mut(&key)
        {
            known.connected(path, id);
            self.dirty.insert(key);
            self.has_changes = true;
        }
    }

    /// Reports that a subflow ended, or could not be connected; `why` is for people. Losing a
    /// connection that the downloader opened does not count as a failure of the path, which may be
    /// dialed from here at once.
    pub fn lost(&mut self, id: SubflowId, failure: Failure, why: &str, now: Instant) {
        if let Some(&(key, path)) = self.subflows.get(&id)
            && let Some(known) = self.downloaders.get_mut(&key)
            && let Some(gone) = known.lost(path, id, failure, why, now)
        {
            self.forget(&gone);
            self.dirty.insert(key);
        }
    }

    /// When [`Self::tick`] must be called even if nothing happens; `None` for never.
    pub fn next_due(&self) -> Option<Instant> {
        self.due
    }

    /// The orders due now. Must be called after each event, and at [`Self::next_due`]. `carried`
    /// returns what a subflow in use has sent; it is called at the end of each time slot.
    pub fn tick(
        &mut self,
        mut carried: impl FnMut(K, SubflowId) -> Carried,
        now: Instant,
    ) -> Vec<(K, Order)> {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due || !self.dirty.is_empty() {
            for (key, known) in &mut self.downloaders {
                if known.wake(now) {
                    self.dirty.insert(*key);
                }
            }
            self.assign_changed();
            if now >= self.turns.next {
                self.turns.next = now + TURN;
                let changes = self.assignment.turn();
                self.turns.given += u64::from(!changes.is_empty());
                self.follow(changes);
            }
            if self.options.sensing && now >= self.turns.slot_began + self.options.slots.time_slot {
                self.end_slot(now, &mut carried);
            }
            // Closed subflows make room for those that other downloaders need.
            while let Some(key) = self.dirty.pop_first() {
                self.give_orders(key, now);
            }
            self.due = self.earliest();
        }
        std::mem::take(&mut self.orders)
    }

    /// The decisions about offered paths that differ from those returned before, and those about
    /// paths with a new connection. The downloaders must be informed of them.
    pub fn changes(&mut self) -> Vec<(K, Fingerprint, Decision)> {
        let mut changes = Vec::new();
        if !std::mem::take(&mut self.has_changes) {
            return changes;
        }
        for (key, known) in &mut self.downloaders {
            let is_choked = known.is_choked;
            for (path, state) in &mut known.paths {
                let assigned = || self.assignment.decision(*key, *path);
                let decision = state.decision(is_choked, assigned);
                if let Some(decision) = decision
                    && state.reported.as_ref() != Some(&decision)
                {
                    state.reported = Some(decision.clone());
                    changes.push((*key, *path, decision));
                }
            }
        }
        changes
    }

    /// A path of a downloader, as it was offered; `None` if it is not offered now.
    pub fn path(&self, key: K, path: Fingerprint) -> Option<&P> {
        let state = self.downloaders.get(&key)?.paths.get(&path)?;
        state.offered.as_ref()
    }

    /// The decision about a path as of the last [`Self::tick`]; `None` if it is not offered now.
    pub fn decision(&self, key: K, path: Fingerprint) -> Option<Decision> {
        let known = self.downloaders.get(&key)?;
        let state = known.paths.get(&path)?;
        state.decision(known.is_choked, || self.assignment.decision(key, path))
    }

    /// The decisions about all offered paths to all downloaders.
    pub fn decisions(&self) -> impl Iterator<Item = (K, Fingerprint, Decision)> {
        self.downloaders.iter().flat_map(move |(key, known)| {
            let paths = known.paths.iter();
            paths.filter_map(move |(path, state)| {
                let assigned = || self.assignment.decision(*key, *path);
                let decision = state.decision(known.is_choked, assigned)?;
                Some((*key, *path, decision))
            })
        })
    }

    /// Number of turns given to downloaders that waited for a path.
    pub fn turns(&self) -> u64 {
        self.turns.given
    }

    fn forget(&mut self, subflow: &Subflow) {
        self.subflows.remove(&subflow.id);
        if subflow.is_dialed {
            self.dialed -= 1;
            self.dirty.append(&mut self.short_of_subflows);
        }
    }

    /// Marks the downloaders of these changes for new orders. The reasons of all others may change
    /// too.
    fn follow(&mut self, changes: Vec<Change<K>>) {
        self.has_changes = true;
        self.dirty
            .extend(changes.into_iter().map(|change| change.peer));
    }

    /// Updates the assignment for downloaders whose available paths changed.
    fn assign_changed(&mut self) {
        let changed: Vec<K> = self.dirty.iter().copied().collect();
        for key in changed {
            let Some(known) = self.downloaders.get_mut(&key) else {
                continue;
            };
            if std::mem::take(&mut known.changed) {
                let paths = known.available(&self.options.select);
                let changes = self.assignment.set_peer(key, paths, known.max);
                self.follow(changes);
            }
        }
    }

    /// Lets sensing compare the rates of the slot (001, section VIII).
    fn end_slot(&mut self, now: Instant, carried: &mut impl FnMut(K, SubflowId) -> Carried) {
        let elapsed = now
            .saturating_duration_since(self.turns.slot_began)
            .as_secs_f64();
        self.turns.slot_began = now;
        let mut rates = BTreeMap::new();
        for (key, known) in &mut self.downloaders {
            for (path, state) in &mut known.paths {
                let bytes = state.end_slot(|id| carried(*key, id));
                if let Some(bytes) = bytes {
                    rates.insert((*key, *path), bytes as f64 * 8.0 / elapsed);
                }
            }
        }
        // Pausing a path for a check, and resuming it, are not among the changes.
        let paused = self.assignment.paused();
        let changes = self.assignment.slot(&rates, now);
        let paused = paused.into_iter().chain(self.assignment.paused());
        self.dirty.extend(paused.map(|(key, _)| key));
        self.follow(changes);
    }

    /// Brings the subflows of a downloader in line with what it is assigned.
    fn give_orders(&mut self, key: K, now: Instant) {
        let assigned = self.assignment.assigned(key);
        let Some(known) = self.downloaders.get(&key) else {
            return;
        };
        let missing = assigned.iter().filter(|path| !known.has_subflow(path));
        self.make_room(missing.count());
        let Some(known) = self.downloaders.get_mut(&key) else {
            return;
        };
        let fallback = known.fallback(&assigned, now);
        let (mut taken_back, mut gives_room) = (Vec::new(), false);
        let is_choked = known.is_choked;
        for (path, state) in &mut known.paths {
            let is_assigned = assigned.contains(path);
            let decided = state.decision(is_choked, || self.assignment.decision(key, *path));
            let cause = match decided {
                Some(decision) => Cause::Decided(decision.reason),
                None => Cause::NotOffered,
            };
            let mut order = |subflow: &Subflow, action, cause: &Cause| {
                let order = Order::new(subflow.id, *path, action, cause.clone());
                self.orders.push((key, order));
            };
            if is_assigned && state.subflows.is_empty() {
                if self.dialed >= self.max_dialed {
                    self.short_of_subflows.insert(key);
                    continue;
                }
                self.dialed += 1;
                self.last_subflow += 1;
                let subflow = Subflow::new(SubflowId(self.last_subflow), Use::Dialing);
                self.subflows.insert(subflow.id, (key, *path));
                order(&subflow, Action::Dial, &cause);
                state.subflows.push(subflow);
            }
            if !is_assigned {
                let is_dialing = |subflow: &mut Subflow| subflow.use_ == Use::Dialing;
                for subflow in state.subflows.extract_if(.., is_dialing) {
                    order(&subflow, CLOSE, &cause);
                    taken_back.push(subflow);
                }
            }
            for subflow in &mut state.subflows {
                let takes = match fallback {
                    Fallback::No => false,
                    Fallback::Accepted => !subflow.is_dialed,
                    Fallback::All => true,
                };
                let stands_in = !is_assigned && state.denied.is_none() && takes;
                let cause = match stands_in {
                    true => &Cause::NoneConnected,
                    false => &cause,
                };
                if let Some(action) = subflow.set_used(is_assigned || stands_in) {
                    order(subflow, action, cause);
                    // It may be closed to make room.
                    gives_room |= action == Action::Hold && subflow.is_dialed;
                }
            }
        }
        known.forget_unused();
        taken_back.iter().for_each(|subflow| self.forget(subflow));
        if gives_room {
            self.dirty.append(&mut self.short_of_subflows);
        }
    }

    /// Closes dialed subflows that are held, of any downloader, until this many more may be dialed.
    fn make_room(&mut self, more: usize) {
        let is_full = |dialed: usize| dialed.saturating_add(more) > self.max_dialed;
        for (key, known) in &mut self.downloaders {
            if !is_full(self.dialed) {
                return;
            }
            for (path, state) in &mut known.paths {
                while is_full(self.dialed)
                    && let Some(held) = state.take_held()
                {
                    self.subflows.remove(&held.id);
                    self.dialed -= 1;
                    let order = Order::close(held.id, *path, Cause::Replaced);
                    self.orders.push((*key, order));
                }
            }
        }
    }

    fn earliest(&self) -> Option<Instant> {
        if self.downloaders.is_empty() {
            return None;
        }
        let slot = self.turns.slot_began + self.options.slots.time_slot;
        let slot = self.options.sensing.then_some(slot);
        let own = self.downloaders.values().filter_map(Downloader::due);
        own.chain(slot).chain([self.turns.next]).min()
    }
}
