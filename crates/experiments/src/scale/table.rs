//! The measurements: the object that `hawser bench scale --json` prints.

use serde::Serialize;

use super::case::{Axis, Case};
use crate::report::{median, spread};
use crate::stage::Carried;
use crate::throughput::PerGigabyte;

/// Largest difference from the base case at which a cost counts as the same.
pub const FLAT: f64 = 0.15;

/// The cost of a byte in all cases.
#[derive(Debug, Serialize)]
pub struct Table {
    /// The experiment's name: `scale`.
    pub experiment: &'static str,
    /// Number of runs of each case, one of each in turn.
    pub repeat: u16,
    /// The case that all others are compared with.
    pub base: Row,
    /// The other cases, by axis.
    pub rows: Vec<Row>,
}

/// The measurements of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The respect in which it differs from the base case; `None` for that one.
    pub axis: Option<Axis>,
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// Goodput of every run, in Gbit/s.
    pub runs_gbit: Vec<f64>,
    /// The median of the runs.
    pub gbit: Option<f64>,
    /// Largest less smallest processor time per byte of all processes, divided by the median.
    pub cpu_spread: Option<f64>,
    /// Processor time in seconds per GB, of all seeders, of all leechers, and of routers: medians of
    /// the runs.
    pub cpu_per_gb: Option<PerGigabyte>,
    /// Seeders and leechers together, divided by the same of the base case.
    pub ratio: Option<f64>,
    /// Whether `ratio` is within [`FLAT`] of 1.
    pub flat: Option<bool>,
    /// Why there are fewer runs than requested, or none.
    pub failure: Option<String>,
}

impl Table {
    /// Sums up the runs of cases, of which the first is the base case.
    pub(super) fn new(repeat: u16, base: Row, mut rows: Vec<Row>) -> Self {
        let of_base = base.hosts();
        for row in &mut rows {
            row.ratio = row.hosts().zip(of_base).map(|(cost, base)| cost / base);
            row.flat = row.ratio.map(|ratio| (ratio - 1.0).abs() <= FLAT);
        }
        Self {
            experiment: "scale",
            repeat,
            base,
            rows,
        }
    }
}

impl Row {
    /// Sums up runs.
    pub(super) fn new(
        axis: Option<Axis>,
        case: Case,
        runs: &[Carried],
        failure: Option<String>,
    ) -> Self {
        let gbit: Vec<f64> = runs.iter().map(Carried::gbit).collect();
        let cost = |run: &Carried| (run.sender + run.receiver) / run.bytes.max(1) as f64;
        let costs: Vec<f64> = runs.iter().map(cost).collect();
        let any = !runs.is_empty();
        Self {
            axis,
            case,
            gbit: any.then(|| median(&gbit)),
            cpu_spread: any.then(|| spread(&costs)),
            runs_gbit: gbit,
            cpu_per_gb: any.then(|| PerGigabyte::of(runs)),
            ratio: None,
            flat: None,
            failure,
        }
    }

    /// Processor time of seeders and leechers, in seconds per GB.
    fn hosts(&self) -> Option<f64> {
        let cpu = self.cpu_per_gb.as_ref()?;
        Some(cpu.sender + cpu.receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(axis: Option<Axis>, cpu: f64) -> Row {
        let run = Carried {
            bytes: 1_000_000_000,
            seconds: 1.0,
            sender: cpu / 2.0,
            receiver: cpu / 2.0,
            routers: vec![1.0],
            paths: 1,
        };
        Row::new(axis, Case::base(1), &[run], None)
    }

    #[test]
    fn costs_beyond_fifteen_percent_are_not_flat() {
        let axis = Some(Axis::Piece);
        let rows = vec![row(axis, 1.1), row(axis, 1.2), row(axis, 0.8)];
        let table = Table::new(1, row(None, 1.0), rows);
        let flat: Vec<_> = table.rows.iter().filter_map(|row| row.flat).collect();
        assert_eq!(flat, [true, false, false]);
    }

    #[test]
    fn a_case_without_runs_has_no_ratio() {
        let failed = Row::new(None, Case::base(1), &[], Some("no room".to_owned()));
        let table = Table::new(1, row(None, 1.0), vec![failed]);
        assert_eq!((table.rows[0].ratio, table.rows[0].flat), (None, None));
    }
}
