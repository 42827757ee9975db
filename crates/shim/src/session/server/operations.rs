//! Random operations on the sessions of other hosts, with invariants checked after each.

use proptest::prelude::*;

use super::world::{MS, World, open};
use super::*;

/// What happens. Numbers of lanes are taken modulo how many there are.
#[derive(Debug, Clone)]
enum Operation {
    /// A host opens a lane under a slot: the epoch is so far from what is there.
    Open(u8, u64, Slot, u8),
    /// The same with a cipher, or carriers, of this number.
    OpenWith(u8, u8, u8),
    /// A packet over a lane has a slot with an epoch so far from what is there.
    Packet(usize, Slot, u8),
    /// A lane fails.
    Fail(usize),
    Stall(usize),
    Recover(usize),
    /// The other side receives nothing over the lane under a slot, as of an epoch so far from the latest.
    Down(usize, Slot, u8),
    Bye(usize),
    /// A message that a server does not expect.
    Violate(usize),
    /// Only these hosts are allowed, as a look shows.
    Look(Vec<u8>),
    /// A host connects that is not allowed.
    Stranger(u8),
    /// This many seconds pass.
    Pass(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let at = any::<usize>;
    let (host, slot) = (|| 1..4_u8, || 0..=9_u8);
    let distance = || prop_oneof![Just(0), Just(1), Just(255), any::<u8>()];
    prop_oneof![
        12 => (host(), 0..3_u64, slot(), distance())
            .prop_map(|(host, tag, slot, to)| Operation::Open(host, tag, slot, to)),
        1 => (host(), any::<u8>(), any::<u8>())
            .prop_map(|(host, cipher, carriers)| Operation::OpenWith(host, cipher, carriers)),
        12 => (at(), slot(), distance()).prop_map(|(at, slot, to)| Operation::Packet(at, slot, to)),
        6 => at().prop_map(Operation::Fail),
        2 => at().prop_map(Operation::Stall),
        2 => at().prop_map(Operation::Recover),
        6 => (at(), slot(), distance()).prop_map(|(at, slot, to)| Operation::Down(at, slot, to)),
        1 => at().prop_map(Operation::Bye),
        1 => at().prop_map(Operation::Violate),
        2 => prop::collection::vec(host(), 0..4).prop_map(Operation::Look),
        1 => host().prop_map(Operation::Stranger),
        4 => (0..700_u64).prop_map(Operation::Pass),
    ]
}

fn lane(world: &World, at: usize) -> Option<LaneKey> {
    let lanes = &world.lanes;
    lanes.keys().nth(at.checked_rem(lanes.len())?).copied()
}

/// The epoch of a slot, plus `distance`.
fn epoch(world: &World, session: SessionId, slot: Slot, distance: u8) -> Epoch {
    let table = world.tables.get(&session);
    let latest = table.and_then(|table| table.get(&slot));
    let latest = latest.map_or(0, |(_, latest)| latest.0);
    Epoch(latest.wrapping_add(distance))
}

fn run(world: &mut World, operation: Operation) {
    match operation {
        Operation::Open(host, tag, slot, distance) => {
            let slot = slot.clamp(1, 8);
            let session = super::world::session(host, tag);
            let epoch = epoch(world, session, slot, distance);
            world.open(host, open(tag, slot, epoch.0));
        }
        Operation::OpenWith(host, cipher, carriers) => {
            world.open(
                host,
                Open {
                    cipher,
                    carriers: CarrierSet(carriers),
                    ..open(0, 1, 1)
                },
            );
        }
        Operation::Look(allowed) => world.look(&allowed),
        Operation::Stranger(host) => world.stranger(host),
        Operation::Pass(seconds) => world.pass(seconds as u32 * 1000 * MS),
        Operation::Packet(at, ..)
        | Operation::Fail(at)
        | Operation::Stall(at)
        | Operation::Recover(at)
        | Operation::Down(at, ..)
        | Operation::Bye(at)
        | Operation::Violate(at) => {
            if let Some(lane) = lane(world, at) {
                happen(world, lane, &operation);
            }
        }
    }
}

/// Something happens to a lane.
fn happen(world: &mut World, lane: LaneKey, what: &Operation) {
    let session = world.lanes[&lane].session;
    match *what {
        Operation::Packet(_, slot, distance) => {
            let slot = slot.clamp(1, 8);
            let epoch = epoch(world, session, slot, distance);
            world.packet(lane, slot, epoch);
        }
        Operation::Fail(_) => world.fail(lane),
        Operation::Stall(_) => world.sessions.on_stalled(lane),
        Operation::Recover(_) => world.sessions.on_recovered(lane),
        Operation::Down(_, slot, distance) => {
            let before = world.tables[&session].clone();
            let epoch = epoch(world, session, slot, distance);
            world.message(lane, Message::Down { slot, epoch });
            // It closes the lane that it names, and no other one.
            let named = before.get(&slot).filter(|_| distance == 0);
            for (under, _) in before.values() {
                let is_named = named.is_some_and(|(named, _)| named == under);
                assert_eq!(world.lanes.contains_key(under), !is_named);
            }
        }
        Operation::Bye(_) => {
            world.message(lane, Message::Bye);
            assert!(!world.tables.contains_key(&session));
        }
        _ => {
            world.message(lane, Message::Open(open(0, 1, 1)));
            assert!(!world.lanes.contains_key(&lane));
        }
    }
    world.settle();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn sessions_of_other_hosts_keep_their_promises(
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let mut world = World::new();
        for operation in operations {
            run(&mut world, operation);
        }
        // All end at last.
        for lane in world.lanes.keys().copied().collect::<Vec<_>>() {
            world.fail(lane);
        }
        world.pass(SESSION_TIMEOUT);
        prop_assert!(world.sessions.is_empty() && world.sessions.next_due().is_none());
        prop_assert!(world.tables.is_empty() && world.lanes.is_empty());
    }
}
