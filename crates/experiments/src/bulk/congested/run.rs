//! Runs senders beside loads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_topology::{IsdAsn, Network};

use super::case::{Case, Load, Sender};
use super::facts::{Facts, Phases};
use super::table::{CongestedRow, CongestedTable, Recorded};
use crate::bulk::check::check_round_trip;
use crate::ceiling::{PathCost, ceiling};
use crate::error::ExperimentError;
use crate::experiment::isd_as;
use crate::network::hercules;
use crate::papers;
use crate::samples::Samples;
use crate::scratch::Scratch;
use crate::stage::{Flows, Server, Stage, tcp};
use crate::transfer::BulkPath;

/// The round trip over each of the two paths: "just below 25 ms".
const ROUND_TRIP: Duration = Duration::from_millis(24);
/// Most bytes that a TCP flow may have in flight.
const WINDOW: u64 = 64 << 20;
/// The congestion control of all TCP flows.
const ALGORITHM: &str = "cubic";
/// Seconds by which a sender may end early.
const LATE: f64 = 0.5;
/// TCP flows of the load.
const FLOWS: u16 = 2;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Congested {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// The cases, in the order in which they take turns.
    pub cases: Vec<Case>,
    /// The limit of the links, in bit/s.
    pub rate: u64,
    /// The rate of UDP that congests a path, as a fraction of the limit.
    pub cross: f64,
    /// How long a run takes: 45 s in the paper, a third of which one path is congested.
    pub time: Duration,
    /// Number of runs of each.
    pub repeat: u16,
}

/// Progress of a measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum CongestedProgress<'a> {
    /// A case has run.
    Run {
        /// The number of the repetition, from 1.
        turn: u16,
        /// The case.
        case: Case,
        /// What the run shows.
        facts: &'a Facts,
    },
    /// A case cannot run.
    Failed {
        /// The case.
        case: Case,
        /// Why.
        why: &'a str,
    },
}

/// The ASes of the network.
struct Ends {
    sender: IsdAsn,
    receiver: IsdAsn,
    /// Where the paths lead through, and TCP flows to: the path that is not congested, and the other.
    clear: IsdAsn,
    congested: IsdAsn,
    others: IsdAsn,
}

struct Ready<'a> {
    congested: &'a Congested,
    stage: Stage,
    network: Network,
    ends: Ends,
    phases: Phases,
    folder: &'a Path,
}

