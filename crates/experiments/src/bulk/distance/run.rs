//! Runs tools over a far path.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_topology::{IsdAsn, Network};

use super::table::{DistanceRow, DistanceTable, Measured, STEP};
use super::tool::Tool;
use crate::bulk::check::check_round_trip;
use crate::ceiling::PathCost;
use crate::error::ExperimentError;
use crate::experiment::isd_as;
use crate::network::{LinkSpec, behind};
use crate::papers::hercules;
use crate::samples::Samples;
use crate::scratch::Scratch;
use crate::stage::{Flows, Stage, has_congestion_control};

/// The round trip of 003, Fig. 2, between Hong Kong and Chicago.
const ROUND_TRIP: Duration = Duration::from_millis(194);
/// Seconds at the start that do not count for the steady goodput.
const SETTLED: f64 = 5.0;
/// Most bytes that a TCP flow may have in flight: many times what a path of a Gbit/s holds (24 MB).
const WINDOW: u64 = 256 << 20;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Distance {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// The tools, in the order in which they take turns.
    pub tools: Vec<Tool>,
    /// Shares of packets that the far link loses, in percent.
    pub losses: Vec<f64>,
    /// The limit of the far link, in bit/s.
    pub rate: u64,
    /// How long each tool sends.
    pub time: Duration,
    /// Number of runs of each.
    pub repeat: u16,
}

/// Progress of a measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum DistanceProgress<'a> {
    /// The network is up.
    Network {
        /// Share of packets that the far link loses, in percent.
        loss: f64,
    },
    /// A tool has run.
    Run {
        /// The number of the repetition, from 1.
        turn: u16,
        /// The tool.
        tool: Tool,
        /// Its steady goodput in Mbit/s.
        mbit: f64,
    },
    /// A tool cannot run.
    Failed {
        /// The tool.
        tool: Tool,
        /// Why.
        why: &'a str,
    },
}

/// A network with its ends.
struct Ready<'a> {
    distance: &'a Distance,
    stage: Stage,
    network: Network,
    ends: (IsdAsn, IsdAsn),
    folder: &'a Path,
}

impl Distance {
    /// Runs each tool on each link, one run of each in turn. A tool that fails leaves a row that says
    /// why.
    ///
    /// # Errors
    /// [`ExperimentError::Step`] if a network does not come up, or plain IP has another round trip than
    /// the links.
    pub async fn run(
        &self,
        observe: &mut dyn FnMut(DistanceProgress<'_>),
    ) -> Result<DistanceTable, ExperimentError> {
        // What rsync receives.
        let folder = Scratch::in_memory(self.bytes())?;
        let mut rows = Vec::new();
        for &loss in &self.losses {
            let ready = self.ready(loss, folder.path()).await?;
            observe(DistanceProgress::Network { loss });
            rows.extend(ready.rows(loss, observe).await);
            ready.stage.take_down()?;
        }
        Ok(self.table(rows))
    }

    fn table(&self, rows: Vec<DistanceRow>) -> DistanceTable {
        let rate_mbit = self.rate as f64 / 1e6;
        DistanceTable {
            experiment: "bulk-distance",
            about: format!(
                "003, Figs. 2 and 3: links of 10 Gbit/s there, of {rate_mbit} Mbit/s here; 194 ms"
            ),
            rate_mbit,
            paper_rate_mbit: hercules::LINK,
            round_trip_ms: ROUND_TRIP.as_secs_f64() * 1e3,
            seconds: self.time.as_secs_f64(),
            settled_seconds: self.settled(),
            step_seconds: STEP,
            repeat: self.repeat,
            rows,
        }
    }

    /// Bytes that take longer than [`Distance::time`].
    fn bytes(&self) -> u64 {
        (self.rate as f64 * self.time.as_secs_f64() / 8.0) as u64
    }

    /// Seconds at the start that do not count.
    fn settled(&self) -> f64 {
        SETTLED.min(self.time.as_secs_f64() / 2.0)
    }

    /// Brings the network up, and checks that plain IP meets the same delay.
    async fn ready<'a>(
        &'a self,
        loss: f64,
        folder: &'a Path,
    ) -> Result<Ready<'a>, ExperimentError> {
        let millis = ROUND_TRIP.as_secs_f64() * 1e3 / 2.0;
        let link = LinkSpec {
            loss,
            ..LinkSpec::new(self.rate as f64 / 1e6, millis)
        };
        let network = behind(link)?;
        let ends = (isd_as("1-ff00:0:111")?, isd_as("1-ff00:0:110")?);
        let stage = Stage::set(&network, "distance", &self.program, false)?;
        if self.tools.iter().any(|tool| tool.is_plain()) {
            let round_trip = stage.plain_round_trip(ends.0, ends.1).await?;
            check_round_trip(round_trip, ROUND_TRIP)?;
            stage.tune_tcp(ends.0, WINDOW).await?;
            stage.tune_tcp(ends.1, WINDOW).await?;
        }
        Ok(Ready {
            distance: self,
            stage,
            network,
            ends,
            folder,
        })
    }
}

