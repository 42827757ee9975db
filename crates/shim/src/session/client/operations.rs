//! Random operations on a session, with invariants checked after each.

use std::sync::Arc;

use hawser_keys::PeerKey;
use hawser_path::Path;
use proptest::prelude::*;

use super::world::{KEY, MS, World, path};
use super::*;
use crate::protocol::{Message, RefusalCode};

/// What happens to a session. Numbers of dials and lanes are taken modulo how many there are.
#[derive(Debug, Clone)]
enum Operation {
    /// Only the paths of these numbers are offered.
    Offer(Vec<usize>),
    /// A program asks where to connect to.
    Ask,
    /// A dial succeeds, with this round-trip time in ms.
    Connect(usize, u32),
    /// A dial fails.
    Fail(usize),
    /// The first datagram arrives over a lane.
    Up(usize),
    /// A lane fails.
    Lose(usize),
    /// Nothing comes back over a lane.
    Stall(usize),
    /// Something comes back after all.
    Recover(usize),
    /// The other side accepts a lane.
    Accept(usize),
    /// The other side receives nothing over the lane under a slot; `true` if it means the latest one.
    Down(usize, bool),
    /// The other side has too many sessions.
    Refuse(usize),
    /// The other side listens on plain IP.
    Announce(u8),
    /// A lane carries this many bytes in every tick, and loses this share of them in percent.
    Carry(usize, u64, u64),
    /// Only paths that do not cross the AS of this number may be used; all, if 0.
    Policy(u16),
    /// This many ms pass, in steps of 50.
    Pass(u64),
    /// The process does not run for this many ms.
    Pause(u64),
    /// What ends the session.
    End(End),
}

#[derive(Debug, Clone, Copy)]
enum End {
    Distrust,
    Release,
    Refusal(usize),
    OtherKey(usize),
    Protocol(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let at = any::<usize>;
    let end = prop_oneof![
        Just(End::Distrust),
        Just(End::Release),
        at().prop_map(End::Refusal),
        at().prop_map(End::OtherKey),
        at().prop_map(End::Protocol),
    ];
    prop_oneof![
        4 => prop::collection::vec(0..PATHS.len(), 0..PATHS.len()).prop_map(Operation::Offer),
        4 => Just(Operation::Ask),
        12 => (at(), 1..400_u32).prop_map(|(at, rtt)| Operation::Connect(at, rtt)),
        4 => at().prop_map(Operation::Fail),
        6 => at().prop_map(Operation::Up),
        4 => at().prop_map(Operation::Lose),
        6 => at().prop_map(Operation::Stall),
        4 => at().prop_map(Operation::Recover),
        2 => at().prop_map(Operation::Accept),
        2 => (at(), any::<bool>()).prop_map(|(at, latest)| Operation::Down(at, latest)),
        1 => at().prop_map(Operation::Refuse),
        2 => any::<u8>().prop_map(Operation::Announce),
        4 => (at(), 0..300_000_u64, 0..60_u64).prop_map(|(at, bytes, lost)| {
            Operation::Carry(at, bytes, lost)
        }),
        2 => (0..4_u16).prop_map(Operation::Policy),
        12 => (1..6_000_u64).prop_map(Operation::Pass),
        2 => (1..100_000_u64).prop_map(Operation::Pause),
        1 => end.prop_map(Operation::End),
    ]
}

/// Paths by the interfaces that they cross: some share one, some none.
const PATHS: [&[u16]; 10] = [
    &[1],
    &[2, 2],
    &[3, 2, 3],
    &[4, 2, 4],
    &[5, 5],
    &[1, 6],
    &[7, 7, 7],
    &[8],
    &[9],
    &[10, 10],
];

/// What each lane carries in a tick.
struct Run {
    world: World,
    paths: Vec<Arc<Path>>,
    rates: Vec<(LaneKey, u64, u64)>,
}

impl Run {
    fn new(carrier: CarrierKind, plain_ip: bool) -> Self {
        Self {
            world: World::new(carrier, plain_ip),
            paths: PATHS.iter().map(|ids| path(ids)).collect(),
            rates: Vec::new(),
        }
    }

    fn lane(&self, at: usize) -> Option<LaneKey> {
        let lanes = &self.world.lanes;
        lanes.keys().nth(at.checked_rem(lanes.len())?).copied()
    }

    fn dial(&self, at: usize) -> Option<usize> {
        at.checked_rem(self.world.dials.len())
    }

