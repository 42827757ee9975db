//! Runs transfers over two good paths and a bad one.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_lab::LinkChange;
use hawser_path::Interface;
use hawser_topology::IsdAsn;
use hawser_torrent::CreateOptions;
use serde_json::json;

use super::condition::{Condition, FLAP};
use super::facts::Facts;
use super::transfer::Transfer;
use crate::bed::{Shared, ShimPair, TestBed};
use crate::content::{Content, Load};
use crate::error::ExperimentError;
use crate::experiment::isd_as;
use crate::network::{LinkSpec, parallel};
use crate::samples::Samples;
use crate::scratch::Scratch;
use crate::shape::{
    Columns, Experiment, Format, Observe, OnFailure, Results, Row, Section, Series, Table,
};

/// Delay of the links in each direction.
const DELAY: Duration = Duration::from_millis(5);
/// Good paths, and all of them.
const GOOD: u16 = 2;
const PATHS: u16 = 3;
/// The start of a run, which does not count.
const WARM_UP: Duration = Duration::from_secs(3);
/// A run that takes this many times longer than over the good paths has failed, after `GRACE`.
const SLOWEST: u32 = 10;
const GRACE: Duration = Duration::from_secs(30);
/// The receiving program's port.
const PORT: u16 = 5001;

/// What is measured.
#[derive(Debug, Clone)]
pub struct BadPath {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// The transfers, in the order in which they take turns.
    pub transfers: Vec<Transfer>,
    /// The conditions, in the order in which they take turns.
    pub conditions: Vec<Condition>,
    /// The limit of each link, in bit/s.
    pub rate: u64,
    /// How long the two good paths take for a run, its start aside.
    pub time: Duration,
    /// Number of runs of each.
    pub repeat: u16,
}

/// A transfer under a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The transfer.
    pub transfer: Transfer,
    /// The condition of the third path; `None` if it is down from the beginning.
    pub condition: Option<Condition>,
}

impl Case {
    fn third_path(&self) -> String {
        let condition = self.condition;
        condition.map_or("good paths".to_owned(), |one| one.to_string())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transfer, self.third_path())
    }
}

