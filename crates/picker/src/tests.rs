mod late;
mod seeders;
mod selecting;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use proptest::prelude::*;

use super::begun::MAX_HOLDERS;
use super::conn::MAX_LATE;
use super::piece::{Block, Sole};
use super::*;

fn picker(pieces: u64, blocks_per_piece: u32) -> Picker {
    let length = blocks_per_piece * BLOCK;
    let total = pieces * u64::from(length) - 7;
    let pieces = Pieces { length, total };
    let none = Bitfield::empty(pieces.count());
    Picker::new(pieces, none, 1)
}

fn add(picker: &mut Picker, conn: ConnId, group: GroupId, pieces: impl IntoIterator<Item = u32>) {
    let mut has = Bitfield::empty(picker.pieces.count());
    pieces.into_iter().for_each(|piece| {
        has.set(piece);
    });
    picker.add_conn(conn, group);
    picker.set_has(conn, has);
}

fn key(request: &Request) -> (u32, u32) {
    (request.piece, request.begin)
}

/// The pieces whose bit is set in `has`.
fn pieces(has: u32, count: u32) -> impl Iterator<Item = u32> {
    (0..count).filter(move |piece| has >> (piece % 32) & 1 == 1)
}

impl Conn {
    fn is_asked(&self, block: BlockRef) -> bool {
        self.asked.iter().any(|asked| asked.block == block)
    }
}

/// Checks the counters against the blocks.
fn check_counters(picker: &Picker) {
    let all = || {
        picker
            .begun
            .pieces()
            .values()
            .flat_map(|begun| begun.blocks.iter())
    };
    let suspended = all().filter(|b| matches!(b, Block::Suspended(_))).count() as u64;
    let free = all().filter(|b| **b == Block::Free).count() as u64 + suspended;
    let is_received = |block: &&Block| matches!(block, Block::Received(_) | Block::Padding);
    let received = all().filter(is_received).count() as u64;
    assert_eq!(picker.begun.free(), free);
    assert_eq!(picker.begun.received(), received);
    let untouched: u32 = (0..picker.pieces.count())
        .filter(|piece| picker.rarity.contains(*piece))
        .map(|piece| {
            let padding = picker.padding.blocks(picker.pieces, piece);
            picker.pieces.size(piece).div_ceil(BLOCK) - padding.len() as u32
        })
        .sum();
    assert_eq!(picker.untouched, u64::from(untouched));
    let lacking = (0..picker.pieces.count())
        .filter(|piece| picker.wanted.has(*piece) && !picker.verified.has(*piece));
    let lacking: Vec<u32> = lacking.collect();
    assert_eq!(picker.missing as usize, lacking.len());
    assert_eq!(picker.is_complete(), lacking.is_empty());
    for piece in &lacking {
        assert_ne!(
            picker.rarity.contains(*piece),
            picker.begun.contains(*piece)
        );
    }
    for (piece, begun) in picker.begun.pieces() {
        assert!(!picker.verified.has(*piece));
        assert!(!picker.rarity.contains(*piece));
        let is_complete = begun.received as usize == begun.blocks.len();
        assert!(picker.wanted.has(*piece) || is_complete, "piece {piece}");
        assert_eq!(
            picker.begun.open().contains(piece),
            begun.free > 0,
            "piece {piece}"
        );
        assert_eq!(
            picker.begun.suspended().contains(piece),
            begun.suspended > 0,
            "piece {piece}"
        );
        for (block, state) in begun.blocks.iter().enumerate() {
            if let Block::Suspended(holder) = state {
                let block = (*piece, block as u32);
                assert!(picker.conns[holder].suspended.contains(&block));
            }
            let holders: BTreeSet<ConnId> = match state {
                Block::Asked(one) => [*one].into(),
                Block::Shared(several) => several.iter().copied().collect(),
                _ => BTreeSet::new(),
            };
            let asked: BTreeSet<ConnId> = picker
                .conns
                .iter()
                .filter(|(_, c)| c.is_asked((*piece, block as u32)))
                .map(|(conn, _)| *conn)
                .collect();
            assert_eq!(holders, asked, "piece {piece} block {block}");
        }
    }
    for piece in 0..picker.pieces.count() {
        let counted = picker.conns.iter().filter(|(_, conn)| conn.counted);
        let having = counted.filter(|(_, conn)| conn.has.has(piece));
        let having: Option<BTreeSet<GroupId>> =
            having.map(|(id, _)| picker.peers.of(*id)).collect();
        let having = having.expect("each connection has a peer");
        assert_eq!(picker.rarity.availability(piece) as usize, having.len());
    }
    for conn in picker.conns.values() {
        let wanted = conn.has.iter().filter(|piece| lacking.contains(piece));
        assert_eq!(conn.wanted as usize, wanted.count());
        let unique: BTreeSet<_> = conn.asked.iter().map(|asked| asked.block).collect();
        assert_eq!(unique.len(), conn.asked.len());
        assert!(conn.late.len() <= MAX_LATE);
        let passed: Vec<bool> = conn.asked.iter().map(|a| a.passed.is_some()).collect();
        assert!(passed.is_sorted_by(|a, b| a >= b), "{passed:?}");
    }
}

