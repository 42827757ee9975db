use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::{Just, Strategy as Generator, *};

use super::*;
use crate::testing::{isd_as, paths};
use crate::{Interface, Metadata, Verdict};

mod strategies;

fn reasons(selection: &Selection) -> Vec<String> {
    selection
        .decisions
        .iter()
        .map(Decision::to_string)
        .collect()
}

// ASes A to G have the numbers 1 to 7; the paths lead from D to A (001, Fig. 7a).
const OVER_B: &str = "4 1>2 2 1>1 1";
const OVER_C_B: &str = "4 2>2 3 1>3 2 1>1 1";
const OVER_G_F_E: &str = "4 3>2 7 1>2 6 1>2 5 1>2 1";

#[test]
fn fig_7a_shortest_takes_both_paths_over_the_bottleneck() {
    let paths = paths(&[OVER_G_F_E, OVER_C_B, OVER_B]);
    let selection = select(&paths, &Select::shortest(), 2);
    assert_eq!(selection.taken, [2, 1]);
    assert_eq!(
        reasons(&selection),
        [
            "left: limit of 2 paths reached",
            "taken: best remaining by length: 4 hops",
            "taken: best remaining by length: 3 hops",
        ]
    );
}

#[test]
fn fig_7a_disjoint_takes_the_short_and_the_long_path() {
    let paths = paths(&[OVER_G_F_E, OVER_C_B, OVER_B]);
    for max in [2, 3, usize::MAX] {
        let selection = select(&paths, &Select::disjoint(), max);
        assert_eq!(selection.taken, [2, 0]);
        assert_eq!(selection.ignored, []);
        let short = paths[2].fingerprint().short();
        assert_eq!(
            reasons(&selection),
            [
                "taken: shares no interface: 5 hops".to_owned(),
                format!("left: shares 1-ff00:0:2#1 with path {short}"),
                "taken: shares no interface: 3 hops".to_owned(),
            ]
        );
    }
}

#[test]
fn fig_4_takes_both_links() {
    let paths = paths(&["1 1>1 2", "1 2>2 2"]);
    for strategy in [&Select::shortest(), &Select::disjoint()] {
        let mut taken = select(&paths, strategy, 2).taken;
        taken.sort_unstable();
        assert_eq!(taken, [0, 1]);
        let one = select(&paths, strategy, 1);
        assert_eq!(one.taken.len(), 1);
        let other = 1 - one.taken[0];
        assert_eq!(
            one.decisions[other].to_string(),
            "left: limit of 1 path reached"
        );
    }
}

#[test]
fn the_only_link_out_is_ignored() {
    let paths = paths(&["1 1>1 2 2>1 4", "1 1>1 2 3>1 3 2>2 4"]);
    let selection = select(&paths, &Select::disjoint(), 2);
    assert_eq!(selection.taken, [0, 1]);
    assert_eq!(selection.ignored, paths[0].interfaces[..2]);
}

#[test]
fn the_only_link_in_is_ignored() {
    let paths = paths(&["1 1>1 2 2>1 4", "1 2>1 3 2>3 2 2>1 4"]);
    let selection = select(&paths, &Select::disjoint(), 2);
    assert_eq!(selection.taken, [0, 1]);
    let last_first: Vec<_> = paths[0].interfaces[2..].iter().rev().copied().collect();
    assert_eq!(selection.ignored, last_first);
}

#[test]
fn a_shared_link_out_counts_when_there_is_another() {
    let paths = paths(&[
        "1 1>1 2 2>1 4",
        "1 1>1 2 3>1 3 2>2 4",
        "1 2>1 5 2>1 6 2>1 7 2>3 4",
    ]);
    let selection = select(&paths, &Select::disjoint(), 3);
    assert_eq!(selection.taken, [0, 2]);
    assert_eq!(selection.ignored, []);
}

#[test]
fn one_path_is_taken_and_nothing_ignored() {
    let selection = select(&paths(&["1 1>1 2"]), &Select::disjoint(), 4);
    assert_eq!(selection.taken, [0]);
    assert_eq!(selection.ignored, []);
    assert_eq!(reasons(&selection), ["taken: shares no interface: 2 hops"]);
}

/// The shortest path shares its first link with one of the others and its last with the other, so
/// taking it first would rule out both.
#[test]
fn two_longer_paths_beat_the_short_one_that_blocks_both() {
    let paths = paths(&[
        "1 1>1 2 2>1 3 2>1 9",
        "1 1>1 2 3>1 4 2>1 5 2>2 9",
        "1 2>1 6 2>1 7 2>3 3 2>1 9",
    ]);
    let selection = select(&paths, &Select::disjoint(), 2);
    let mut taken = selection.taken.clone();
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
    let with = paths[selection.taken[0]].fingerprint().short();
    assert!(reasons(&selection)[0].ends_with(&format!("with path {with}")));
    // If only one path is wanted, the shortest is best.
    assert_eq!(select(&paths, &Select::disjoint(), 1).taken, [0]);
}

