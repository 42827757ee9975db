//! The measurements: the object that `hawser bench bad-path --json` prints.

use serde::{Serialize, Serializer};

use super::condition::Condition;
use super::facts::Facts;
use super::transfer::Transfer;
use crate::report::median;

/// The measurements of all transfers under all conditions.
#[derive(Debug, Serialize)]
pub struct BadPathTable {
    /// The experiment's name: `bad-path`.
    pub experiment: &'static str,
    /// The limit of each link, in Mbit/s.
    pub rate_mbit: f64,
    /// The round trip over a good path, in milliseconds.
    pub round_trip_ms: f64,
    /// The start of each run, which does not count, in seconds.
    pub settled_seconds: f64,
    /// How long the two good paths take for what a run transfers after its start, in seconds.
    pub seconds: f64,
    /// Number of runs of each, one of each in turn.
    pub repeat: u16,
    /// The transfers over the two good paths alone, and then under each condition.
    pub cells: Vec<Cell>,
}

/// The runs of one transfer under one condition.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The transfer.
    #[serde(serialize_with = "as_text")]
    pub transfer: Transfer,
    /// The condition of the third path; `None` if it is down from the beginning.
    #[serde(serialize_with = "as_text_if_any")]
    pub condition: Option<Condition>,
    /// What every run shows.
    pub runs: Vec<Facts>,
    /// The median of their goodput, in Mbit/s.
    pub mbit: Option<f64>,
    /// That by the goodput of the transfer over the two good paths alone.
    pub ratio: Option<f64>,
    /// The longest pause of all runs, in seconds.
    pub pause_seconds: Option<f64>,
    /// Why there are fewer runs than requested, or none.
    pub failure: Option<String>,
}

impl BadPathTable {
    /// The cell of a transfer under a condition, if it was measured.
    pub fn cell(&self, transfer: Transfer, condition: Option<Condition>) -> Option<&Cell> {
        let mut cells = self.cells.iter();
        cells.find(|cell| (cell.transfer, cell.condition) == (transfer, condition))
    }
}

impl Cell {
    pub(super) fn new(transfer: Transfer, condition: Option<Condition>) -> Self {
        Self {
            transfer,
            condition,
            runs: Vec::new(),
            mbit: None,
            ratio: None,
            pause_seconds: None,
            failure: None,
        }
    }

    /// Adds a run.
    pub(super) fn add(&mut self, run: Facts) {
        self.runs.push(run);
        let all: Vec<f64> = self.runs.iter().map(|run| run.mbit).collect();
        self.mbit = Some(median(&all));
        self.pause_seconds = self
            .runs
            .iter()
            .map(|run| run.pause_seconds)
            .reduce(f64::max);
    }
}

/// Compares every cell with the same transfer over the good paths alone.
pub(super) fn compare(cells: &mut [Cell]) {
    let alone = |cell: &&Cell| cell.condition.is_none();
    let alone: Vec<_> = cells
        .iter()
        .filter(alone)
        .map(|cell| (cell.transfer, cell.mbit))
        .collect();
    for cell in cells {
        let found = alone
            .iter()
            .find(|(transfer, _)| *transfer == cell.transfer);
        let compared = found.and_then(|(_, mbit)| *mbit);
        cell.ratio = cell.mbit.zip(compared).map(|(mbit, alone)| mbit / alone);
    }
}

fn as_text<S: Serializer>(transfer: &Transfer, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(transfer)
}

#[allow(clippy::ref_option, reason = "serde passes a reference")]
fn as_text_if_any<S: Serializer>(condition: &Option<Condition>, to: S) -> Result<S::Ok, S::Error> {
    match condition {
        Some(condition) => to.collect_str(condition),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_compared_with_themselves_over_good_paths() {
        let run = |mbit: f64, pause_seconds: f64| Facts {
            mbit,
            pause_seconds,
            resumed_at: 4.0,
        };
        let far = Some(Condition::Far);
        let mut cells = [
            Cell::new(Transfer::Get, None),
            Cell::new(Transfer::Get, far),
            Cell::new(Transfer::Send, far),
        ];
        for (mbit, pause) in [(80.0, 0.1), (90.0, 0.1), (100.0, 0.1)] {
            cells[0].add(run(mbit, pause));
        }
        cells[1].add(run(99.0, 0.3));
        cells[1].add(run(81.0, 0.7));
        cells[2].add(run(81.0, 0.2));
        compare(&mut cells);
        assert_eq!((cells[0].ratio, cells[1].ratio), (Some(1.0), Some(1.0)));
        assert_eq!(cells[1].pause_seconds, Some(0.7));
        // There is nothing to compare it with.
        assert_eq!((cells[2].mbit, cells[2].ratio), (Some(81.0), None));
    }
}
