//! What the runs of a case come to, beside those of QUIC and of the paper.

use super::carrier::MptcpCarrier;
use super::case::{MptcpCase, MptcpRun};
use crate::numbers::{mean, median};
use crate::papers::shila;
use crate::shape::Series;

/// The runs of a carrier over a number of paths.
pub(super) type Runs = Series<MptcpCase, MptcpRun>;

/// The runs of a case, beside those of the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct MptcpRow<'a> {
    pub runs: &'a Runs,
    pub all: &'a [Runs],
}

impl MptcpRow<'_> {
    /// The mean goodput, in Mbit/s, as the paper has it.
    pub fn mean(&self) -> Option<f64> {
        Some(self.mean_and_deviation()?.0)
    }

    /// Its standard deviation, in Mbit/s.
    pub fn deviation(&self) -> Option<f64> {
        Some(self.mean_and_deviation()?.1)
    }

    fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let goodput = self.runs.values(|run| run.goodput);
        (!goodput.is_empty()).then(|| mean(&goodput))
    }

    /// What headers leave of the limits, in Mbit/s.
    pub fn ceiling(&self) -> Option<f64> {
        self.runs.median(|run| run.ceiling)
    }

    /// Goodput by that of QUIC over a number of paths in the same turn: the median.
    pub fn by_quic(&self, paths: u8) -> Option<f64> {
        let carrier = MptcpCarrier::Quic;
        let quic = MptcpCase { carrier, paths };
        let quic = self.all.iter().find(|series| series.case == quic)?;
        // A series ends with the first failure, so both begin with the same turn.
        let ratios = self.runs.runs.iter().zip(&quic.runs);
        let ratios: Vec<f64> = ratios
            .map(|(run, quic)| run.goodput / quic.goodput)
            .collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }
}

/// Goodput by that of QUIC over one path in the paper.
pub(super) fn paper_by_quic_path(case: MptcpCase) -> Option<f64> {
    let paper = case.carrier.paper(case.paths);
    paper.map(|[goodput, _]| goodput.0 / shila::QUIC[0].0)
}

/// What the paper measured, in a few words.
pub(super) fn paper(case: MptcpCase) -> Option<String> {
    let [(mean, deviation), (frames, _)] = case.carrier.paper(case.paths)?;
    let by_one = paper_by_quic_path(case)?;
    Some(format!(
        "{mean:.2} ± {deviation:.2} ({frames:.2}), {by_one:.2}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mptcp::testing::{mptcp, series};
    use crate::shape::{Experiment, Results};

    #[test]
    fn rows_compare_with_quic_in_the_same_turn() {
        use MptcpCarrier::{Mptcp, Quic};
        let all = vec![
            series(Quic, 1, &[4.0]),
            series(Mptcp, 2, &[]),
            series(Mptcp, 8, &[16.0, 17.0, 15.0]),
            series(Quic, 8, &[16.0, 16.0]),
        ];
        let places = vec![((), all)];
        let table = serde_json::to_value(mptcp(10).table(&Results { places })).unwrap();
        let row = &table["rows"][2];
        assert_eq!(
            (&row["mbit"], &row["by_quic"]),
            (&json!(16.0), &json!(1.03125))
        );
        assert_eq!(
            (&row["by_quic_path"], &row["carrier"]),
            (&json!(4.0), &json!("mptcp"))
        );
        let value = |key: &str| row[key].as_f64().unwrap();
        assert!((value("paper_by_quic_path") - 0.38).abs() < 0.005);
        assert_eq!(
            (&row["mean_mbit"], &row["spread"]),
            (&json!(16.0), &json!(0.125))
        );
        assert!((value("deviation_mbit") - (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
        assert!((value("overhead") - (1.0 - 16.0 / 20.0)).abs() < 1e-9);
        assert!((value("share") - 16.0 / 17.0).abs() < 1e-9);
        assert_eq!(row["paper_mbit"], json!([12.74, 5.53]));
        // Without runs there are no figures.
        let empty = &table["rows"][1];
        for key in [
            "mbit",
            "mean_mbit",
            "deviation_mbit",
            "by_quic",
            "paper_mbit",
        ] {
            assert_eq!(empty[key], json!(null), "{key}");
        }
        assert_eq!(table["headers"].as_array().unwrap().len(), 2);
    }
}
