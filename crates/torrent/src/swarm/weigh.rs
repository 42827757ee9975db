//! Which of the connected paths to a remote wait for a while, and which are tried beyond those that
//! the selection takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Instant;

use hawser_path::{
    Decision, Fingerprint, Reason, Sense, SenseAction, SenseOptions, SlotOptions, Slots, Verdict,
};

use super::Swarm;
use super::remote::Remote;
use crate::picker::ConnId;
use crate::transport::Transport;

/// How the paths to a remote are weighed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    pub slots: SlotOptions,
    /// Whether paths that share interfaces are tried.
    pub sensing: bool,
}

/// What is known of the paths to one remote.
#[derive(Debug)]
pub(super) struct Weighing {
    slots: Slots,
    sense: Sense<Fingerprint>,
    /// The connection over each path that delivers.
    conns: BTreeMap<Fingerprint, ConnId>,
    /// Paths that could not be used for all of the slot.
    unused: BTreeSet<Fingerprint>,
    /// Those that could not since sensing last looked.
    unsensed: BTreeSet<Fingerprint>,
    /// Bytes read when sensing last looked, and when that was.
    marks: BTreeMap<Fingerprint, u64>,
    looked_at: Instant,
}

impl Weighing {
    pub fn new(options: Weights, now: Instant) -> Self {
        Self {
            slots: Slots::new(options.slots),
            sense: Sense::new(SenseOptions::default()),
            conns: BTreeMap::new(),
            unused: BTreeSet::new(),
            unsensed: BTreeSet::new(),
            marks: BTreeMap::new(),
            looked_at: now,
        }
    }
}

impl<T: Transport> Swarm<T> {
    /// Ends the time slots that are over, for each remote.
    pub(super) fn weigh(&mut self, now: Instant) {
        if self.is_complete() {
            return;
        }
        let mut all = std::mem::take(&mut self.weighings);
        all.resize_with(self.remotes.len(), || Weighing::new(self.goal.weights, now));
        for (remote, weighing) in all.iter_mut().enumerate() {
            // There is nothing to compare the one way to an IP peer with.
            if self.remotes[remote].addr.ip().is_some() {
                continue;
            }
            // A path that waits would let those wait that may carry no more than it lets them.
            if self.remotes[remote].has_shares() {
                continue;
            }
            self.meet(remote, weighing, now);
            self.end_slot(remote, weighing, now);
            self.hold(remote, weighing);
        }
        self.weighings = all;
    }

    /// Notes which paths deliver now, and which could not be used just now.
    fn meet(&mut self, remote: usize, weighing: &mut Weighing, now: Instant) {
        let paths = &mut self.remotes[remote].paths;
        weighing
            .slots
            .expect(paths.values().filter(|path| path.taken).count());
        let mut changes = Vec::new();
        for (fingerprint, path) in paths.iter_mut() {
            let conn = path
                .link
                .conn
                .filter(|_| path.stalled.is_none() && path.offered);
            let before = weighing.conns.get(fingerprint).copied();
            if before != conn {
                if before.is_some() {
                    changes.extend(weighing.slots.gone(*fingerprint, now));
                    weighing.conns.remove(fingerprint);
                }
                if let Some(id) = conn {
                    weighing.slots.connected(*fingerprint, path.handshake, now);
                    weighing.conns.insert(*fingerprint, id);
                }
                weighing.unused.insert(*fingerprint);
                weighing.unsensed.insert(*fingerprint);
                // What sensing found stays; what was weighed belongs to the connection.
                if conn.is_none() && !path.sensed && path.taken {
                    path.weighed = None;
                }
            }
        }
        // Near the end the plan, not the path, sets the pace.
        let ending = self.picker.free_blocks() == 0;
        for (fingerprint, id) in &weighing.conns {
            let asked = self.picker.asked(*id) > 0 || weighing.slots.is_waiting(*fingerprint);
            let open = self
                .conns
                .get(id)
                .is_some_and(|c| c.unchoked && !c.retiring);
            if ending || !asked || !open {
                weighing.unused.insert(*fingerprint);
                weighing.unsensed.insert(*fingerprint);
            }
        }
        self.decided(remote, changes);
    }

    fn end_slot(&mut self, remote: usize, weighing: &mut Weighing, now: Instant) {
        if weighing.slots.due(now) {
            let totals = self.totals(weighing, &weighing.unused);
            let changes = weighing.slots.slot(|path| totals.get(&path).copied(), now);
            weighing.unused.clear();
            self.decided(remote, changes);
        }
        let over = now.saturating_duration_since(weighing.looked_at);
        if self.goal.weights.sensing && over >= self.goal.weights.slots.time_slot {
            let totals = self.totals(weighing, &weighing.unsensed);
            let changes = self.sense(remote, weighing, &totals, now);
            weighing.unsensed.clear();
            weighing.marks = totals;
            weighing.looked_at = now;
            self.decided(remote, changes);
        }
    }

