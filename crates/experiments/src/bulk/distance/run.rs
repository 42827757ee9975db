//! Runs tools over a far path.

use std::path::PathBuf;
use std::time::Duration;

use hawser_topology::IsdAsn;
use serde_json::json;

use super::figure;
use super::measured::{Measured, STEP, over_time};
use super::tool::Tool;
use crate::bed::{Flows, TestBed, has_congestion_control};
use crate::bulk::check::check_round_trip;
use crate::ceiling::PathCost;
use crate::error::ExperimentError;
use crate::experiment::isd_as;
use crate::network::{LinkSpec, behind};
use crate::papers::hercules;
use crate::samples::Samples;
use crate::scratch::Scratch;
use crate::shape::{Columns, Experiment, Figure, Format, Observe, Results, Row, Section, Table};

/// The round trip of 003, Fig. 2, between Hong Kong and Chicago.
const ROUND_TRIP: Duration = Duration::from_millis(194);
/// Seconds at the start that do not count for the steady goodput.
const WARM_UP_SECONDS: f64 = 5.0;
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

/// The ASes of sender and receiver.
fn ends() -> Result<(IsdAsn, IsdAsn), ExperimentError> {
    Ok((isd_as("1-ff00:0:111")?, isd_as("1-ff00:0:110")?))
}

impl Experiment for Distance {
    /// Share of packets that the far link loses, in percent.
    type Place = f64;
    type Bed = TestBed;
    type Case = Tool;
    type Run = Measured;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<f64> {
        self.losses.clone()
    }

    fn heading(&self, loss: &f64) -> Option<String> {
        Some(format!("{loss} % loss"))
    }

    fn cases(&self, _: &f64) -> Vec<Tool> {
        self.tools.clone()
    }

    /// Brings the network up, and checks that plain IP meets the same delay.
    async fn set_up(&self, loss: &f64, _: Observe<'_>) -> Result<TestBed, ExperimentError> {
        let millis = ROUND_TRIP.as_secs_f64() * 1e3 / 2.0;
        let link = LinkSpec {
            loss: *loss,
            ..LinkSpec::new(self.rate as f64 / 1e6, millis)
        };
        let (network, ends) = (behind(link)?, ends()?);
        // What rsync receives.
        let folder = Scratch::in_memory(self.bytes())?;
        let bed = TestBed::up(network, "distance", &self.program, false, folder)?;
        if self.tools.iter().any(|tool| tool.is_plain()) {
            let round_trip = bed.plain_round_trip(ends.0, ends.1).await?;
            check_round_trip(round_trip, ROUND_TRIP)?;
            bed.tune_tcp(ends.0, WINDOW).await?;
            bed.tune_tcp(ends.1, WINDOW).await?;
        }
        Ok(bed)
    }

    async fn measure(&self, bed: &TestBed, tool: &Tool) -> Result<Measured, ExperimentError> {
        let (samples, cost) = self.send(bed, *tool).await?;
        let ceiling = self.rate as f64 * cost.efficiency() / 1e6;
        let end = self.time.as_secs_f64();
        Measured::new(&samples, (self.settled(), end), ceiling)
    }

    fn summary(&self, run: &Measured) -> String {
        format!("{:.1} Mbit/s", run.mbit)
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let (settled, seconds) = (self.settled(), self.time.as_secs_f64());
        let goodput = format!(
            "goodput in Mbit/s after {settled} s and of the whole {seconds} s; the paper's as a share of its link"
        );
        Table {
            experiment: "bulk-distance",
            facts: vec![
                ("about", self.about().into()),
                ("rate_mbit", self.rate_mbit().into()),
                ("paper_rate_mbit", hercules::LINK.into()),
                ("round_trip_ms", (ROUND_TRIP.as_secs_f64() * 1e3).into()),
                ("seconds", seconds.into()),
                ("settled_seconds", settled.into()),
                ("step_seconds", STEP.into()),
                ("repeat", self.repeat.into()),
            ],
            about: vec![format!("bulk-distance: {}", self.about()), goodput],
            sections: vec![Section::of("rows", self, results, &columns())],
            notes: Vec::new(),
        }
    }

    fn plot(&self, results: &Results<Self>) -> Result<Vec<Figure>, ExperimentError> {
        let about = (self.about(), self.settled(), self.repeat);
        figure::draw(about, results).map(Figure::only)
    }
}

