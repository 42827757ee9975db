//! What a strategy is, how it is written, and how it is read.

use std::fmt;
use std::sync::Arc;

use super::candidate::{Candidate, Rank};
use crate::{Carbon, Interface, Reason};

/// A kind of strategy: an entry of [`STRATEGIES`](super::STRATEGIES). It is one that ranks paths, or
/// one that picks a set of them.
#[derive(Debug)]
pub struct Kind {
    /// What stands before the colon.
    pub name: &'static str,
    /// What may follow the name: `[:K|:any]`; empty where nothing may.
    pub argument: &'static str,
    /// What it does, in one clause for help texts.
    pub about: &'static str,
    /// What to write in place of an argument that it does not take.
    pub(super) remedy: &'static str,
    /// What the path that ranks first is called: `lowest latency`.
    pub(super) best: &'static str,
    /// Whether it ranks by hops, which always count, after all else. A reason does not repeat them.
    pub(super) by_hops: bool,
    /// Whether it uses a table of what ASes cost.
    pub(super) by_carbon: bool,
    pub(super) rule: Rule,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// Where a path stands among others.
    Rank(fn(&Candidate<'_>, &Carbon) -> Rank),
    /// Makes what picks from what follows the colon; `None` where that does not fit.
    Pick(fn(Option<&str>) -> Option<Arc<dyn Picker>>),
}

/// A rule by which a set of paths is picked.
pub(super) trait Picker: fmt::Debug + Send + Sync {
    /// How it is written, with what was given after the colon: `disjoint:2`.
    fn text(&self) -> String;

    /// Which of the paths, best first and none twice, are taken together; at most `max`.
    fn pick(&self, ranked: &[Candidate<'_>], max: usize) -> Pick;
}

/// What was picked, by places in the ranking.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Pick {
    /// What is taken, best first; without a reason, it is taken for its rank.
    pub taken: Vec<(usize, Option<Reason>)>,
    /// Why others are left; the rest is left because there are enough.
    pub left: Vec<(usize, Reason)>,
    /// Interfaces that were not counted, because every path has to use them.
    pub ignored: Vec<Interface>,
    /// For each path taken, the share of the bytes that it is to carry, from 0 to 1.
    pub shares: Option<Vec<f64>>,
}

impl Kind {
    /// One that is written by its name alone.
    pub(super) const fn new(name: &'static str, about: &'static str, rule: Rule) -> Self {
        Self {
            name,
            argument: "",
            about,
            remedy: "nothing after its name",
            best: "best",
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
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.argument)
    }
}
