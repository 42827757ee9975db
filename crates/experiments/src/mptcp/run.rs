//! Runs carriers over numbers of paths.

mod runner;

use std::path::PathBuf;
use std::time::Duration;

use hawser_topology::IsdAsn;
use serde_json::json;

use self::runner::Runner;
use super::carrier::MptcpCarrier;
use super::case::{MptcpCase, MptcpRun};
use super::figure;
use super::headers::{self, HeaderRow};
use super::rows::{MptcpRow, paper, paper_by_quic_path};
use super::set_up::{self, SetUpRow};
use crate::bed::{Server, Shared, TestBed};
use crate::bulk::check::check_round_trip;
use crate::error::ExperimentError;
use crate::experiment::isd_as;
use crate::network::{LinkSpec, fan};
use crate::scratch::Scratch;
use crate::shape::{
    Choice, Columns, Experiment, Figure, Format, Observe, Results, Row, Section, Table,
};

/// Links with a limit: as many paths.
const LINKS: u8 = 8;
/// The port of the receiver that answers.
const ANSWER: u16 = 5002;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Mptcp {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// What carries the bytes, in the order in which they take turns.
    pub carriers: Vec<MptcpCarrier>,
    /// Numbers of paths, 1 to 8.
    pub paths: Vec<u8>,
    /// The limit of each path's link, in bit/s.
    pub rate: u64,
    /// The delay of each path's link, in each direction.
    pub delay: Duration,
    /// How long each carrier sends.
    pub time: Duration,
    /// Number of runs of each.
    pub repeat: u16,
}

/// The ASes of the network.
#[derive(Debug, Clone, Copy)]
struct Ends {
    sender: IsdAsn,
    /// Where the limited links begin.
    middle: IsdAsn,
    receiver: IsdAsn,
}

impl Ends {
    fn new() -> Result<Self, ExperimentError> {
        Ok(Self {
            sender: isd_as("1-ff00:0:111")?,
            middle: isd_as("1-ff00:0:112")?,
            receiver: isd_as("1-ff00:0:110")?,
        })
    }
}

/// What all runs use.
pub struct Servers {
    ends: Ends,
    /// For QUIC, one for each path.
    quic: Vec<Server>,
    /// Answers to TCP programs.
    _answers: Server,
}

impl Experiment for Mptcp {
    type Place = ();
    type Bed = Shared<Servers>;
    type Case = MptcpCase;
    type Run = MptcpRun;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    /// Carriers over the same paths take turns one after the other.
    fn cases(&self, (): &()) -> Vec<MptcpCase> {
        let cases = self.paths.iter().flat_map(|&paths| {
            let carriers = self.carriers.iter();
            let carriers = carriers.filter(move |carrier| carrier.takes(paths));
            carriers.map(move |&carrier| MptcpCase { carrier, paths })
        });
        cases.collect()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<Self::Bed, ExperimentError> {
        let link = LinkSpec::new(self.rate as f64 / 1e6, self.delay.as_secs_f64() * 1e3);
        let ends = Ends::new()?;
        let folder = Scratch::create()?;
        let bed = TestBed::up(fan(LINKS, link)?, "mptcp", &self.program, false, folder)?;
        if self.carriers.contains(&MptcpCarrier::Tcp) {
            let round_trip = bed.plain_round_trip(ends.sender, ends.receiver).await?;
            check_round_trip(round_trip, 2 * self.delay)?;
        }
        let answers = bed.serve_answers(ends.receiver, ANSWER).await?;
        let mut quic = Vec::new();
        if self.carriers.contains(&MptcpCarrier::Quic) {
            for _ in 0..self.paths.iter().copied().max().unwrap_or(0) {
                quic.push(bed.serve_perf(ends.receiver, false).await?);
            }
        }
        Ok(bed.with(Servers {
            ends,
            quic,
            _answers: answers,
        }))
    }

    async fn measure(
        &self,
        bed: &Self::Bed,
        case: &MptcpCase,
    ) -> Result<MptcpRun, ExperimentError> {
        Runner::new(self, bed).record(*case).await
    }

    fn summary(&self, run: &MptcpRun) -> String {
        let share = 100.0 * run.goodput / run.ceiling;
        format!("{:.1} Mbit/s, {share:.1} % of the ceiling", run.goodput)
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let seconds = self.time.as_secs_f64();
        let about = self.about();
        Table {
            experiment: "mptcp",
            facts: vec![
                ("about", about.clone().into()),
                ("rate_mbit", self.rate_mbit().into()),
                ("round_trip_ms", self.round_trip_ms().into()),
                ("seconds", seconds.into()),
                ("repeat", self.repeat.into()),
            ],
            about: vec![
                format!("mptcp: {about}"),
                format!("medians in Mbit/s over {seconds} s, start included"),
            ],
            sections: vec![
                Section::of("rows", self, results, &columns()),
                Section::new(
                    "headers",
                    "bytes of a full frame",
                    header_rows(results),
                    &headers::columns(),
                ),
                Section::new(
                    "set_up",
                    "set-up of a connection until the first byte of an answer, ms",
                    set_up_rows(results),
                    &set_up::columns(),
                ),
            ],
            notes: Vec::new(),
        }
    }

    fn plot(&self, results: &Results<Self>) -> Result<Vec<Figure>, ExperimentError> {
        let rows: Vec<_> = results.rows().flat_map(|(_, rows)| rows).collect();
        let rows: Vec<_> = rows.iter().map(of).collect();
        let set_up = set_up_rows(results);
        figure::draw((&self.about(), self.repeat), &rows, &set_up).map(Figure::only)
    }
}

impl Mptcp {
    fn rate_mbit(&self) -> f64 {
        self.rate as f64 / 1e6
    }

