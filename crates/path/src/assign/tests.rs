use proptest::prelude::*;

use super::*;
use crate::testing::{path, paths};

/// The fingerprint of a path so printed.
fn named(text: &str) -> Fingerprint {
    path(text).fingerprint()
}

fn printed(assignment: &Assignment<&'static str>, peer: &'static str) -> Vec<String> {
    let decisions = assignment.decisions(peer).into_iter();
    decisions
        .map(|(_, decision)| decision.to_string())
        .collect()
}

// The seeder is in E (5), the leechers in A (1) and D (4), between them B (2) and C (3); the
// upstream of B and of C is the bottleneck (001, Fig. 9).
const A_OVER_B: &str = "5 1>1 2 2>1 1";
const A_OVER_C: &str = "5 2>1 3 2>2 1";
const D_OVER_B: &str = "5 1>1 2 3>1 4";
const D_OVER_C: &str = "5 2>1 3 3>2 4";

#[test]
fn fig_9_two_leechers_that_would_both_go_over_b_get_one_way_each() {
    let mut assignment = Assignment::new();
    assignment.set_peer("A", paths(&[A_OVER_B, A_OVER_C]), 1);
    assignment.set_peer("D", paths(&[D_OVER_B, D_OVER_C]), 1);
    assert_eq!(assignment.assigned("A"), [named(A_OVER_B)]);
    assert_eq!(assignment.assigned("D"), [named(D_OVER_C)]);
    assert_eq!(
        printed(&assignment, "D"),
        [
            format!(
                "left: shares 1-ff00:0:5#1 with path {} of A",
                named(A_OVER_B).short()
            ),
            "taken: shares no interface with any path in use".to_owned(),
        ]
    );
}

#[test]
fn peer_a_gives_the_overlapping_path_to_peer_b() {
    // Leaves by the same interface as B's second.
    let a = ["5 1>1 1", "5 2>2 1", "5 3>1 6 2>3 1"];
    let b = ["5 4>1 2", "5 3>1 6 3>2 2"];
    let mut assignment = Assignment::new();
    assignment.set_peer("A", paths(&a), 9);
    assert_eq!(assignment.assigned("A").len(), 3);
    let changes = assignment.set_peer("B", paths(&b), 9);
    assert_eq!(assignment.assigned("A"), [named(a[0]), named(a[1])]);
    assert_eq!(assignment.assigned("B"), [named(b[0]), named(b[1])]);
    let changed: Vec<_> = changes.iter().map(|it| (it.peer, it.path)).collect();
    assert_eq!(changed[0], ("A", named(a[2])));
    assert_eq!(changed.len(), 3);
    assert!(changed[1..].contains(&("B", named(b[0]))));
    assert!(changed[1..].contains(&("B", named(b[1]))));
    assert_eq!(
        changes[0].decision.to_string(),
        format!(
            "left: shares 1-ff00:0:5#3 with path {} of B",
            named(b[1]).short()
        )
    );
}

#[test]
fn every_owner_of_what_is_in_the_way_is_looked_at_and_gets_it_back() {
    let mut assignment = Assignment::new();
    let a = ["5 1>1 2 1>1 1", "5 2>2 3 1>2 1", "5 3>1 4 1>3 1"];
    assignment.set_peer("A", paths(&a), 9);
    assignment.set_peer("C", paths(&["5 4>2 4 2>1 8", "5 6>3 4 3>2 8"]), 9);
    // In the way of this are A's first and C's second.
    let b = "5 1>1 2 3>3 4 3>2 8 9>1 9";
    let changes = assignment.set_peer("B", paths(&[b]), 9);
    assert_eq!(assignment.assigned("B"), [named(b)]);
    assert_eq!(assignment.assigned("A").len(), 2);
    assert_eq!(assignment.assigned("C").len(), 1);
    assert_eq!(changes.len(), 3);
    assignment.remove_peer("B");
    assert_eq!(assignment.assigned("A").len(), 3);
    assert_eq!(assignment.assigned("C").len(), 2);
}

#[test]
fn waiting_peers_take_turns() {
    let mut assignment = Assignment::new();
    for (n, peer) in [(10, "A"), (11, "B"), (12, "C")] {
        let over = path(&format!("5 1>1 2 {n}>1 {n}"));
        let other = path(&format!("5 2>1 3 {n}>2 {n}"));
        assignment.set_peer(peer, vec![over, other], 2);
    }
    let has = |it: &Assignment<_>| ["A", "B", "C"].map(|one| it.assigned(one).len());
    assert_eq!(has(&assignment), [1, 1, 0]);
    assert_eq!(
        printed(&assignment, "C"),
        ["waiting: nothing is free, next turn"; 2]
    );
    assignment.turn();
    assert_eq!(has(&assignment), [0, 1, 1]);
    assignment.turn();
    assert_eq!(has(&assignment), [1, 0, 1]);
    assignment.turn();
    assert_eq!(has(&assignment), [1, 1, 0]);
}

