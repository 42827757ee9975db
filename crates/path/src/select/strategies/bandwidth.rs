//! `bandwidth`: the highest rate, measured or else the lowest announced on the path.

use crate::select::kind::{self, Kind};
use crate::select::strategy::{Candidate, Rank, Strategy};

pub(super) const KIND: Kind = Kind::ranking(
    "bandwidth",
    "the highest rate, measured or else the lowest announced on the path",
    kind::plain::<Bandwidth>,
);

#[derive(Debug, Default)]
struct Bandwidth;

impl Strategy for Bandwidth {
    fn text(&self) -> String {
        KIND.name.to_owned()
    }

    fn rank(&self, path: &Candidate<'_>) -> Option<Rank> {
        // A higher rate costs less.
        let rank = |known, rate: u64, value| {
            Some(Rank {
                known,
                cost: u64::MAX - rate,
                value,
                amount: (known || rate > 0).then_some(rate as f64),
                unit: "bit/s",
                parts: Vec::new(),
            })
        };
        if let Some(rate) = path.measured.rate {
            return rank(true, rate, format!("{} measured", bits(rate)));
        }
        let parts = path.path.interfaces.len().saturating_sub(1);
        let announced = || path.path.metadata.bandwidth.iter().copied().flatten();
        let count = announced().count();
        match announced().min() {
            None => rank(false, 0, "bandwidth not announced".to_owned()),
            Some(rate) if count == parts => rank(true, rate, format!("{} announced", bits(rate))),
            // A part without an announcement may be the narrow one: not announcing gains nothing.
            Some(rate) => rank(
                false,
                rate,
                format!("{} announced by {count} of {parts} parts", bits(rate)),
            ),
        }
    }

    fn best(&self) -> &'static str {
        "highest bandwidth"
    }
}

/// A rate in the largest unit in which it is at least 1, to hundredths.
fn bits(rate: u64) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let unit = units.into_iter().find(|(unit, _)| rate as f64 >= *unit);
    let (unit, name) = unit.unwrap_or((1.0, "bit/s"));
    format!("{} {name}", (rate as f64 / unit * 1e2).round() / 1e2)
}
