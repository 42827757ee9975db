use std::collections::BTreeSet;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// The claims of `own` among other leechers, each with a connection of its number.
fn claims(own: u64, others: impl IntoIterator<Item = u64>) -> Claims {
    let mut claims = Claims::default();
    claims.set_own(own);
    for (conn, id) in (1..).zip(others) {
        claims.join(conn, id);
    }
    claims
}

impl Claims {
    /// Whether this side comes first in the order for a piece.
    fn is_own(&self, piece: u32) -> bool {
        self.place(piece).before == 0
    }

    fn active(&self) -> BTreeSet<u64> {
        self.active.keys().copied().collect()
    }

    fn review_without_pieces(&mut self, now: Instant) {
        self.review(std::iter::empty(), 0, now);
    }
}

#[test]
fn a_leecher_that_is_first_with_no_piece_no_longer_counts() {
    let start = Instant::now();
    let mut claims = claims(1, [2, 3]);
    for ms in (0..=10_000).step_by(50) {
        claims.is_first(2);
        claims.review_without_pieces(start + ms * MS);
    }
    // The second connection is that of the leecher 3.
    assert_eq!(claims.active(), BTreeSet::from([2, 3]));
    claims.review_without_pieces(start + 10_050 * MS);
    assert_eq!(claims.active(), BTreeSet::from([3]));
    // It was the first twenty times per second.
    claims.review_without_pieces(start + 11_050 * MS);
    assert_eq!(claims.active(), BTreeSet::new());
    claims.is_first(2);
    claims.review_without_pieces(start + 11_100 * MS);
    assert_eq!(claims.active(), BTreeSet::from([3]));
    claims.leave(2);
    assert_eq!(claims.active(), BTreeSet::new());
}

#[test]
fn a_leecher_with_two_connections_stays_until_both_end() {
    let mut claims = claims(1, [2, 2]);
    claims.leave(1);
    assert_eq!(claims.active(), BTreeSet::from([2]));
    claims.leave(2);
    assert_eq!(claims.active(), BTreeSet::new());
}

/// The claims of a leecher that gets as much from another one as from seeders, which is first with a piece every
/// 50 ms, and some pieces of that one.
fn beside_a_fast_leecher(from_leechers: u32, left: usize, now: Instant) -> (Claims, Vec<u32>) {
    let mut claims = claims(1, [2]);
    for ms in (0..20_000).step_by(50) {
        claims.is_first(1);
        claims.review_without_pieces(now + ms * MS);
    }
    let pieces: Vec<u32> = (0..).filter(|it| !claims.is_own(*it)).take(left).collect();
    claims.received = [0.0; 2];
    claims.received(true, 1000);
    claims.received(false, from_leechers);
    claims.is_first(1);
    let count = pieces.len();
    let now = now + Duration::from_secs(20);
    claims.review(pieces.iter().copied(), count, now);
    (claims, pieces)
}

#[test]
fn nothing_is_left_to_leechers_that_deliver_less_than_seeders() {
    for (from_leechers, leaves) in [(700, false), (800, true)] {
        let (mut claims, pieces) = beside_a_fast_leecher(from_leechers, 3, Instant::now());
        assert_eq!(claims.leaves(Some(pieces[0])), leaves);
        assert_eq!(claims.leaves(None), leaves);
    }
}

#[test]
fn a_leecher_is_left_what_it_soon_has() {
    // More than are compared, too.
    for (left, leaves) in [(1, true), (30, true), (50, false), (200, false)] {
        let (mut claims, pieces) = beside_a_fast_leecher(1000, left, Instant::now());
        assert_eq!(claims.leaves(Some(pieces[0])), leaves, "{left}");
        assert_eq!(claims.leaves(None), leaves, "{left}");
        let own = (0..).find(|piece| claims.is_own(*piece));
        assert!(!claims.leaves(own));
    }
}

#[test]
fn what_another_leecher_soon_has_is_chosen_last() {
    let now = Instant::now();
    let (mut claims, _) = beside_a_fast_leecher(1000, 0, now);
    // Another one comes, which is seldom the first.
    claims.join(2, 3);
    let end = now + Duration::from_secs(20);
    claims.review(0..41, 41, end);
    // The order alone prefers the first kind.
    let of = |first: u64, before: usize, count: usize| {
        let pieces = (0..).filter(|it| {
            let place = claims.place(*it);
            (place.first, place.before) == (first, before)
        });
        pieces.take(count).collect::<Vec<u32>>()
    };
    let (fast, slow) = (of(2, 1, 1), of(3, 2, 40));
    let pieces = || fast.iter().chain(&slow).copied();
    claims.review(pieces(), 41, end);
    assert!(claims.leaves(Some(fast[0])) && !claims.leaves(Some(slow[0])));
    let chosen = claims.choose(pieces(), AddressFamily::Scion).unwrap();
    assert!(slow.contains(&chosen));
}

