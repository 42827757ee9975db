//! Which pieces are requested, and in which order, when not all are wanted alike.

use super::*;
use crate::wanted::{PieceOrder, Priority};

/// Random priorities and a random order for `count` pieces; everything for seed 0.
pub fn wanted(seed: u64, (start, length): (u32, u32), count: u32) -> Wanted {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut any = || match rng.u8(..5) {
        0 | 1 => Priority::Skip,
        2 => Priority::Low,
        3 => Priority::Normal,
        _ => Priority::High,
    };
    let priorities = (0..count).map(|_| match seed {
        0 => Priority::Normal,
        _ => any(),
    });
    let priorities = priorities.collect();
    let order = match seed % 2 {
        0 => PieceOrder::RarestFirst,
        _ => PieceOrder::Sequential,
    };
    let start = start.min(count);
    Wanted::new(priorities, order, start..(start + length).min(count))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn wanted_pieces_are_all_requested_and_no_others_after_any_operations(
        ops in proptest::collection::vec(any_op(), 0..80),
        seed: u64,
        window in (0u32..8, 0u32..4),
    ) {
        let mut run = Run {
            picker: picker(6, 3),
            bad: HashMap::new(),
            hashing: VecDeque::new(),
            fetched: 0,
            now: Instant::now(),
        };
        for op in ops {
            run.apply(op);
        }
        run.apply(Op::Select { seed, window });
        for conn in 0..4 {
            run.apply(Op::Leave(conn));
        }
        add(&mut run.picker, 9, 9, 0..6);
        let wanted = run.picker.wanted.clone();
        let mut asked = run.picker.begun.pieces().keys().copied().collect::<BTreeSet<u32>>();
        asked.extend(run.picker.verified.iter());
        for _ in 0..200 {
            let picked = run.picker.pick(9, 4).requests;
            for request in picked {
                prop_assert!(wanted.has(request.piece));
                asked.insert(request.piece);
            }
            run.apply(Op::Arrive(9, 0));
            run.apply(Op::Judge);
        }
        prop_assert!(run.picker.is_complete());
        prop_assert!(!run.picker.is_interesting(9));
        let mut missed = (0..6).filter(|piece| wanted.has(*piece) && !asked.contains(piece));
        prop_assert_eq!(missed.next(), None);
        prop_assert_eq!((run.picker.free_blocks(), run.picker.asked_blocks()), (0, 0));
    }

    #[test]
    fn pieces_are_begun_by_rank_and_in_order(
        seed in 1u64..,
        window in (0u32..20, 0u32..6),
        done in any::<u32>(),
    ) {
        let mut picker = picker(20, 2);
        pieces(done, 20).for_each(|piece| picker.verify(piece));
        let wanted = wanted(seed, window, 20);
        picker.select(wanted.clone());
        add(&mut picker, 1, 1, 0..20);
        // Half of them are rarer.
        add(&mut picker, 2, 2, (0..20).filter(|piece| piece % 2 == 0));
        add(&mut picker, 3, 3, (0..19).collect::<Vec<_>>());
        let asked = picker.pick(3, 100).requests;
        let mut order: Vec<u32> = asked.iter().map(|request| request.piece).collect();
        order.dedup();
        let ranks: Vec<_> = order.iter().map(|piece| wanted.rank(*piece)).collect();
        prop_assert!(ranks.is_sorted_by(|a, b| a >= b), "{order:?}");
        let is_rarest_first = wanted.order() == PieceOrder::RarestFirst;
        for pair in order.windows(2) {
            let (one, next) = (wanted.rank(pair[0]), wanted.rank(pair[1]));
            if one != next {
                continue;
            }
            match is_rarest_first && !one.0 {
                // Until one is complete any may come.
                true if picker.verified.is_empty() => {}
                true => prop_assert!(pair[0] % 2 >= pair[1] % 2, "{order:?}"),
                false => prop_assert!(pair[0] < pair[1], "{order:?}"),
            }
        }
        check_counters(&picker);
    }
}

