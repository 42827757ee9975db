//! The strategies.
//!
//! To add one: a file in this folder, its `mod` line, its entry in [`STRATEGIES`], which grows by one, and a
//! test in `../tests/strategies.rs`. Parsing, error texts and the help of the program follow from that;
//! `docs/choosing-paths.md` must name it, or a test of the command line fails. A cost that
//! changes whenever a path is refreshed, as its expiry does, has paths swapped during a transfer.

mod bandwidth;
mod carbon;
mod disjoint;
mod latency;
mod mtu;
pub(super) mod shortest;
mod spread;

pub(super) use self::disjoint::Disjoint;
use super::kind::StrategyKind;

/// All strategies that a [`Select`](super::Select) can name, in the order in which help lists them.
pub static STRATEGIES: [StrategyKind; 7] = [
    shortest::KIND,
    latency::KIND,
    bandwidth::KIND,
    mtu::KIND,
    carbon::KIND,
    disjoint::KIND,
    spread::KIND,
];