#[test]
fn the_last_pieces_are_not_left_to_a_slower_leecher_that_is_late() {
    for (own, leaves) in [(100, true), (400, false)] {
        let now = Instant::now();
        let mut claims = claims(1, [2, 3]);
        (0..own).for_each(|_| claims.is_first_itself());
        (0..100).for_each(|_| claims.is_first(1));
        (0..400).for_each(|_| claims.is_first(2));
        claims.received(true, 1000);
        claims.received(false, 1000);
        claims.review(0..1000, 1000, now);
        // All that is left is of the part of the slowest: together all have it after 1.2 s.
        let count = (1.2 * 1000.0 / claims.left) as usize;
        let theirs = (0..).filter(|it| claims.place(*it).first == 2);
        let theirs: Vec<u32> = theirs.take(count).collect();
        claims.review(theirs.iter().copied(), count, now);
        assert!(claims.active[&2].left > MAX_LEFT && claims.leaves(Some(theirs[0])));
        // Fewer are left after a while, but not as few as expected.
        claims.review(theirs.iter().copied(), count, now + 50 * MS);
        assert!(claims.leaves(Some(theirs[0])));
        claims.is_first(1);
        claims.is_first(2);
        claims.review(theirs.iter().skip(2).copied(), count - 2, now + 300 * MS);
        assert_eq!(claims.leaves(Some(theirs[2])), leaves, "{own}");
    }
}

#[test]
fn nothing_is_left_to_a_leecher_that_is_first_no_more() {
    let now = Instant::now();
    let (mut claims, pieces) = beside_a_fast_leecher(1000, 3, now);
    let end = now + Duration::from_secs(20);
    for (ms, leaves) in [(300, true), (500, false)] {
        claims.review(pieces.iter().copied(), pieces.len(), end + ms * MS);
        assert_eq!(claims.leaves(Some(pieces[0])), leaves, "{ms}");
    }
}

