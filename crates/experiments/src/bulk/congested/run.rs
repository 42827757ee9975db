//! Runs senders beside loads.

use std::path::PathBuf;
use std::time::Duration;

use hawser_topology::IsdAsn;
use serde_json::{Value, json};

use super::case::{Case, Load, Sender};
use super::facts::{Facts, Phases};
use super::figure;
use super::recorded::{OverTime, Recorded};
use crate::bed::{Flows, Server, TestBed, tcp};
use crate::bulk::check::check_round_trip;
use crate::ceiling::{PathCost, ceiling};
use crate::error::ExperimentError;
use crate::experiment::isd_as;
use crate::network;
use crate::numbers::median;
use crate::papers::hercules;
use crate::samples::Samples;
use crate::scratch::Scratch;
use crate::shape::{
    Columns, Experiment, Figure, Format, Observe, Results, Row, Section, Series, Table,
};
use crate::transfer::BulkPath;

/// The round trip over each of the two paths: "just below 25 ms".
const ROUND_TRIP: Duration = Duration::from_millis(24);
/// Most bytes that a TCP flow may have in flight.
const WINDOW: u64 = 64 << 20;
/// The congestion control of all TCP flows.
const ALGORITHM: &str = "cubic";
/// Seconds by which a sender may end early.
const MAX_EARLY_END: f64 = 0.5;
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

/// The ASes of the network.
struct Ends {
    sender: IsdAsn,
    receiver: IsdAsn,
    /// Where the paths lead through, and TCP flows to: the path that is not congested, and the other.
    clear: IsdAsn,
    congested: IsdAsn,
    others: IsdAsn,
}

impl Ends {
    fn new() -> Result<Self, ExperimentError> {
        Ok(Self {
            sender: isd_as("1-ff00:0:110")?,
            receiver: isd_as("1-ff00:0:111")?,
            clear: isd_as("1-ff00:0:113")?,
            congested: isd_as("1-ff00:0:114")?,
            others: isd_as("1-ff00:0:115")?,
        })
    }
}

