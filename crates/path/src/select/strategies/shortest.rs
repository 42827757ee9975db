//! `shortest`: the fewest hops, whether or not paths share links (001, section IV).

use crate::Carbon;
use crate::select::candidate::{Candidate, Rank, hops};
use crate::select::kind::{Rule, StrategyKind};

pub(in crate::select) const KIND: StrategyKind = StrategyKind {
    by: "length",
    by_hops: true,
    ..StrategyKind::new("shortest", "the fewest hops", Rule::Rank(rank))
};

pub(in crate::select) fn rank(path: &Candidate<'_>, _: &Carbon) -> Rank {
    Rank {
        strategy: KIND.name,
        known: true,
        cost: path.path.links() as u64,
        text: hops(path.path),
        amount: Some(path.path.hops() as f64),
        unit: "hops",
        parts: Vec::new(),
    }
}
