//! Uploaders that choose for all they serve: assignment, turns, sensing (001, section VI).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use hawser_manager::TIME_SLOT;
use hawser_path::{Change, SenseOptions, SensingAssignment, Verdict};

use super::{Chooser, Now, Orders, Pair};
use crate::book::Ways;
use crate::flow::Carried;
use crate::host::HostId;

/// How often others get their turn (BEP 3).
const TURN: Duration = Duration::from_secs(10);

/// Every host that uploads.
pub(crate) struct Uploaders {
    most: usize,
    uploaders: BTreeMap<HostId, Uploader>,
}

/// A leecher, as reasons name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Leecher(HostId);

impl fmt::Display for Leecher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.0)
    }
}

/// A path to a leecher.
type Lane = (Leecher, usize);

struct Uploader {
    host: HostId,
    assignment: SensingAssignment<Leecher>,
    ways: BTreeMap<Leecher, Rc<Ways>>,
    /// The lanes in use.
    used: BTreeSet<Lane>,
    slot_begun: Duration,
    turn_begun: Duration,
    /// What each lane in use had carried at the beginning of the slot.
    marks: BTreeMap<Lane, u64>,
}

impl Uploaders {
    /// Each leecher gets at most so many paths of each.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            uploaders: BTreeMap::new(),
        }
    }
}

impl Chooser for Uploaders {
    fn connect(&mut self, pair: Pair, ways: Rc<Ways>, now: Now, orders: &mut Orders) {
        let uploader = self.uploaders.entry(pair.from).or_insert_with(|| Uploader {
            host: pair.from,
            assignment: SensingAssignment::new(Some(SenseOptions::default())),
            ways: BTreeMap::new(),
            used: BTreeSet::new(),
            slot_begun: now.since,
            turn_begun: now.since,
            marks: BTreeMap::new(),
        });
        let leecher = Leecher(pair.to);
        let paths = ways.ranked().map(|path| (*ways.known[path].path).clone());
        let paths = paths.collect();
        uploader.ways.insert(leecher, ways);
        let changes = uploader.assignment.set_peer(leecher, paths, self.most);
        uploader.follow(changes, orders);
    }

    fn disconnect(&mut self, pair: Pair, _: Now, orders: &mut Orders) {
        let Some(uploader) = self.uploaders.get_mut(&pair.from) else {
            return;
        };
        let leecher = Leecher(pair.to);
        let changes = uploader.assignment.remove_peer(leecher);
        uploader.follow(changes, orders);
        uploader.ways.remove(&leecher);
        if uploader.ways.is_empty() {
            self.uploaders.remove(&pair.from);
        }
    }

    fn tick(&mut self, carried: &dyn Carried, now: Now, orders: &mut Orders) {
        for uploader in self.uploaders.values_mut() {
            if now.since >= uploader.slot_begun + TIME_SLOT {
                uploader.end_slot(carried, now, orders);
            }
            if now.since >= uploader.turn_begun + TURN {
                uploader.turn_begun = now.since;
                let changes = uploader.assignment.turn();
                orders.turns += u64::from(!changes.is_empty());
                uploader.follow(changes, orders);
            }
        }
    }
}

impl Uploader {
    fn pair(&self, leecher: Leecher) -> Pair {
        Pair {
            from: self.host,
            to: leecher.0,
        }
    }

    /// Does what the assignment says.
    fn follow(&mut self, changes: Vec<Change<Leecher>>, orders: &mut Orders) {
        for change in changes {
            orders.count(&change.decision);
            let ways = self.ways.get(&change.peer);
            let Some(path) = ways.and_then(|ways| ways.find(change.path)) else {
                continue;
            };
            let taken = change.decision.verdict == Verdict::Taken;
            self.set((change.peer, path), taken, orders);
        }
    }

    fn set(&mut self, lane: Lane, use_: bool, orders: &mut Orders) {
        orders.list.push((self.pair(lane.0).flow(lane.1), use_));
        match use_ {
            true => self.used.insert(lane),
            false => self.used.remove(&lane),
        };
    }

    /// Ends a slot: sensing judges what was carried (001, section VIII).
    fn end_slot(&mut self, carried: &dyn Carried, now: Now, orders: &mut Orders) {
        let mut rates = BTreeMap::new();
        let marks = std::mem::take(&mut self.marks);
        for &(leecher, path) in &self.used {
            let flow = self.pair(leecher).flow(path);
            let bytes = carried.bytes(flow);
            self.marks.insert((leecher, path), bytes);
            let busy = carried.busy_since(flow, self.slot_begun);
            let before = marks.get(&(leecher, path)).filter(|_| busy);
            let known = self
                .ways
                .get(&leecher)
                .and_then(|ways| ways.known.get(path));
            if let (Some(before), Some(known)) = (before, known) {
                let seconds = (now.since - self.slot_begun).as_secs_f64();
                let rate = (bytes - before) as f64 * 8.0 / seconds;
                rates.insert((leecher, known.fingerprint), rate);
            }
        }
        self.slot_begun = now.since;
        let changes = self.assignment.slot(&rates, now.instant);
        self.follow(changes, orders);
    }
}
