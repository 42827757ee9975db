use hawser_keys::PeerKey;
use proptest::prelude::*;

use super::*;

const TOKEN: Token = Token(7);
const SECOND: Duration = Duration::from_secs(1);

fn block(key: u8) -> Block {
    Block::of(&PeerKey([key; 32]), 0)
}

fn ends(slot: Slot, port: u16) -> Ends {
    let local = (block(1).address(slot), port).into();
    (local, (block(2).address(0), 1).into())
}

fn swap((local, remote): Ends) -> Ends {
    (remote, local)
}

/// One connection, on time of its own.
struct Bench {
    plan: Plan,
    role: Role,
    now: Instant,
}

impl Bench {
    /// A connection over a subflow from `slot` and port 9, of a session with these live slots.
    fn new(role: Role, live: &[Slot], slot: Slot) -> Self {
        let mut bench = Self::unknown(role);
        bench.live(live);
        bench.begin(slot);
        bench
    }

    /// No connection, and nothing is known of the session.
    fn unknown(role: Role) -> Self {
        Self {
            plan: Plan::default(),
            role,
            now: Instant::now(),
        }
    }

    fn begin(&mut self, slot: Slot) {
        let ends = self.ends(slot, 9);
        self.plan.established(TOKEN, self.role, ends, self.now);
    }

    fn session(&self) -> Session {
        let peer = match self.role {
            Role::Client => block(2),
            Role::Server => block(1),
        };
        (peer.address(0), self.role)
    }

    fn ends(&self, slot: Slot, port: u16) -> Ends {
        match self.role {
            Role::Client => ends(slot, port),
            Role::Server => swap(ends(slot, port)),
        }
    }

    fn live(&mut self, slots: &[Slot]) {
        let session = self.session();
        self.plan.set_live(session, slots.to_vec());
    }

    fn joined(&mut self, slot: Slot, port: u16) {
        let ends = self.ends(slot, port);
        self.plan.subflow_established(TOKEN, ends);
    }

    /// The other side has accepted it.
    fn accepted(&mut self, slot: Slot, port: u16) {
        let ends = self.ends(slot, port);
        self.plan.proven(TOKEN, ends, self.now);
    }

    fn closed(&mut self, slot: Slot, port: u16) {
        let ends = self.ends(slot, port);
        self.plan.subflow_closed(TOKEN, ends, false, self.now);
    }

    fn refused(&mut self, slot: Slot, port: u16) {
        let ends = self.ends(slot, port);
        self.plan.subflow_closed(TOKEN, ends, true, self.now);
    }

    fn changes(&mut self) -> Vec<Change> {
        self.plan.changes(self.now)
    }

    fn create(&self, slot: Slot) -> Change {
        Change::Create {
            token: TOKEN,
            slot,
            remote: ends(slot, 0).1,
        }
    }

    fn destroy(&self, slot: Slot, port: u16) -> Change {
        Change::Destroy {
            token: TOKEN,
            ends: self.ends(slot, port),
        }
    }

    /// Lets a second pass, in which what failed is tried again.
    fn retry(&mut self) -> Vec<Change> {
        self.now += SECOND;
        self.plan.retry();
        self.changes()
    }
}

#[test]
fn a_client_has_a_subflow_over_every_live_slot() {
    let mut bench = Bench::new(Role::Client, &[1, 2, 3], 2);
    assert_eq!(bench.changes(), [bench.create(1), bench.create(3)]);
    // Both may still come about.
    assert_eq!(bench.retry(), []);
    bench.joined(1, 10);
    bench.plan.failed(TOKEN, 3);
    assert_eq!(bench.changes(), []);
    assert_eq!(bench.retry(), [bench.create(3)]);
    // The other side refuses it.
    bench.refused(3, 11);
    assert_eq!(bench.changes(), []);
    assert_eq!(bench.retry(), [bench.create(3)]);
    bench.joined(3, 12);
    assert_eq!(bench.retry(), []);
}

