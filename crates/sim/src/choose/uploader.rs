//! Uploaders that choose for all they serve: assignment, turns, sensing (001, section VI).

use super::{Chooser, Now, Orders, Pair, SLOT};
use crate::{book::Ways, flow::Carried, host::HostId};
use hawser_path::{Assignment, Change, Decision, Sense, SenseAction, SenseOptions, Verdict};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    rc::Rc,
    time::Duration,
};

/// How often others get their turn (BEP 3).
const TURN: Duration = Duration::from_secs(10);

/// How many paths are considered for a trial; one is tried at a time.
const CONSIDERED: usize = 16;

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
    assignment: Assignment<Leecher>,
    sense: Sense<Lane>,
    ways: BTreeMap<Leecher, Rc<Ways>>,
    /// The lanes in use.
    used: BTreeSet<Lane>,
    /// What lanes on trial, and those kept, may share interfaces with.
    allowed: BTreeMap<Lane, Vec<Lane>>,
    slot_begun: Duration,
    turn_begun: Duration,
    /// What each lane in use had carried at the beginning of the slot.
    marks: BTreeMap<Lane, u64>,
}

impl Uploaders {
    /// Each leecher gets at most so many paths of each.
    pub fn new(most: usize) -> Uploaders {
        Uploaders {
            most,
            uploaders: BTreeMap::new(),
        }
    }
}

impl Chooser for Uploaders {
    fn connect(&mut self, pair: Pair, ways: Rc<Ways>, now: Now, orders: &mut Orders) {
        let uploader = self.uploaders.entry(pair.from).or_insert_with(|| Uploader {
            host: pair.from,
            assignment: Assignment::new(),
            sense: Sense::new(SenseOptions::default()),
            ways: BTreeMap::new(),
            used: BTreeSet::new(),
            allowed: BTreeMap::new(),
            slot_begun: now.since,
            turn_begun: now.since,
            marks: BTreeMap::new(),
        });
        let leecher = Leecher(pair.to);
        let paths = ways.ranked().map(|path| ways.known[path].path.clone());
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
        uploader.allowed.retain(|(whose, _), _| *whose != leecher);
        if uploader.ways.is_empty() {
            self.uploaders.remove(&pair.from);
        }
    }

    fn tick(&mut self, carried: &dyn Carried, now: Now, orders: &mut Orders) {
        for uploader in self.uploaders.values_mut() {
            if now.since >= uploader.slot_begun + SLOT {
                uploader.sense(self.most, carried, now, orders);
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

    /// Tries paths that share interfaces with those in use (001, section VIII).
    fn sense(&mut self, most: usize, carried: &dyn Carried, now: Now, orders: &mut Orders) {
        let mut rates = BTreeMap::new();
        let marks = std::mem::take(&mut self.marks);
        for &lane in &self.used {
            let flow = self.pair(lane.0).flow(lane.1);
            let bytes = carried.bytes(flow);
            self.marks.insert(lane, bytes);
            let busy = carried.busy_since(flow, self.slot_begun);
            if let Some(before) = marks.get(&lane).filter(|_| busy) {
                let seconds = (now.since - self.slot_begun).as_secs_f64();
                rates.insert(lane, (bytes - before) as f64 * 8.0 / seconds);
            }
        }
        self.slot_begun = now.since;
        let candidates = self.candidates(most);
        for action in self.sense.tick(now.instant, &rates, &candidates, true) {
            match action {
                SenseAction::Try(lane, reason) => {
                    orders.count(&Decision::taken(reason));
                    let with = candidates.iter().find(|(one, _)| *one == lane);
                    let with = with.map(|(_, with)| with.clone()).unwrap_or_default();
                    self.change(lane, &with, true, orders);
                    self.allowed.insert(lane, with);
                }
                SenseAction::Keep(lane, reason) => {
                    orders.count(&Decision::taken(reason));
                    if self.is_assigned(lane) {
                        self.set(lane, true, orders);
                    }
                }
                SenseAction::Pause(lane, reason) => {
                    orders.count(&Decision::left(reason));
                    self.set(lane, false, orders);
                }
                SenseAction::Drop(lane, reason) => {
                    orders.count(&Decision::left(reason));
                    let with = self.allowed.remove(&lane).unwrap_or_default();
                    self.change(lane, &with, false, orders);
                }
                _ => {}
            }
        }
    }

    /// Allows or forbids a lane beside others.
    fn change(&mut self, lane: Lane, with: &[Lane], allow: bool, orders: &mut Orders) {
        let name = |(leecher, path): Lane| {
            let known = self.ways.get(&leecher)?.known.get(path)?;
            Some((leecher, known.fingerprint))
        };
        let Some(one) = name(lane) else { return };
        let others: Vec<_> = with.iter().filter_map(|other| name(*other)).collect();
        for other in others {
            let changes = match allow {
                true => self.assignment.allow(one, other),
                false => self.assignment.forbid(one, other),
            };
            self.follow(changes, orders);
        }
    }

    fn is_assigned(&self, (leecher, path): Lane) -> bool {
        let ways = self.ways.get(&leecher);
        let known = ways.and_then(|ways| ways.known.get(path));
        known.is_some_and(|known| {
            let assigned = self.assignment.assigned(leecher);
            assigned.contains(&known.fingerprint)
        })
    }

    /// Lanes that may be tried beside those in use, and those that are: of the leechers with the
    /// fewest paths the best.
    fn candidates(&self, most: usize) -> Vec<(Lane, Vec<Lane>)> {
        let mut on: BTreeMap<u32, Vec<Lane>> = BTreeMap::new();
        let mut counts: BTreeMap<Leecher, usize> = BTreeMap::new();
        for &(leecher, path) in &self.used {
            *counts.entry(leecher).or_default() += 1;
            if let Some(ways) = self.ways.get(&leecher) {
                for link in &ways.known[path].links {
                    on.entry(*link).or_default().push((leecher, path));
                }
            }
        }
        let shared = |lane: Lane| {
            let known = self
                .ways
                .get(&lane.0)
                .and_then(|ways| ways.known.get(lane.1));
            let links = known.into_iter().flat_map(|known| &known.links);
            let with = links.filter_map(|link| on.get(link)).flatten().copied();
            let with: BTreeSet<Lane> = with.filter(|other| *other != lane).collect();
            (lane, with.into_iter().collect())
        };
        let mut order: Vec<(usize, Leecher)> = self
            .ways
            .keys()
            .map(|leecher| (counts.get(leecher).copied().unwrap_or(0), *leecher))
            .collect();
        order.sort_unstable();
        let open = order.into_iter().filter(|(count, _)| *count < most);
        let open = open.flat_map(|(_, leecher)| {
            let ways = self.ways[&leecher].ranked();
            ways.map(move |path| (leecher, path))
        });
        let open =
            open.filter(|lane| !self.used.contains(lane) && !self.allowed.contains_key(lane));
        let tried = self.allowed.keys().copied();
        tried.chain(open.take(CONSIDERED)).map(shared).collect()
    }
}
