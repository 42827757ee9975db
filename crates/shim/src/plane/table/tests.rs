//! A table whose lanes have no sockets.

use std::sync::atomic::AtomicBool;

use hawser_keys::PeerKey;

use super::*;

/// A lane over which everything gets through.
pub(crate) struct TestLane {
    key: LaneKey,
    is_closed: AtomicBool,
}

impl TestLane {
    pub(crate) fn new(key: LaneKey) -> Arc<Self> {
        Arc::new(Self {
            key,
            is_closed: AtomicBool::new(false),
        })
    }
}

impl SlotLane for TestLane {
    fn key(&self) -> LaneKey {
        self.key
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn is_up(&self) -> bool {
        true
    }

    fn is_doubtful(&self) -> bool {
        false
    }

    fn rtt(&self) -> Option<Duration> {
        None
    }
}

/// A table of the side that accepts.
pub(crate) fn table() -> SlotTable<TestLane> {
    let [own, peer] = [1, 2].map(|tag| Block::of(&PeerKey([7; 32]), tag));
    SlotTable::new(Role::Server, own, peer)
}

/// Closes a lane, as the plane does. Returns the slots that it had.
pub(crate) fn close(table: &SlotTable<TestLane>, lane: &TestLane) -> Vec<(Slot, Epoch)> {
    lane.is_closed.store(true, Ordering::Relaxed);
    table.unbind(lane.key)
}

pub(crate) fn bound(slot: Slot, epoch: u8) -> SlotEpoch {
    SlotEpoch {
        slot,
        epoch: Epoch(epoch),
        ecn: 0,
    }
}

#[test]
fn a_slot_follows_later_epochs_only() {
    let table = table();
    let [first, second] = [1, 2].map(|number| TestLane::new(LaneKey(number)));
    assert!(table.learn(bound(1, 200), &first));
    assert!(!table.learn(bound(1, 200), &second));
    assert!(!table.learn(bound(1, 199), &second));
    assert!(table.learn(bound(1, 5), &second));
    assert!(!table.learn(bound(1, 200), &first));
    for slot in [0, SLOTS + 1, u8::MAX] {
        assert!(!table.learn(bound(slot, 1), &first));
    }
    let bindings = [(1, (LaneKey(2), Epoch(5)))];
    assert_eq!(table.bindings(), bindings.into());
}

#[test]
fn packets_of_a_slot_whose_lane_has_ended_go_over_another_one() {
    let table = table();
    let carrier = |slot| {
        let binding = table.carrier(slot);
        binding.map(|binding| (binding.lane.key, binding.epoch))
    };
    assert_eq!(carrier(1), None);
    let [first, second] = [1, 2].map(|number| TestLane::new(LaneKey(number)));
    table.learn(bound(1, 7), &first);
    table.learn(bound(2, 1), &second);
    assert_eq!(carrier(1), Some((LaneKey(1), Epoch(7))));
    assert_eq!(close(&table, &first), [(1, Epoch(7))]);
    // Under its own slot and epoch, which the other side knows.
    assert_eq!(carrier(1), Some((LaneKey(2), Epoch(7))));
    // A slot that has never had a lane has no packets.
    assert_eq!(carrier(3), None);
    assert!(!table.learn(bound(1, 8), &first), "it is closed");
    assert_eq!(close(&table, &second), [(2, Epoch(1))]);
    assert_eq!(carrier(1), None);
}