#[test]
fn subflows_over_dead_slots_are_destroyed_and_created_again() {
    let mut bench = Bench::new(Role::Client, &[1, 2], 1);
    bench.changes();
    bench.joined(2, 10);
    bench.accepted(2, 10);
    bench.live(&[2]);
    assert_eq!(bench.changes(), [bench.destroy(1, 9)]);
    bench.closed(1, 9);
    assert_eq!(bench.changes(), []);
    bench.live(&[1, 2]);
    assert_eq!(bench.changes(), [bench.create(1)]);
    bench.joined(1, 12);
    // The end of the earlier one, reported late, is not the end of this one.
    bench.closed(1, 9);
    bench.live(&[2]);
    assert_eq!(bench.changes(), [bench.destroy(1, 12)]);
    bench.plan.closed(TOKEN);
    bench.live(&[1, 2]);
    assert_eq!(bench.changes(), []);
}

#[test]
fn the_only_subflow_stays_until_another_one_is_proven() {
    let mut bench = Bench::new(Role::Client, &[2], 1);
    assert_eq!(bench.changes(), [bench.create(2)]);
    bench.plan.failed(TOKEN, 2);
    assert_eq!(bench.retry(), [bench.create(2)]);
    // The other side's kernel refuses it after this one has it, as it does once a direction has ended: at
    // any time later, as when the other side was paused.
    let prove = Change::Prove { token: TOKEN };
    bench.joined(2, 10);
    for _ in 0..100 {
        assert_eq!(bench.changes(), [prove]);
        // Once in each interval, whatever happens meanwhile.
        bench.now += PROOF_INTERVAL / 2;
        bench.live(&[2]);
        assert_eq!(bench.changes(), []);
        bench.now = bench.plan.next_due().unwrap();
    }
    bench.closed(2, 10);
    assert_eq!(bench.changes(), [bench.create(2)]);
    bench.joined(2, 11);
    assert_eq!(bench.changes(), [prove]);
    // What is known of the old one, and of one that has ended, is no proof.
    bench.accepted(1, 9);
    bench.accepted(2, 10);
    assert_eq!(bench.changes(), []);
    bench.accepted(2, 11);
    assert_eq!(bench.plan.next_due(), Some(bench.now));
    assert_eq!(bench.changes(), [bench.destroy(1, 9)]);
    bench.now += SECOND;
    assert_eq!((bench.changes(), bench.plan.next_due()), (vec![], None));
}

#[test]
fn no_subflow_is_destroyed_while_no_path_works() {
    let mut bench = Bench::new(Role::Client, &[1, 2], 1);
    bench.changes();
    bench.joined(2, 10);
    bench.now += 5 * SECOND;
    bench.live(&[]);
    assert_eq!(bench.changes(), []);
    // TCP may wait long over the old one.
    bench.live(&[2]);
    assert_eq!(bench.changes(), [bench.create(2)]);
    // As long as none can be created, they are what there is.
    bench.plan.failed(TOKEN, 2);
    assert_eq!(bench.retry(), [bench.create(2)]);
    bench.joined(2, 11);
    assert_eq!(bench.changes(), [Change::Prove { token: TOKEN }]);
    bench.accepted(2, 11);
    let destroyed = [bench.destroy(1, 9), bench.destroy(2, 10)];
    assert_eq!(bench.changes(), destroyed);

    let mut bench = Bench::new(Role::Server, &[1, 2], 1);
    bench.joined(2, 10);
    bench.changes();
    bench.live(&[]);
    assert_eq!(bench.changes(), []);
    // The client may replace it, or not be able to.
    bench.live(&[2]);
    assert_eq!(bench.changes(), [bench.destroy(1, 9)]);
    bench.joined(2, 11);
    assert_eq!(bench.changes(), []);
}

#[test]
fn nothing_is_done_for_a_session_that_has_ended() {
    let mut bench = Bench::new(Role::Client, &[1, 2], 1);
    let session = bench.session();
    bench.plan.forget(session);
    assert_eq!(bench.retry(), []);
    // Another session with the same host.
    bench.plan.closed(TOKEN);
    bench.begin(1);
    assert_eq!(bench.changes(), []);
    bench.live(&[1, 2]);
    assert_eq!(bench.changes(), [bench.create(2)]);
}

