//! The outcome of a selection.

use serde::Serialize;

use super::strategy::{Part, Rank, Strategy};
use crate::{Decision, Interface};

/// What [`select`](super::select()) decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Indices of the paths taken, best first.
    pub taken: Vec<usize>,
    /// One for each path, in the order in which they were given.
    pub decisions: Vec<Decision>,
    /// The interfaces that were not counted when paths were compared, because every path has to use
    /// them.
    pub ignored: Vec<Interface>,
    /// The paths that were compared, the first in rank first: all but copies and what a strategy
    /// refuses.
    pub ranking: Vec<Ranked>,
    /// For each path in `taken` the share of the bytes that it is to carry, from 0 to 1 and 1 in
    /// all; `None` where the strategies leave that open.
    pub shares: Option<Vec<f64>>,
}

/// Where a path stands among those that were compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Which of the paths given.
    pub index: usize,
    /// What was compared, in order of precedence: what each ranking strategy says, then hops. Paths
    /// alike in all of it stand by announced latency and fingerprint.
    pub values: Vec<Value>,
}

/// What a strategy says of a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Value {
    /// The strategy, as it is written.
    pub strategy: String,
    /// Whether all that counts is known; where it is not, the path comes after all others.
    pub known: bool,
    /// It in words, with where it comes from: `12 ms announced`.
    #[serde(rename = "value")]
    pub text: String,
    /// It as a number, in `unit`: as much as is known of it; null where nothing is.
    pub amount: Option<f64>,
    /// The unit of `amount`: `hops`, `ms`, `bit/s`, `g/GB`.
    pub unit: &'static str,
    /// The parts that `amount` is the sum of; absent where it is not a sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

impl Value {
    pub(super) fn of(strategy: &dyn Strategy, rank: &Rank) -> Self {
        Self {
            strategy: strategy.text(),
            known: rank.known,
            text: rank.value.clone(),
            amount: rank.amount,
            unit: rank.unit,
            parts: rank.parts.clone(),
        }
    }
}