impl Congested {
    /// Runs each case, one run of each in turn. A case that fails leaves a row that says why.
    ///
    /// # Errors
    /// [`ExperimentError::Step`] if the network does not come up, or plain IP has another round trip
    /// than the links.
    pub async fn run(
        &self,
        observe: &mut dyn FnMut(CongestedProgress<'_>),
    ) -> Result<CongestedTable, ExperimentError> {
        let folder = Scratch::create()?;
        let ready = self.ready(folder.path()).await?;
        let rows = ready.rows(observe).await;
        let phases = ready.phases;
        ready.stage.take_down()?;
        let rate_mbit = self.rate as f64 / 1e6;
        Ok(CongestedTable {
            experiment: "bulk-congested",
            about: format!(
                "003, Fig. 1: links of 10 Gbit/s there, of {rate_mbit} Mbit/s here; two paths of 24 ms"
            ),
            rate_mbit,
            paper_rate_mbit: papers::hercules::LINK,
            phases,
            repeat: self.repeat,
            rows,
        })
    }

    async fn ready<'a>(&'a self, folder: &'a Path) -> Result<Ready<'a>, ExperimentError> {
        let network = hercules(self.rate as f64 / 1e6)?;
        let ends = Ends {
            sender: isd_as("1-ff00:0:110")?,
            receiver: isd_as("1-ff00:0:111")?,
            clear: isd_as("1-ff00:0:113")?,
            congested: isd_as("1-ff00:0:114")?,
            others: isd_as("1-ff00:0:115")?,
        };
        let stage = Stage::set(&network, "congested", &self.program, false)?;
        if self.cases.iter().any(|case| case.needs_delay()) {
            for to in [ends.clear, ends.congested] {
                let round_trip = stage.plain_round_trip(ends.sender, to).await?;
                check_round_trip(round_trip, ROUND_TRIP)?;
            }
            for isd_as in [ends.sender, ends.clear, ends.congested, ends.others] {
                stage.tune_tcp(isd_as, WINDOW).await?;
            }
        }
        Ok(Ready {
            congested: self,
            stage,
            network,
            ends,
            phases: Phases::of(self.time.as_secs_f64()),
            folder,
        })
    }
}

impl Ready<'_> {
    async fn rows(&self, observe: &mut dyn FnMut(CongestedProgress<'_>)) -> Vec<CongestedRow> {
        let cases = self.congested.cases.iter();
        let mut results: Vec<(Case, Vec<Recorded>, Option<String>)> =
            cases.map(|case| (*case, Vec::new(), None)).collect();
        for turn in 1..=self.congested.repeat {
            for (case, runs, failure) in &mut results {
                let case = *case;
                if failure.is_some() {
                    continue;
                }
                match self.record(case).await {
                    Ok(run) => {
                        let facts = &run.facts(self.phases);
                        observe(CongestedProgress::Run { turn, case, facts });
                        runs.push(run);
                    }
                    Err(error) => {
                        let why = error.to_string();
                        observe(CongestedProgress::Failed { case, why: &why });
                        *failure = Some(why);
                    }
                }
            }
        }
        let rows = results.into_iter();
        rows.map(|(case, runs, failure)| CongestedRow::new(case, &runs, self.phases, failure))
            .collect()
    }

    async fn record(&self, case: Case) -> Result<Recorded, ExperimentError> {
        // All servers listen before the run begins.
        let load = self.load(case.load).await?;
        let (recorded, load) = match case.sender {
            Sender::Hawser => {
                let server = self.stage.receive_bulk(self.ends.receiver, self.folder);
                let server = server.await?;
                tokio::try_join!(self.hawser(&server), self.congest(load))?
            }
            Sender::Tcp => {
                let clear = self.flow(self.ends.clear).await?;
                let congested = self.flow(self.ends.congested).await?;
                tokio::try_join!(self.tcp(clear, congested), self.congest(load))?
            }
        };
        let ends = [&recorded.clear, &recorded.congested].map(Samples::end);
        let end = ends.into_iter().fold(0.0, f64::max);
        if end < self.phases.end - LATE {
            let text = format!("it ended after {end:.1} of {} s", self.phases.end);
            return Err(ExperimentError::Step(text));
        }
        Ok(Recorded { load, ..recorded })
    }

    /// Sends by bulk transfer over both paths, until the end of the last phase.
    async fn hawser(&self, server: &Server) -> Result<Recorded, ExperimentError> {
        let bytes = self.congested.rate as f64 * self.phases.end / 8.0;
        let (sender, size) = (self.ends.sender, (bytes as u64, 2));
        let report = self.stage.send_bulk(sender, server, size, self.folder);
        let report = report.await?;
        let through = |isd_as: IsdAsn| {
            let prefix = format!("{isd_as}#");
            let crosses = |path: &&BulkPath| {
                let mut interfaces = path.interfaces.iter();
                interfaces.any(|interface| interface.starts_with(&prefix))
            };
            let path = report.paths.iter().find(crosses);
            path.ok_or_else(|| ExperimentError::Step(format!("no path through {isd_as} was used")))
        };
        let (clear, congested) = (through(self.ends.clear)?, through(self.ends.congested)?);
        let over = |path: &BulkPath| Samples::of_path(&report.samples, &path.fingerprint);
        let costs = [PathCost::bulk(clear)?, PathCost::bulk(congested)?];
        self.recorded(over(clear), over(congested), &costs)
    }

    /// Prepares a TCP flow over one of the paths.
    async fn flow(&self, to: IsdAsn) -> Result<tcp::Ready, ExperimentError> {
        let flows = Flows {
            ends: (self.ends.sender, to),
            algorithm: ALGORITHM,
            count: 1,
            seconds: self.phases.end,
            port: Flows::PORT,
        };
        self.stage.prepare_tcp(&flows).await
    }

    /// Sends by two independent TCP flows, one over each path.
    async fn tcp(
        &self,
        clear: tcp::Ready,
        congested: tcp::Ready,
    ) -> Result<Recorded, ExperimentError> {
        let flows = (self.stage.run_tcp(clear), self.stage.run_tcp(congested));
        let (clear, congested) = tokio::try_join!(flows.0, flows.1)?;
        let cost = |to: IsdAsn| {
            let cost = PathCost::tcp(&self.network, self.ends.sender, to);
            cost.ok_or_else(|| ExperimentError::step("plain IP has no route"))
        };
        let costs = [cost(self.ends.clear)?, cost(self.ends.congested)?];
        self.recorded(clear, congested, &costs)
    }

    fn recorded(
        &self,
        clear: Samples,
        congested: Samples,
        costs: &[PathCost],
    ) -> Result<Recorded, ExperimentError> {
        let most = ceiling(&self.network, costs);
        let most = most.ok_or_else(|| ExperimentError::step("the links have no limit"))?;
        Ok(Recorded {
            clear,
            congested,
            load: Samples::default(),
            ceiling: most / 1e6,
        })
    }

    /// Prepares what congests a path: TCP flows, or `None` for UDP.
    async fn load(&self, load: Load) -> Result<Option<tcp::Ready>, ExperimentError> {
        let Phases { from, to, .. } = self.phases;
        let flows = Flows {
            ends: (self.ends.others, self.ends.congested),
            algorithm: ALGORITHM,
            count: FLOWS,
            seconds: to - from,
            // The sender's flow over this path has the other.
            port: Flows::PORT + 1,
        };
        match load {
            Load::Udp => Ok(None),
            Load::Tcp => self.stage.prepare_tcp(&flows).await.map(Some),
        }
    }

    /// Congests one path in the second phase. Returns what that carried.
    async fn congest(&self, load: Option<tcp::Ready>) -> Result<Samples, ExperimentError> {
        let Phases { from, to, .. } = self.phases;
        tokio::time::sleep(Duration::from_secs_f64(from)).await;
        if let Some(flows) = load {
            return Ok(self.stage.run_tcp(flows).await?.later(from));
        }
        let ends = (self.ends.others, self.ends.congested);
        let rate = self.congested.rate as f64 * self.congested.cross;
        let time = Duration::from_secs_f64(to - from);
        self.stage.flood(ends, rate as u64, time).await?;
        let bytes = rate / 8.0 * (to - from);
        Ok(Samples(vec![(0.0, 0.0), (from, 0.0), (to, bytes)]))
    }
}
