//! What each lane of a session carries and how long it takes, for the path manager to judge.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::time::Instant;

use hawser_manager::Carried;

use super::{ClientSession, Use};
use crate::address::Slot;

/// Bytes over all lanes in a [tick](super::TICK), from which on their rates are compared: with less,
/// programs have little to send, and what a lane carries says nothing about it. 8 Mbit/s.
const BUSY: u64 = 50_000;

impl ClientSession {
    /// Reports what the lanes have carried, their round-trip times, and what they lose of what the other
    /// side sends.
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
        let total = carried.values().sum();
        let is_busy = total >= std::mem::replace(&mut self.carried, total) + BUSY;
        let of = |subflow| Carried {
            bytes: carried.get(&subflow).copied().unwrap_or_default(),
            usable: is_busy && !tried.contains(&subflow),
        };
        self.dialer.paths.tick(of, now);
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