    /// Bytes read over each connection in all, except those.
    fn totals(
        &self,
        weighing: &Weighing,
        without: &BTreeSet<Fingerprint>,
    ) -> BTreeMap<Fingerprint, u64> {
        let conns = weighing.conns.iter();
        let used = conns.filter(|(path, _)| !without.contains(path));
        let total = |(path, id): (&Fingerprint, &ConnId)| {
            let counts = &self.conns.get(id)?.counts;
            Some((*path, counts.received.load(Ordering::Relaxed)))
        };
        used.filter_map(total).collect()
    }

    /// Lets sensing judge what was carried since it last looked.
    fn sense(
        &mut self,
        remote: usize,
        weighing: &mut Weighing,
        totals: &BTreeMap<Fingerprint, u64>,
        now: Instant,
    ) -> Vec<(Fingerprint, Decision)> {
        let elapsed = now.saturating_duration_since(weighing.looked_at);
        let rate = |(path, total): (&Fingerprint, &u64)| {
            let before = weighing.marks.get(path)?;
            let bits = total.saturating_sub(*before) as f64 * 8.0;
            let used = !weighing.slots.is_waiting(*path);
            used.then(|| (*path, bits / elapsed.as_secs_f64().max(1e-6)))
        };
        let rates = totals.iter().filter_map(rate).collect();
        let known = &mut self.remotes[remote];
        let candidates = candidates(known);
        let used = known
            .paths
            .values()
            .filter(|path| path.taken || path.sensed);
        let room = used.count() < self.goal.choice.1;
        let actions = weighing.sense.tick(now, &rates, &candidates, room);
        let mut sensed = weighing.sense.used();
        // It stays connected meanwhile.
        sensed.extend(weighing.sense.paused());
        for (fingerprint, path) in &mut known.paths {
            let is = sensed.contains(fingerprint);
            if is && !path.sensed {
                path.retry_at = Some(now);
            }
            path.sensed = is;
        }
        let decision = |action| match action {
            SenseAction::Try(path, why) | SenseAction::Keep(path, why) => {
                Some((path, Decision::taken(why)))
            }
            SenseAction::Pause(path, why) => Some((path, Decision::waiting(why))),
            SenseAction::Drop(path, why) => Some((path, Decision::left(why))),
            _ => None,
        };
        actions.into_iter().filter_map(decision).collect()
    }

    /// Asks for nothing over the paths that wait.
    fn hold(&mut self, remote: usize, weighing: &Weighing) {
        let paused = weighing.sense.paused();
        for (fingerprint, id) in &weighing.conns {
            let waits = weighing.slots.is_waiting(*fingerprint);
            let Some(conn) = self.conns.get_mut(id) else {
                continue;
            };
            let held = waits || paused == Some(*fingerprint);
            if held == conn.held {
                continue;
            }
            conn.held = held;
            if waits {
                // What such a path still owes would be late: others fetch it.
                self.picker.release(*id);
            }
            self.touched.extend(self.conns.keys());
        }
        // The selection took a path after all.
        for path in self.remotes[remote].paths.values_mut() {
            let left = path.weighed.as_ref().map(|decision| decision.verdict);
            if path.taken && left == Some(Verdict::Left) {
                path.weighed = None;
            }
        }
    }

    fn decided(&mut self, remote: usize, changes: Vec<(Fingerprint, Decision)>) {
        let known = &mut self.remotes[remote];
        for (fingerprint, decision) in changes {
            tracing::debug!(peer = %known.addr, path = %fingerprint, %decision, "path weighed");
            if let Some(path) = known.paths.get_mut(&fingerprint) {
                path.weighed = Some(decision);
            }
        }
    }
}

/// The paths that were left since they share interfaces, the shortest first, each with the paths in
/// use that it shares any with.
fn candidates<P: AsRef<hawser_path::Path> + Clone>(
    remote: &Remote<P>,
) -> Vec<(Fingerprint, Vec<Fingerprint>)> {
    let used = || remote.paths.iter().filter(|(_, p)| p.taken || p.sensed);
    let shares = |a: &P, b: &P| {
        let (a, b) = (&a.as_ref().interfaces, &b.as_ref().interfaces);
        a.iter().any(|one| b.contains(one))
    };
    let mut open: Vec<_> = remote
        .paths
        .iter()
        .filter(|(_, path)| {
            let left = path.decision.as_ref().map(|decision| &decision.reason);
            let shares = matches!(left, Some(Reason::Shares { .. }));
            path.offered && !path.taken && (path.sensed || shares && !path.is_failing())
        })
        .collect();
    open.sort_by_key(|(fingerprint, path)| (path.hops, **fingerprint));
    let with = |fingerprint: &Fingerprint, path: &P| {
        let others = used().filter(|(other, _)| *other != fingerprint);
        let others = others.filter(|(_, other)| shares(path, &other.path));
        others.map(|(other, _)| *other).collect()
    };
    open.into_iter()
        .map(|(fingerprint, path)| (*fingerprint, with(fingerprint, &path.path)))
        .collect()
}
