//! Paths that may be taken, and the values they are compared by.

use std::array;
use std::iter::Sum;
use std::ops::Add;
use std::time::Duration;

use hawser_address::IsdAsn;
use serde::Serialize;

use crate::text::plural;
use crate::{Fingerprint, Path};

/// Most ranking strategies of one selection.
pub(super) const RANKS: usize = 7;

/// The cost of an unknown value: more than the known costs of any set of paths.
const UNKNOWN: u128 = 1 << 96;

/// Measurements of a path; each may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// The round-trip time.
    pub rtt: Option<Duration>,
    /// The rate reached over it, in bit/s.
    pub rate: Option<u64>,
}

/// The value by which a strategy ranks a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rank {
    /// The name of the strategy.
    pub strategy: &'static str,
    /// Whether the value is known completely; if not, the path ranks after all others.
    pub known: bool,
    /// The cost: the lower, the better. Its unit depends on the strategy; the costs of a set of
    /// paths are added up.
    #[serde(skip)]
    pub cost: u64,
    /// The value as text, with its source: `12 ms announced`.
    #[serde(rename = "value")]
    pub text: String,
    /// The known part of the value as a number, in `unit`; null if nothing is known.
    pub amount: Option<f64>,
    /// The unit of `amount`: `hops`, `ms`, `bit/s`, `bytes`, `g/GB`.
    pub unit: &'static str,
    /// The parts that `amount` is the sum of; absent where it is not a sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A part of the sum [`Rank::amount`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The AS.
    pub isd_as: IsdAsn,
    /// The amount; `None` if it is not known.
    pub amount: Option<f64>,
    /// Its source: `file` or `note`; `None` if the amount is not known.
    pub source: Option<&'static str>,
}

/// A path that may be taken.
#[derive(Debug, Clone)]
pub(crate) struct Candidate<'a> {
    /// Its index in the caller's list.
    pub index: usize,
    pub path: &'a Path,
    pub fingerprint: Fingerprint,
    pub measured: Measured,
    /// Its values for the ranking strategies, in their order; empty until they are computed.
    pub ranks: Vec<Rank>,
}

impl Candidate<'_> {
    /// Its values for the ranking strategies, in one line; its hops if there are no such
    /// strategies.
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

/// The number of a path's hops as text.
pub(super) fn hops(path: &Path) -> String {
    let hops = path.hops();
    format!("{hops} hop{}", plural(hops))
}

/// The cost to minimize, in order of precedence: the ranks, then hops. The cost of a set is the
/// sum.
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
