//! Tries all possible assignments one after another, to compare chains with.

use std::collections::BTreeSet;

use super::table::Table;

/// The number of paths of each peer in every possible assignment, however uneven.
pub(super) fn all_counts(table: &Table) -> BTreeSet<Vec<usize>> {
    let mut empty = table.clone();
    for item in 0..empty.items.len() {
        if empty.taken[item] {
            empty.drop(item);
        }
    }
    let mut found = BTreeSet::new();
    go_on(&mut empty, 0, &mut found);
    found
}

fn go_on(table: &mut Table, item: usize, found: &mut BTreeSet<Vec<usize>>) {
    if item == table.items.len() {
        found.insert(table.seats.iter().map(|seat| seat.count).collect());
        return;
    }
    go_on(table, item + 1, found);
    if table.has_room(table.items[item].seat) && table.is_free(item) {
        table.take(item);
        go_on(table, item + 1, found);
        table.drop(item);
    }
}

/// An assignment in which some peer has one path more, its `n`th, and no peer that has at least `n`
/// now is left with fewer than `n`.
pub(super) fn fairer(table: &Table) -> Option<Vec<usize>> {
    let now: Vec<usize> = table.seats.iter().map(|seat| seat.count).collect();
    all_counts(table).into_iter().find(|other| {
        (0..now.len()).any(|gains| {
            let level = now[gains] + 1;
            let due = |seat: usize| match seat == gains {
                true => level,
                false => now[seat].min(level),
            };
            (0..now.len()).all(|seat| other[seat] >= due(seat))
        })
    })
}