impl Experiment for BadPath {
    type Place = ();
    /// What is downloaded, if anything is.
    type Bed = Shared<Option<Load>>;
    type Case = Case;
    type Run = Facts;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    /// Each transfer over the good paths alone, and then under each condition.
    fn cases(&self, (): &()) -> Vec<Case> {
        let cases = self.transfers.iter().flat_map(|&transfer| {
            let conditions = self.conditions.iter().copied().map(Some);
            let conditions = std::iter::once(None).chain(conditions);
            conditions.map(move |condition| Case {
                transfer,
                condition,
            })
        });
        cases.collect()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<Self::Bed, ExperimentError> {
        let link = LinkSpec::new(self.rate as f64 / 1e6, DELAY.as_secs_f64() * 1e3);
        let network = parallel(&[link; PATHS as usize])?;
        // The file, and its copy.
        let folder = Scratch::in_memory(2 * self.bytes())?;
        let bed = TestBed::up(network, "bad-path", &self.program, false, folder)?;
        let load = self.load(bed.folder())?;
        Ok(bed.with(load))
    }

    async fn measure(&self, bed: &Self::Bed, case: &Case) -> Result<Facts, ExperimentError> {
        let runner = Runner {
            bad_path: self,
            bed,
            load: bed.servers.as_ref(),
            sender: isd_as("1-ff00:0:111")?,
            receiver: isd_as("1-ff00:0:110")?,
        };
        runner.record(case.transfer, case.condition).await
    }

    /// A single run over a bad path may fail.
    fn on_failure(&self) -> OnFailure {
        OnFailure::Retry
    }

    fn summary(&self, run: &Facts) -> String {
        let (pause, end) = (run.pause_seconds, run.resumed_at);
        format!(
            "{:.1} Mbit/s, longest pause {pause:.2} s until second {end:.1}",
            run.mbit
        )
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let rate_mbit = self.rate as f64 / 1e6;
        let round_trip_ms = 2e3 * DELAY.as_secs_f64();
        let mut about = vec![format!(
            "two good paths of {rate_mbit} Mbit/s and {round_trip_ms} ms, and one that:"
        )];
        let conditions = self.conditions.iter();
        about.extend(conditions.map(|one| format!("  {one:<10}  {}", one.about())));
        about.push("ratio: goodput by that of the good paths alone".to_owned());
        Table {
            experiment: "bad-path",
            facts: vec![
                ("rate_mbit", rate_mbit.into()),
                ("round_trip_ms", round_trip_ms.into()),
                ("settled_seconds", WARM_UP.as_secs_f64().into()),
                ("seconds", self.time.as_secs_f64().into()),
                ("repeat", self.repeat.into()),
            ],
            about,
            sections: vec![Section::of("cells", self, results, &columns())],
            notes: Vec::new(),
        }
    }
}

fn columns<'a>() -> Columns<Row<'a, BadPath>> {
    use Format::{Name, Number};
    Columns::<Row<'a, BadPath>>::new()
        .name("transfer", "transfer", |case| case.transfer)
        .json("condition", |row| {
            row.case.condition.map(|one| one.to_string())
        })
        .text("third path", Name, |row| row.case.third_path())
        .json("runs", |row| json!(row.series.runs))
        .runs()
        .median("mbit", "Mbit/s", Number(1), |run| run.mbit)
        .both("ratio", "ratio", Number(2), ratio)
        .both("pause_seconds", "longest pause (s)", Number(2), |row| {
            let pauses = row.series.values(|run| run.pause_seconds);
            pauses.into_iter().reduce(f64::max)
        })
}

/// Goodput by that of the same transfer over the good paths alone.
fn ratio(row: &Row<'_, BadPath>) -> Option<f64> {
    let alone = Case {
        condition: None,
        ..*row.case
    };
    let alone = row.all.iter().find(|series| series.case == alone)?;
    let mbit = |series: &Series<Case, Facts>| series.median(|run| run.mbit);
    Some(mbit(row.series)? / mbit(alone)?)
}

impl BadPath {
    /// What the limits of the good links carry in a run, headers included.
    fn bytes(&self) -> u64 {
        let seconds = (WARM_UP + self.time).as_secs_f64();
        (f64::from(GOOD) * self.rate as f64 * seconds / 8.0) as u64
    }

    fn load(&self, folder: &Path) -> Result<Option<Load>, ExperimentError> {
        if !self.transfers.contains(&Transfer::Get) {
            return Ok(None);
        }
        let content = Content::generate(folder, self.bytes())?;
        let options = CreateOptions::default();
        Load::new(content, folder, &options, |_, _| {}).map(Some)
    }
}

/// The network with the hosts at its ends.
struct Runner<'a> {
    bad_path: &'a BadPath,
    bed: &'a TestBed,
    load: Option<&'a Load>,
    sender: IsdAsn,
    receiver: IsdAsn,
}

