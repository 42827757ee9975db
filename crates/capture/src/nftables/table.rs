//! Tables with their sets and chains.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::rule::{Family, Rule};

/// The contents of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Table {
    pub sets: BTreeMap<&'static str, Set>,
    pub chains: BTreeMap<&'static str, Chain>,
}

/// A set of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set {
    pub family: Family,
    pub intervals: BTreeSet<Interval>,
}

/// The addresses from the first to the last, both included, of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub first: IpAddr,
    pub last: IpAddr,
}

/// A chain of rules that the kernel applies at a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub kind: ChainKind,
    pub hook: Hook,
    pub rules: Vec<Rule>,
}

/// What a chain is for. A table never changes the kind or the hook of a chain of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainKind {
    /// Address translation: applied to the first packet of each connection.
    Nat,
    /// The same, before other chains: the first translation counts.
    FirstNat,
    /// Applied to each packet, before translation.
    Filter,
    /// The same, after the translation of destinations.
    LateFilter,
}

impl ChainKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nat | Self::FirstNat => "nat",
            Self::Filter | Self::LateFilter => "filter",
        }
    }

    /// The usual place among the chains at a hook: `NF_IP_PRI_NAT_DST` for translation of
    /// destinations, `NF_IP_PRI_MANGLE` before routing, `NF_IP_PRI_FILTER`.
    pub fn priority(self) -> i32 {
        match self {
            Self::Nat => -100,
            Self::FirstNat => -101,
            Self::Filter => -150,
            Self::LateFilter => 0,
        }
    }
}

/// Where packets go through a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Arriving packets, before they are routed.
    Prerouting,
    /// Arriving packets for this host.
    Input,
    /// Packets that this host forwards.
    Forward,
    /// Packets that this host sends.
    Output,
}

impl Hook {
    /// `enum nf_inet_hooks`.
    pub fn number(self) -> u32 {
        match self {
            Self::Prerouting => 0,
            Self::Input => 1,
            Self::Forward => 2,
            Self::Output => 3,
        }
    }
}
