//! `latency`: the lowest one-way delay, measured or else announced.

use std::time::Duration;

use crate::Carbon;
use crate::select::candidate::{Candidate, Rank};
use crate::select::kind::{Rule, StrategyKind};

pub(super) const KIND: StrategyKind = StrategyKind {
    by: "latency",
    ..StrategyKind::new(
        "latency",
        "the lowest one-way delay, measured or else announced",
        Rule::Rank(rank),
    )
};

fn rank(path: &Candidate<'_>, _: &Carbon) -> Rank {
    // Half the round trip: the return path may differ, but by how much is unknown.
    let measured = path.measured.rtt.map(|rtt| (rtt / 2, "measured"));
    let announced = || path.path.latency().map(|delay| (delay, "announced"));
    let known = measured.or_else(announced);
    let delay = known.map_or(Duration::ZERO, |(delay, _)| delay);
    Rank {
        strategy: KIND.name,
        known: known.is_some(),
        cost: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX),
        text: match known {
            Some((delay, how)) => format!("{} ms {how}", millis(delay)),
            None => "latency not announced".to_owned(),
        },
        amount: known.map(|(delay, _)| millis(delay)),
        unit: "ms",
        parts: Vec::new(),
    }
}

/// In milliseconds, to hundredths.
fn millis(delay: Duration) -> f64 {
    (delay.as_secs_f64() * 1e5).round() / 1e2
}