fn columns<'a>() -> Columns<Row<'a, Distance>> {
    use Format::{Number, Percent, Text};
    Columns::<Row<'a, Distance>>::new()
        .json("loss_percent", |row| *row.place)
        .case("tool")
        .values("runs_mbit", |run| run.mbit)
        .runs()
        .median("mbit", "after", Number(1), |run| run.mbit)
        .spread("spread", |run| run.mbit)
        .median("whole_mbit", "whole", Number(1), |run| run.whole)
        .median("ceiling_mbit", "ceiling", Number(1), |run| run.ceiling)
        .median("share", "reached", Percent(1), |run| run.mbit / run.ceiling)
        .json("paper_share", |row| row.case.paper_share())
        .text("paper", Text, |row| {
            let bound = match row.case {
                Tool::Bulk => "at least",
                _ => "at most",
            };
            let share = row.case.paper_share();
            share.map(|share| format!("{bound} {:.0} %", 100.0 * share))
        })
        .json("over_time_mbit", |row| json!(over_time(&row.series.runs)))
}

impl Distance {
    fn about(&self) -> String {
        let rate = self.rate_mbit();
        format!("003, Figs. 2 and 3: links of 10 Gbit/s there, of {rate} Mbit/s here; 194 ms")
    }

    fn rate_mbit(&self) -> f64 {
        self.rate as f64 / 1e6
    }

    /// Bytes that take longer than [`Distance::time`].
    fn bytes(&self) -> u64 {
        (self.rate as f64 * self.time.as_secs_f64() / 8.0) as u64
    }

    /// Seconds at the start that do not count.
    fn settled(&self) -> f64 {
        WARM_UP_SECONDS.min(self.time.as_secs_f64() / 2.0)
    }

    /// Lets a tool send. Returns what arrived over time, and the cost of the path.
    async fn send(
        &self,
        bed: &TestBed,
        tool: Tool,
    ) -> Result<(Samples, PathCost), ExperimentError> {
        let (ends, time) = (ends()?, self.time);
        // The cost of plain TCP.
        let plain = || {
            let cost = PathCost::tcp(&bed.network, ends.0, ends.1);
            cost.ok_or_else(|| ExperimentError::step("plain IP has no route"))
        };
        match tool {
            Tool::Bulk => {
                let server = bed.receive_bulk(ends.1).await?;
                let size = (self.bytes(), 1);
                let report = bed.send_bulk(ends.0, &server, size);
                let report = report.await?;
                let path = report.paths.first();
                let path = path.ok_or_else(|| ExperimentError::step("hawser send used no path"))?;
                Ok((Samples::of(&report.samples), PathCost::bulk(path)?))
            }
            Tool::Quic => bed.quic(ends, time).await,
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
                let ready = bed.prepare_tcp(&flows).await?;
                Ok((bed.run_tcp(ready).await?, plain()?))
            }
            Tool::Rsync => {
                let bytes = self.bytes();
                let samples = bed.rsync(ends, bytes, time).await?;
                Ok((samples, plain()?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Series;

    #[test]
    fn rows_have_medians_and_shares() {
        let distance = Distance {
            program: PathBuf::new(),
            tools: vec![Tool::Bulk, Tool::Rsync],
            losses: vec![0.01],
            rate: 100_000_000,
            time: Duration::from_secs(10),
            repeat: 3,
        };
        let run = |mbit: f64| {
            let samples = Samples(vec![(0.0, 0.0), (10.0, mbit * 1_250_000.0)]);
            Measured::new(&samples, (5.0, 10.0), 100.0).unwrap()
        };
        let bulk = Series {
            case: Tool::Bulk,
            runs: [80.0, 100.0, 90.0].map(run).into(),
            failure: None,
        };
        let rsync = Series {
            case: Tool::Rsync,
            runs: Vec::new(),
            failure: Some("install the program rsync".to_owned()),
        };
        let places = vec![(0.01, vec![bulk, rsync])];
        let table = serde_json::to_value(distance.table(&Results { places })).unwrap();
        let row = &table["rows"][0];
        assert!((row["mbit"].as_f64().unwrap() - 90.0).abs() < 1e-6);
        assert!((row["share"].as_f64().unwrap() - 0.9).abs() < 1e-6);
        assert!((row["over_time_mbit"][19].as_f64().unwrap() - 90.0).abs() < 1e-6);
        assert_eq!(
            (&row["paper_share"], &row["tool"]),
            (&json!(0.8), &json!("hawser-send"))
        );
        let row = &table["rows"][1];
        assert_eq!(
            (&row["mbit"], &row["over_time_mbit"]),
            (&json!(null), &json!([]))
        );
        assert_eq!(row["loss_percent"], 0.01);
    }
}
