//! What the runs of a case come to, beside those of QUIC and of the paper.

use serde_json::json;

use super::carrier::MptcpCarrier;
use super::case::MptcpCase;
use super::run::Mptcp;
use crate::papers::shila;
use crate::report::median;
use crate::shape::{Columns, Format, Row};

/// A carrier over a number of paths, beside the others.
pub(super) type MptcpRow<'a> = Row<'a, Mptcp>;

/// The mean goodput of the runs, in Mbit/s, as the paper has it.
pub(super) fn mean(row: &MptcpRow<'_>) -> Option<f64> {
    let goodput = row.series.values(|run| run.goodput);
    (!goodput.is_empty()).then(|| goodput.iter().sum::<f64>() / goodput.len() as f64)
}

/// Its standard deviation, in Mbit/s.
pub(super) fn deviation(row: &MptcpRow<'_>) -> Option<f64> {
    let mean = mean(row)?;
    let squares = row.series.values(|run| (run.goodput - mean).powi(2));
    Some((squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

/// What headers leave of the limits, in Mbit/s.
pub(super) fn ceiling(row: &MptcpRow<'_>) -> Option<f64> {
    row.series.median(|run| run.ceiling)
}

/// Goodput by that of QUIC over a number of paths in the same turn: the median.
pub(super) fn by_quic(row: &MptcpRow<'_>, paths: u8) -> Option<f64> {
    let carrier = MptcpCarrier::Quic;
    let quic = MptcpCase { carrier, paths };
    let quic = row.all.iter().find(|series| series.case == quic)?;
    // A series ends with the first failure, so both begin with the same turn.
    let ratios = row.series.runs.iter().zip(&quic.runs);
    let ratios: Vec<f64> = ratios
        .map(|(run, quic)| run.goodput / quic.goodput)
        .collect();
    (!ratios.is_empty()).then(|| median(&ratios))
}

fn paper_by_quic_path(row: &MptcpRow<'_>) -> Option<f64> {
    let paper = row.case.carrier.paper(row.case.paths);
    paper.map(|[goodput, _]| goodput.0 / shila::QUIC[0].0)
}

fn paper(row: &MptcpRow<'_>) -> Option<String> {
    let [(mean, deviation), (frames, _)] = row.case.carrier.paper(row.case.paths)?;
    let by_one = paper_by_quic_path(row)?;
    Some(format!(
        "{mean:.2} ± {deviation:.2} ({frames:.2}), {by_one:.2}"
    ))
}

pub(super) fn columns<'a>() -> Columns<MptcpRow<'a>> {
    use Format::{Name, Number, Percent, Text};
    Columns::<MptcpRow<'a>>::new()
        .both("carrier", "carrier", Name, |row| {
            row.case.carrier.to_string()
        })
        .both("paths", "paths", Name, |row| row.case.paths)
        .json("runs_mbit", |row| row.series.values(|run| run.goodput))
        .text("runs", Number(0), |row| row.series.runs.len())
        .both("mbit", "goodput", Number(2), |row| {
            row.series.median(|run| run.goodput)
        })
        .both("spread", "spread", Percent(1), |row| {
            row.series.spread(|run| run.goodput)
        })
        .json("mean_mbit", mean)
        .json("deviation_mbit", deviation)
        .both("throughput_mbit", "frames", Number(2), |row| {
            row.series.median(|run| run.throughput)
        })
        .both("overhead", "overhead", Percent(1), |row| {
            row.series.median(|run| 1.0 - run.goodput / run.throughput)
        })
        .both("ceiling_mbit", "ceiling", Number(2), ceiling)
        .both("share", "reached", Percent(1), |row| {
            row.series.median(|run| run.goodput / run.ceiling)
        })
        .both("by_quic", "by quic", Number(2), |row| {
            by_quic(row, row.case.paths)
        })
        .both("by_quic_path", "by one", Number(2), |row| by_quic(row, 1))
        .json("paper_by_quic_path", paper_by_quic_path)
        .json("paper_mbit", |row| {
            json!(
                row.case
                    .carrier
                    .paper(row.case.paths)
                    .map(|[goodput, _]| goodput)
            )
        })
        .json("paper_throughput_mbit", |row| {
            json!(
                row.case
                    .carrier
                    .paper(row.case.paths)
                    .map(|[_, frames]| frames)
            )
        })
        .text("paper: goodput (frames), by one", Text, paper)
}

#[cfg(test)]
mod tests {
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
