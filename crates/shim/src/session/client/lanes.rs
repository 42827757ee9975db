//! The connected lanes of a session, and the slots that they are under.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_manager::SubflowId;
use hawser_path::Path;

use super::hold::Hold;
use super::slots::Slots;
use crate::address::Slot;
use crate::protocol::Epoch;
use crate::session::lane_key::LaneKey;
use crate::session::published::Published;

/// Why there is a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LaneOrigin {
    /// The path manager has ordered it.
    Path(SubflowId),
    /// It goes over plain IP, to this address.
    PlainIp(SocketAddr),
}

/// A connected lane.
#[derive(Debug)]
pub(super) struct Lane<P> {
    pub origin: LaneOrigin,
    pub path: P,
    pub rtt: Option<Duration>,
    /// When it is closed, if the path manager wants that.
    pub closes: Option<Instant>,
    /// Whether datagrams have got through.
    pub is_up: bool,
    /// Whether nothing comes back over it.
    pub is_stalled: bool,
    /// Whether the other host has accepted it.
    pub is_accepted: bool,
    /// Whether MPTCP may use it.
    pub hold: Hold,
}

impl<P> Lane<P> {
    /// A lane that was just connected.
    pub(super) fn new(origin: LaneOrigin, path: P, rtt: Duration) -> Self {
        Self {
            origin,
            path,
            rtt: Some(rtt),
            closes: None,
            is_up: false,
            is_stalled: false,
            is_accepted: false,
            hold: Hold::default(),
        }
    }

    pub(super) fn is_over_path(&self) -> bool {
        matches!(self.origin, LaneOrigin::Path(_))
    }

    /// Whether it is to be closed, or does not deliver.
    fn is_in_vain(&self) -> bool {
        self.closes.is_some() || self.is_stalled
    }
}

/// The connected lanes of a session, each under a slot of its own, but for those that have given it up.
#[derive(Debug)]
pub(super) struct Lanes<P> {
    all: BTreeMap<LaneKey, Lane<P>>,
    slots: Slots<LaneKey>,
    published: Published,
}

impl<P> Default for Lanes<P> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            slots: Slots::new(),
            published: Published::default(),
        }
    }
}

impl<P: AsRef<Path>> Lanes<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = LaneKey> {
        self.all.keys().copied()
    }

    pub(super) fn get(&self, key: LaneKey) -> Option<&Lane<P>> {
        self.all.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: LaneKey) -> Option<&mut Lane<P>> {
        self.all.get_mut(&key)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&LaneKey, &mut Lane<P>)> {
        self.all.iter_mut()
    }

    pub(super) fn find_mut(&mut self, origin: LaneOrigin) -> Option<(LaneKey, &mut Lane<P>)> {
        let mut all = self.all.iter_mut();
        let (key, lane) = all.find(|(_, lane)| lane.origin == origin)?;
        Some((*key, lane))
    }

    /// Those whose time is over.
    pub(super) fn due(&self, now: Instant) -> Vec<LaneKey> {
        let all = self.all.iter();
        let due = all.filter(|(_, lane)| lane.closes.is_some_and(|at| at <= now));
        due.map(|(key, _)| *key).collect()
    }

    /// Those that are to be closed once they are replaced.
    pub(super) fn closing(&self) -> Vec<(LaneKey, LaneOrigin)> {
        let closing = self.all.iter().filter(|(_, lane)| lane.closes.is_some());
        closing.map(|(key, lane)| (*key, lane.origin)).collect()
    }

    /// The lane that gives its slot up for one over a path that is connected now: one that is to be
    /// closed, or does not deliver.
    pub(super) fn giving(&self) -> Option<(LaneKey, &Lane<P>)> {
        let gives = |(key, lane): &(&LaneKey, &Lane<P>)| {
            lane.is_over_path() && lane.is_in_vain() && self.slots.has(**key)
        };
        let (key, lane) = self.all.iter().find(gives)?;
        Some((*key, lane))
    }

    /// Adds a lane, under the slot of the one that is `giving` it up, or under one that is free; `None` if
    /// none is.
    pub(super) fn add(
        &mut self,
        key: LaneKey,
        lane: Lane<P>,
        giving: Option<LaneKey>,
    ) -> Option<(Slot, Epoch)> {
        let replaced = giving.and_then(|giving| self.slots.replace(giving, key));
        let placed = replaced.or_else(|| self.slots.take(key))?;
        self.all.insert(key, lane);
        Some(placed)
    }

    /// Removes a lane, if it is there. Returns the slot that it was under.
    pub(super) fn remove(&mut self, key: LaneKey) -> Option<Option<(Slot, Epoch)>> {
        self.all.remove(&key)?;
        Some(self.slots.lose(key))
    }

    /// The slot of a lane.
    pub(super) fn slot_of(&self, key: LaneKey) -> Option<Slot> {
        self.slots.of(key)
    }

    /// The lane under a slot, if `epoch` is the latest.
    pub(super) fn under(&self, slot: Slot, epoch: Epoch) -> Option<LaneKey> {
        self.slots.lane(slot, epoch)
    }

    /// Puts lanes that have given their slots up, and deliver after all, under slots that are free.
    pub(super) fn place(&mut self) -> Vec<(LaneKey, Slot, Epoch)> {
        let mut placed = Vec::new();
        for (key, lane) in &self.all {
            if lane.is_in_vain() || self.slots.has(*key) {
                continue;
            }
            let Some((slot, epoch)) = self.slots.take(*key) else {
                break;
            };
            placed.push((*key, slot, epoch));
        }
        placed
    }

    /// The slots that MPTCP's subflows may use now, the best one first, if the holder has others.
    pub(super) fn publish(&mut self) -> Option<Vec<Slot>> {
        let mut live = self.published.update(self.usable_slots())?;
        // Connections are opened over the first one.
        let rtt = |slot: &Slot| {
            let mut all = self.all.iter();
            let under = all.find(|(key, _)| self.slots.of(**key) == Some(*slot));
            under.and_then(|(_, lane)| lane.rtt)
        };
        live.sort_by_key(|slot| rtt(slot).unwrap_or(Duration::MAX));
        Some(live)
    }

    /// The slots of lanes that are neither held nor tried, or of all if there are no others.
    fn usable_slots(&self) -> BTreeSet<Slot> {
        let live = self.slots.live();
        let held = self.all.iter().filter(|(_, lane)| !lane.hold.is_usable());
        let held: BTreeSet<Slot> = held.filter_map(|(key, _)| self.slots.of(*key)).collect();
        match live.is_subset(&held) {
            true => live,
            false => &live - &held,
        }
    }

    /// The paths of lanes that are used, and not to be closed.
    pub(super) fn used_paths(&self) -> impl Iterator<Item = &Path> {
        let all = self.all.values();
        let used = all.filter(|lane| lane.is_over_path() && !lane.is_in_vain());
        used.map(|lane| lane.path.as_ref())
    }
}
