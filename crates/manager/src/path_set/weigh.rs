//! Which of the connected paths are held for a while, and which are tried beyond those that the
//! selection takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hawser_path::{
    Decision, Fingerprint, Path, Reason, Sense, SenseOptions, SlotOptions, Slots, Verdict,
};

use super::entry::{Entries, PathStatus};
use crate::order::SubflowId;

/// The bytes that a subflow carried, as the transfer counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Carried {
    /// Bytes in all since the subflow was connected.
    pub bytes: u64,
    /// Whether the subflow could be used during all the time since the last query: there was
    /// something to carry, and the remote allowed it. A subflow that could not be used for a whole
    /// time slot is not weighed in it. For a held subflow, whether it could be used if it were not
    /// held.
    pub usable: bool,
}

/// The state of time slots and sensing for the paths to one remote.
#[derive(Debug)]
pub(super) struct Weighing {
    slots: Slots,
    time_slot: Duration,
    /// `None` if sensing is off.
    sense: Option<Sense<Fingerprint>>,
    /// The delivering subflow of each path.
    open: BTreeMap<Fingerprint, SubflowId>,
    /// Paths that could not be used for the whole slot.
    unused: BTreeSet<Fingerprint>,
    /// Paths that could not be used for the whole time since sensing last ran.
    unsensed: BTreeSet<Fingerprint>,
    /// The bytes that each path had carried when sensing last ran.
    marks: BTreeMap<Fingerprint, u64>,
    /// When sensing last ran; `None` before the first tick.
    looked_at: Option<Instant>,
}

/// Decisions, each with its path.
type Decisions = Vec<(Fingerprint, Decision)>;

impl Weighing {
    pub fn new(options: SlotOptions, sensing: bool) -> Self {
        Self {
            slots: Slots::new(options),
            time_slot: options.time_slot,
            sense: sensing.then(|| Sense::new(SenseOptions::default())),
            open: BTreeMap::new(),
            unused: BTreeSet::new(),
            unsensed: BTreeSet::new(),
            marks: BTreeMap::new(),
            looked_at: None,
        }
    }

    /// Ends the time slots that are over. At most `most` paths are used at once. Returns whether
    /// anything was decided.
    pub fn tick<P: AsRef<Path>>(
        &mut self,
        entries: &mut Entries<P>,
        most: usize,
        carried: impl Fn(SubflowId) -> Carried,
        now: Instant,
    ) -> bool {
        let mut unpublished = self.follow(entries, now);
        let paused = self.paused();
        let mut totals = BTreeMap::new();
        for (path, subflow) in &self.open {
            let Carried { bytes, usable } = carried(*subflow);
            if !usable || paused == Some(*path) {
                self.unused.insert(*path);
                self.unsensed.insert(*path);
            }
            totals.insert(*path, bytes);
        }
        if self.slots.due(now) {
            let read = |path| totals.get(&path).filter(|_| !self.unused.contains(&path));
            let changes = self.slots.slot(|path| read(path).copied(), now);
            self.unused.clear();
            unpublished |= decided(entries, changes);
        }
        let looked_at = *self.looked_at.get_or_insert(now);
        let elapsed = now.saturating_duration_since(looked_at);
        if self.sense.is_some() && elapsed >= self.time_slot {
            totals.retain(|path, _| !self.unsensed.contains(path));
            let changes = self.sense(entries, most, &totals, elapsed, now);
            self.unsensed.clear();
            self.marks = totals;
            self.looked_at = Some(now);
            unpublished |= decided(entries, changes);
        }
        for entry in entries.values_mut() {
            // The selection takes the path by now.
            let left = entry
                .decisions
                .weighed
                .as_ref()
                .map(|decision| decision.verdict);
            if entry.taken && left == Some(Verdict::Left) {
                entry.decisions.weighed = None;
                unpublished = true;
            }
        }
        unpublished
    }

    /// Forgets a path that is not among `entries` any more. Returns whether that decides anything
    /// about others.
    pub fn forget<P>(&mut self, entries: &mut Entries<P>, path: Fingerprint, now: Instant) -> bool {
        self.unused.remove(&path);
        self.unsensed.remove(&path);
        self.marks.remove(&path);
        let open = self.open.remove(&path);
        let change = open.and_then(|_| self.slots.gone(path, now));
        decided(entries, Vec::from_iter(change))
    }

    /// Whether a path is held: nothing may be requested over it for now.
    pub fn is_held(&self, path: Fingerprint) -> bool {
        self.slots.is_waiting(path) || self.paused() == Some(path)
    }

