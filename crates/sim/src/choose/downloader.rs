//! Leechers that choose for themselves: selection, time slots, sensing.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use hawser_manager::TIME_SLOT;
use hawser_path::{Decision, Sense, SenseAction, SenseOptions, SlotOptions, Slots, Verdict};

use super::{Chooser, Now, Orders, Pair};
use crate::book::Ways;
use crate::flow::Carried;

/// Every leecher, with the address-level peers it gets something from.
pub(crate) struct Downloaders {
    most: usize,
    peers: BTreeMap<Pair, Peer>,
}

/// An address-level peer as a leecher sees it.
struct Peer {
    ways: Rc<Ways>,
    slots: Slots,
    sense: Sense<usize>,
    /// Handshakes under way, and when they are done.
    handshakes: Vec<(Duration, usize)>,
    /// The paths in use.
    used: BTreeSet<usize>,
    slot_begun: Duration,
    /// What each path in use had carried at the beginning of the slot.
    marks: BTreeMap<usize, u64>,
}

impl Downloaders {
    /// Each uses at most so many paths to each peer.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            peers: BTreeMap::new(),
        }
    }
}

impl Chooser for Downloaders {
    fn connect(&mut self, pair: Pair, ways: Rc<Ways>, now: Now, orders: &mut Orders) {
        for decision in &ways.selection.decisions {
            orders.count(decision);
        }
        let taken = &ways.selection.taken;
        let mut slots = Slots::new(SlotOptions::default());
        slots.expect(taken.len());
        orders
            .list
            .extend(taken.iter().map(|&path| (pair.flow(path), true)));
        let done = |&path: &usize| (now.since + ways.known[path].rtt, path);
        self.peers.insert(
            pair,
            Peer {
                slots,
                sense: Sense::new(SenseOptions::default()),
                handshakes: taken.iter().map(done).collect(),
                used: taken.iter().copied().collect(),
                slot_begun: now.since,
                marks: BTreeMap::new(),
                ways,
            },
        );
    }

    fn disconnect(&mut self, pair: Pair, _: Now, _: &mut Orders) {
        self.peers.remove(&pair);
    }

    fn tick(&mut self, carried: &dyn Carried, now: Now, orders: &mut Orders) {
        for (pair, peer) in &mut self.peers {
            peer.shake_hands(now);
            if peer.slots.due(now.instant) {
                peer.end_slot(*pair, carried, now, orders);
            }
            if now.since >= peer.slot_begun + TIME_SLOT {
                peer.sense(*pair, self.most, carried, now, orders);
            }
        }
    }
}

impl Peer {
    fn shake_hands(&mut self, now: Now) {
        let Self { ways, slots, .. } = self;
        self.handshakes.retain(|(done, path)| {
            let over = *done <= now.since;
            if over {
                let known = &ways.known[*path];
                slots.connected(known.fingerprint, known.rtt, now.instant);
            }
            !over
        });
    }

    /// The race or a time slot is over (000, Alg. 2 and 3).
    fn end_slot(&mut self, pair: Pair, carried: &dyn Carried, now: Now, orders: &mut Orders) {
        let since = now.since.saturating_sub(TIME_SLOT);
        let (ways, used) = (&self.ways, &self.used);
        let read = |fingerprint| {
            let path = ways.find(fingerprint)?;
            let flow = pair.flow(path);
            // One that waits would carry something if it were used.
            let could = !used.contains(&path) || carried.busy_since(flow, since);
            could.then(|| carried.bytes(flow))
        };
        for (fingerprint, decision) in self.slots.slot(read, now.instant) {
            if let Some(path) = self.ways.find(fingerprint) {
                let taken = decision.verdict == Verdict::Taken;
                self.set(pair, path, taken, &decision, orders);
            }
        }
    }

    /// Tries paths that share interfaces with those in use (001, section VIII).
    fn sense(
        &mut self,
        pair: Pair,
        most: usize,
        carried: &dyn Carried,
        now: Now,
        orders: &mut Orders,
    ) {
        let mut rates = BTreeMap::new();
        let marks = std::mem::take(&mut self.marks);
        for &path in &self.used {
            let flow = pair.flow(path);
            let bytes = carried.bytes(flow);
            self.marks.insert(path, bytes);
            let busy = carried.busy_since(flow, self.slot_begun);
            if let Some(before) = marks.get(&path).filter(|_| busy) {
                let seconds = (now.since - self.slot_begun).as_secs_f64();
                rates.insert(path, (bytes - before) as f64 * 8.0 / seconds);
            }
        }
        self.slot_begun = now.since;
        let known = &self.ways.known;
        let shares = |one: usize, other: usize| {
            let mut links = known[one].links.iter();
            one != other && links.any(|link| known[other].links.contains(link))
        };
        let selected = &self.ways.selection.taken;
        let candidates: Vec<(usize, Vec<usize>)> = (0..known.len())
            .filter(|path| !selected.contains(path))
            .map(|path| {
                let used = self.used.iter().copied();
                (path, used.filter(|&other| shares(path, other)).collect())
            })
            .collect();
        let room = self.used.len() < most;
        for action in self.sense.tick(now.instant, &rates, &candidates, room) {
            let (path, reason, use_) = match action {
                SenseAction::Try(path, reason) | SenseAction::Keep(path, reason) => {
                    (path, reason, true)
                }
                SenseAction::Pause(path, reason) | SenseAction::Drop(path, reason) => {
                    (path, reason, false)
                }
                _ => continue,
            };
            let decision = match use_ {
                true => Decision::taken(reason),
                false => Decision::left(reason),
            };
            self.set(pair, path, use_, &decision, orders);
        }
    }

    fn set(
        &mut self,
        pair: Pair,
        path: usize,
        use_: bool,
        decision: &Decision,
        orders: &mut Orders,
    ) {
        orders.count(decision);
        orders.list.push((pair.flow(path), use_));
        match use_ {
            true => self.used.insert(path),
            false => self.used.remove(&path),
        };
    }
}
