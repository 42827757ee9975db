//! Shares out the paths: first those that were in use, then free ones, then by chains that make
//! shares more even.

use super::chain::{self, Budget};
use super::stuck::Stuck;
use super::table::{Item, Table};

/// Decides which paths of the table are used. None of them may be in use yet.
pub(super) fn share_out(table: &mut Table, stuck: &mut Stuck) {
    let order = table.in_order();
    keep(table, &order);
    fill(table, &order);
    for item in 0..table.items.len() {
        if table.taken[item] != table.items[item].held {
            table.changed(item, stuck);
        }
    }
    let mut budget = Budget::default();
    loop {
        chain::even_out(table, &order, stuck, &mut budget);
        let filled = fill(table, &order);
        for &item in &filled {
            table.changed(item, stuck);
        }
        if filled.is_empty() {
            return;
        }
    }
}

/// Takes the paths that were in use again, if they still may be. If paths now conflict, the peer
/// that has more loses its last.
fn keep(table: &mut Table, order: &[usize]) {
    let mut held: Vec<(usize, usize, Item)> = Vec::new();
    for (place, &seat) in order.iter().enumerate() {
        let items = table.seats[seat].items.clone();
        let items = items.filter(|&item| table.items[item].held);
        held.extend(items.enumerate().map(|(level, item)| (level, place, item)));
    }
    held.sort_unstable();
    for (_, _, item) in held {
        if table.has_room(table.items[item].seat) && table.is_free(item) {
            table.take(item);
        }
    }
}

/// Gives free paths to the peers with the fewest paths first, to each its best. Returns the paths
/// given.
fn fill(table: &mut Table, order: &[usize]) -> Vec<Item> {
    let mut filled = Vec::new();
    // A peer that finds no free path now finds none later: no path is given up meanwhile.
    let mut open: Vec<usize> = order.to_vec();
    let mut level = 0;
    while !open.is_empty() {
        open.retain(|&seat| {
            if table.seats[seat].count > level {
                return true;
            }
            let mut items = table.seats[seat].items.clone();
            let room = table.has_room(seat);
            let free = items.find(|&item| room && table.is_free(item));
            if let Some(item) = free {
                table.take(item);
                filled.push(item);
            }
            free.is_some()
        });
        level += 1;
    }
    filled
}
