//! The table's contents for what is guarded.

use std::collections::BTreeMap;

use super::Guarded;
use crate::nftables::{
    Chain, ChainKind, Family, Field, Hook, Rejection, Rule, Set, Statement, Table,
};
use crate::prefixes;
use crate::redirect::RedirectError;

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// The table that rejects what must not leave.
pub(super) fn table(guarded: &Guarded) -> Result<Table, RedirectError> {
    for prefix in guarded.connections.iter().chain(&guarded.packets) {
        prefixes::check(prefix)?;
    }
    if guarded.mark == 0 {
        return Err(RedirectError::Mark);
    }
    let mut sets = BTreeMap::new();
    for family in FAMILIES {
        for (name, prefixes) in [
            (connections(family), &guarded.connections),
            (packets(family), &guarded.packets),
        ] {
            let intervals = prefixes::intervals(prefixes, family);
            if !intervals.is_empty() {
                sets.insert(name, Set { family, intervals });
            }
        }
    }
    let own = [
        vec![Statement::Mark(guarded.mark), Statement::Return],
        vec![Statement::ToThisHost, Statement::Return],
    ];
    let mut chains = BTreeMap::from([("output", chain(guarded, Hook::Output, own, &sets))]);
    if guarded.forwarded {
        chains.insert("forward", chain(guarded, Hook::Forward, [], &sets));
    }
    Ok(Table { sets, chains })
}

/// The set of destinations to which no connection is opened.
fn connections(family: Family) -> &'static str {
    match family {
        Family::V4 => "connections4",
        Family::V6 => "connections6",
    }
}

/// The set of destinations to which nothing else is sent.
fn packets(family: Family) -> &'static str {
    match family {
        Family::V4 => "packets4",
        Family::V6 => "packets6",
    }
}

/// The chain at a hook, with some rules before the others.
fn chain<const N: usize>(
    guarded: &Guarded,
    hook: Hook,
    before: [Rule; N],
    sets: &BTreeMap<&str, Set>,
) -> Chain {
    let mut rules = Vec::from(before);
    let device = guarded.device.clone();
    rules.extend(device.map(|name| vec![Statement::ToDevice(name), Statement::Return]));
    let to = |family, set| {
        [
            Statement::Version(family),
            Statement::In {
                field: Field::Destination,
                family,
                set,
            },
        ]
    };
    let used = |set: fn(Family) -> &'static str| {
        let all = FAMILIES.map(|family| (family, set(family))).into_iter();
        all.filter(|(_, set)| sets.contains_key(set))
    };
    for (family, set) in used(connections) {
        let mut rule = vec![Statement::Tcp, Statement::Opens];
        rule.extend(to(family, set));
        rule.push(Statement::Reject(Rejection::Reset));
        rules.push(rule);
    }
    rules.push(vec![Statement::Tcp, Statement::Return]);
    for (family, set) in used(packets) {
        let mut rule = Vec::from(to(family, set));
        rule.push(Statement::Reject(Rejection::Prohibited));
        rules.push(rule);
    }
    let kind = ChainKind::LateFilter;
    Chain { kind, hook, rules }
}