#[test]
fn a_slot_has_one_subflow() {
    let mut bench = Bench::new(Role::Client, &[1, 2], 1);
    assert_eq!(bench.changes(), [bench.create(2)]);
    // The slot dies and comes back while the first SYN is on its way.
    bench.live(&[1]);
    assert_eq!(bench.changes(), []);
    bench.live(&[1, 2]);
    assert_eq!(bench.changes(), [bench.create(2)]);
    bench.joined(2, 10);
    bench.joined(2, 11);
    assert_eq!(bench.changes(), [bench.destroy(2, 11)]);
    bench.closed(2, 11);
    bench.live(&[1]);
    assert_eq!(bench.changes(), [bench.destroy(2, 10)]);
}

#[test]
fn a_server_destroys_only() {
    let mut bench = Bench::unknown(Role::Server);
    bench.begin(1);
    bench.joined(2, 10);
    // Nothing is known of the session's slots yet.
    assert_eq!(bench.changes(), []);
    bench.live(&[1, 2, 3]);
    assert_eq!(bench.changes(), []);
    bench.live(&[2, 3]);
    assert_eq!(bench.changes(), [bench.destroy(1, 9)]);
    // It is there before its slot is reported.
    bench.joined(4, 11);
    assert_eq!(bench.changes(), []);
    bench.live(&[2, 3, 4]);
    assert_eq!(bench.changes(), []);
    bench.live(&[2, 3]);
    assert_eq!(bench.changes(), [bench.destroy(4, 11)]);
}

#[test]
fn a_connection_that_the_other_host_does_not_know_ends() {
    let mut bench = Bench::new(Role::Client, &[1, 2], 1);
    bench.changes();
    // Refusals beside a subflow: the other side takes no further one.
    for port in 10..20 {
        bench.refused(2, port);
        assert_eq!(bench.changes(), []);
        assert_eq!(bench.retry(), [bench.create(2)]);
    }
    bench.closed(1, 9);
    assert_eq!(bench.changes(), [bench.create(1)]);
    // Several at one moment.
    for port in 20..30 {
        bench.refused(2, port);
        bench.refused(1, port);
        assert_eq!(bench.changes(), []);
        bench.plan.retry();
        assert_eq!(bench.changes(), [bench.create(1), bench.create(2)]);
    }
    // Lost ones say nothing.
    bench.now += 10 * SECOND;
    bench.closed(1, 30);
    assert_eq!(bench.changes(), []);
    assert_eq!(bench.retry(), [bench.create(1)]);
    // One that comes about after all.
    bench.joined(1, 31);
    bench.changes();
    bench.closed(1, 31);
    assert_eq!(bench.changes(), [bench.create(1)]);
    for port in 32..35 {
        bench.refused(1, port);
        assert_eq!(bench.changes(), []);
        assert_eq!(bench.retry(), [bench.create(1)]);
    }
    bench.refused(1, 35);
    assert_eq!(bench.changes(), [Change::End { token: TOKEN }]);
    assert_eq!(bench.retry(), []);

    // An idle one, that has kept a subflow over a slot that was dead.
    let mut bench = Bench::new(Role::Client, &[1], 1);
    bench.live(&[]);
    bench.changes();
    bench.live(&[1]);
    for port in 10..13 {
        assert_eq!(bench.retry(), [bench.create(1)]);
        bench.refused(1, port);
        assert_eq!(bench.changes(), []);
    }
    assert_eq!(bench.retry(), [bench.create(1)]);
    bench.refused(1, 13);
    assert_eq!(bench.changes(), [Change::End { token: TOKEN }]);
}

