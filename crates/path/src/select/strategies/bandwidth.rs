//! `bandwidth`: the highest rate, measured or else the lowest announced on the path.

use crate::Carbon;
use crate::select::candidate::{Candidate, Rank};
use crate::select::kind::{Rule, StrategyKind};

pub(super) const KIND: StrategyKind = StrategyKind {
    by: "bandwidth",
    ..StrategyKind::new(
        "bandwidth",
        "the highest rate, measured or else the lowest announced on the path",
        Rule::Rank(rank),
    )
};

fn rank(path: &Candidate<'_>, _: &Carbon) -> Rank {
    let parts = path.path.interfaces.len().saturating_sub(1);
    let announced = || path.path.metadata.bandwidth.iter().copied().flatten();
    let count = announced().count();
    let (known, rate, text) = match (path.measured.rate, announced().min()) {
        (Some(rate), _) => (true, rate, format!("{} measured", bits(rate))),
        (None, None) => (false, 0, "bandwidth not announced".to_owned()),
        (None, Some(rate)) if count == parts => (true, rate, format!("{} announced", bits(rate))),
        // A part without an announcement may be the narrowest, so a rate announced only in part
        // ranks as unknown.
        (None, Some(rate)) => (
            false,
            rate,
            format!("{} announced by {count} of {parts} parts", bits(rate)),
        ),
    };
    Rank {
        strategy: KIND.name,
        known,
        // A higher rate costs less.
        cost: u64::MAX - rate,
        text,
        amount: (known || rate > 0).then_some(rate as f64),
        unit: "bit/s",
        parts: Vec::new(),
    }
}

/// A rate in the largest unit in which it is at least 1, to hundredths.
fn bits(rate: u64) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let unit = units.into_iter().find(|(unit, _)| rate as f64 >= *unit);
    let (unit, name) = unit.unwrap_or((1.0, "bit/s"));
    format!("{} {name}", (rate as f64 / unit * 1e2).round() / 1e2)
}
