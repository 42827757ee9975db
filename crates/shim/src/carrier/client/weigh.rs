//! What each lane of a session carries and how long it takes, for the path manager to judge.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::time::Instant;

use hawser_manager::{Carried, SubflowId};

use super::{ClientSession, Use};
use crate::address::Slot;

/// Bytes over all lanes in a [tick](super::TICK), from which on their rates are compared: with less,
/// programs have little to send, and what a lane carries says nothing about it. 8 Mbit/s.
const BUSY: u64 = 50_000;

/// What the lanes of a session had carried at the last tick.
#[derive(Debug, Default)]
pub(super) struct Load {
    carried: HashMap<SubflowId, u64>,
    /// Those on trial.
    tried: BTreeSet<SubflowId>,
    /// Whether their rates can be compared.
    is_busy: bool,
}

impl Load {
    /// What a subflow carried.
    pub(super) fn of(&self, subflow: SubflowId) -> Carried {
        Carried {
            bytes: self.carried.get(&subflow).copied().unwrap_or_default(),
            usable: self.is_busy && !self.tried.contains(&subflow),
        }
    }

    fn total(&self) -> u64 {
        self.carried.values().sum()
    }
}

impl ClientSession {
    /// Measures what the lanes have carried, and reports their round-trip times and what they lose of what
    /// the other side sends.
    pub(super) fn weigh(&mut self, now: Instant) {
        let mut carried = HashMap::new();
        let mut tried = BTreeSet::new();
        for one in self.open.values_mut() {
            let Use::Path(subflow) = one.of else { continue };
            let probes = one.hold.tick(now);
            if let Some(bound) = one.lane.table.bound_of(one.lane.key) {
                (0..probes).for_each(|_| one.lane.probe(bound, 0, true));
            }
            if one.hold.is_trial() {
                tried.insert(subflow);
            }
            if let Some(rtt) = one.lane.rtt() {
                self.dialer.paths.measured(subflow, rtt, now);
            }
            let counters = &one.lane.counters;
            let arrived = counters.received_packets.load(Ordering::Relaxed);
            let sent = one.lane.opener().sent();
            self.dialer.paths.arrived(subflow, sent, arrived, now);
            let datagrams = [&counters.sent_bytes, &counters.received_bytes];
            let datagrams: u64 = (datagrams.iter())
                .map(|counter| counter.load(Ordering::Relaxed))
                .sum();
            // What streams have received over a path counts at the other side.
            let streams = self.streams.streams.sent_over(one.lane.key.0);
            carried.insert(subflow, datagrams + streams);
        }
        let before = std::mem::replace(
            &mut self.load,
            Load {
                carried,
                tried,
                is_busy: false,
            },
        );
        self.load.is_busy = self.load.total() >= before.total() + BUSY;
    }

    /// The slots that MPTCP's subflows may use: those of lanes that are neither held nor tried, or of all
    /// if there are no others.
    pub(super) fn usable_slots(&self) -> BTreeSet<Slot> {
        let live = self.slots.live();
        let held = self.open.iter().filter(|(_, one)| !one.hold.is_usable());
        let held: BTreeSet<Slot> = held.filter_map(|(key, _)| self.slots.of(*key)).collect();
        match live.is_subset(&held) {
            true => live,
            false => &live - &held,
        }
    }
}