#[derive(Debug, Clone)]
enum Op {
    Join { conn: u64, group: u32, has: u32 },
    Leave(u64),
    Bitfield(u64, u32),
    Have(u64, u32),
    Pick(u64, usize),
    Arrive(u64, usize),
    ArriveLate(u64),
    ArriveSuspended(u64, usize),
    Release(u64),
    ReleasePassed(u64),
    Suspend(u64),
    Resume(u64),
    Probe(u64),
    Duplicate(u64),
    Judge,
    Review,
    Select { seed: u64, window: (u32, u32) },
}

fn any_op() -> impl Strategy<Value = Op> {
    let conn = 0u64..4;
    prop_oneof![
        1 => (conn.clone(), 0u32..3, any::<u32>()).prop_map(|(conn, group, has)| Op::Join { conn, group, has }),
        1 => conn.clone().prop_map(Op::Leave),
        1 => (conn.clone(), 0u32..8).prop_map(|(c, p)| Op::Have(c, p)),
        4 => (conn.clone(), 0usize..9).prop_map(|(c, n)| Op::Pick(c, n)),
        6 => (conn.clone(), 0usize..5).prop_map(|(c, n)| Op::Arrive(c, n)),
        1 => conn.clone().prop_map(Op::ArriveLate),
        1 => conn.clone().prop_map(Op::Release),
        1 => conn.clone().prop_map(Op::ReleasePassed),
        2 => conn.clone().prop_map(Op::Suspend),
        1 => conn.clone().prop_map(Op::Resume),
        1 => conn.clone().prop_map(Op::Probe),
        1 => (conn.clone(), 0usize..3).prop_map(|(c, n)| Op::ArriveSuspended(c, n)),
        1 => (conn.clone(), prop_oneof![any::<u32>(), Just(0), Just(u32::MAX)])
            .prop_map(|(conn, has)| Op::Bitfield(conn, has)),
        2 => conn.prop_map(Op::Duplicate),
        2 => Just(Op::Judge),
        1 => Just(Op::Review),
        1 => (any::<u64>(), (0u32..8, 0u32..4))
            .prop_map(|(seed, window)| Op::Select { seed, window }),
    ]
}

struct Run {
    picker: Picker,
    /// How many more times the hash of each of these pieces is judged wrong.
    bad: HashMap<u32, u32>,
    /// Complete pieces whose hash is not judged yet.
    hashing: VecDeque<u32>,
    fetched: u64,
    now: Instant,
}

impl Run {
    fn arrive(&mut self, conn: ConnId, request: Request) {
        let before = self
            .picker
            .begun
            .pieces()
            .get(&request.piece)
            .map(|b| b.received);
        match self.picker.receive(conn, request, Instant::now()) {
            Arrival::New { cancel, complete } => {
                // Over the same connection: requests that the peer forgot.
                for (other, cancelled) in cancel {
                    assert_eq!(other == conn, cancelled != request);
                }
                assert_eq!(
                    Some(self.picker.begun.pieces()[&request.piece].received),
                    before.map(|received| received + 1)
                );
                if complete {
                    self.hashing.push_back(request.piece);
                }
            }
            Arrival::Surplus => {}
            Arrival::Flood(_) => panic!("{request:?} was asked for"),
        }
    }

