//! The table's contents for what is wanted.

use std::collections::{BTreeMap, BTreeSet};

use super::error::RedirectError;
use crate::nftables::{Chain, ChainKind, Family, Field, Hook, Rejection, Set, Statement, Table};
use crate::prefixes;
use crate::wanted::{Gateway, Manner, Scope, Wanted};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// The table that captures what is wanted, and nothing that is not needed for it.
pub(super) fn table(wanted: &Wanted) -> Result<Table, RedirectError> {
    for prefix in &wanted.prefixes {
        prefixes::check(prefix)?;
    }
    let gateway = wanted.gateway.as_ref();
    let mark_for_proxy = gateway.and_then(|gateway| match gateway.manner {
        Manner::Redirect => None,
        Manner::Transparent { mark } => Some(mark),
    });
    if wanted.port == 0 || gateway.is_some_and(|gateway| gateway.port == 0) {
        return Err(RedirectError::Port);
    }
    // The mark 0 is that of all sockets without one.
    if wanted.mark == 0 || mark_for_proxy.is_some_and(|mark| mark == 0 || mark == wanted.mark) {
        return Err(RedirectError::Mark);
    }

    let mut sets = BTreeMap::new();
    for family in FAMILIES {
        let intervals = prefixes::intervals(&wanted.prefixes, family);
        if !intervals.is_empty() {
            sets.insert(captured(family), Set { family, intervals });
        }
    }
    let mut chains = BTreeMap::from([("listeners", listeners(wanted))]);
    if !sets.is_empty() {
        let (name, chain) = output(wanted, &sets);
        chains.insert(name, chain);
    }
    if let Some(gateway) = gateway {
        for family in FAMILIES {
            let intervals = prefixes::intervals(&gateway.sources, family);
            // A set that no rule uses is not wanted.
            if !intervals.is_empty() && sets.contains_key(captured(family)) {
                sets.insert(sources(family), Set { family, intervals });
            }
        }
        if FAMILIES
            .iter()
            .any(|family| sets.contains_key(sources(*family)))
        {
            let (name, chain) = prerouting(gateway, &sets);
            chains.insert(name, chain);
        }
    }
    Ok(Table { sets, chains })
}

/// The chain that refuses what connects to the listeners itself: a listener that takes it for a
/// captured connection would connect to itself again and again.
fn listeners(wanted: &Wanted) -> Chain {
    let gateway = wanted.gateway.as_ref();
    let mut rules = Vec::new();
    if let Some(Manner::Transparent { mark }) = gateway.map(|gateway| gateway.manner) {
        // Its destination is the one that was wanted, whatever the port.
        rules.push(vec![Statement::Mark(mark), Statement::Return]);
    }
    let ports = BTreeSet::from_iter([wanted.port].into_iter().chain(gateway.map(|one| one.port)));
    rules.extend(ports.into_iter().map(|port| {
        vec![
            Statement::Tcp,
            Statement::ToPort(port),
            Statement::NotRedirected,
            Statement::Reject(Rejection::Reset),
        ]
    }));
    let (kind, hook) = (ChainKind::LateFilter, Hook::Input);
    Chain { kind, hook, rules }
}

/// The set of captured destinations.
fn captured(family: Family) -> &'static str {
    match family {
        Family::V4 => "captured4",
        Family::V6 => "captured6",
    }
}

/// The set of other hosts whose connections are captured.
fn sources(family: Family) -> &'static str {
    match family {
        Family::V4 => "sources4",
        Family::V6 => "sources6",
    }
}

/// Name and contents of the chain for connections of this host.
fn output(wanted: &Wanted, sets: &BTreeMap<&str, Set>) -> (&'static str, Chain) {
    // What is captured of some programs is not left to a table that captures that of all. The kernel
    // cannot change the priority of a chain, so each has a name.
    let (name, kind) = match wanted.scope {
        Scope::Host => ("output", ChainKind::Nat),
        Scope::Group { .. } | Scope::Class(_) => ("chosen", ChainKind::FirstNat),
    };
    let mut rules = vec![vec![Statement::Mark(wanted.mark), Statement::Return]];
    let users = wanted.exempt_users.iter();
    rules.extend(users.map(|user| vec![Statement::User(*user), Statement::Return]));
    rules.push(vec![Statement::ToThisHost, Statement::Return]);
    for family in FAMILIES {
        if !sets.contains_key(captured(family)) {
            continue;
        }
        let mut rule = match wanted.scope {
            Scope::Host => vec![],
            Scope::Group { level, id } => vec![Statement::Group { level, id }],
            Scope::Class(class) => vec![Statement::Class(class)],
        };
        rule.extend([
            Statement::Tcp,
            // The kernel asks for the first packet that it tracks of a connection, which may have
            // been open long before there was this table: it stays where it is.
            Statement::Opens,
            Statement::Version(family),
            Statement::In {
                field: Field::Destination,
                family,
                set: captured(family),
            },
            Statement::Redirect { port: wanted.port },
        ]);
        rules.push(rule);
    }
    let hook = Hook::Output;
    (name, Chain { kind, hook, rules })
}

/// Name and contents of the chain for connections of other hosts.
fn prerouting(gateway: &Gateway, sets: &BTreeMap<&str, Set>) -> (&'static str, Chain) {
    // The kernel cannot change the kind of a chain, so each has a name.
    let (name, kind) = match gateway.manner {
        Manner::Redirect => ("forwarded", ChainKind::Nat),
        Manner::Transparent { .. } => ("transparent", ChainKind::Filter),
    };
    let mut rules = vec![vec![Statement::ToThisHost, Statement::Return]];
    for family in FAMILIES {
        if !sets.contains_key(sources(family)) {
            continue;
        }
        let within = |field, set| Statement::In { field, family, set };
        let mut rule = vec![Statement::Tcp];
        if gateway.manner == Manner::Redirect {
            rule.push(Statement::Opens);
        }
        rule.extend([
            Statement::Version(family),
            within(Field::Source, sources(family)),
            within(Field::Destination, captured(family)),
            match gateway.manner {
                Manner::Redirect => Statement::Redirect { port: gateway.port },
                Manner::Transparent { mark } => Statement::Proxy {
                    family,
                    port: gateway.port,
                    mark,
                },
            },
        ]);
        rules.push(rule);
    }
    let hook = Hook::Prerouting;
    (name, Chain { kind, hook, rules })
}