    fn run(&mut self, operation: Operation) {
        let now = self.world.now;
        match operation {
            Operation::Offer(at) => {
                let paths: Vec<_> = at.iter().map(|at| Arc::clone(&self.paths[*at])).collect();
                self.world.offer(&paths);
            }
            Operation::Ask => drop(self.world.ask()),
            Operation::Connect(at, rtt) => {
                if let Some(dial) = self.dial(at) {
                    self.world.connect(dial, KEY, rtt * MS);
                }
            }
            Operation::Fail(at) => {
                if let Some(dial) = self.dial(at) {
                    self.world
                        .fail(dial, DialError::Path("no answer".to_owned()));
                }
            }
            Operation::Carry(at, bytes, lost) => {
                if let Some(lane) = self.lane(at) {
                    self.rates.retain(|(one, ..)| *one != lane);
                    self.rates.push((lane, bytes, lost));
                }
            }
            Operation::Policy(denied) => self.world.deny(denied),
            Operation::Pass(ms) => (0..ms.div_ceil(50)).for_each(|_| self.pass()),
            Operation::Pause(ms) => self.world.pause(ms as u32 * MS),
            Operation::End(end) => self.end(end),
            Operation::Up(at)
            | Operation::Lose(at)
            | Operation::Stall(at)
            | Operation::Recover(at)
            | Operation::Accept(at)
            | Operation::Down(at, _)
            | Operation::Refuse(at) => {
                if let Some(lane) = self.lane(at) {
                    self.happen(lane, &operation, now);
                }
            }
            Operation::Announce(host) => {
                if let Some(lane) = self.lane(0) {
                    let address = ([192, 0, 2, host], 30800).into();
                    self.world.message(lane, Message::Announce { address });
                }
            }
        }
        self.world.settle();
    }

    /// Something happens to a lane.
    fn happen(&mut self, lane: LaneKey, what: &Operation, now: Instant) {
        let world = &mut self.world;
        match what {
            Operation::Up(_) => world.session.on_up(lane),
            Operation::Lose(_) => world.session.on_failed(lane, "it failed".to_owned(), now),
            Operation::Stall(_) => world.session.on_stalled(lane, now),
            Operation::Recover(_) => world.session.on_recovered(lane),
            Operation::Accept(_) => {
                let is_first = !world.session.lanes.get(lane).unwrap().is_accepted;
                let (port, carriers) = (1, CarrierSet(3));
                if is_first {
                    world.message(lane, Message::Accept { port, carriers });
                }
            }
            Operation::Down(at, is_latest) => {
                let slot = (at % 8) as u8 + 1;
                let latest = world.table.get(&slot).map(|(_, epoch)| *epoch);
                let epoch = latest.unwrap_or_default();
                let epoch = if *is_latest { epoch } else { epoch.next() };
                world.message(lane, Message::Down { slot, epoch });
            }
            _ => world.refuse(lane, RefusalCode::TOO_MANY.0),
        }
    }

    /// 50 ms pass, in which lanes carry what they do.
    fn pass(&mut self) {
        for (lane, bytes, lost) in &self.rates {
            if let Some(driven) = self.world.lanes.get_mut(lane) {
                let packets = bytes / 1000;
                driven.figures.carried += bytes;
                driven.figures.sent += packets;
                driven.figures.arrived += packets - packets * lost / 100;
            }
        }
        self.world.pass(50 * MS);
    }

    fn end(&mut self, end: End) {
        let world = &mut self.world;
        match end {
            End::Distrust => world.session.distrust(),
            End::Release => world.session.release(),
            End::Refusal(at) => {
                if let Some(lane) = self.lane(at) {
                    self.world.refuse(lane, RefusalCode::KEY.0);
                }
            }
            End::OtherKey(at) => {
                if let Some(dial) = self.dial(at) {
                    self.world.connect(dial, PeerKey([9; 32]), 10 * MS);
                }
            }
            End::Protocol(at) => {
                if let Some(lane) = self.lane(at) {
                    self.world.message(lane, Message::Bye);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_session_keeps_its_promises(
        is_mptcp in any::<bool>(),
        plain_ip in any::<bool>(),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let carrier = match is_mptcp {
            true => CarrierKind::Mptcp,
            false => CarrierKind::Quic,
        };
        let mut run = Run::new(carrier, plain_ip);
        run.run(Operation::Offer((0..PATHS.len()).collect()));
        for operation in operations {
            run.run(operation);
        }
        // It ends at last, and nobody waits any more.
        run.world.session.release();
        run.world.settle();
        prop_assert!(run.world.end.is_some());
    }
}
