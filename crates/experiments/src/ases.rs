//! What an AS of a lab costs, by the number of ASes: time until all links are up, memory and processor
//! time at rest, time until the lab is down.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hawser_lab::{Lab, Options};
use serde_json::json;

use crate::cpu::Meter;
use crate::error::{During, ExperimentError};
use crate::shape::{Bed, Columns, Experiment, Format, Observe, Results, Row, Section, Table};
use crate::{memory, network, scratch};

/// Labs of different numbers of ASes.
#[derive(Debug, Clone)]
pub struct AsGrowth {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// Numbers of ASes.
    pub ases: Vec<u16>,
    /// How long a lab is left alone before and while its processor time is measured, each.
    pub rest: Duration,
    /// Number of runs of each.
    pub repeat: u16,
}

/// The number of ASes of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsCount(u16);

impl fmt::Display for AsCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ASes", self.0)
    }
}

/// What a lab has shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabCost {
    /// Seconds until all services answered and all links were up.
    pub up: f64,
    /// Links that did not come up.
    pub dead_links: usize,
    /// Bytes of memory of all its processes together, shared pages divided among those that share them.
    pub memory: u64,
    /// Processor time at rest, as a share of one processor.
    pub cpu: f64,
    /// Seconds until nothing was left of it.
    pub down: f64,
}

/// Each run has a lab of its own.
#[derive(Debug)]
pub struct NoBed;

impl Bed for NoBed {
    async fn take_down(self) -> Result<(), ExperimentError> {
        Ok(())
    }
}

impl Experiment for AsGrowth {
    type Place = ();
    type Bed = NoBed;
    type Case = AsCount;
    type Run = LabCost;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<AsCount> {
        self.ases.iter().copied().map(AsCount).collect()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<NoBed, ExperimentError> {
        // Remove labs of sessions whose process was killed.
        Lab::sweep().map_err(ExperimentError::step)?;
        scratch::sweep();
        Ok(NoBed)
    }

    async fn measure(&self, _: &NoBed, case: &AsCount) -> Result<LabCost, ExperimentError> {
        let network = network::tree(case.0)?;
        let own = std::process::id();
        let options = Options {
            name: format!("ases-{own}"),
            owner: Some(own),
            ..Options::new(&self.program)
        };
        let started = Instant::now();
        let up = Lab::up(&network, &options).map_err(ExperimentError::step)?;
        let up_after = started.elapsed().as_secs_f64();
        let lab = Guard(Some(up.lab));
        let cost = self.at_rest(lab.lab()).await?;
        let ending = Instant::now();
        lab.take_down()?;
        Ok(LabCost {
            up: up_after,
            dead_links: up.dead_links.len(),
            memory: cost.0,
            cpu: cost.1,
            down: ending.elapsed().as_secs_f64(),
        })
    }

    fn summary(&self, run: &LabCost) -> String {
        let (up, down) = (run.up, run.down);
        format!("up in {up:.1} s, down in {down:.1} s")
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let rest = self.rest.as_secs_f64();
        Table {
            experiment: "ases",
            facts: vec![("repeat", self.repeat.into()), ("rest", json!(rest))],
            about: vec![format!(
                "labs of a border router and a control service an AS, links without limits, at rest for {rest} s"
            )],
            sections: vec![Section::of("rows", self, results, &columns())],
            notes: Vec::new(),
        }
    }
}

impl AsGrowth {
    /// The memory in bytes and the share of a processor of a lab that carries nothing.
    async fn at_rest(&self, lab: &Lab) -> Result<(u64, f64), ExperimentError> {
        tokio::time::sleep(self.rest).await;
        let status = lab.status().during("reading the lab's status")?;
        let of_ases = status.ases.iter().flat_map(|as_| as_.processes());
        let processes = of_ases.chain([&status.supervisor]);
        let pids = processes.filter_map(|process| process.pid.and_then(|pid| pid.try_into().ok()));
        let mut pids: Vec<u32> = pids.collect();
        // A process may serve several ASes.
        pids.sort_unstable();
        pids.dedup();
        let (meter, started) = (Meter::new(pids.iter().copied()), Instant::now());
        tokio::time::sleep(self.rest).await;
        let cpu = meter.total() / started.elapsed().as_secs_f64();
        let memory = pids.iter().filter_map(|pid| memory::proportional(*pid));
        Ok((memory.sum(), cpu))
    }
}

/// A lab that is taken down when this is dropped, too.
struct Guard(Option<Lab>);

impl Guard {
    fn lab(&self) -> &Lab {
        self.0.as_ref().expect("it is there until it is taken down")
    }

    fn take_down(mut self) -> Result<(), ExperimentError> {
        match self.0.take() {
            Some(lab) => lab.down(|_| ()).map_err(ExperimentError::step),
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(lab) = self.0.take() {
            // The error that dropped it is reported; the lab ends with this process anyway.
            let _ = lab.down(|_| ());
        }
    }
}

fn columns<'a>() -> Columns<Row<'a, AsGrowth>> {
    use Format::Number;
    let an_as = |row: &Row<'a, AsGrowth>| f64::from(row.case.0);
    Columns::<Row<'a, AsGrowth>>::new()
        .both("ases", "ASes", Number(0), |row| row.case.0)
        .runs()
        .median("up_seconds", "up s", Number(1), |run| run.up)
        .median("dead_links", "dead links", Number(0), |run| {
            run.dead_links as f64
        })
        .both("mib_per_as", "MiB an AS", Number(2), move |row| {
            let bytes = row.series.median(|run| run.memory as f64);
            bytes.map(|bytes| bytes / f64::from(1 << 20) / an_as(row))
        })
        .both(
            "cpu_percent_per_as",
            "% of a processor an AS",
            Number(3),
            move |row| {
                let share = row.series.median(|run| run.cpu);
                share.map(|share| 100.0 * share / an_as(row))
            },
        )
        .median("down_seconds", "down s", Number(1), |run| run.down)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Series;

    #[test]
    fn costs_are_those_of_one_as() {
        let growth = AsGrowth {
            program: PathBuf::new(),
            ases: vec![10, 100],
            rest: Duration::from_secs(2),
            repeat: 1,
        };
        let run = LabCost {
            up: 1.25,
            dead_links: 0,
            memory: 80 << 20,
            cpu: 0.01,
            down: 0.5,
        };
        let series = growth.cases(&()).into_iter().map(|case| Series {
            runs: vec![run],
            case,
            failure: None,
        });
        let places = vec![((), series.collect())];
        let table = serde_json::to_value(growth.table(&Results { places })).unwrap();
        let rows = &table["rows"];
        assert_eq!(
            (&rows[0]["ases"], &rows[1]["ases"]),
            (&json!(10), &json!(100))
        );
        assert_eq!(rows[0]["mib_per_as"], 8.0);
        assert_eq!(rows[1]["mib_per_as"], 0.8);
        assert_eq!(rows[0]["cpu_percent_per_as"], 0.1);
        assert_eq!(rows[1]["up_seconds"], 1.25);
    }
}
