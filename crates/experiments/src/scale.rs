//! How the cost of a byte grows with what moves at once: downloads, streams, transfers and connections
//! that differ in one respect ([`Axis`]) from a base case, and the processor time per byte of all
//! processes. Growth is flat where the cost stays that of the base case.

mod axis;
mod bed;
mod case;
mod figure;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

pub use self::axis::{Axis, Work};
pub use self::bed::ScaleBed;
pub use self::case::{Case, Shape};
use crate::bed::Carried;
use crate::error::ExperimentError;
use crate::shape::{
    Columns, Experiment, Figure, Format, Observe, Results, Row, Section, Series, Table,
};
use crate::throughput::{Course, PerGigabyte};

/// Two hosts behind a border router each, with Ethernet's MTU and offloads.
const COURSE: Course = Course::new(2, 1500, true);

/// Largest difference from the base case at which a cost counts as the same.
const FLAT: f64 = 0.15;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Scale {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// The respects in which cases differ from their base case.
    pub axes: Vec<Axis>,
    /// Bytes of the downloads and transfers of a base case.
    pub bytes: u64,
    /// How long streams and connections send.
    pub time: Duration,
    /// Whether the whole range of each is measured.
    pub all: bool,
    /// Number of runs of each case.
    pub repeat: u16,
}

impl Experiment for Scale {
    type Place = Work;
    type Bed = ScaleBed;
    type Case = Case;
    type Run = Carried;

    fn turns(&self) -> u16 {
        self.repeat
    }

    /// The kinds of work of all axes, once each; downloads first.
    fn places(&self) -> Vec<Work> {
        let works: BTreeSet<Work> = self.axes.iter().map(|axis| axis.work()).collect();
        works.into_iter().collect()
    }

    fn heading(&self, work: &Work) -> Option<String> {
        // Alone, it needs none.
        (self.places().len() > 1).then(|| self.about(*work))
    }

    fn cases(&self, work: &Work) -> Vec<Case> {
        Case::all(*work, &self.axes, self.bytes, self.all)
    }

    async fn set_up(&self, work: &Work, _: Observe<'_>) -> Result<ScaleBed, ExperimentError> {
        ScaleBed::set_up(self, *work)
    }

    async fn measure(&self, bed: &ScaleBed, case: &Case) -> Result<Carried, ExperimentError> {
        bed.measure(self, case).await
    }

    fn summary(&self, run: &Carried) -> String {
        format!("{:.2} Gbit/s", run.gbit())
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let section = Section::of("rows", self, results, &columns());
        let all = results.rows().flat_map(|(_, rows)| rows);
        let flat = all.filter(|row| !is_base(row)).map(|row| is_flat(&row));
        let flat: Vec<Option<bool>> = flat.collect();
        let beyond = flat.iter().filter(|flat| **flat == Some(false)).count();
        let about = match self.places()[..] {
            [work] => vec![self.about(work)],
            _ => Vec::new(),
        };
        // The downloads come first, if there are any, and their base case is on no axis.
        let has_base = results
            .places
            .first()
            .is_some_and(|(work, _)| *work == Work::Downloads);
        Table {
            experiment: "scale",
            facts: vec![("repeat", self.repeat.into())],
            about,
            sections: vec![match has_base {
                true => section.with_first("base"),
                false => section,
            }],
            notes: vec![format!(
                "* beyond {:.0} % of the base case: {beyond} of {}",
                100.0 * FLAT,
                flat.len()
            )],
        }
    }

    fn plot(&self, results: &Results<Self>) -> Result<Vec<Figure>, ExperimentError> {
        figure::draw(self.repeat, results).map(Figure::only)
    }
}

impl Scale {
    fn about(&self, work: Work) -> String {
        let base = Case::base(self.bytes).downloads;
        let (bytes, piece) = (Axis::Size.text(base.bytes), Axis::Piece.text(base.piece));
        match work {
            Work::Downloads => {
                format!("base: {bytes} in pieces of {piece}, one torrent, one seeder, one path")
            }
            Work::Flows => "QUIC streams at once, each between two processes".to_owned(),
            Work::Senders => format!("{bytes} of zeros by bulk transfers into one receiver"),
            Work::Connections => "TCP connections at once through a shim at either end".to_owned(),
            Work::Tcp => format!("{bytes} in pieces of {piece} over TCP on this host"),
        }
    }
}

