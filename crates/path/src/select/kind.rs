//! Kinds of strategies, and how they are written and parsed.

use std::fmt;
use std::sync::Arc;

use super::candidate::{Candidate, Rank};
use crate::{Carbon, Interface, Reason};

/// A kind of strategy: an entry of [`STRATEGIES`](super::STRATEGIES). It either ranks paths or
/// picks a set of them.
#[derive(Debug)]
pub struct StrategyKind {
    /// Its name, which stands before the colon.
    pub name: &'static str,
    /// The argument that may follow the name: `[:K|:any]`; empty if there is none.
    pub argument: &'static str,
    /// What it does, in one clause for help texts.
    pub about: &'static str,
    /// What to write instead of an invalid argument.
    pub(super) remedy: &'static str,
    /// What it ranks by, in words: `latency`.
    pub(super) by: &'static str,
    /// Whether it ranks by hops. These always count, after all other values, and reasons do not
    /// repeat them.
    pub(super) by_hops: bool,
    /// Whether it uses a [`Carbon`] table.
    pub(super) by_carbon: bool,
    pub(super) rule: Rule,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// Ranks a path.
    Rank(fn(&Candidate<'_>, &Carbon) -> Rank),
    /// Makes a picker from the argument after the colon; `None` if the argument is invalid.
    Pick(fn(Option<&str>) -> Option<Arc<dyn Picker>>),
}

/// A rule by which a set of paths is picked.
pub(super) trait Picker: fmt::Debug + Send + Sync {
    /// How it is written, with its argument: `disjoint:2`.
    fn text(&self) -> String;

    /// Picks the paths that are taken together: at most `max`, best first, none twice.
    fn pick(&self, ranked: &[Candidate<'_>], max: usize) -> Pick;
}

/// The paths picked, by places in the ranking.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Pick {
    /// The paths taken, best first; a path without a reason is taken for its rank.
    pub taken: Vec<(usize, Option<Reason>)>,
    /// Paths left, each with its reason; all others are left because there are enough.
    pub left: Vec<(usize, Reason)>,
    /// Interfaces ignored in the comparison, because every path has to use them.
    pub ignored: Vec<Interface>,
    /// For each path taken, the share of the bytes that it must carry, from 0 to 1.
    pub shares: Option<Vec<f64>>,
}

impl StrategyKind {
    /// A kind of strategy without an argument.
    pub(super) const fn new(name: &'static str, about: &'static str, rule: Rule) -> Self {
        Self {
            name,
            argument: "",
            about,
            remedy: "nothing after its name",
            by: "rank",
            by_hops: false,
            by_carbon: false,
            rule,
        }
    }

    /// Whether it picks a set of paths; the others rank.
    pub fn picks(&self) -> bool {
        matches!(self.rule, Rule::Pick(_))
    }
}

/// Printed as it is written: `spread:N%`.
impl fmt::Display for StrategyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.argument)
    }
}
