use proptest::prelude::*;

use super::super::brute;
use super::super::share::share_out;
use super::super::table::tests::{Seats, seats, table};
use super::*;

/// The table after peers took free paths in their order, and after it was evened out.
fn evened(seats: &Seats) -> (Table, Table) {
    let mut before = table(seats);
    for item in 0..before.items.len() {
        if before.has_room(before.items[item].seat) && before.is_free(item) {
            before.take(item);
        }
    }
    let mut after = before.clone();
    let order = after.in_order();
    let (mut stuck, mut budget) = (Stuck::default(), Budget::default());
    even_out(&mut after, &order, &mut stuck, &mut budget);
    (before, after)
}

fn counts(table: &Table) -> Vec<usize> {
    table.seats.iter().map(|seat| seat.count).collect()
}

#[test]
fn a_peer_with_more_paths_gives_one_up() {
    let (before, after) = evened(&vec![(9, vec![vec![0], vec![1]]), (9, vec![vec![1]])]);
    assert_eq!(counts(&before), [2, 0]);
    assert_eq!(counts(&after), [1, 1]);
    assert_eq!(after.taken, [true, false, true]);
}

#[test]
fn a_peer_with_as_many_paths_takes_another_instead() {
    // The last peer gets its path from the second, which gets one from the first, which has
    // another.
    let (before, after) = evened(&vec![
        (1, vec![vec![0], vec![1]]),
        (1, vec![vec![2], vec![0]]),
        (1, vec![vec![2]]),
    ]);
    assert_eq!(counts(&before), [1, 1, 0]);
    assert_eq!(counts(&after), [1, 1, 1]);
}

#[test]
fn no_peer_gives_up_its_only_path_for_nothing() {
    let seats = vec![(1, vec![vec![0]]), (1, vec![vec![0], vec![0, 1]])];
    let (before, after) = evened(&seats);
    assert_eq!(after.taken, before.taken);
}

#[test]
fn one_path_may_cost_several_peers_one() {
    let (before, after) = evened(&vec![
        (9, vec![vec![0], vec![1]]),
        (9, vec![vec![2], vec![3]]),
        (9, vec![vec![1, 3]]),
    ]);
    assert_eq!(counts(&before), [2, 2, 0]);
    assert_eq!(counts(&after), [1, 1, 1]);
}

// Two paths for the second peer must not cost the first its only one: only turns decide which peer
// waits.
#[test]
fn no_peer_waits_so_that_another_has_two_paths() {
    let (_, after) = evened(&vec![(9, vec![vec![0, 1]]), (9, vec![vec![0], vec![1]])]);
    assert_eq!(counts(&after), [1, 0]);
    assert!(brute::all_counts(&after).contains(&vec![0, 2]));
    assert_eq!(brute::fairer(&after), None);
}

#[test]
fn the_search_ends_where_the_budget_does() {
    let seats = vec![(9, vec![vec![0], vec![1]]), (9, vec![vec![1]])];
    let (mut table, _) = evened(&seats);
    let (order, mut stuck) = (table.in_order(), Stuck::default());
    even_out(&mut table, &order, &mut stuck, &mut Budget(0));
    assert_eq!(counts(&table), [2, 0]);
    // The budget was used up before the second peer was looked at, so it is now.
    even_out(&mut table, &order, &mut stuck, &mut Budget(9));
    assert_eq!(counts(&table), [1, 1]);
}

proptest! {
    #[test]
    fn shares_get_only_more_even(seats in seats()) {
        let (before, after) = evened(&seats);
        prop_assert!(after.score() >= before.score());
        prop_assert_eq!(after.score() == before.score(), after.taken == before.taken);
        for item in (0..after.items.len()).filter(|item| after.taken[*item]) {
            prop_assert!(after.blockers(item).is_empty());
        }
    }

    // Tries every possible assignment, to show that no chain was overlooked.
    #[test]
    fn no_peer_could_have_more_unless_another_had_fewer_than_that(seats in seats()) {
        prop_assume!(seats.iter().map(|(_, paths)| paths.len()).sum::<usize>() <= 14);
        let mut table = table(&seats);
        share_out(&mut table, &mut Stuck::default());
        prop_assert_eq!(brute::fairer(&table), None);
    }

    #[test]
    fn shares_are_most_even_if_each_path_conflicts_with_one_other(
        counts in prop::collection::vec((1..5usize, 0..5usize), 2..5),
        order in Just((0..14usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let total = counts.iter().map(|(_, count)| count).sum::<usize>();
        prop_assume!(total <= 14);
        // In this order, paths share a link in pairs.
        let links: Vec<u32> = order.into_iter().filter(|at| *at < total).map(|at| at as u32 / 2).collect();
        let mut links = links.into_iter();
        let seats: Seats = counts
            .into_iter()
            .map(|(most, count)| (most, links.by_ref().take(count).map(|link| vec![link]).collect()))
            .collect();
        let mut table = table(&seats);
        share_out(&mut table, &mut Stuck::default());
        let sorted = |mut counts: Vec<usize>| {
            counts.sort_unstable();
            counts
        };
        let evenest = brute::all_counts(&table).into_iter().map(sorted).max();
        prop_assert_eq!(Some(sorted(super::tests::counts(&table))), evenest);
    }

    // The outcome of a search depends only on what it looked at.
    #[test]
    fn a_stuck_peer_stays_stuck_until_what_was_looked_at_changes(
        seats in seats(),
        flips in prop::collection::vec(0..40usize, 1..12),
    ) {
        let mut table = table(&seats);
        let order = table.in_order();
        let mut stuck = Stuck::default();
        let count = table.items.len();
        for item in flips.into_iter().filter(|item| *item < count) {
            if table.taken[item] {
                table.drop(item);
            } else if table.has_room(table.items[item].seat) && table.is_free(item) {
                table.take(item);
            } else {
                continue;
            }
            table.changed(item, &mut stuck);
            let mut afresh = table.clone();
            even_out(&mut table, &order, &mut stuck, &mut Budget::default());
            even_out(&mut afresh, &order, &mut Stuck::default(), &mut Budget::default());
            prop_assert_eq!(&table.taken, &afresh.taken);
        }
    }
}