#[test]
fn a_piece_of_higher_rank_is_requested_before_begun_ones() {
    let mut picker = picker(4, 4);
    let set = |picker: &mut Picker, priorities: [Priority; 4], window| {
        picker.select(Wanted::new(
            priorities.into(),
            PieceOrder::Sequential,
            window,
        ));
    };
    set(&mut picker, [Priority::Normal; 4], 0..0);
    add(&mut picker, 1, 1, 0..4);
    assert_eq!(picker.pick(1, 2).requests[0].piece, 0);
    let (low, high) = (Priority::Normal, Priority::High);
    set(&mut picker, [low, low, high, low], 0..0);
    assert_eq!(picker.pick(1, 2).requests[0].piece, 2);
    set(&mut picker, [low, low, high, low], 3..4);
    assert!(
        picker
            .pick(1, 4)
            .requests
            .iter()
            .all(|request| request.piece == 3)
    );
    // Then what was begun, by rank.
    let rest = picker.pick(1, 8).requests;
    let rest: Vec<u32> = rest.iter().map(|request| request.piece).collect();
    assert_eq!(rest, [2, 2, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn a_peer_that_has_nothing_wanted_is_not_interesting_until_that_changes() {
    let mut picker = picker(4, 2);
    add(&mut picker, 1, 1, 0..2);
    let asked = picker.pick(1, 3).requests;
    assert!(picker.is_interesting(1));
    let only_last = || {
        let mut priorities = vec![Priority::Skip; 4];
        priorities[3] = Priority::Normal;
        Wanted::new(priorities, PieceOrder::RarestFirst, 0..0)
    };
    let cancelled = picker.select(only_last());
    let cancelled: BTreeSet<_> = cancelled.iter().map(|(_, request)| key(request)).collect();
    assert_eq!(cancelled, asked.iter().map(key).collect());
    assert!(!picker.is_interesting(1));
    assert_eq!(picker.pick(1, 9), Picked::default());
    // What arrives all the same is dropped.
    let arrived = picker.receive(1, asked[0], Instant::now());
    assert_eq!(arrived, Arrival::Surplus);
    picker.add_has(1, 3);
    assert!(picker.is_interesting(1));
    assert!(
        picker
            .pick(1, 9)
            .requests
            .iter()
            .all(|request| request.piece == 3)
    );
}

#[test]
fn a_piece_whose_hash_is_due_is_kept_when_it_is_no_longer_wanted() {
    let mut picker = picker(2, 1);
    add(&mut picker, 1, 1, 0..2);
    let asked = picker.pick(1, 2).requests;
    for request in &asked {
        picker.receive(1, *request, Instant::now());
    }
    let nothing = || Wanted::new(vec![Priority::Skip; 2], PieceOrder::RarestFirst, 0..0);
    picker.select(nothing());
    picker.verify(asked[0].piece);
    assert_eq!(picker.fail(asked[1].piece), [Some(1)]);
    check_counters(&picker);
    picker.select(Wanted::everything(picker.pieces));
    let again = picker.pick(1, 2).requests;
    assert_eq!(again, [asked[1]]);
}

#[test]
fn padding_is_never_requested() {
    let length = u64::from(BLOCK);
    // The second block of the first piece, and all but a byte of the third one.
    let padding = Padding::new([length..2 * length, 3 * length + 1..5 * length]);
    let pieces = Pieces {
        length: 2 * BLOCK,
        total: 5 * length,
    };
    let priorities = vec![Priority::Normal, Priority::Normal, Priority::Skip];
    let wanted = Wanted::new(priorities, PieceOrder::RarestFirst, 0..0);
    let mut picker = Picker::of(pieces, Bitfield::empty(3), wanted, padding, 1);
    assert_eq!(picker.free_blocks(), 3);
    add(&mut picker, 1, 1, 0..3);
    let asked = picker.pick(1, 9).requests;
    let blocks: BTreeSet<_> = asked.iter().map(key).collect();
    assert_eq!(blocks, [(0, 0), (1, 0), (1, BLOCK)].into());
    check_counters(&picker);
    for request in asked {
        let arrived = picker.receive(1, request, Instant::now());
        let is_last = request.piece == 0 || request.begin > 0;
        assert!(matches!(arrived, Arrival::New { complete, .. } if complete == is_last));
    }
    // The sender of each block, so that the guilty one is found by its place.
    assert_eq!(picker.fail(0), [Some(1), None]);
    check_counters(&picker);
    assert_eq!(picker.pick(1, 9).requests.len(), 1);
    picker.verify(1);
    check_counters(&picker);
    // The last piece is padding alone.
    assert!(!picker.wanted.has(2));
}
