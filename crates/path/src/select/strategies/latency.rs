//! `latency`: the lowest one-way delay, measured or else announced.

use std::time::Duration;

use crate::select::kind::{self, Kind};
use crate::select::strategy::{Candidate, Rank, Strategy};

pub(super) const KIND: Kind = Kind::ranking(
    "latency",
    "the lowest one-way delay, measured or else announced",
    kind::plain::<Latency>,
);

#[derive(Debug, Default)]
struct Latency;

impl Strategy for Latency {
    fn text(&self) -> String {
        KIND.name.to_owned()
    }

    fn rank(&self, path: &Candidate<'_>) -> Option<Rank> {
        let nanos = |delay: Duration| u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        // Half the round trip: the return path may differ, but by how much is unknown.
        let measured = path.measured.rtt.map(|rtt| (rtt / 2, "measured"));
        let announced = || path.path.latency().map(|delay| (delay, "announced"));
        Some(match measured.or_else(announced) {
            Some((delay, how)) => Rank {
                known: true,
                cost: nanos(delay),
                value: format!("{} ms {how}", millis(delay)),
                amount: Some(millis(delay)),
                unit: "ms",
                parts: Vec::new(),
            },
            None => Rank {
                known: false,
                cost: 0,
                value: "latency not announced".to_owned(),
                amount: None,
                unit: "ms",
                parts: Vec::new(),
            },
        })
    }

    fn best(&self) -> &'static str {
        "lowest latency"
    }
}

/// In milliseconds, to hundredths.
fn millis(delay: Duration) -> f64 {
    (delay.as_secs_f64() * 1e5).round() / 1e2
}
