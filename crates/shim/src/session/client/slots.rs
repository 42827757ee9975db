//! Which lane is under which slot, on the side that dials.

use std::collections::BTreeSet;

use crate::address::{SLOTS, Slot};
use crate::protocol::Epoch;

/// The slots of a session. `L` names a lane.
#[derive(Debug)]
pub(super) struct Slots<L>([Entry<L>; SLOTS as usize]);

#[derive(Debug)]
struct Entry<L> {
    lane: Option<L>,
    epoch: Epoch,
}

impl<L: Copy + PartialEq> Slots<L> {
    /// Slots without lanes.
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Entry {
            lane: None,
            epoch: Epoch::default(),
        }))
    }

    /// Puts `lane` under the first slot that has none; `None` when all have one.
    pub(super) fn take(&mut self, lane: L) -> Option<(Slot, Epoch)> {
        let free = self.0.iter().position(|slot| slot.lane.is_none())?;
        let entry = &mut self.0[free];
        entry.lane = Some(lane);
        entry.epoch = entry.epoch.next();
        Some((free as Slot + 1, entry.epoch))
    }

    /// Whether `lane` has a slot.
    pub(super) fn has(&self, lane: L) -> bool {
        self.0.iter().any(|slot| slot.lane == Some(lane))
    }

    /// The slot of `lane`, if it has one.
    pub(super) fn of(&self, lane: L) -> Option<Slot> {
        let slot = self.0.iter().position(|slot| slot.lane == Some(lane))?;
        Some(slot as Slot + 1)
    }

    /// Puts `lane` under the slot of `former`, if that has one.
    pub(super) fn replace(&mut self, former: L, lane: L) -> Option<(Slot, Epoch)> {
        let slot = self.of(former)?;
        let entry = &mut self.0[usize::from(slot) - 1];
        entry.lane = Some(lane);
        entry.epoch = entry.epoch.next();
        Some((slot, entry.epoch))
    }

    /// Takes `lane` from its slot, if it has one.
    pub(super) fn lose(&mut self, lane: L) -> Option<(Slot, Epoch)> {
        let slot = self.of(lane)?;
        let entry = &mut self.0[usize::from(slot) - 1];
        entry.lane = None;
        Some((slot, entry.epoch))
    }

    /// The lane under `slot`, if `epoch` is the latest.
    pub(super) fn lane(&self, slot: Slot, epoch: Epoch) -> Option<L> {
        let entry = self.0.get(usize::from(slot).checked_sub(1)?)?;
        entry.lane.filter(|_| entry.epoch == epoch)
    }

    /// The slots that have a lane.
    pub(super) fn live(&self) -> BTreeSet<Slot> {
        let slots = (1..=SLOTS).zip(&self.0);
        let live = slots.filter(|(_, entry)| entry.lane.is_some());
        live.map(|(slot, _)| slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_lane_takes_the_slot_of_a_lost_one() {
        let mut slots = Slots::new();
        let first = slots.take('a').unwrap();
        assert_eq!((first.0, slots.take('b').unwrap().0), (1, 2));
        assert_eq!(slots.live(), [1, 2].into());
        assert_eq!((slots.lose('a'), slots.lose('a')), (Some(first), None));
        assert_eq!(slots.live(), [2].into());
        let again = slots.take('c').unwrap();
        assert_eq!(again, (1, first.1.next()));
        assert_eq!(slots.lane(1, again.1), Some('c'));
        assert_eq!(slots.lane(1, first.1), None);
        assert_eq!(slots.lane(0, again.1), None);
    }

    #[test]
    fn a_lane_that_gave_its_slot_up_gets_the_next_free_one() {
        let mut slots = Slots::new();
        for lane in 0..i32::from(SLOTS) {
            assert!(slots.take(lane).is_some());
        }
        assert_eq!(slots.lose(3).map(|(slot, _)| slot), Some(4));
        assert_eq!(slots.take(100).map(|(slot, _)| slot), Some(4));
        assert!(!slots.has(3) && slots.has(100));
        assert_eq!(slots.take(3), None);
        assert_eq!(slots.lose(5).map(|(slot, _)| slot), Some(6));
        assert_eq!(slots.take(3).map(|(slot, _)| slot), Some(6));
        assert!(slots.has(3));
        assert_eq!((slots.of(3), slots.of(5)), (Some(6), None));
    }

    #[test]
    fn a_slot_passes_to_the_lane_that_replaces_its_own() {
        let mut slots = Slots::new();
        slots.take('a').unwrap();
        let (slot, epoch) = slots.take('b').unwrap();
        slots.lose('a');
        // Though an earlier one is free.
        assert_eq!(slots.replace('b', 'c'), Some((slot, epoch.next())));
        assert!(!slots.has('b') && slots.has('c'));
        assert_eq!(slots.replace('b', 'd'), None);
    }

    #[test]
    fn there_are_as_many_slots_as_subflows() {
        let mut slots = Slots::new();
        let taken = (0..20).filter_map(|lane| slots.take(lane));
        let taken: Vec<Slot> = taken.map(|one| one.0).collect();
        assert_eq!(taken, (1..=SLOTS).collect::<Vec<_>>());
    }
}