#[test]
fn what_sensing_allows_is_used_together_until_it_forbids() {
    let mut assignment = Assignment::new();
    let (a, b) = (["5 1>1 2 2>1 1"], ["5 1>1 2 3>1 4", "5 2>1 3 1>2 4"]);
    assignment.set_peer("A", paths(&a), 2);
    assignment.set_peer("B", paths(&b), 2);
    assert_eq!(assignment.assigned("B"), [named(b[1])]);
    let pair = (("A", named(a[0])), ("B", named(b[0])));
    let changes = assignment.allow(pair.1, pair.0);
    assert_eq!(changes.len(), 1);
    assert_eq!(
        changes[0].decision.to_string(),
        format!(
            "taken: shares 1-ff00:0:5#1 with path {} of A at no cost to it",
            named(a[0]).short()
        )
    );
    assert_eq!(assignment.forbid(pair.0, pair.1).len(), 1);
    assert_eq!(assignment.assigned("A").len(), 1);
    assert_eq!(assignment.assigned("B"), [named(b[1])]);
    assert!(assignment.forbid(pair.0, pair.1).is_empty());
}

#[test]
fn a_peer_gets_no_more_than_it_takes() {
    let mut assignment = Assignment::new();
    assignment.set_peer("A", paths(&["5 1>1 1", "5 2>2 1", "5 3>3 1"]), 0);
    assert_eq!(printed(&assignment, "A")[1], "left: A gets at most 1 path");
    let changes = assignment.set_peer("A", Vec::new(), 1);
    assert_eq!(
        changes[0].decision.to_string(),
        "left: no longer offered to A"
    );
    assert!(assignment.remove_peer("A").is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Set(u64, Vec<(u16, u16)>, usize),
    Remove(u64),
    Turn,
    Pair(bool, u64, usize, u64, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ways = prop::collection::vec((1..5u16, 1..4u16), 0..4);
    let step = prop_oneof![
        4 => (1..5u64, ways, 0..4usize).prop_map(|(peer, ways, most)| Step::Set(peer, ways, most)),
        1 => (1..5u64).prop_map(Step::Remove),
        2 => Just(Step::Turn),
        2 => (any::<bool>(), 1..5u64, 0..4usize, 1..5u64, 0..4usize)
            .prop_map(|(allow, a, i, b, j)| Step::Pair(allow, a, i, b, j)),
    ];
    prop::collection::vec(step, 1..14)
}

proptest! {
    #[test]
    fn whatever_happens_shares_are_sound(steps in steps()) {
        let mut assignment = Assignment::new();
        let mut followed = BTreeSet::new();
        for step in steps {
            let changes = match step {
                Step::Set(peer, ways, most) => {
                    let ways = ways.iter().map(|(out, into)| {
                        path(&format!("99 {out}>{out} 98 1{into}>{into} 97 {into}>{into} {peer}"))
                    });
                    assignment.set_peer(peer, ways.collect(), most)
                }
                Step::Remove(peer) => assignment.remove_peer(peer),
                Step::Turn => {
                    let waiting = assignment.peers.iter().filter(|(_, peer)| {
                        !peer.offers.is_empty() && peer.offers.iter().all(|one| !one.taken)
                    });
                    let first = waiting.min_by_key(|(_, peer)| (peer.since, peer.joined));
                    let first = first.map(|(key, _)| *key);
                    let changes = assignment.turn();
                    // So the one that waits longest never waits for another turn.
                    if let Some(peer) = first {
                        prop_assert!(!assignment.assigned(peer).is_empty());
                    }
                    changes
                }
                Step::Pair(allow, a, i, b, j) => {
                    let one = assignment.decisions(a).get(i).map(|it| (a, it.0));
                    let other = assignment.decisions(b).get(j).map(|it| (b, it.0));
                    match (one, other, allow) {
                        (Some(one), Some(other), true) => assignment.allow(one, other),
                        (Some(one), Some(other), false) => assignment.forbid(one, other),
                        _ => Vec::new(),
                    }
                }
            };
            for change in changes {
                let path = (change.peer, change.path);
                let new = match change.decision.verdict {
                    Verdict::Taken => followed.insert(path),
                    _ => followed.remove(&path),
                };
                prop_assert!(new);
            }
            prop_assert_eq!(&followed, &assignment.in_use());

            let table = &assignment.table;
            // No chain helps, not even one for a peer that was not looked at this time.
            let mut again = table.clone();
            let (mut stuck, mut budget) = (stuck::Stuck::default(), chain::Budget::default());
            chain::even_out(&mut again, &table.in_order(), &mut stuck, &mut budget);
            prop_assert_eq!(&again.taken, &table.taken);
            for (seat, key) in table.seats.iter().zip(&assignment.keys) {
                prop_assert!(seat.count <= seat.most);
                let decisions = assignment.decisions(*key);
                prop_assert_eq!(decisions.len(), seat.items.len());
                for (item, (_, decision)) in seat.items.clone().zip(decisions) {
                    prop_assert_eq!(decision.verdict == Verdict::Taken, table.taken[item]);
                    prop_assert!(!table.taken[item] || table.blockers(item).is_empty());
                    // Nothing that someone has room for is free.
                    prop_assert!(seat.count == seat.most || !table.is_free(item));
                }
            }
            // Nobody waits for what others could give and still have one.
            for seat in table.seats.iter().filter(|seat| seat.count == 0) {
                for item in seat.items.clone() {
                    let mut left: Vec<_> = table.seats.iter().map(|seat| seat.count).collect();
                    let blockers = table.blockers(item);
                    for &blocker in &blockers {
                        left[table.items[blocker].seat] -= 1;
                    }
                    let owner = |blocker: &Item| table.items[*blocker].seat;
                    prop_assert!(blockers.iter().any(|blocker| left[owner(blocker)] == 0));
                }
            }
        }
    }
}