impl Experiment for Congested {
    type Place = ();
    type Bed = TestBed;
    type Case = Case;
    type Run = Recorded;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<Case> {
        self.cases.clone()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<TestBed, ExperimentError> {
        let (network, ends) = (network::hercules(self.rate as f64 / 1e6)?, Ends::new()?);
        let folder = Scratch::create()?;
        let bed = TestBed::up(network, "congested", &self.program, false, folder)?;
        if self.cases.iter().any(|case| case.needs_delay()) {
            for to in [ends.clear, ends.congested] {
                let round_trip = bed.plain_round_trip(ends.sender, to).await?;
                check_round_trip(round_trip, ROUND_TRIP)?;
            }
            for isd_as in [ends.sender, ends.clear, ends.congested, ends.others] {
                bed.tune_tcp(isd_as, WINDOW).await?;
            }
        }
        Ok(bed)
    }

    async fn measure(&self, bed: &TestBed, case: &Case) -> Result<Recorded, ExperimentError> {
        let runner = Runner {
            congested: self,
            bed,
            ends: Ends::new()?,
            phases: self.phases(),
        };
        runner.record(*case).await
    }

    fn summary(&self, run: &Recorded) -> String {
        let facts = run.facts(self.phases());
        let (overall, least) = (facts.overall_share, facts.least_share);
        format!("{overall:.3} of the ceiling, at least {least:.3}")
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let phases = self.phases();
        let lines = [
            "least: in any second, and in any of the congestion; below: longest time under 0.95;",
            "taken: when the other path has 0.9 of what the congested one gives up, and the least",
            "share that it has a second later; paper: the whole and the least, of its limit",
        ];
        Table {
            experiment: "bulk-congested",
            facts: vec![
                ("about", self.about().into()),
                ("rate_mbit", (self.rate as f64 / 1e6).into()),
                ("paper_rate_mbit", hercules::LINK.into()),
                ("phases", json!(phases)),
                ("repeat", self.repeat.into()),
            ],
            about: vec![
                format!("bulk-congested: {}", self.about()),
                format!(
                    "congested from second {} to {}; total by the ceiling, medians:",
                    phases.from, phases.to
                ),
            ],
            sections: vec![Section::of("rows", self, results, &columns(phases))],
            notes: lines.map(str::to_owned).into(),
        }
    }

    fn plot(&self, results: &Results<Self>) -> Result<Vec<Figure>, ExperimentError> {
        figure::draw(&self.about(), self.phases(), results).map(Figure::only)
    }
}

fn columns<'a>(phases: Phases) -> Columns<Row<'a, Congested>> {
    use Format::{Number, Text};
    let fact = move |of: fn(&Facts) -> f64| {
        move |row: &Row<'a, Congested>| row.series.median(|run| of(&run.facts(phases)))
    };
    Columns::<Row<'a, Congested>>::new()
        .case("variant")
        .runs()
        .median("ceiling_mbit", "ceiling", Number(1), |run| run.ceiling)
        .json("runs", move |row| json!(facts(row.series, phases)))
        .text("overall", Number(3), fact(|run| run.overall_share))
        .text("before", Number(3), fact(|run| run.before_share))
        .text("during", Number(3), fact(|run| run.during_share))
        .text("after", Number(3), fact(|run| run.after_share))
        .text("least", Number(3), fact(|run| run.least_share))
        .text("during", Number(3), fact(|run| run.least_during_share))
        .text("below (s)", Number(1), fact(|run| run.below_seconds))
        .text("taken", Text, move |row| taken(&facts(row.series, phases)))
        .json("paper_least_share", |row| paper(*row.case, hercules::LEAST))
        .json("paper_overall_share", |row| {
            paper(*row.case, hercules::OVERALL)
        })
        .text("paper", Text, |row| {
            let overall = paper(*row.case, hercules::OVERALL)?;
            let least = paper(*row.case, hercules::LEAST)?;
            Some(format!("{overall:.3}, {least:.3}"))
        })
        .json("over_time", move |row| {
            json!(OverTime::of(&row.series.runs, phases.end))
        })
}

/// What every run shows.
fn facts(series: &Series<Case, Recorded>, phases: Phases) -> Vec<Facts> {
    series.runs.iter().map(|run| run.facts(phases)).collect()
}

/// A value of the paper, in Mbit/s, as a share of its link, if the case is the paper's.
fn paper(case: Case, mbit: f64) -> Option<f64> {
    let same = (case.sender, case.load) == (Sender::Hawser, Load::Udp);
    same.then_some(mbit / hercules::LINK)
}

/// When the other path has taken what the congested one gives up, and how much of it.
fn taken(runs: &[Facts]) -> Value {
    // A path that gives up nothing is no run in which the other is slow.
    let seconds: Option<Vec<f64>> = runs.iter().map(|run| run.taken_seconds).collect();
    let shares: Vec<f64> = runs.iter().filter_map(|run| run.taken_share).collect();
    let text = match (seconds, shares.is_empty()) {
        (_, true) => "nothing was free".to_owned(),
        (Some(seconds), false) => format!("{:.1} s, {:.2}", median(&seconds), median(&shares)),
        (None, false) => "not every time".to_owned(),
    };
    text.into()
}

impl Congested {
    fn about(&self) -> String {
        let rate = self.rate as f64 / 1e6;
        format!("003, Fig. 1: links of 10 Gbit/s there, of {rate} Mbit/s here; two paths of 24 ms")
    }

    fn phases(&self) -> Phases {
        Phases::of(self.time.as_secs_f64())
    }
}

/// What one run needs.
struct Runner<'a> {
    congested: &'a Congested,
    bed: &'a TestBed,
    ends: Ends,
    phases: Phases,
}

