//! What a strategy is: three steps, each of which may be left to the default.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sciparse::identifier::isd_asn::IsdAsn;
use serde::Serialize;

use super::cost::Cost;
use crate::{Carbon, Fingerprint, Interface, Path, Reason};

/// A rule to choose among paths. Several together are a [`Select`](super::Select).
///
/// First every strategy may refuse single paths, then each ranks what is left, the first named
/// before all others, then at most one picks a set. A strategy does one of the three and leaves the
/// others as they are.
pub trait Strategy: fmt::Debug + Send + Sync {
    /// How it is written, with what was given after the colon: `disjoint:2`.
    fn text(&self) -> String;

    /// Whether the path may be used at all.
    ///
    /// # Errors
    /// Why not.
    fn filter(&self, _path: &Candidate<'_>) -> Result<(), Reason> {
        Ok(())
    }

    /// Where the path stands among others; `None` where the strategy ranks nothing.
    fn rank(&self, _path: &Candidate<'_>) -> Option<Rank> {
        None
    }

    /// What the path that ranks first is called: `lowest latency`.
    fn best(&self) -> &'static str {
        "best"
    }

    /// Whether it ranks by hops, which always count, after all else. A reason does not repeat them.
    fn ranks_by_hops(&self) -> bool {
        false
    }

    /// The same strategy with a table of what ASes cost; `None` where such a table is of no use.
    fn with_carbon(&self, _table: &Carbon) -> Option<Arc<dyn Strategy>> {
        None
    }

    /// Whether [`pick`](Self::pick) is to be asked.
    fn picks(&self) -> bool {
        false
    }

    /// Which of the paths, best first and none twice, are taken together; at most `max`.
    fn pick(&self, ranked: &[Candidate<'_>], max: usize) -> Pick {
        Pick {
            taken: (0..ranked.len().min(max))
                .map(|rank| (rank, None))
                .collect(),
            ..Pick::default()
        }
    }
}

/// What was measured on a path. All of it may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// The time to its end and back.
    pub rtt: Option<Duration>,
    /// What was reached over it, in bit/s.
    pub rate: Option<u64>,
}

/// Where a strategy ranks a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank {
    /// Whether all that counts is known; where it is not, the path comes after all others.
    pub known: bool,
    /// The lower, the better. Its unit is the strategy's own; the costs of a set of paths are added
    /// up.
    pub cost: u64,
    /// It in words, with where it comes from: `12 ms announced`.
    pub value: String,
    /// It as a number, in `unit`: as much as is known of it; `None` where nothing is.
    pub amount: Option<f64>,
    /// The unit of `amount`: `hops`, `ms`, `bit/s`, `g/GB`.
    pub unit: &'static str,
    /// The parts that `amount` is the sum of; empty where it is not a sum.
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

/// What was picked, by places in the ranking.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pick {
    /// What is taken, best first; without a reason, it is taken for its rank.
    pub taken: Vec<(usize, Option<Reason>)>,
    /// Why others are left; the rest is left because there are enough.
    pub left: Vec<(usize, Reason)>,
    /// Interfaces that were not counted, because every path has to use them.
    pub ignored: Vec<Interface>,
    /// For each path taken, the share of the bytes that it is to carry, from 0 to 1.
    pub shares: Option<Vec<f64>>,
}

/// A path that may be taken.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// Where it stands in the caller's list.
    pub index: usize,
    /// The path.
    pub path: &'a Path,
    /// Its name.
    pub fingerprint: Fingerprint,
    /// What was measured on it.
    pub measured: Measured,
    /// What the ranking strategies say of it, in their order; empty before they were asked.
    pub ranks: Vec<Rank>,
}

impl Candidate<'_> {
    /// What the ranking strategies say of it, in one line: its hops, if there are none.
    pub fn value(&self) -> String {
        let values: Vec<_> = self.ranks.iter().map(|rank| rank.value.as_str()).collect();
        match values.is_empty() {
            true => hops(self.path),
            false => values.join("; "),
        }
    }

    pub(super) fn cost(&self) -> Cost {
        let ranks = self.ranks.iter().map(|rank| (rank.known, rank.cost));
        Cost::of(ranks.chain([(true, self.path.links() as u64)]))
    }
}

/// The number of a path's hops in words.
pub(super) fn hops(path: &Path) -> String {
    let hops = path.hops();
    format!("{hops} hop{}", if hops == 1 { "" } else { "s" })
}
