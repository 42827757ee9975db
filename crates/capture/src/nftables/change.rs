//! The requests that turn one table into another.

use std::net::IpAddr;

use super::attribute::Attributes;
use super::rule::{Family, LIST_ELEMENT, Rule, expressions};
use super::table::{Chain, Interval, Set, Table};

/// `enum nf_tables_msg_types`.
const NEW_TABLE: u8 = 0;
const DELETE_TABLE: u8 = 2;
const NEW_CHAIN: u8 = 3;
const DELETE_CHAIN: u8 = 5;
const NEW_RULE: u8 = 6;
const DELETE_RULE: u8 = 8;
const NEW_SET: u8 = 9;
const DELETE_SET: u8 = 11;
const NEW_ELEMENTS: u8 = 12;
const DELETE_ELEMENTS: u8 = 14;

/// `NFT_TABLE_F_OWNER`: only the socket that made the table may change it, and the kernel removes
/// the table when that socket closes. Since Linux 5.12.
const OWNED: u32 = 2;
/// `NFT_TABLE_F_PERSIST`: with the above, the table stays when that socket closes, and another one
/// may own it. Since Linux 6.9.
const PERSISTENT: u32 = 4;
/// `NFT_SET_INTERVAL`.
const WITH_INTERVALS: u32 = 4;
/// `NFT_SET_ELEM_INTERVAL_END`: the element is the first address after an interval.
const INTERVAL_END: u32 = 1;
/// Intervals in one request, of at most 72 bytes each: an attribute is shorter than 64 KiB.
const INTERVALS: usize = 500;

/// A request to change an object.
#[derive(Debug)]
pub(crate) struct Request {
    /// The type of the message, without the number of the subsystem.
    pub kind: u8,
    pub flags: u16,
    pub attributes: Attributes,
    /// What the request changes, for errors.
    pub target: Target,
}

/// What a request changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Table,
    Set,
    Chain(&'static str),
    Rule(Rule),
}

/// Who may change a table, and how long it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Only the socket that made it, with which it goes.
    Socket,
    /// Only the socket that made it, as long as that is open; it stays until it is removed.
    Persistent,
    /// Everybody; it stays until it is removed.
    Free,
}

impl Ownership {
    fn flags(self) -> u32 {
        match self {
            Self::Socket => OWNED,
            Self::Persistent => OWNED | PERSISTENT,
            Self::Free => 0,
        }
    }
}

/// The requests that turn the table `from` into `to`, in one transaction; `from` is `None` if the
/// table does not exist. Without a difference there is no request.
///
/// Chains, and set elements that stay, are not touched: while a transaction takes effect, a packet
/// could otherwise meet the old object already switched off and the new one not yet switched on.
pub(crate) fn changes(name: &str, from: Option<&Table>, to: &Table) -> Vec<Request> {
    let nothing = Table::default();
    let mut batch = Batch {
        table: name,
        requests: Vec::new(),
    };
    if from.is_none() {
        batch.add_table(Ownership::Socket);
    }
    batch.change(from.unwrap_or(&nothing), to);
    batch.requests
}

/// The requests that make the table `to`, in one transaction, in place of one of this name that there
/// may be.
pub(crate) fn replacement(name: &str, ownership: Ownership, to: &Table) -> Vec<Request> {
    let mut batch = Batch {
        table: name,
        requests: Vec::new(),
    };
    // What is not there cannot be removed.
    batch.ensure_table();
    batch.requests.push(removal(name));
    batch.add_table(ownership);
    batch.change(&Table::default(), to);
    batch.requests
}

/// The request that removes a table with all its contents.
pub(crate) fn removal(name: &str) -> Request {
    Request {
        kind: DELETE_TABLE,
        flags: 0,
        attributes: Attributes::default().string(1, name),
        target: Target::Table,
    }
}

/// Requests to change one table.
struct Batch<'a> {
    table: &'a str,
    requests: Vec<Request>,
}

