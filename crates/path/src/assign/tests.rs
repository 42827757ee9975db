use super::*;
use crate::testing::{path, paths};
use crate::{Fingerprint, Path};

/// The fingerprint of a path in its printed form.
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
fn fig_9_two_leechers_that_would_both_go_over_b_get_one_path_each() {
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
fn the_only_link_out_is_ignored_and_the_reason_says_so() {
    let mut assignment = Assignment::new();
    assignment.set_peer("A", paths(&["5 1>1 2 2>1 4", "5 1>1 2 3>2 4"]), 2);
    let taken =
        "taken: shares no interface with any path in use, but those of the only way out or in";
    assert_eq!(printed(&assignment, "A"), [taken, taken]);
}

// 001, Fig. 6: a path is the list of its interfaces, each named by AS and number. The same number
// in another AS is another interface.
#[test]
fn fig_6_interfaces_are_identified_by_as_and_number() {
    let first = "5 1>2 1 3>4 2 5>6 6";
    let elsewhere = "5 3>4 8 5>6 9 1>2 6";
    let shares = "5 7>7 4 7>7 1 3>4 2 7>8 6";
    let mut assignment = Assignment::new();
    assignment.set_peer("A", paths(&[first, elsewhere, shares]), 9);
    assert_eq!(
        assignment.assigned("A"),
        [named(first), named(elsewhere)],
        "only the third crosses 1-ff00:0:1#3 again"
    );
    let left = format!(
        "left: shares 1-ff00:0:1#3 with path {} of A",
        named(first).short()
    );
    assert_eq!(printed(&assignment, "A")[2], left);
}

// 001, section VI: the only link out of the local AS is excluded, and the only one into the
// destination.
#[test]
fn the_only_links_out_and_in_are_no_reason_to_leave_a_path() {
    let (over_2, over_3) = ("5 1>1 7 2>1 2 2>1 4", "5 1>1 7 3>1 3 2>2 4");
    let mut assignment = Assignment::new();
    assignment.set_peer("D", paths(&[over_2, over_3]), 9);
    assert_eq!(assignment.assigned("D").len(), 2);
    // With another link out, the first one counts.
    assignment.set_peer("E", paths(&["5 9>1 9"]), 9);
    assert_eq!(assignment.assigned("D"), [named(over_2)]);
    assignment.remove_peer("E");
    assert_eq!(assignment.assigned("D").len(), 2);
    // All paths to D enter it by the same link, over AS 8.
    let through_8 = ["5 1>1 7 2>1 2 4>1 8 2>5 4", "5 1>1 7 3>1 3 4>2 8 2>5 4"];
    assignment.set_peer("D", paths(&through_8), 9);
    assert_eq!(assignment.assigned("D").len(), 2);
}

// The last sentence of 001, section VI.
#[test]
fn a_new_peer_with_alternatives_takes_nothing_from_connected_peers() {
    let a = ["5 1>1 1", "5 2>1 2 2>2 1"];
    let b = [
        "5 1>1 1 9>1 6",
        "5 2>1 2 3>2 6",
        "5 3>1 3 3>3 6",
        "5 4>1 4 3>4 6",
        "5 6>1 8 3>5 6",
    ];
    let mut assignment = Assignment::new();
    assignment.set_peer("A", paths(&a), 9);
    let changes = assignment.set_peer("B", paths(&b), 9);
    assert_eq!(assignment.assigned("A"), a.map(named));
    assert_eq!(assignment.assigned("B"), [b[2], b[3], b[4]].map(named));
    assert!(changes.iter().all(|change| change.peer == "B"));
}

#[test]
fn peer_a_gives_the_overlapping_path_to_peer_b() {
    // The last of these leaves by the same interface as B's second.
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
fn every_owner_of_a_blocking_path_gives_it_up_and_gets_it_back() {
    let mut assignment = Assignment::new();
    let a = ["5 1>1 2 1>1 1", "5 2>2 3 1>2 1", "5 3>1 4 1>3 1"];
    assignment.set_peer("A", paths(&a), 9);
    assignment.set_peer("C", paths(&["5 4>2 4 2>1 8", "5 6>3 4 3>2 8"]), 9);
    // This conflicts with A's first and C's second path.
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
        ["waiting: all paths conflict; waiting for a turn"; 2]
    );
    assignment.turn();
    assert_eq!(has(&assignment), [0, 1, 1]);
    assignment.turn();
    assert_eq!(has(&assignment), [1, 0, 1]);
    assignment.turn();
    assert_eq!(has(&assignment), [1, 1, 0]);
}

#[test]
fn paths_that_sensing_allows_are_used_together_until_it_forbids() {
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
fn a_peer_gets_no_more_paths_than_it_accepts() {
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

#[test]
fn what_is_allowed_does_not_depend_on_the_order_of_fingerprints() {
    // Both orders of fingerprints occur among these.
    for id in 1..9 {
        let texts = [
            format!("1 4>4 2 {id}>1 3 1>1 4"),
            format!("1 2>2 2 {id}>1 3 2>2 4"),
        ];
        let offers: Vec<Path> = texts.iter().map(|text| path(text)).collect();
        let [one, other] = [0, 1].map(|at| offers[at].fingerprint());
        let mut assignment = Assignment::new();
        assignment.set_peer(1, offers, 2);
        assert_eq!(assignment.assigned(1).len(), 1);
        assignment.allow((1, one), (1, other));
        assert_eq!(assignment.assigned(1).len(), 2, "{id}");
    }
}