#[test]
fn a_connection_without_a_path_waits() {
    let mut bench = Bench::new(Role::Client, &[1], 1);
    bench.changes();
    bench.closed(1, 9);
    bench.live(&[]);
    for _ in 0..600 {
        assert_eq!(bench.retry(), []);
    }
    let mut bench = Bench::new(Role::Server, &[1], 1);
    bench.closed(1, 9);
    bench.live(&[]);
    for _ in 0..600 {
        assert_eq!(bench.retry(), []);
    }
    // There are paths, but the client does not use them.
    bench.live(&[1]);
    assert_eq!(bench.changes(), []);
    let waits = (0..600).take_while(|_| bench.retry().is_empty()).count();
    assert_eq!(waits, 29);
}

#[test]
fn what_is_looked_up_takes_the_place_of_what_was_known() {
    let mut bench = Bench::new(Role::Client, &[1, 2, 3], 1);
    bench.changes();
    let (session, remote) = (bench.session(), ends(1, 0).1);
    let found = [ends(1, 9), ends(3, 10)];
    bench.plan.adopt(TOKEN, session, remote, &found);
    assert_eq!(bench.changes(), [bench.create(2)]);
    // Which of them the other side has accepted is to be found out.
    bench.live(&[2, 3]);
    assert_eq!(bench.changes(), [Change::Prove { token: TOKEN }]);
    bench.accepted(3, 10);
    assert_eq!(bench.changes(), [bench.destroy(1, 9)]);
}

#[derive(Debug, Clone)]
enum Operation {
    Live(Vec<Slot>),
    Joined(Slot),
    /// One of the subflows that are there.
    Accepted(prop::sample::Index),
    /// One of the subflows that are there.
    Closed(prop::sample::Index),
    Refused(Slot),
    Failed(Slot),
    Wait(u64),
    Retry,
}

fn operation() -> impl Strategy<Value = Operation> {
    let slot = 1..5u8;
    prop_oneof![
        prop::collection::vec(slot.clone(), 0..4).prop_map(Operation::Live),
        slot.clone().prop_map(Operation::Joined),
        any::<prop::sample::Index>().prop_map(Operation::Accepted),
        any::<prop::sample::Index>().prop_map(Operation::Closed),
        slot.clone().prop_map(Operation::Refused),
        slot.prop_map(Operation::Failed),
        (0..2000u64).prop_map(Operation::Wait),
        Just(Operation::Retry),
    ]
}

proptest! {
    #[test]
    fn the_last_subflow_is_never_destroyed(
        is_client: bool,
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        let role = if is_client { Role::Client } else { Role::Server };
        let mut bench = Bench::new(role, &[1], 1);
        // Each with whether the other side has accepted it.
        let mut there = vec![(bench.ends(1, 9), true)];
        let mut port = 9;
        for operation in operations {
            port += 1;
            match operation {
                Operation::Live(slots) => bench.live(&slots),
                Operation::Joined(slot) => {
                    there.push((bench.ends(slot, port), role == Role::Server));
                    bench.joined(slot, port);
                }
                Operation::Accepted(index) if !there.is_empty() => {
                    let index = index.index(there.len());
                    let (ends, is_accepted) = &mut there[index];
                    *is_accepted = true;
                    bench.plan.proven(TOKEN, *ends, bench.now);
                }
                Operation::Closed(index) if !there.is_empty() => {
                    let (ends, _) = there.remove(index.index(there.len()));
                    bench.plan.subflow_closed(TOKEN, ends, false, bench.now);
                }
                Operation::Accepted(_) | Operation::Closed(_) => {}
                Operation::Refused(slot) => bench.refused(slot, port),
                Operation::Failed(slot) => bench.plan.failed(TOKEN, slot),
                Operation::Wait(ms) => bench.now += Duration::from_millis(ms),
                Operation::Retry => bench.plan.retry(),
            }
            for change in bench.changes() {
                match change {
                    Change::Destroy { ends, .. } => {
                        there.retain(|(one, _)| *one != ends);
                        let is_left = there.iter().any(|(_, is_accepted)| *is_accepted);
                        prop_assert!(is_left, "{ends:?} was the last");
                    }
                    Change::End { .. } => {
                        prop_assert!(is_client || there.is_empty());
                        return Ok(());
                    }
                    Change::Create { .. } | Change::Prove { .. } => prop_assert!(is_client),
                }
            }
        }
    }
}
