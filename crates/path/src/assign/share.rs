//! Sharing out the paths: what was in use first, then what is free, then step by step more evenly.

use super::chain;
use super::table::{Item, Table};

/// Decides which paths of the table are used, none of which is in use yet.
pub(super) fn share_out(table: &mut Table) {
    let order = table.in_order();
    keep(table, &order);
    fill(table, &order);
    chain::even_out(table, &order);
    fill(table, &order);
}

/// Uses again what was in use, if it still may be. Where paths are now in each other's way, the
/// peer that has more loses its last.
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

/// Gives what is free to those with the fewest paths first, to each its best.
fn fill(table: &mut Table, order: &[usize]) {
    let mut level = 0;
    loop {
        let mut done = true;
        for &seat in order {
            done &= table.seats[seat].count < level;
            if table.seats[seat].count == level && table.has_room(seat) {
                let mut items = table.seats[seat].items.clone();
                if let Some(item) = items.find(|&item| table.is_free(item)) {
                    table.take(item);
                }
            }
        }
        if done {
            return;
        }
        level += 1;
    }
}