impl Batch<'_> {
    fn push(&mut self, kind: u8, flags: i32, target: Target, attributes: Attributes) {
        self.requests.push(Request {
            kind,
            flags: flags as u16,
            attributes,
            target,
        });
    }

    /// All objects have the name of their table in the first attribute.
    fn of_table(&self) -> Attributes {
        Attributes::default().string(1, self.table)
    }

    /// Requests what turns the contents `from` into `to`.
    fn change(&mut self, from: &Table, to: &Table) {
        // Rules use sets: old rules are removed before old sets, new sets are added before new rules.
        for (name, chain) in &from.chains {
            let kept = to.chains.get(name);
            if kept.is_none_or(|kept| kept.rules != chain.rules) && !chain.rules.is_empty() {
                self.clear_chain(name);
            }
            if kept.is_none() {
                self.delete_chain(name);
            }
        }
        for name in from.sets.keys().filter(|name| !to.sets.contains_key(*name)) {
            self.delete_set(name);
        }
        for (name, set) in &to.sets {
            let old = from.sets.get(name);
            if old.is_none() {
                self.add_set(name, set);
            }
            let old = old.map(|old| &old.intervals);
            let before = |interval: &&Interval| old.is_some_and(|old| old.contains(interval));
            if let Some(old) = old {
                // Before the new elements, which may overlap them.
                let gone: Vec<_> = old.difference(&set.intervals).copied().collect();
                self.elements(DELETE_ELEMENTS, name, &gone);
            }
            let new: Vec<_> = set
                .intervals
                .iter()
                .filter(|i| !before(i))
                .copied()
                .collect();
            self.elements(NEW_ELEMENTS, name, &new);
        }
        for (name, chain) in &to.chains {
            let old = from.chains.get(name);
            if old.is_none() {
                self.add_chain(name, chain);
            }
            if old.is_none_or(|old| old.rules != chain.rules) {
                for rule in &chain.rules {
                    self.add_rule(name, rule);
                }
            }
        }
    }

    fn add_table(&mut self, ownership: Ownership) {
        let attributes = self.of_table().number(2, ownership.flags());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.push(NEW_TABLE, flags, Target::Table, attributes);
    }

    /// Adds the table if there is none; one that there is stays as it is.
    fn ensure_table(&mut self) {
        let attributes = self.of_table();
        self.push(NEW_TABLE, libc::NLM_F_CREATE, Target::Table, attributes);
    }

    fn add_chain(&mut self, name: &'static str, chain: &Chain) {
        let hook = Attributes::default()
            .number(1, chain.hook.number())
            .number(2, chain.kind.priority() as u32);
        let attributes = self
            .of_table()
            .string(3, name)
            .nested(4, hook)
            .string(7, chain.kind.name());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.push(
            NEW_CHAIN,
            flags,
            Target::Chain(chain.kind.name()),
            attributes,
        );
    }

    fn delete_chain(&mut self, name: &'static str) {
        let attributes = self.of_table().string(3, name);
        self.push(DELETE_CHAIN, 0, Target::Chain(name), attributes);
    }

    /// Deletes all rules of a chain.
    fn clear_chain(&mut self, name: &'static str) {
        let attributes = self.of_table().string(2, name);
        self.push(DELETE_RULE, 0, Target::Chain(name), attributes);
    }

    fn add_rule(&mut self, chain: &str, rule: &Rule) {
        let attributes = self
            .of_table()
            .string(2, chain)
            .nested(4, expressions(rule));
        let flags = libc::NLM_F_CREATE | libc::NLM_F_APPEND;
        self.push(NEW_RULE, flags, Target::Rule(rule.clone()), attributes);
    }

    fn add_set(&mut self, name: &str, set: &Set) {
        // The type is for `nft list` only.
        let kind = match set.family {
            Family::V4 => 7,
            Family::V6 => 8,
        };
        // Unique among the sets of a transaction.
        let id = self.requests.len() as u32 + 1;
        let attributes = self
            .of_table()
            .string(2, name)
            .number(3, WITH_INTERVALS)
            .number(4, kind)
            .number(5, set.family.address_length())
            .number(10, id);
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.push(NEW_SET, flags, Target::Set, attributes);
    }

    fn delete_set(&mut self, name: &str) {
        let attributes = self.of_table().string(2, name);
        self.push(DELETE_SET, 0, Target::Set, attributes);
    }

    fn elements(&mut self, kind: u8, set: &str, intervals: &[Interval]) {
        for some in intervals.chunks(INTERVALS) {
            let list = some.iter().fold(Attributes::default(), interval);
            let attributes = self.of_table().string(2, set).nested(3, list);
            let flags = match kind {
                NEW_ELEMENTS => libc::NLM_F_CREATE | libc::NLM_F_EXCL,
                _ => 0,
            };
            self.push(kind, flags, Target::Set, attributes);
        }
    }
}

/// Appends the two elements that are an interval in a set: its first address, and the address after
/// its last one unless there is none.
fn interval(list: Attributes, interval: &Interval) -> Attributes {
    let key = |address: IpAddr| {
        let value = match address {
            IpAddr::V4(ip) => Attributes::default().bytes(1, &ip.octets()),
            IpAddr::V6(ip) => Attributes::default().bytes(1, &ip.octets()),
        };
        Attributes::default().nested(1, value)
    };
    let end = match interval.last {
        IpAddr::V4(ip) => ip.to_bits().checked_add(1).map(|ip| IpAddr::V4(ip.into())),
        IpAddr::V6(ip) => ip.to_bits().checked_add(1).map(|ip| IpAddr::V6(ip.into())),
    };
    let list = list.nested(LIST_ELEMENT, key(interval.first));
    match end {
        Some(end) => list.nested(LIST_ELEMENT, key(end).number(3, INTERVAL_END)),
        None => list,
    }
}