/// The order in which a leecher begins pieces.
fn order(claims: &Claims, pieces: &BTreeSet<u32>, family: AddressFamily) -> Vec<u32> {
    let mut left: Vec<u32> = pieces.iter().copied().collect();
    let next = || {
        let next = claims.choose(left.iter().copied(), family)?;
        left.retain(|piece| *piece != next);
        Some(next)
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn among_many_leechers_every_piece_is_its_own() {
    let claims = claims(1, 2..100);
    assert!((0..1000).all(|piece| claims.is_own(piece)));
}

/// An event of the leecher that `nothing_is_left_for_long` tests.
#[derive(Debug, Clone)]
enum Event {
    First(ConnId),
    Received(bool, u32),
    Leaves(u32),
    /// Milliseconds that pass, and the pieces that are left then.
    Pass(u32, u32),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        (1..5u64).prop_map(Event::First),
        (any::<bool>(), 0..20_000u32).prop_map(|(seeder, bytes)| Event::Received(seeder, bytes)),
        (0..50u32).prop_map(Event::Leaves),
        (0..500u32, 0..20u32).prop_map(|(ms, left)| Event::Pass(ms, left)),
    ];
    vec(event, 0..400)
}

proptest! {
    /// Each piece is for exactly one leecher, and each of them has its part.
    #[test]
    fn pieces_are_shared_out_by_how_often_each_was_first(
        firsts in btree_map(any::<u64>(), 0..50u32, 1..=MAX_LEECHERS),
    ) {
        let (pieces, now) = (2000, Instant::now());
        let mut owners = vec![0u32; pieces];
        let weight = |count: u32| f64::from(count + 1).sqrt();
        let all: f64 = firsts.values().map(|count| weight(*count)).sum();
        for (id, count) in &firsts {
            let others = firsts.iter().filter(|(other, _)| *other != id);
            let mut claims = claims(*id, others.clone().map(|(other, _)| *other));
            (0..*count).for_each(|_| claims.is_first_itself());
            for (conn, (_, count)) in (1..).zip(others) {
                (0..*count).for_each(|_| claims.is_first(conn));
            }
            claims.review(0..pieces as u32, pieces, now);
            let own: Vec<u32> = (0..pieces as u32).filter(|it| claims.is_own(*it)).collect();
            let part = pieces as f64 * weight(*count) / all;
            let deviation = (own.len() as f64 - part).abs();
            prop_assert!(deviation <= 6.0 * part.sqrt() + 5.0, "{} instead of {part}", own.len());
            own.into_iter().for_each(|piece| owners[piece as usize] += 1);
        }
        prop_assert!(owners.iter().all(|count| *count == 1));
    }

    /// Leechers on one network alone see other leechers come first than those on both networks do. Each of the last
    /// pieces is for one that sees itself come first all the same: not all of them leave it to each other.
    #[test]
    fn the_last_pieces_are_not_left_by_all(
        kinds in vec(0..3, 1..=MAX_LEECHERS), seed in any::<u64>(), count in 1..20u32,
    ) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let now = Instant::now();
        let knows = |one: i32, other: i32| one == other || one == 2 || other == 2;
        let ids: Vec<u64> = kinds.iter().map(|_| rng.u64(..)).collect();
        let mut begun = BTreeSet::new();
        for (own, kind) in ids.iter().zip(&kinds) {
            let others = ids.iter().zip(&kinds);
            let others = others.filter(|(id, other)| *id != own && knows(*kind, **other));
            let mut claims = claims(*own, others.map(|(id, _)| *id));
            (0..rng.u32(100..1000)).for_each(|_| claims.is_first_itself());
            for conn in 1..=claims.conns.len() as ConnId {
                (0..rng.u32(..1000)).for_each(|_| claims.is_first(conn));
            }
            claims.review(0..count, count as usize, now);
            begun.extend((0..count).filter(|piece| claims.is_own(*piece)));
        }
        prop_assert_eq!(begun.len(), count as usize);
    }

    /// Whatever the others do, nothing is left to them for longer than [`MAX_HOLD`], unless
    /// a piece is begun.
    #[test]
    fn nothing_is_left_for_long(events in events()) {
        let start = Instant::now();
        let (mut now, mut since) = (start, None);
        let mut claims = claims(1, 2..6);
        for event in events {
            match event {
                Event::First(conn) => claims.is_first(conn),
                Event::Received(seeder, bytes) => claims.received(seeder, bytes),
                Event::Leaves(piece) => match claims.leaves(Some(piece)) {
                    true => {
                        let since = *since.get_or_insert(now);
                        let held = now - since;
                        // The last review was up to half a second ago.
                        prop_assert!(held <= MAX_HOLD + 1000 * MS, "{held:?}");
                    }
                    false if claims.is_own(piece) || claims.holds => since = None,
                    false => {}
                },
                Event::Pass(ms, left) => {
                    now += ms * MS;
                    claims.review(0..left, left as usize, now);
                }
            }
        }
    }

    /// The first in the order of a piece takes it when it is last, or first, in the order in which the second does.
    #[test]
    fn the_second_for_pieces_begins_where_the_first_ends(
        ids in btree_set(any::<u64>(), 2..8), pieces in btree_set(0..10_000u32, 1..SAMPLES),
    ) {
        let ids: Vec<u64> = ids.into_iter().collect();
        let (own, others) = ids.split_first().unwrap();
        let first = claims(*own, others.iter().copied());
        for other in others {
            let rest = ids.iter().copied().filter(|id| id != other);
            let second = claims(*other, rest);
            let shared = pieces.iter().copied();
            let shared = shared.filter(|it| first.is_own(*it) && second.place(*it).before == 1);
            let shared: BTreeSet<u32> = shared.collect();
            for family in [AddressFamily::Scion, AddressFamily::Ip] {
                let mut reversed = order(&second, &shared, family);
                reversed.reverse();
                prop_assert_eq!(order(&first, &shared, family), reversed);
            }
        }
    }

    /// Leechers that do not know each other begin at opposite ends.
    #[test]
    fn the_order_over_ip_is_that_over_scion_reversed(
        ids in btree_set(any::<u64>(), 2), pieces in btree_set(0..10_000u32, 1..SAMPLES),
    ) {
        let mut leechers = ids.into_iter().map(|id| claims(id, []));
        let (one, other) = (leechers.next().unwrap(), leechers.next().unwrap());
        let mut reversed = order(&other, &pieces, AddressFamily::Ip);
        reversed.reverse();
        prop_assert_eq!(order(&one, &pieces, AddressFamily::Scion), reversed);
    }

    /// A choice is one of the pieces, and if any of the first ones is its own, it is one of these.
    #[test]
    fn its_own_pieces_come_first(pieces in vec(any::<u32>(), 0..100), others in 0..10u64) {
        let claims = claims(1, (0..others).map(|other| other + 2));
        let chosen = claims.choose(pieces.iter().copied(), AddressFamily::Scion);
        prop_assert_eq!(chosen.is_some(), !pieces.is_empty());
        if let Some(chosen) = chosen {
            prop_assert!(pieces.contains(&chosen));
            let any_own = pieces.iter().take(SAMPLES).any(|it| claims.is_own(*it));
            prop_assert_eq!(claims.is_own(chosen), any_own);
        }
    }
}