impl Runner<'_> {
    async fn record(&self, case: Case) -> Result<Recorded, ExperimentError> {
        // All servers listen before the run begins.
        let load = self.load(case.load).await?;
        let (recorded, load) = match case.sender {
            Sender::Hawser => {
                let server = self.bed.receive_bulk(self.ends.receiver);
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
        if end < self.phases.end - MAX_EARLY_END {
            let text = format!("it ended after {end:.1} of {} s", self.phases.end);
            return Err(ExperimentError::Step(text));
        }
        Ok(Recorded { load, ..recorded })
    }

    /// Sends by bulk transfer over both paths, until the end of the last phase.
    async fn hawser(&self, server: &Server) -> Result<Recorded, ExperimentError> {
        let bytes = self.congested.rate as f64 * self.phases.end / 8.0;
        let (sender, size) = (self.ends.sender, (bytes as u64, 2));
        let report = self.bed.send_bulk(sender, server, size);
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
        self.bed.prepare_tcp(&flows).await
    }

    /// Sends by two independent TCP flows, one over each path.
    async fn tcp(
        &self,
        clear: tcp::Ready,
        congested: tcp::Ready,
    ) -> Result<Recorded, ExperimentError> {
        let flows = (self.bed.run_tcp(clear), self.bed.run_tcp(congested));
        let (clear, congested) = tokio::try_join!(flows.0, flows.1)?;
        let cost = |to: IsdAsn| {
            let cost = PathCost::tcp(&self.bed.network, self.ends.sender, to);
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
        let most = ceiling(&self.bed.network, costs);
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
            Load::Tcp => self.bed.prepare_tcp(&flows).await.map(Some),
        }
    }

    /// Congests one path in the second phase. Returns what that carried.
    async fn congest(&self, load: Option<tcp::Ready>) -> Result<Samples, ExperimentError> {
        let Phases { from, to, .. } = self.phases;
        tokio::time::sleep(Duration::from_secs_f64(from)).await;
        if let Some(flows) = load {
            return Ok(self.bed.run_tcp(flows).await?.later(from));
        }
        let ends = (self.ends.others, self.ends.congested);
        let rate = self.congested.rate as f64 * self.congested.cross;
        let time = Duration::from_secs_f64(to - from);
        self.bed.flood(ends, rate as u64, time).await?;
        let bytes = rate / 8.0 * (to - from);
        Ok(Samples(vec![(0.0, 0.0), (from, 0.0), (to, bytes)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Choice;

    fn steady(mbit: f64) -> Samples {
        let points = (0..=450).map(|step| {
            let time = f64::from(step) / 10.0;
            (time, time * mbit * 125_000.0)
        });
        Samples(points.collect())
    }

    #[test]
    fn rows_have_the_papers_figures_and_means_over_time() {
        let congested = Congested {
            program: PathBuf::new(),
            cases: vec![],
            rate: 500_000_000,
            cross: 0.82,
            time: Duration::from_secs(45),
            repeat: 2,
        };
        let run = |mbit: f64| Recorded {
            clear: steady(mbit),
            congested: steady(10.0),
            load: Samples::default(),
            ceiling: 100.0,
        };
        let series = |case, runs, failure| Series {
            case,
            runs,
            failure,
        };
        let all = vec![
            series(Case::ALL[0], vec![run(80.0), run(90.0)], None),
            series(Case::ALL[1], vec![], Some("x".to_owned())),
        ];
        let places = vec![((), all)];
        let table = congested.table(&Results { places });
        let json = serde_json::to_value(&table).unwrap();
        let row = &json["rows"][0];
        assert_eq!(row["paper_least_share"], 0.75);
        let total = row["over_time"]["total_mbit"].as_array().unwrap();
        assert_eq!(total.len(), 225);
        assert!((total[100].as_f64().unwrap() - 95.0).abs() < 1e-6);
        assert!((row["runs"][1]["during_share"].as_f64().unwrap() - 1.0).abs() < 1e-6);
        let text = table.to_string();
        assert!(text.contains("nothing was free  0.860, 0.750\n"), "{text}");
        assert!(text.contains("tcp-beside-udp     left out: x\n"), "{text}");
        let row = &json["rows"][1];
        assert_eq!(
            (&row["paper_least_share"], &row["ceiling_mbit"]),
            (&json!(null), &json!(null))
        );
        assert_eq!(row["over_time"]["total_mbit"], json!([]));
    }
}
