//! How the cost of a byte grows: BitTorrent downloads that differ from one [`Case`] in one respect
//! ([`Axis`]), and the processor time per byte of all processes.

mod case;

use std::path::PathBuf;

use hawser_torrent::CreateOptions;
use serde_json::json;

pub use self::case::{Axis, Case};
use crate::bed::{Carried, TestBed};
use crate::content::{Content, Load};
use crate::error::{During, ExperimentError};
use crate::experiment::select;
use crate::scratch::Scratch;
use crate::shape::{Columns, Experiment, Format, Observe, Results, Row, Section, Table};
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
    /// The respects in which downloads differ from the base case.
    pub axes: Vec<Axis>,
    /// Bytes of the base case, from which all others differ in one respect.
    pub bytes: u64,
    /// Whether the whole range of each is measured.
    pub all: bool,
    /// Number of runs of each case.
    pub repeat: u16,
}

impl Experiment for Scale {
    type Place = ();
    type Bed = TestBed;
    type Case = Case;
    type Run = Carried;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<Case> {
        let base = Case::base(self.bytes);
        let axes = self.axes.iter();
        let others = axes.flat_map(|axis| {
            let values = axis.values(self.all).iter();
            let cases = values.map(|&value| axis.case(base, value));
            cases.filter(|case| !case.is_same(&base))
        });
        std::iter::once(base).chain(others).collect()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<TestBed, ExperimentError> {
        let (network, folder) = (COURSE.network()?, Scratch::create()?);
        TestBed::up(network, "scale", &self.program, !COURSE.offload, folder)
    }

    /// Runs the downloads of a case once, with seeders of their own.
    async fn measure(&self, bed: &TestBed, case: &Case) -> Result<Carried, ExperimentError> {
        let (from, to) = COURSE.ends()?;
        // Each file exists twice: seeded, and downloaded.
        let folder = Scratch::in_memory(2 * case.bytes)?;
        let options = CreateOptions {
            piece_length: Some(u32::try_from(case.piece).during("the piece length")?),
            ..CreateOptions::default()
        };
        let mut ready = Vec::new();
        for number in 0..case.torrents {
            // Different torrents have different sizes, hence names.
            let bytes = case.bytes / case.torrents + number;
            let content = Content::generate(folder.path(), bytes)?;
            let load = Load::new(content, folder.path(), &options, |_, _| {})?;
            let mut seeders = Vec::new();
            for _ in 0..case.peers {
                let seeder = bed.seed(from, &load.torrent, &load.content.path, false);
                seeders.push(seeder.await?);
            }
            ready.push((load, seeders));
        }
        let downloads = ready.iter().map(|(load, seeders)| {
            let mut args = select("shortest", case.paths as u16);
            // The download itself names its first seeder.
            for seeder in &seeders[1..] {
                args.extend(["--peer".to_owned(), seeder.address().to_owned()]);
            }
            (to, args, &*load.torrent, &seeders[..])
        });
        let downloads: Vec<_> = downloads.collect();
        bed.downloads(&downloads, folder.path()).await
    }

    fn summary(&self, run: &Carried) -> String {
        format!("{:.2} Gbit/s", run.gbit())
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let base = Case::base(self.bytes);
        let section = Section::of("rows", self, results, &columns()).with_first("base");
        let others = results.rows().flat_map(|(_, rows)| rows).skip(1);
        let flat: Vec<Option<bool>> = others.map(|row| is_flat(&row)).collect();
        let beyond = flat.iter().filter(|flat| **flat == Some(false)).count();
        Table {
            experiment: "scale",
            facts: vec![("repeat", self.repeat.into())],
            about: vec![format!(
                "base: {} in pieces of {}, one torrent, one seeder, one path",
                Axis::Size.text(base.bytes),
                Axis::Piece.text(base.piece)
            )],
            sections: vec![section],
            notes: vec![format!(
                "* beyond {:.0} % of the base case: {beyond} of {}",
                100.0 * FLAT,
                flat.len()
            )],
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
        .json("paths", |row| row.case.paths)
        .json("peers", |row| row.case.peers)
        .json("torrents", |row| row.case.torrents)
        .json("bytes", |row| row.case.bytes)
        .json("piece", |row| row.case.piece)
        .values("runs_gbit", Carried::gbit)
        .runs()
        .median("gbit", "Gbit/s", Number(2), Carried::gbit)
        .json("cpu_per_gb", |row| json!(PerGigabyte::of(&row.series.runs)))
        .median(None, "CPU s/GB: seeder", Number(2), |run| {
            run.per_gb(run.sender)
        })
        .median(None, "leecher", Number(2), |run| run.per_gb(run.receiver))
        .median(None, "routers", Number(2), |run| {
            run.per_gb(run.routers.iter().sum())
        })
        .spread("cpu_spread", |run| run.per_gb(run.sender + run.receiver))
        .both("ratio", "ratio", Number(2), ratio)
        .json("flat", is_flat)
        .text("", Text, |row| match is_flat(row) {
            Some(false) => "*",
            _ => "",
        })
}

/// The processor time of seeders and leechers by that of the base case.
fn ratio(row: &Row<'_, Scale>) -> Option<f64> {
    row.case.axis?;
    let [cost, base] = [&row.series.runs, &row.all.first()?.runs].map(|runs| {
        let cpu = PerGigabyte::of(runs)?;
        Some(cpu.sender + cpu.receiver)
    });
    Some(cost? / base?)
}

/// Whether the ratio is within [`FLAT`] of 1.
fn is_flat(row: &Row<'_, Scale>) -> Option<bool> {
    ratio(row).map(|ratio| (ratio - 1.0).abs() <= FLAT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Series;

    fn series(case: Case, cpu: Option<f64>) -> Series<Case, Carried> {
        let run = cpu.map(|cpu| Carried {
            bytes: 1_000_000_000,
            seconds: 1.0,
            sender: cpu / 2.0,
            receiver: cpu / 2.0,
            routers: vec![1.0],
            paths: 1,
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
            all: false,
            repeat: 1,
        };
        let cases = scale.cases(&()).into_iter();
        let costs = [Some(1.0), Some(1.1), Some(1.2), None];
        let all = cases.zip(costs).map(|(case, cpu)| series(case, cpu));
        let results = Results {
            places: vec![((), all.collect())],
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
        assert!(
            text.contains("1.20  *\n") && text.contains("1 of 3"),
            "{text}"
        );
    }
}