    fn judge(&mut self) {
        let Some(piece) = self.hashing.pop_front() else {
            return;
        };
        match self.bad.get_mut(&piece) {
            Some(times) if *times > 0 => {
                *times -= 1;
                let senders = self.picker.fail(piece);
                assert_eq!(
                    senders.iter().flatten().count() as u32,
                    self.picker.pieces.size(piece).div_ceil(BLOCK)
                );
            }
            _ => {
                self.picker.verify(piece);
                self.fetched += u64::from(self.picker.pieces.size(piece));
            }
        }
    }

    fn apply(&mut self, op: Op) {
        let picker = &mut self.picker;
        match op {
            Op::Join { conn, group, has } => {
                if !picker.conns.contains_key(&conn) {
                    let count = picker.pieces.count();
                    add(picker, conn, group, pieces(has, count));
                    // One is a web seed.
                    if conn > 0 {
                        picker.set_peer(conn, group.into(), AddressFamily::Scion);
                    }
                }
            }
            Op::Leave(conn) => picker.remove_conn(conn),
            Op::Bitfield(conn, has) => {
                let count = picker.pieces.count();
                let mut field = Bitfield::empty(count);
                pieces(has, count).for_each(|piece| {
                    field.set(piece);
                });
                let before: BTreeSet<u32> = (0..count).filter(|p| picker.has(conn, *p)).collect();
                let lost = picker.set_has(conn, field);
                if picker.conns.contains_key(&conn) {
                    let now: BTreeSet<u32> = (0..count).filter(|p| picker.has(conn, *p)).collect();
                    assert_eq!(now, pieces(has, count).collect());
                    assert_eq!(lost as usize, before.difference(&now).count());
                }
                picker.release_missing(conn);
                let known = picker.conns.get(&conn);
                let asked = known.map_or(Vec::new(), |c| c.asked.iter().collect());
                assert!(asked.iter().all(|a| picker.has(conn, a.block.0)));
            }
            Op::Have(conn, piece) => {
                if piece < picker.pieces.count() {
                    for (seeder, request) in picker.add_has(conn, piece) {
                        assert_eq!(request.piece, piece);
                        let block = (piece, request.begin / BLOCK);
                        assert!(!picker.conns[&seeder].is_asked(block));
                    }
                }
            }
            Op::Pick(conn, most) => {
                let asked: BTreeSet<_> = picker
                    .conns
                    .values()
                    .flat_map(|c| c.asked.iter().map(|asked| asked.block))
                    .collect();
                let group = picker.conns.get(&conn).map(|c| c.group);
                let Picked { requests, cancel } = picker.pick(conn, most);
                assert!(requests.len() <= most);
                for (_, cancelled) in &cancel {
                    assert!(requests.contains(cancelled));
                }
                for request in &requests {
                    assert!(
                        !asked.contains(&(request.piece, request.begin / BLOCK)),
                        "asked twice"
                    );
                    assert!(picker.has(conn, request.piece));
                    assert!(picker.wanted.has(request.piece));
                    if let Sole::By(only) = picker.begun.pieces()[&request.piece].sole {
                        assert_eq!(Some(only), group);
                    }
                }
                let unique: BTreeSet<_> = requests.iter().map(key).collect();
                assert_eq!(unique.len(), requests.len());
            }
            Op::Arrive(conn, nth) => {
                let block = picker
                    .conns
                    .get(&conn)
                    .and_then(|c| Some(c.asked.get(nth)?.block));
                if let Some(block) = block {
                    let request = request(picker.pieces, &picker.padding, block);
                    self.arrive(conn, request);
                }
            }
            Op::ArriveLate(conn) => {
                let block = picker
                    .conns
                    .get(&conn)
                    .and_then(|c| c.late.iter().min().copied());
                if let Some(block) = block {
                    let request = request(picker.pieces, &picker.padding, block);
                    self.arrive(conn, request);
                }
            }
            Op::ArriveSuspended(conn, nth) => {
                let known = picker.conns.get(&conn);
                if let Some(block) = known.and_then(|c| c.suspended.get(nth).copied()) {
                    let request = request(picker.pieces, &picker.padding, block);
                    self.arrive(conn, request);
                }
            }
            Op::Suspend(conn) => {
                picker.suspend(conn);
                assert_eq!(picker.asked(conn), 0);
            }
            Op::Resume(conn) => {
                picker.resume(conn);
                let known = picker.conns.get(&conn);
                assert!(known.is_none_or(|c| c.suspended.is_empty()));
            }
            Op::Probe(conn) => {
                let probe = picker.probe(conn).requests;
                assert!(probe.len() <= 1);
            }
            Op::Judge => self.judge(),
            Op::Review => {
                self.now += Duration::from_millis(50);
                picker.review(self.now);
            }
            Op::Select { seed, window } => {
                let wanted = selecting::wanted(seed, window, picker.pieces.count());
                for (conn, request) in picker.select(wanted) {
                    assert!(!picker.wanted.has(request.piece));
                    assert!(!picker.conns[&conn].is_asked((request.piece, request.begin / BLOCK)));
                }
                let asked = picker.conns.values().flat_map(|conn| &conn.asked);
                let mut pieces = asked.map(|asked| asked.block.0);
                assert!(pieces.all(|piece| picker.wanted.has(piece)));
            }
            Op::Release(conn) => {
                picker.release(conn);
                assert_eq!(picker.asked(conn), 0);
            }
            Op::ReleasePassed(conn) => {
                picker.release_passed(conn, Instant::now());
                let known = picker.conns.get(&conn);
                assert!(known.is_none_or(|c| c.asked.iter().all(|a| a.passed.is_none())));
            }
            Op::Duplicate(conn) => {
                if let Some(request) = picker.duplicate(conn, |_, place| Some(place as f64)) {
                    assert!(picker.has(conn, request.piece));
                    let holders = picker
                        .conns
                        .values()
                        .filter(|c| c.is_asked((request.piece, request.begin / BLOCK)))
                        .count();
                    assert!((2..=MAX_HOLDERS).contains(&holders));
                }
            }
        }
        check_counters(&self.picker);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn all_blocks_are_fetched_after_any_operations(
        ops in proptest::collection::vec(any_op(), 0..120),
        bad in proptest::collection::hash_map(0u32..6, 1u32..3, 0..3),
    ) {
        let mut run = Run { picker: picker(6, 3), bad, hashing: VecDeque::new(), fetched: 0, now: Instant::now() };
        for op in ops {
            run.apply(op);
        }
        // Then everything is wanted, one good peer joins, all others leave, and the download must finish.
        run.apply(Op::Select { seed: 0, window: (0, 0) });
        for conn in 0..4 {
            run.apply(Op::Leave(conn));
        }
        add(&mut run.picker, 9, 9, 0..6);
        run.picker.set_peer(9, 9, AddressFamily::Scion);
        for _ in 0..200 {
            run.apply(Op::Review);
            run.apply(Op::Pick(9, 4));
            run.apply(Op::Arrive(9, 0));
            run.apply(Op::Judge);
        }
        prop_assert!(run.picker.verified().is_full());
        prop_assert_eq!(run.fetched, run.picker.pieces.total);
        prop_assert_eq!(run.picker.free_blocks(), 0);
        prop_assert_eq!(run.picker.asked_blocks(), 0);
    }
}

#[test]
fn the_rarest_piece_comes_first_once_one_is_complete() {
    let mut picker = picker(8, 1);
    add(&mut picker, 1, 1, 0..8);
    let first = picker.pick(1, 1).requests[0];
    picker.receive(1, first, Instant::now());
    picker.verify(first.piece);
    let rare = (first.piece + 1) % 8;
    add(&mut picker, 2, 2, (0..8).filter(|piece| *piece != rare));
    add(&mut picker, 3, 3, (0..8).filter(|piece| *piece != rare));
    assert_eq!(picker.pick(1, 1).requests[0].piece, rare);
}

#[test]
fn the_first_piece_is_random_and_not_the_rarest() {
    let first = |seed| {
        let pieces = Pieces {
            length: BLOCK,
            total: 64 * u64::from(BLOCK),
        };
        let mut picker = Picker::new(pieces, Bitfield::empty(64), seed);
        add(&mut picker, 1, 1, 0..64);
        add(&mut picker, 2, 2, 1..64);
        picker.pick(1, 1).requests[0].piece
    };
    let firsts: BTreeSet<u32> = (0..20).map(first).collect();
    assert!(firsts.len() > 10, "{firsts:?}");
}

#[test]
fn connections_share_a_piece_before_another_is_begun() {
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    add(&mut picker, 2, 1, 0..4);
    let one = picker.pick(1, 2).requests;
    let two = picker.pick(2, 2).requests;
    assert!(
        one.iter()
            .chain(&two)
            .all(|request| request.piece == one[0].piece)
    );
    assert_ne!(picker.pick(2, 1).requests[0].piece, one[0].piece);
}

#[test]
fn a_failed_piece_comes_from_one_peer_over_all_its_paths() {
    let mut picker = picker(1, 4);
    add(&mut picker, 1, 1, 0..1);
    add(&mut picker, 2, 2, 0..1);
    add(&mut picker, 3, 2, 0..1);
    for (conn, most) in [(1, 2), (2, 2)] {
        for request in picker.pick(conn, most).requests {
            picker.receive(conn, request, Instant::now());
        }
    }
    assert_eq!(picker.fail(0), [1, 1, 2, 2].map(Some));
    assert_eq!(picker.pick(2, 1).requests.len(), 1);
    assert_eq!(picker.pick(1, 4).requests, []);
    assert_eq!(picker.pick(3, 1).requests.len(), 1);
    assert_eq!(picker.duplicate(1, |_, _| Some(1.0)), None);
    // The peer leaves: another one gets the whole piece.
    picker.remove_conn(2);
    picker.remove_conn(3);
    assert_eq!(picker.pick(1, 9).requests.len(), 4);
}

#[test]
fn blocks_that_were_never_requested_are_dropped() {
    let mut picker = picker(2, 2);
    add(&mut picker, 1, 1, 0..2);
    let asked = picker.pick(1, 1).requests[0];
    for (piece, begin, length) in [
        (asked.piece, asked.begin, BLOCK - 1),
        (asked.piece, asked.begin + 1, BLOCK),
        (asked.piece, BLOCK, BLOCK),
        (1 - asked.piece, 0, BLOCK),
        (9, 0, BLOCK),
        (u32::MAX, u32::MAX, BLOCK),
    ] {
        let request = Request {
            piece,
            begin,
            length,
        };
        assert_eq!(
            picker.receive(1, request, Instant::now()),
            Arrival::Surplus,
            "{request:?}"
        );
    }
    assert!(matches!(
        picker.receive(1, asked, Instant::now()),
        Arrival::New { .. }
    ));
}

#[test]
fn duplicates_take_the_last_block_of_the_slowest_connection() {
    let mut picker = picker(1, 8);
    for conn in 1..=3 {
        add(&mut picker, conn, 1, 0..1);
    }
    picker.pick(1, 4);
    let last_of_two = *picker.pick(2, 4).requests.last().unwrap();
    let gain = |holder, place| (holder == 2).then_some(place as f64);
    assert_eq!(picker.duplicate(3, gain), Some(last_of_two));
    let next = picker.duplicate(3, gain).unwrap();
    assert_eq!(next.begin, last_of_two.begin - BLOCK);
    assert_eq!(picker.duplicate(3, |_, _| None), None);
}

#[test]
fn requests_for_a_piece_taken_back_are_released() {
    let mut picker = picker(4, 2);
    add(&mut picker, 1, 1, 0..4);
    let asked = picker.pick(1, 8).requests;
    let mut has = Bitfield::full(4);
    has.clear(2);
    assert_eq!(picker.set_has(1, has), 1);
    let given_back = picker.release_missing(1);
    assert!(given_back.iter().all(|request| request.piece == 2));
    assert_eq!((given_back.len(), picker.asked(1)), (2, asked.len() - 2));
    assert_eq!(picker.pick(1, 8).requests, []);
    add(&mut picker, 2, 2, [2]);
    assert_eq!(picker.pick(2, 8).requests.len(), 2);
}

#[test]
fn a_piece_that_a_peer_announces_over_both_networks_counts_once() {
    let mut picker = picker(8, 2);
    add(&mut picker, 1, 1, [0, 1]);
    picker.add_conn(2, 2);
    picker.belongs_to(2, 1);
    picker.add_has(2, 0);
    add(&mut picker, 3, 3, [1]);
    let counts = |picker: &Picker| [0, 1, 2].map(|piece| picker.availability(piece));
    assert_eq!(counts(&picker), [1, 2, 0]);
    picker.add_has(1, 2);
    picker.add_has(2, 2);
    assert_eq!(counts(&picker), [1, 2, 1]);
    // It is counted as long as it is connected over one of them.
    picker.remove_conn(1);
    assert_eq!(counts(&picker), [1, 1, 1]);
    picker.remove_conn(2);
    assert_eq!(counts(&picker), [0, 1, 0]);
    check_counters(&picker);
}
