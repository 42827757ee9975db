//! The measurements: the object that `hawser bench mptcp --json` prints.

use serde::Serialize;

use super::carrier::MptcpCarrier;
use super::headers::HeaderRow;
use crate::papers::shila;
use crate::report::{median, spread};

/// The measurements of all carriers.
#[derive(Debug, Serialize)]
pub struct MptcpTable {
    /// The experiment's name: `mptcp`.
    pub experiment: &'static str,
    /// The section of the paper.
    pub about: String,
    /// The limit of each path's link, in Mbit/s.
    pub rate_mbit: f64,
    /// The round trip of each path, in milliseconds.
    pub round_trip_ms: f64,
    /// How long each carrier sends in a run, in seconds.
    pub seconds: f64,
    /// Number of runs of each carrier with each number of paths, one of each in turn.
    pub repeat: u16,
    /// One row for each carrier and number of paths, in order.
    pub rows: Vec<MptcpRow>,
    /// The bytes of a full frame, for each carrier that ran.
    pub headers: Vec<HeaderRow>,
    /// How long connections take until their first answer.
    pub set_up: Vec<SetUpRow>,
}

/// What one carrier carried over a number of paths.
#[derive(Debug, Clone, Serialize)]
pub struct MptcpRow {
    /// The carrier.
    #[serde(serialize_with = "as_text")]
    pub carrier: MptcpCarrier,
    /// The number of paths.
    pub paths: u8,
    /// Goodput of every run, in Mbit/s: from the first byte to the last, start included.
    pub runs_mbit: Vec<f64>,
    /// The median of the runs.
    pub mbit: Option<f64>,
    /// Largest less smallest goodput, divided by the median.
    pub spread: Option<f64>,
    /// Mean and standard deviation of the runs, as the paper has them.
    pub mean_mbit: Option<f64>,
    /// See `mean_mbit`.
    pub deviation_mbit: Option<f64>,
    /// Frames on the limited links in the same time, in Mbit/s: the median.
    pub throughput_mbit: Option<f64>,
    /// The share of these frames that is not what the program sent: headers, and what was sent twice.
    pub overhead: Option<f64>,
    /// What headers leave of the limits, in Mbit/s.
    pub ceiling_mbit: Option<f64>,
    /// `mbit` by `ceiling_mbit`.
    pub share: Option<f64>,
    /// Goodput by that of QUIC over the same paths in the same turn: the median.
    pub by_quic: Option<f64>,
    /// Goodput by that of QUIC over one path in the same turn, which is what the paper compares with: the
    /// median.
    pub by_quic_path: Option<f64>,
    /// The same of the paper.
    pub paper_by_quic_path: Option<f64>,
    /// The paper's goodput and its standard deviation, in Mbit/s.
    pub paper_mbit: Option<(f64, f64)>,
    /// The paper's throughput and its standard deviation, in Mbit/s.
    pub paper_throughput_mbit: Option<(f64, f64)>,
    /// Why there are fewer runs than requested, or none.
    pub failure: Option<String>,
}

/// Which connection to a host it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Connection {
    /// The first one since the shim is up.
    First,
    /// One of those that follow.
    Later,
}

/// How long connections take until the first byte of an answer.
#[derive(Debug, Clone, Serialize)]
pub struct SetUpRow {
    /// The carrier.
    #[serde(serialize_with = "as_text")]
    pub carrier: MptcpCarrier,
    /// Which connections.
    pub connection: Connection,
    /// Milliseconds of every connection.
    pub all_ms: Vec<f64>,
    /// Their median.
    pub ms: f64,
    /// The shortest and the longest.
    pub least_ms: f64,
    /// See `least_ms`.
    pub most_ms: f64,
    /// `ms` less that of plain TCP, if that was measured.
    pub more_ms: Option<f64>,
}

/// What one run shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// The number of the repetition.
    pub turn: u16,
    /// In Mbit/s.
    pub goodput: f64,
    pub throughput: f64,
    pub ceiling: f64,
}

