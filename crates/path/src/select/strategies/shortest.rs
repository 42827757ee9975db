//! `shortest`: the fewest hops, whether or not paths share links (001, section IV).

use crate::select::kind::{self, Kind};
use crate::select::strategy::{Candidate, Rank, Strategy, hops};

pub(super) const KIND: Kind = Kind::ranking("shortest", "the fewest hops", kind::plain::<Shortest>);

#[derive(Debug, Default)]
pub(in crate::select) struct Shortest;

impl Strategy for Shortest {
    fn text(&self) -> String {
        KIND.name.to_owned()
    }

    fn rank(&self, path: &Candidate<'_>) -> Option<Rank> {
        Some(Rank {
            known: true,
            cost: path.path.links() as u64,
            value: hops(path.path),
            amount: Some(path.path.hops() as f64),
            unit: "hops",
            parts: Vec::new(),
        })
    }

    fn best(&self) -> &'static str {
        "shortest"
    }

    fn ranks_by_hops(&self) -> bool {
        true
    }
}