#[test]
fn at_equal_hops_announced_latency_decides() {
    let mut paths = paths(&["1 1>1 2", "1 2>2 2", "1 3>3 2"]);
    paths[0].metadata.latency = vec![None];
    paths[1].metadata.latency = vec![Some(Duration::from_millis(20))];
    paths[2].metadata.latency = vec![Some(Duration::from_millis(10))];
    for strategy in [&Select::shortest(), &Select::disjoint()] {
        assert_eq!(select(&paths, strategy, 3).taken, [2, 1, 0]);
        assert_eq!(select(&paths, strategy, 2).taken, [2, 1]);
    }
}

#[test]
fn of_copies_the_one_that_expires_last_is_taken() {
    let mut paths = paths(&["1 1>1 2", "1 1>1 2", "1 1>1 2"]);
    for (path, expiry) in paths.iter_mut().zip([10, 30, 20]) {
        path.metadata.expiry = expiry;
    }
    for strategy in [&Select::shortest(), &Select::disjoint()] {
        let selection = select(&paths, strategy, 3);
        assert_eq!(selection.taken, [1]);
        assert_eq!(
            reasons(&selection)[0],
            "left: another copy of this path is preferred"
        );
    }
}

#[test]
fn a_path_inside_the_as_is_taken_once() {
    let local = Path::new(isd_as(1), isd_as(1), vec![], Metadata::default()).unwrap();
    for strategy in [&Select::shortest(), &Select::disjoint()] {
        assert_eq!(select(&[&local, &local], strategy, 2).taken, [0]);
    }
}

#[test]
fn without_paths_or_with_a_limit_of_zero_nothing_is_taken() {
    for strategy in [&Select::shortest(), &Select::disjoint()] {
        let selection = select::<Path>(&[], strategy, 2);
        assert!(selection.taken.is_empty() && selection.decisions.is_empty());
        let selection = select(&paths(&[OVER_B]), strategy, 0);
        assert!(selection.taken.is_empty());
        assert_eq!(reasons(&selection), ["left: limit of 0 paths reached"]);
    }
}

#[test]
fn decisions_as_json() {
    let selection = select(&paths(&["1 1>1 2", "1 2>2 2"]), &Select::shortest(), 1);
    let left = 1 - selection.taken[0];
    assert_eq!(
        serde_json::to_value(&selection.decisions[left]).unwrap(),
        serde_json::json!({"verdict": "left", "reason": "limit of 1 path reached"})
    );
}

/// Paths from AS 1 to AS 9 over some of ASes 2 to 6, two links between any two ASes, so that paths
/// often share links. There are `ways` first links and as many last links.
fn any_path(ways: u16) -> impl Generator<Value = Path> {
    let inner = prop::sample::subsequence((2..7).collect::<Vec<u64>>(), 0..4).prop_shuffle();
    let links = prop::collection::vec(0..2_u16, 5);
    (inner, links, 0..ways, 0..ways).prop_map(|(inner, links, first, last)| {
        let mut ases = vec![1];
        ases.extend(inner);
        ases.push(9);
        let hops = ases.len() - 1;
        let interfaces = ases
            .windows(2)
            .zip(links)
            .enumerate()
            .flat_map(|(at, (ends, link))| {
                // The number of an interface is made of the neighbour's number and that of the
                // link.
                let number = |neighbour: u64| 10 * neighbour as u16 + link;
                let out = if at == 0 {
                    1000 + first
                } else {
                    number(ends[1])
                };
                let into = if at + 1 == hops {
                    2000 + last
                } else {
                    number(ends[0])
                };
                [
                    Interface {
                        isd_as: isd_as(ends[0]),
                        id: out,
                    },
                    Interface {
                        isd_as: isd_as(ends[1]),
                        id: into,
                    },
                ]
            });
        Path::new(
            isd_as(1),
            isd_as(9),
            interfaces.collect(),
            Metadata::default(),
        )
        .unwrap()
    })
}

fn any_strategy() -> impl Generator<Value = Select> {
    prop_oneof![Just(Select::shortest()), Just(Select::disjoint())]
}

fn some_paths(most: usize) -> impl Generator<Value = Vec<Path>> {
    (1..5_u16).prop_flat_map(move |ways| prop::collection::vec(any_path(ways), 0..most))
}

fn share(one: &Path, other: &Path, ignored: &[Interface]) -> bool {
    let counted = |path: &Path| -> HashSet<Interface> {
        path.interfaces
            .iter()
            .copied()
            .filter(|i| !ignored.contains(i))
            .collect()
    };
    one == other || !counted(one).is_disjoint(&counted(other))
}