impl MptcpRow {
    /// Sums up runs; `quic` are those of QUIC over the same paths, and over one path.
    pub(super) fn new(
        (carrier, paths): (MptcpCarrier, u8),
        runs: &[Measured],
        quic: [&[Measured]; 2],
        failure: Option<String>,
    ) -> Self {
        let of = |value: fn(&Measured) -> f64| -> Vec<f64> { runs.iter().map(value).collect() };
        let any = |value: fn(&Measured) -> f64| (!runs.is_empty()).then(|| median(&of(value)));
        let goodput = of(|run| run.goodput);
        let mean = goodput.iter().sum::<f64>() / goodput.len() as f64;
        let squares: f64 = goodput.iter().map(|one| (one - mean).powi(2)).sum();
        let [by_quic, by_quic_path] = quic.map(|quic| {
            let ratios = runs.iter().filter_map(|run| {
                let same = quic.iter().find(|one| one.turn == run.turn)?;
                Some(run.goodput / same.goodput)
            });
            let ratios: Vec<f64> = ratios.collect();
            (!ratios.is_empty()).then(|| median(&ratios))
        });
        let paper = carrier.paper(paths);
        Self {
            carrier,
            paths,
            mbit: any(|run| run.goodput),
            spread: (!runs.is_empty()).then(|| spread(&goodput)),
            mean_mbit: (!runs.is_empty()).then_some(mean),
            deviation_mbit: (!runs.is_empty()).then(|| (squares / runs.len() as f64).sqrt()),
            throughput_mbit: any(|run| run.throughput),
            overhead: any(|run| 1.0 - run.goodput / run.throughput),
            ceiling_mbit: any(|run| run.ceiling),
            share: any(|run| run.goodput / run.ceiling),
            by_quic,
            by_quic_path,
            paper_by_quic_path: paper.map(|[goodput, _]| goodput.0 / shila::QUIC[0].0),
            paper_mbit: paper.map(|[goodput, _]| goodput),
            paper_throughput_mbit: paper.map(|[_, throughput]| throughput),
            failure,
            runs_mbit: goodput,
        }
    }
}

impl SetUpRow {
    /// Sums up connections; `plain` is the median of plain TCP, in milliseconds.
    pub(super) fn new(
        (carrier, connection): (MptcpCarrier, Connection),
        all_ms: Vec<f64>,
        plain: Option<f64>,
    ) -> Self {
        let ms = median(&all_ms);
        Self {
            carrier,
            connection,
            ms,
            least_ms: all_ms.iter().copied().fold(f64::INFINITY, f64::min),
            most_ms: all_ms.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            more_ms: plain.map(|plain| ms - plain),
            all_ms,
        }
    }
}

pub(super) fn as_text<S: serde::Serializer>(
    carrier: &MptcpCarrier,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_str(carrier)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(goodputs: &[f64]) -> Vec<Measured> {
        let turns = goodputs.iter().zip(1..);
        let run = |(goodput, turn): (&f64, u16)| Measured {
            turn,
            goodput: *goodput,
            throughput: 20.0,
            ceiling: 17.0,
        };
        turns.map(run).collect()
    }

    #[test]
    fn rows_compare_with_quic_in_the_same_turn() {
        let name = (MptcpCarrier::Mptcp, 8);
        let (same, one) = (runs(&[16.0, 16.0]), runs(&[4.0]));
        let row = MptcpRow::new(name, &runs(&[16.0, 17.0, 15.0]), [&same, &one], None);
        assert_eq!((row.mbit, row.by_quic), (Some(16.0), Some(1.03125)));
        assert_eq!(row.by_quic_path, Some(4.0));
        assert!((row.paper_by_quic_path.unwrap() - 0.38).abs() < 0.005);
        assert_eq!((row.mean_mbit, row.spread), (Some(16.0), Some(0.125)));
        assert!((row.deviation_mbit.unwrap() - (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
        assert!((row.overhead.unwrap() - 0.2).abs() < 1e-9);
        assert!((row.share.unwrap() - 16.0 / 17.0).abs() < 1e-9);
        assert_eq!(row.paper_mbit, Some((12.74, 5.53)));
        assert_eq!(serde_json::to_value(&row).unwrap()["carrier"], "mptcp");
    }

    #[test]
    fn without_runs_there_are_no_figures() {
        let why = Some("the shim needs root".to_owned());
        let row = MptcpRow::new((MptcpCarrier::Mptcp, 2), &[], [&runs(&[16.0]), &[]], why);
        assert_eq!(
            (row.mbit, row.deviation_mbit, row.by_quic),
            (None, None, None)
        );
        assert_eq!(row.paper_mbit, None);
    }

    #[test]
    fn set_up_is_compared_with_plain_tcp() {
        let name = (MptcpCarrier::Mptcp, Connection::First);
        let row = SetUpRow::new(name, vec![70.0, 60.0, 65.0], Some(41.0));
        assert_eq!((row.ms, row.least_ms, row.most_ms), (65.0, 60.0, 70.0));
        assert_eq!(row.more_ms, Some(24.0));
    }
}
