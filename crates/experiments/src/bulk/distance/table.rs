//! The measurements: the object that `hawser bench bulk-distance --json` prints.

use serde::Serialize;

use super::tool::Tool;
use crate::error::ExperimentError;
use crate::report::{median, spread};
use crate::samples::Samples;

/// Seconds of each point of the goodput over time.
pub(super) const STEP: f64 = 0.5;

/// The measurements of all tools on all links.
#[derive(Debug, Serialize)]
pub struct DistanceTable {
    /// The experiment's name: `bulk-distance`.
    pub experiment: &'static str,
    /// The section of the paper.
    pub about: String,
    /// The limit of the far link, in Mbit/s.
    pub rate_mbit: f64,
    /// The limit of the paper's links, in Mbit/s.
    pub paper_rate_mbit: f64,
    /// The round trip, in milliseconds.
    pub round_trip_ms: f64,
    /// How long each tool sends, in seconds.
    pub seconds: f64,
    /// Seconds at the start that do not count for `mbit`.
    pub settled_seconds: f64,
    /// Seconds of each value of `over_time_mbit`.
    pub step_seconds: f64,
    /// Number of runs of each tool on each link, one of each in turn.
    pub repeat: u16,
    /// One row for each tool on each link, in order.
    pub rows: Vec<DistanceRow>,
}

/// The measurements of one tool on one link.
#[derive(Debug, Clone, Serialize)]
pub struct DistanceRow {
    /// Share of packets that the link loses, in percent.
    pub loss_percent: f64,
    /// The tool.
    #[serde(serialize_with = "as_text")]
    pub tool: Tool,
    /// Goodput of every run after the start, in Mbit/s.
    pub runs_mbit: Vec<f64>,
    /// The median of the runs.
    pub mbit: Option<f64>,
    /// Largest less smallest goodput, divided by the median.
    pub spread: Option<f64>,
    /// The median goodput of whole runs, start included.
    pub whole_mbit: Option<f64>,
    /// What the headers leave of the limit, in Mbit/s.
    pub ceiling_mbit: Option<f64>,
    /// `mbit` by `ceiling_mbit`.
    pub share: Option<f64>,
    /// The paper's goodput as a share of its link: of Hercules at least, of one TCP flow at most.
    pub paper_share: Option<f64>,
    /// Goodput over time: means of the runs, in Mbit/s.
    pub over_time_mbit: Vec<f64>,
    /// Why the tool was left out, or has fewer runs than requested.
    pub failure: Option<String>,
}

/// What one run shows.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Goodput after the start, in Mbit/s.
    pub mbit: f64,
    whole: f64,
    ceiling: f64,
    over_time: Vec<f64>,
}

impl Measured {
    /// The goodput until second `end`, which is steady from second `settled` on.
    pub fn new(
        samples: &Samples,
        (settled, end): (f64, f64),
        ceiling: f64,
    ) -> Result<Self, ExperimentError> {
        if samples.end() < end - STEP {
            let text = format!("it ended after {:.1} of {end} s", samples.end());
            return Err(ExperimentError::Step(text));
        }
        let steps = (end / STEP).floor() as usize;
        let step = |index| samples.rate(index as f64 * STEP, (index + 1) as f64 * STEP);
        let end = end.min(samples.end());
        Ok(Self {
            mbit: samples.rate(settled, end),
            whole: samples.rate(0.0, end),
            ceiling,
            over_time: (0..steps).map(step).collect(),
        })
    }
}

impl DistanceRow {
    /// Sums up runs.
    pub(super) fn new(loss: f64, tool: Tool, runs: &[Measured], failure: Option<String>) -> Self {
        let of = |value: fn(&Measured) -> f64| -> Vec<f64> { runs.iter().map(value).collect() };
        let any = |value: fn(&Measured) -> f64| (!runs.is_empty()).then(|| median(&of(value)));
        let mbit = of(|run| run.mbit);
        let steps = runs.iter().map(|run| run.over_time.len()).min();
        let mean = |step: usize| {
            let sum: f64 = runs.iter().map(|run| run.over_time[step]).sum();
            sum / runs.len() as f64
        };
        Self {
            loss_percent: loss,
            tool,
            mbit: any(|run| run.mbit),
            spread: (!runs.is_empty()).then(|| spread(&mbit)),
            whole_mbit: any(|run| run.whole),
            ceiling_mbit: any(|run| run.ceiling),
            share: any(|run| run.mbit / run.ceiling),
            paper_share: tool.paper_share(),
            over_time_mbit: (0..steps.unwrap_or(0)).map(mean).collect(),
            failure,
            runs_mbit: mbit,
        }
    }
}

fn as_text<S: serde::Serializer>(tool: &Tool, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mbit` Mbit/s after a second in which nothing arrives.
    fn run(mbit: f64, seconds: u32) -> Samples {
        let points = (0..=seconds * 10).map(|step| {
            let time = f64::from(step) / 10.0;
            (time, (time - 1.0).max(0.0) * mbit * 125_000.0)
        });
        Samples(points.collect())
    }

    #[test]
    fn goodput_counts_after_the_start() {
        let measured = Measured::new(&run(100.0, 10), (5.0, 10.0), 125.0).unwrap();
        assert!((measured.mbit - 100.0).abs() < 1e-6);
        assert!((measured.whole - 90.0).abs() < 1e-6);
        assert_eq!(measured.over_time.len(), 20);
        assert!(measured.over_time[1] < 1e-6 && (measured.over_time[2] - 100.0).abs() < 1e-6);
        let short = Measured::new(&run(100.0, 8), (5.0, 10.0), 125.0).unwrap_err();
        assert!(short.to_string().contains("after 8.0 of 10 s"), "{short}");
    }

    #[test]
    fn rows_have_medians_and_shares() {
        let runs: Vec<_> = [80.0, 100.0, 90.0]
            .map(|mbit| Measured::new(&run(mbit, 10), (5.0, 10.0), 100.0).unwrap())
            .into();
        let row = DistanceRow::new(0.01, Tool::Bulk, &runs, None);
        assert!((row.mbit.unwrap() - 90.0).abs() < 1e-6);
        assert!((row.share.unwrap() - 0.9).abs() < 1e-6);
        assert!((row.over_time_mbit[19] - 90.0).abs() < 1e-6);
        assert_eq!(row.paper_share, Some(0.8));
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["tool"], "hawser-send");
        let none = DistanceRow::new(0.0, Tool::Rsync, &[], Some("not installed".into()));
        assert_eq!((none.mbit, none.over_time_mbit.len()), (None, 0));
    }
}