    fn round_trip_ms(&self) -> f64 {
        2e3 * self.delay.as_secs_f64()
    }

    fn about(&self) -> String {
        format!(
            "002, Performance evaluation: in SCIONLab there; links of {} Mbit/s and {} ms here",
            self.rate_mbit(),
            self.round_trip_ms()
        )
    }
}

fn of<'a>(row: &Row<'a, Mptcp>) -> MptcpRow<'a> {
    MptcpRow {
        runs: row.series,
        all: row.all,
    }
}

fn columns<'a>() -> Columns<Row<'a, Mptcp>> {
    use Format::{Name, Number, Percent, Text};
    Columns::<Row<'a, Mptcp>>::new()
        .name("carrier", "carrier", |case| case.carrier)
        .both("paths", "paths", Name, |row| row.case.paths)
        .values("runs_mbit", |run| run.goodput)
        .runs()
        .median("mbit", "goodput", Number(2), |run| run.goodput)
        .spread("spread", |run| run.goodput)
        .json("mean_mbit", |row| of(row).mean())
        .json("deviation_mbit", |row| of(row).deviation())
        .median("throughput_mbit", "frames", Number(2), |run| run.throughput)
        .median("overhead", "overhead", Percent(1), |run| {
            1.0 - run.goodput / run.throughput
        })
        .both("ceiling_mbit", "ceiling", Number(2), |row| {
            of(row).ceiling()
        })
        .median("share", "reached", Percent(1), |run| {
            run.goodput / run.ceiling
        })
        .both("by_quic", "by quic", Number(2), |row| {
            of(row).by_quic(row.case.paths)
        })
        .both("by_quic_path", "by one", Number(2), |row| {
            of(row).by_quic(1)
        })
        .json("paper_by_quic_path", |row| paper_by_quic_path(*row.case))
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
        .text("paper: goodput (frames), by one", Text, |row| {
            paper(*row.case)
        })
}

/// All runs, each with its carrier.
fn runs(results: &Results<Mptcp>) -> impl Iterator<Item = (MptcpCarrier, &MptcpRun)> + Clone {
    let all = results.places.iter().flat_map(|(_, all)| all);
    all.flat_map(|series| series.runs.iter().map(|run| (series.case.carrier, run)))
}

/// The bytes of a full frame of each carrier that ran.
fn header_rows(results: &Results<Mptcp>) -> impl Iterator<Item = HeaderRow> {
    MptcpCarrier::ALL.iter().filter_map(|&carrier| {
        let (_, run) = runs(results).filter(|(of, _)| *of == carrier).last()?;
        Some(run.headers.clone())
    })
}

/// How long connections took.
fn set_up_rows(results: &Results<Mptcp>) -> Vec<SetUpRow> {
    set_up::rows(runs(results))
}
