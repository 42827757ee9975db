//! What to change so that a point has the wanted filters.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::Change;
use crate::layout::{Layout, is_rest};
use crate::limit::Direction;
use crate::state::{Filter, Filters, Point, ROOT_TABLE, Spot, Then};

/// Whether all filters that lead on to tables are such as hawser sets today. Those of links can be any.
pub(super) fn are_possible(direction: Direction, found: &Filters) -> bool {
    found.nodes.iter().all(|((spot, _), filter)| {
        let leads_on = matches!(filter.then, Then::Table { .. });
        let is_odd = spot.table == ROOT_TABLE && !leads_on && !is_rest(spot.preference);
        !is_odd && (!leads_on || Layout::is_possible(direction, *spot, filter))
    })
}

/// The additions that lead from `found` to `wanted`, and the removals, in the reverse of the order in which
/// they are to be made. Tables, and the filters that lead to them, stay when they are empty: the kernel
/// releases a table only some time after the last filter that leads to it.
pub(super) fn difference(
    point: Point,
    found: &Filters,
    wanted: &Layout,
    foreign: bool,
) -> (Vec<Change>, Vec<Change>) {
    if wanted.nodes.is_empty() {
        let mut removals = match foreign {
            true => clear(point, found),
            false => remove_preferences(point, &found.preferences),
        };
        removals.reverse();
        return (Vec::new(), removals);
    }
    let mut additions = Vec::new();
    for (&table, &preference) in &wanted.tables {
        if !found.tables.contains_key(&table) {
            additions.push(Change::AddTable {
                point,
                preference,
                table,
            });
        }
    }
    let mut here: BTreeMap<Spot, BTreeMap<u16, &Filter>> = BTreeMap::new();
    for ((spot, number), filter) in &found.nodes {
        here.entry(*spot).or_default().insert(*number, filter);
    }
    let none = BTreeMap::new();
    let mut kept = BTreeSet::new();
    let (mut to_second, mut to_first) = (Vec::new(), Vec::new());
    for (&spot, filters) in &wanted.nodes {
        let here = here.get(&spot).unwrap_or(&none);
        let mut free = (1..).filter(|number| !here.contains_key(number));
        for filter in filters {
            let same = |other: &Filter| other.keys == filter.keys;
            let node = here
                .iter()
                .find(|(number, other)| same(other) && !kept.contains(&(spot, **number)));
            let (number, new) = match node {
                Some((&number, _)) => (number, false),
                // A bucket has room for 4,095; a device has fewer links with one address.
                None => (free.next().unwrap_or(u16::MAX), true),
            };
            kept.insert((spot, number));
            if node.is_some_and(|(_, other)| *other == filter) {
                continue;
            }
            let put = Change::PutNode {
                point,
                spot,
                number,
                filter: filter.clone(),
                new,
            };
            // What leads to a table comes after what is in it, so that no packet is lost on the way.
            match (filter.then, spot.table) {
                (Then::Table { .. }, ROOT_TABLE) => to_first.push(put),
                (Then::Table { .. }, _) => to_second.push(put),
                _ => additions.push(put),
            }
        }
    }
    additions.extend(to_second);
    additions.extend(to_first);
    let mut removals = Vec::new();
    for (&(spot, number), filter) in &found.nodes {
        let leads_on = matches!(filter.then, Then::Table { .. });
        if leads_on || kept.contains(&(spot, number)) || is_rest(spot.preference) {
            continue;
        }
        removals.push(Change::DelNode {
            point,
            spot,
            number,
        });
    }
    for &preference in &found.preferences {
        let is_wanted = wanted
            .nodes
            .keys()
            .any(|spot| spot.preference == preference);
        if is_rest(preference) && !is_wanted {
            removals.push(Change::DelPreference { point, preference });
        }
    }
    (additions, removals)
}

fn remove_preferences(point: Point, preferences: &BTreeSet<u16>) -> Vec<Change> {
    let remove = |&preference: &u16| Change::DelPreference { point, preference };
    preferences.iter().map(remove).collect()
}

/// The changes that remove all filters one by one, in order: where others have filters, too, tables
/// outlive hawser's preferences.
pub(super) fn clear(point: Point, found: &Filters) -> Vec<Change> {
    let nodes = found.nodes.keys().map(|&(spot, number)| Change::DelNode {
        point,
        spot,
        number,
    });
    let tables = found
        .tables
        .iter()
        .map(|(&table, &preference)| Change::DelTable {
            point,
            preference,
            table,
        });
    let preferences = remove_preferences(point, &found.preferences);
    nodes.chain(tables).chain(preferences).collect()
}