fn columns<'a>() -> Columns<Row<'a, Scale>> {
    use Format::{Name, Number, Text};
    Columns::<Row<'a, Scale>>::new()
        .json("axis", |row| row.case.axis.map(|axis| axis.to_string()))
        .text("axis", Name, |row| match row.case.axis {
            None => "base".to_owned(),
            Some(axis) => axis.to_string(),
        })
        .text("value", Name, |row| row.case.value_text())
        .json("value", |row| row.case.value)
        .both("client", "client", Name, |row| {
            row.case
                .client
                .map_or_else(String::new, |client| client.to_string())
        })
        .json("paths", |row| row.case.downloads.paths)
        .json("peers", |row| row.case.downloads.peers)
        .json("leechers", |row| row.case.downloads.leechers)
        .json("torrents", |row| row.case.downloads.torrents)
        .json("bytes", |row| row.case.downloads.bytes)
        .json("piece", |row| row.case.downloads.piece)
        .values("runs_gbit", Carried::gbit)
        .runs()
        .median("gbit", "Gbit/s", Number(2), Carried::gbit)
        .json("cpu_per_gb", |row| json!(PerGigabyte::of(&row.series.runs)))
        .median(None, "CPU s/GB: sender", Number(2), |run| {
            run.per_gb(run.sender)
        })
        .median(None, "receiver", Number(2), |run| run.per_gb(run.receiver))
        .median(None, "routers", Number(2), |run| {
            run.per_gb(run.routers.iter().sum())
        })
        .spread("cpu_spread", |run| run.per_gb(run.sender + run.receiver))
        .both("memory_mb", "memory MB", Number(0), memory)
        .both("ratio", "ratio", Number(2), ends_ratio)
        .both("ratio_all", "of all", Number(2), |row| {
            ratio(row, |cpu| cpu.all)
        })
        .both("ratio_routers", "of routers", Number(2), |row| {
            ratio(row, |cpu| cpu.routers.iter().sum())
        })
        .both("ratio_gbit", "of Gbit/s", Number(2), gbit_ratio)
        .json("flat", is_flat)
        .text("", Text, |row| match is_flat(row) {
            Some(false) => "*",
            _ => "",
        })
}

/// The most memory of a process, in MB.
fn memory(row: &Row<'_, Scale>) -> Option<f64> {
    let most = row.series.runs.iter().filter_map(|run| run.memory).max();
    most.map(|bytes| bytes as f64 / 1e6)
}

/// The case that another is compared with: the first at its place, of the same client.
fn base<'a>(row: &Row<'a, Scale>) -> Option<&'a Series<Case, Carried>> {
    let same = |series: &&Series<Case, Carried>| series.case.client == row.case.client;
    row.all.iter().find(same)
}

fn is_base(row: &Row<'_, Scale>) -> bool {
    base(row).is_some_and(|base| base.case == *row.case)
}

/// Processor time by that of the base case; `None` for that one, without it, and where it is none.
fn ratio(row: &Row<'_, Scale>, of: impl Fn(&PerGigabyte) -> f64) -> Option<f64> {
    if is_base(row) {
        return None;
    }
    let [cost, base] = [&row.series.runs, &base(row)?.runs].map(|runs| {
        let cpu = PerGigabyte::of(runs)?;
        Some(of(&cpu))
    });
    base.filter(|base| *base > 0.0)
        .and_then(|base| Some(cost? / base))
}

/// That of senders and receivers.
fn ends_ratio(row: &Row<'_, Scale>) -> Option<f64> {
    ratio(row, |cpu| cpu.sender + cpu.receiver)
}

/// Goodput by that of the base case.
fn gbit_ratio(row: &Row<'_, Scale>) -> Option<f64> {
    if is_base(row) {
        return None;
    }
    let base = base(row)?.median(Carried::gbit)?;
    Some(row.series.median(Carried::gbit)? / base)
}

/// Whether the ratio is within [`FLAT`] of 1.
fn is_flat(row: &Row<'_, Scale>) -> Option<bool> {
    ends_ratio(row).map(|ratio| (ratio - 1.0).abs() <= FLAT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(case: Case, cpu: Option<f64>) -> Series<Case, Carried> {
        let run = cpu.map(|cpu| Carried {
            bytes: 1_000_000_000,
            seconds: 1.0,
            sender: cpu / 2.0,
            receiver: cpu / 2.0,
            routers: vec![1.0],
            paths: 1,
            memory: None,
        });
        Series {
            case,
            runs: run.into_iter().collect(),
            failure: None,
        }
    }

    #[test]
    fn costs_beyond_fifteen_percent_are_not_flat() {
        let scale = Scale {
            program: PathBuf::new(),
            axes: vec![Axis::Piece],
            bytes: 256_000_000,
            time: Duration::from_secs(1),
            all: false,
            repeat: 1,
        };
        let cases = scale.cases(&Work::Downloads).into_iter();
        let costs = [Some(1.0), Some(1.1), Some(1.2), None];
        let all = cases.zip(costs).map(|(case, cpu)| series(case, cpu));
        let results = Results {
            places: vec![(Work::Downloads, all.collect())],
        };
        let table = serde_json::to_value(scale.table(&results)).unwrap();
        let flat: Vec<_> = (0..3).map(|index| &table["rows"][index]["flat"]).collect();
        assert_eq!(flat, [&json!(true), &json!(false), &json!(null)]);
        assert_eq!(table["rows"][0]["axis"], "piece");
        assert_eq!(
            (&table["base"]["axis"], &table["base"]["ratio"]),
            (&json!(null), &json!(null))
        );
        assert_eq!(table["base"]["cpu_per_gb"]["all"], 2.0);
        assert_eq!(table["rows"][2]["cpu_per_gb"], json!(null));
        let text = scale.table(&results).to_string();
        assert!(text.contains("  *\n") && text.contains("1 of 3"), "{text}");
    }
}