    /// When the next slot ends.
    pub fn next_due(&self) -> Option<Instant> {
        let sensing = self.sense.is_some() && !self.open.is_empty();
        let sensed = self.looked_at.filter(|_| sensing);
        let sensed = sensed.map(|at| at + self.time_slot);
        [self.slots.next_due(), sensed].into_iter().flatten().min()
    }

    fn paused(&self) -> Option<Fingerprint> {
        self.sense.as_ref().and_then(Sense::paused)
    }

    /// Notes which paths deliver now. Returns whether that decides anything.
    fn follow<P: AsRef<Path>>(&mut self, entries: &mut Entries<P>, now: Instant) -> bool {
        let taken = entries.values().filter(|entry| entry.taken);
        self.slots.expect(taken.count());
        let (mut changes, mut unpublished) = (Vec::new(), false);
        for (path, entry) in entries.iter_mut() {
            let open = entry.weighable();
            let before = self.open.get(path).copied();
            if before == open.map(|open| open.subflow) {
                continue;
            }
            if before.is_some() {
                changes.extend(self.slots.gone(*path, now));
                self.open.remove(path);
            }
            if let Some(open) = open {
                self.slots.connected(*path, open.handshake, now);
                self.open.insert(*path, open.subflow);
            }
            self.unused.insert(*path);
            self.unsensed.insert(*path);
            // Decisions of sensing stay; those of weighing end with the subflow.
            if open.is_none() && !entry.sensed && entry.taken {
                unpublished |= entry.decisions.weighed.take().is_some();
            }
        }
        unpublished | decided(entries, changes)
    }

    /// Lets sensing judge what was carried since it last ran.
    fn sense<P: AsRef<Path>>(
        &mut self,
        entries: &mut Entries<P>,
        most: usize,
        totals: &BTreeMap<Fingerprint, u64>,
        elapsed: Duration,
        now: Instant,
    ) -> Decisions {
        let Some(sense) = &mut self.sense else {
            return Vec::new();
        };
        let rate = |(path, total): (&Fingerprint, &u64)| {
            let before = self.marks.get(path)?;
            let bits = total.saturating_sub(*before) as f64 * 8.0;
            let used = !self.slots.is_waiting(*path);
            used.then(|| (*path, bits / elapsed.as_secs_f64().max(1e-6)))
        };
        let rates = totals.iter().filter_map(rate).collect();
        let used = entries.values().filter(|entry| entry.is_used());
        let room = used.count() < most;
        let action = sense.tick(now, &rates, &candidates(entries, room), room);
        let mut sensed = sense.used();
        // A paused path stays connected.
        sensed.extend(sense.paused());
        for (path, entry) in entries {
            let is = sensed.contains(path);
            if is && !entry.sensed {
                entry.backoff.reset();
            }
            entry.sensed = is;
        }
        action.into_iter().collect()
    }
}

fn decided<P>(entries: &mut Entries<P>, changes: Decisions) -> bool {
    let unpublished = !changes.is_empty();
    for (path, decision) in changes {
        if let Some(entry) = entries.get_mut(&path) {
            entry.decisions.weighed = Some(decision);
        }
    }
    unpublished
}

/// The paths on trial and, if there is `room` for another, those left because they share
/// interfaces: the shortest first, each with the paths in use that it shares interfaces with.
fn candidates<P: AsRef<Path>>(
    entries: &Entries<P>,
    room: bool,
) -> Vec<(Fingerprint, Vec<Fingerprint>)> {
    let mut open: Vec<_> = entries
        .values()
        .filter(|entry| {
            let left = entry
                .decisions
                .selected
                .as_ref()
                .map(|decision| &decision.reason);
            let shares = room && left.is_some_and(Reason::is_overlap);
            let fails = entry.backoff.is_replaced();
            entry.is_fit() && !entry.taken && (entry.sensed || shares && !fails)
        })
        .collect();
    open.sort_by_key(|entry| (entry.path.as_ref().links(), entry.fingerprint));
    let with = |path: &PathStatus<P>| {
        let others = entries.values().filter(|other| other.is_used());
        let others = others.filter(|other| {
            let mut shared = path.path.as_ref().shared(other.path.as_ref());
            other.fingerprint != path.fingerprint && shared.next().is_some()
        });
        others.map(|other| other.fingerprint).collect()
    };
    open.into_iter()
        .map(|path| (path.fingerprint, with(path)))
        .collect()
}