impl Runner<'_> {
    /// One run, with its servers.
    async fn record(
        &self,
        transfer: Transfer,
        condition: Option<Condition>,
    ) -> Result<Facts, ExperimentError> {
        let third = Interface {
            isd_as: self.receiver,
            id: PATHS,
        };
        let shape = LinkChange {
            rate: Some(Some(self.bad_path.rate)),
            delay: Some(DELAY),
            loss: Some(0.0),
            up: Some(condition.is_some()),
            ..LinkChange::default()
        };
        self.bed.set_link(third, &shape)?;
        if let Some(condition) = condition {
            condition.apply(self.bed, third, DELAY)?;
        }
        let changes = async {
            match condition {
                Some(Condition::Flap) => self.bed.flap(third, FLAP).await,
                _ => Ok(std::future::pending::<Infallible>().await),
            }
        };
        let patience = SLOWEST * (WARM_UP + self.bad_path.time) + GRACE;
        tokio::select! {
            facts = tokio::time::timeout(patience, self.transfer(transfer)) => {
                let late = |_| ExperimentError::Step(format!("it did not end within {patience:?}"));
                facts.map_err(late)?
            }
            changed = changes => match changed? {},
        }
    }

    async fn transfer(&self, transfer: Transfer) -> Result<Facts, ExperimentError> {
        let settled = WARM_UP.as_secs_f64();
        let (samples, end) = match transfer {
            Transfer::Get => self.get().await?,
            Transfer::Send => self.send().await?,
            Transfer::ShimQuic => self.through_shim("quic").await?,
            Transfer::ShimMptcp => self.through_shim("mptcp").await?,
        };
        Facts::of(&samples, (settled, end))
    }

    /// A download to its end.
    async fn get(&self) -> Result<(Samples, f64), ExperimentError> {
        let load = self.load;
        let load = load.ok_or_else(|| ExperimentError::step("there is nothing to download"))?;
        let (torrent, content) = (&load.torrent, &load.content.path);
        let seeder = self.bed.seed(self.sender, torrent, content, false).await?;
        let download = self.bed.fetch((self.receiver, &[]), &seeder, load, false);
        let report = download.await?;
        Ok((Samples::of(&report.samples), report.seconds))
    }

    /// A bulk transfer to its end.
    async fn send(&self) -> Result<(Samples, f64), ExperimentError> {
        let server = self.bed.receive_bulk(self.receiver).await?;
        let size = (self.bad_path.bytes(), PATHS);
        let report = self.bed.send_bulk(self.sender, &server, size);
        let samples = Samples::of(&report.await?.samples);
        let end = samples.end();
        Ok((samples, end))
    }

    /// A TCP program that sends for the time of a run.
    async fn through_shim(&self, carrier: &str) -> Result<(Samples, f64), ExperimentError> {
        let listen = SocketAddr::new(self.bed.host(self.receiver)?, PORT);
        let args = ["--any-server", "--carrier", carrier].map(str::to_owned);
        let ends = (self.sender, self.receiver);
        let shims = self.bed.shims_up(ends, &[PORT], args.into(), &[]);
        let shims = shims.await?;
        let addresses = (listen, Some(SocketAddr::new(ShimPair::MAPPED, PORT)));
        let time = WARM_UP + self.bad_path.time;
        let sent = self.bed.plain_tcp_to(ends, addresses, time);
        let samples = sent.await?;
        shims.down().await?;
        Ok((samples, time.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_compared_with_themselves_over_good_paths() {
        let bad_path = BadPath {
            program: PathBuf::new(),
            transfers: vec![Transfer::Get, Transfer::Send],
            conditions: vec![Condition::Far],
            rate: 50_000_000,
            time: Duration::from_secs(2),
            repeat: 3,
        };
        let runs = [
            vec![(80.0, 0.1), (90.0, 0.1), (100.0, 0.1)],
            vec![(99.0, 0.3), (81.0, 0.7)],
            vec![],
            vec![(81.0, 0.2)],
        ];
        let run = |(mbit, pause_seconds): (f64, f64)| Facts {
            mbit,
            pause_seconds,
            resumed_at: 4.0,
        };
        let all = bad_path.cases(&()).into_iter().zip(runs);
        let all = all.map(|(case, runs)| Series {
            case,
            runs: runs.into_iter().map(run).collect(),
            failure: None,
        });
        let places = vec![((), all.collect())];
        let table = serde_json::to_value(bad_path.table(&Results { places })).unwrap();
        let cells = &table["cells"];
        assert_eq!(
            (&cells[0]["ratio"], &cells[1]["ratio"]),
            (&json!(1.0), &json!(1.0))
        );
        assert_eq!(cells[1]["pause_seconds"], 0.7);
        assert_eq!(
            (&cells[0]["condition"], &cells[1]["condition"]),
            (&json!(null), &json!("far"))
        );
        // There is nothing to compare it with.
        assert_eq!(
            (&cells[3]["mbit"], &cells[3]["ratio"]),
            (&json!(81.0), &json!(null))
        );
    }
}
