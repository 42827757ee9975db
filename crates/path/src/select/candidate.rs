//! Paths that may be taken, and what they are compared by.

use std::array;
use std::iter::Sum;
use std::ops::Add;
use std::time::Duration;

use sciparse::identifier::isd_asn::IsdAsn;
use serde::Serialize;

use crate::text::plural;
use crate::{Fingerprint, Path};

/// Most strategies that rank, in one selection.
pub(super) const RANKS: usize = 7;

/// More than the known costs of any set of paths.
const UNKNOWN: u128 = 1 << 96;

/// What was measured on a path. All of it may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// The time to its end and back.
    pub rtt: Option<Duration>,
    /// What was reached over it, in bit/s.
    pub rate: Option<u64>,
}

/// Where a strategy ranks a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rank {
    /// The strategy, as it is written.
    pub strategy: &'static str,
    /// Whether all that counts is known; where it is not, the path comes after all others.
    pub known: bool,
    /// The lower, the better. Its unit is the strategy's own; the costs of a set of paths are added
    /// up.
    #[serde(skip)]
    pub cost: u64,
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

/// A part of what a path ranks by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The AS.
    pub isd_as: IsdAsn,
    /// The part; `None` where it is not known.
    pub amount: Option<f64>,
    /// Its source: `file` or `note`; `None` where the amount is not known.
    pub source: Option<&'static str>,
}

/// A path that may be taken.
#[derive(Debug, Clone)]
pub(crate) struct Candidate<'a> {
    /// Where it stands in the caller's list.
    pub index: usize,
    pub path: &'a Path,
    pub fingerprint: Fingerprint,
    pub measured: Measured,
    /// What the ranking strategies say of it, in their order; empty before they were asked.
    pub ranks: Vec<Rank>,
}

impl Candidate<'_> {
    /// What the ranking strategies say of it, in one line: its hops, if there are none.
    pub fn value(&self) -> String {
        let values: Vec<_> = self.ranks.iter().map(|rank| rank.text.as_str()).collect();
        match values.is_empty() {
            true => hops(self.path),
            false => values.join("; "),
        }
    }

    pub fn cost(&self) -> Cost {
        let ranks = self.ranks.iter().map(|rank| (rank.known, rank.cost));
        let mut cost = Cost::default();
        let hops = (true, self.path.links() as u64);
        for (place, (known, value)) in cost.0.iter_mut().zip(ranks.chain([hops])) {
            *place = u128::from(value) + if known { 0 } else { UNKNOWN };
        }
        cost
    }
}

/// The number of a path's hops in words.
pub(super) fn hops(path: &Path) -> String {
    let hops = path.hops();
    format!("{hops} hop{}", plural(hops))
}

/// What is to be least, in order of precedence: the ranks, then hops. Costs of sets add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Cost([u128; RANKS + 1]);

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(array::from_fn(|at| self.0[at] + other.0[at]))
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}