fn total_links(paths: &[Path], taken: &[usize]) -> usize {
    taken.iter().map(|&index| paths[index].links()).sum()
}

/// The paper's algorithm: takes the shortest path, discards what overlaps, and so on.
fn greedy(paths: &[Path], ignored: &[Interface], max: usize) -> usize {
    let order = select(paths, &Select::shortest(), paths.len()).taken;
    let mut taken: Vec<usize> = Vec::new();
    for index in order {
        if taken.len() < max
            && taken
                .iter()
                .all(|&t| !share(&paths[t], &paths[index], ignored))
        {
            taken.push(index);
        }
    }
    taken.len()
}

proptest! {
    #[test]
    fn every_selection_is_sound(
        paths in some_paths(24),
        strategy in any_strategy(),
        max in 0..8_usize,
    ) {
        let selection = select(&paths, &strategy, max);
        prop_assert!(selection.taken.len() <= max);
        prop_assert_eq!(selection.decisions.len(), paths.len());
        for (index, decision) in selection.decisions.iter().enumerate() {
            let taken = selection.taken.contains(&index);
            prop_assert_eq!(taken, decision.verdict == Verdict::Taken);
            match decision.reason.clone() {
                Reason::Limit { .. } => prop_assert_eq!(selection.taken.len(), max),
                Reason::Shares { interface, with } => {
                    let mut taken = selection.taken.iter().map(|&i| &paths[i]);
                    let other = taken.find(|path| path.fingerprint() == with).unwrap();
                    prop_assert!(other.interfaces.contains(&interface));
                    prop_assert!(paths[index].interfaces.contains(&interface));
                    prop_assert!(!selection.ignored.contains(&interface));
                }
                Reason::Copy => prop_assert!(
                    (0..paths.len()).any(|other| other != index
                        && paths[other] == paths[index]
                        && selection.decisions[other].reason != Reason::Copy)
                ),
                _ => prop_assert!(taken),
            }
        }
        for (at, &one) in selection.taken.iter().enumerate() {
            for &other in &selection.taken[..at] {
                prop_assert_ne!(&paths[one], &paths[other]);
                prop_assert!(
                    strategy == Select::shortest()
                        || !share(&paths[one], &paths[other], &selection.ignored)
                );
                prop_assert!(paths[other].hops() <= paths[one].hops());
            }
        }
        // Only the first and the last link are ever ignored, and only where all paths have them.
        for interface in &selection.ignored {
            for Path { interfaces, .. } in &paths {
                let at = interfaces.iter().position(|one| one == interface);
                prop_assert!(at.is_some_and(|at| at < 2 || at + 2 >= interfaces.len()));
            }
        }
    }

    #[test]
    fn the_input_order_does_not_matter(
        (paths, shuffled) in some_paths(24).prop_flat_map(|paths| {
            (Just(paths.clone()), Just(paths).prop_shuffle())
        }),
        strategy in any_strategy(),
        max in 0..8_usize,
    ) {
        let one = select(&paths, &strategy, max);
        let other = select(&shuffled, &strategy, max);
        prop_assert!(
            one.taken.iter().map(|&i| &paths[i]).eq(other.taken.iter().map(|&i| &shuffled[i]))
        );
        prop_assert_eq!(&one, &select(&paths, &strategy, max));
    }

    #[test]
    fn no_larger_or_shorter_set_is_missed(paths in some_paths(13), max in 0..6_usize) {
        let selection = select(&paths, &Select::disjoint(), max);
        let mut best = (0, 0);
        for subset in 0..1_u32 << paths.len() {
            let taken: Vec<_> = (0..paths.len()).filter(|i| subset >> i & 1 == 1).collect();
            let apart = |&one: &usize, &other: &usize| {
                one == other || !share(&paths[one], &paths[other], &selection.ignored)
            };
            if taken.len() >= best.0
                && taken.len() <= max
                && taken.iter().all(|one| taken.iter().all(|other| apart(one, other)))
            {
                let links = total_links(&paths, &taken);
                if taken.len() > best.0 || links < best.1 {
                    best = (taken.len(), links);
                }
            }
        }
        let found = (selection.taken.len(), total_links(&paths, &selection.taken));
        prop_assert_eq!(found, best);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// More paths than the exact search can hold, or try in its time.
    #[test]
    fn never_fewer_paths_than_the_papers_algorithm(
        paths in prop::collection::vec(any_path(40), 500..900),
        max in 1..40_usize,
    ) {
        let selection = select(&paths, &Select::disjoint(), max);
        prop_assert!(selection.taken.len() >= greedy(&paths, &selection.ignored, max));
        for (at, &one) in selection.taken.iter().enumerate() {
            for &other in &selection.taken[..at] {
                prop_assert!(!share(&paths[one], &paths[other], &selection.ignored));
            }
        }
    }
}
