//! `shortest`: the fewest hops, whether or not paths share links (001, section IV).

use super::strategy::{Candidate, Rank, Strategy, hops};

#[derive(Debug)]
pub(super) struct Shortest;

impl Strategy for Shortest {
    fn text(&self) -> String {
        "shortest".to_owned()
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
}