impl Ready<'_> {
    async fn rows(
        &self,
        loss: f64,
        observe: &mut dyn FnMut(DistanceProgress<'_>),
    ) -> Vec<DistanceRow> {
        let tools = self.distance.tools.iter();
        let mut results: Vec<(Tool, Vec<Measured>, Option<String>)> =
            tools.map(|tool| (*tool, Vec::new(), None)).collect();
        for turn in 1..=self.distance.repeat {
            for (tool, runs, failure) in &mut results {
                let tool = *tool;
                if failure.is_some() {
                    continue;
                }
                match self.measure(tool).await {
                    Ok(run) => {
                        let mbit = run.mbit;
                        observe(DistanceProgress::Run { turn, tool, mbit });
                        runs.push(run);
                    }
                    Err(error) => {
                        let why = error.to_string();
                        observe(DistanceProgress::Failed { tool, why: &why });
                        *failure = Some(why);
                    }
                }
            }
        }
        let rows = results.into_iter();
        rows.map(|(tool, runs, failure)| DistanceRow::new(loss, tool, &runs, failure))
            .collect()
    }

    async fn measure(&self, tool: Tool) -> Result<Measured, ExperimentError> {
        let (samples, cost) = self.send(tool).await?;
        let ceiling = self.distance.rate as f64 * cost.efficiency() / 1e6;
        let time = self.distance.time.as_secs_f64();
        Measured::new(&samples, (self.distance.settled(), time), ceiling)
    }

    /// Lets a tool send. Returns what arrived over time, and the cost of the path.
    async fn send(&self, tool: Tool) -> Result<(Samples, PathCost), ExperimentError> {
        let (stage, ends, time) = (&self.stage, self.ends, self.distance.time);
        match tool {
            Tool::Bulk => {
                let server = stage.receive_bulk(ends.1, self.folder).await?;
                let size = (self.distance.bytes(), 1);
                let report = stage.send_bulk(ends.0, &server, size, self.folder);
                let report = report.await?;
                let path = report.paths.first();
                let path = path.ok_or_else(|| ExperimentError::step("hawser send used no path"))?;
                Ok((Samples::of(&report.samples), PathCost::bulk(path)?))
            }
            Tool::Quic => stage.quic(ends, time).await,
            Tool::Tcp { algorithm, flows } => {
                if !has_congestion_control(algorithm) {
                    let text = format!("the kernel has no congestion control {algorithm}");
                    return Err(ExperimentError::Step(text));
                }
                let flows = Flows {
                    ends,
                    algorithm,
                    count: flows,
                    seconds: time.as_secs_f64(),
                    port: Flows::PORT,
                };
                let ready = stage.prepare_tcp(&flows).await?;
                Ok((stage.run_tcp(ready).await?, self.plain()?))
            }
            Tool::Rsync => {
                let bytes = self.distance.bytes();
                let samples = stage.rsync(ends, bytes, time, self.folder).await?;
                Ok((samples, self.plain()?))
            }
        }
    }

    /// The cost of plain TCP.
    fn plain(&self) -> Result<PathCost, ExperimentError> {
        let cost = PathCost::tcp(&self.network, self.ends.0, self.ends.1);
        cost.ok_or_else(|| ExperimentError::step("plain IP has no route"))
    }
}
