//! The measurements: the object that `hawser bench bulk-congested --json` prints.

use serde::Serialize;

use super::case::{Case, Load, Sender};
use super::facts::{Facts, Phases};
use crate::papers::hercules;
use crate::report::median;
use crate::samples::Samples;

/// Seconds of each point over time.
const STEP: f64 = 0.2;

/// The measurements of all cases.
#[derive(Debug, Serialize)]
pub struct CongestedTable {
    /// The experiment's name: `bulk-congested`.
    pub experiment: &'static str,
    /// The section of the paper.
    pub about: String,
    /// The limit of the links, in Mbit/s.
    pub rate_mbit: f64,
    /// The limit of the paper's links, in Mbit/s.
    pub paper_rate_mbit: f64,
    /// The phases of a run, in seconds from its start.
    pub phases: Phases,
    /// Number of runs of each case, one of each in turn.
    pub repeat: u16,
    /// One row for each case.
    pub rows: Vec<CongestedRow>,
}

/// The measurements of one case.
#[derive(Debug, Clone, Serialize)]
pub struct CongestedRow {
    /// Its name.
    #[serde(serialize_with = "as_text")]
    pub variant: Case,
    /// What the headers leave of the shared link, in Mbit/s.
    pub ceiling_mbit: Option<f64>,
    /// What every run shows.
    pub runs: Vec<Facts>,
    /// The paper's least total while one path was congested, as a share of its link.
    pub paper_least_share: Option<f64>,
    /// The paper's total of the whole run, as a share of its link.
    pub paper_overall_share: Option<f64>,
    /// Goodput over time: means of the runs.
    pub over_time: OverTime,
    /// Why there are fewer runs than requested, or none.
    pub failure: Option<String>,
}

/// Goodput over time, in Mbit/s.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OverTime {
    /// Seconds of each value.
    pub step_seconds: f64,
    /// Over both paths.
    pub total_mbit: Vec<f64>,
    /// Over the path that is not congested.
    pub clear_mbit: Vec<f64>,
    /// Over the path that is congested for a while.
    pub congested_mbit: Vec<f64>,
    /// Of the load.
    pub load_mbit: Vec<f64>,
}

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    /// What arrived over the path that is not congested.
    pub clear: Samples,
    /// What arrived over the other path.
    pub congested: Samples,
    /// What the load carried.
    pub load: Samples,
    /// What the headers leave of the shared link, in Mbit/s.
    pub ceiling: f64,
}

impl Recorded {
    pub fn facts(&self, phases: Phases) -> Facts {
        let total = self.total();
        let series = (&total, &self.clear, &self.congested, &self.load);
        Facts::of(series, phases, self.ceiling)
    }

    fn total(&self) -> Samples {
        Samples::together(&[self.clear.clone(), self.congested.clone()])
    }
}

impl CongestedRow {
    /// Sums up runs.
    pub(super) fn new(
        variant: Case,
        runs: &[Recorded],
        phases: Phases,
        failure: Option<String>,
    ) -> Self {
        let of_paper = |mbit: f64| {
            let same = (variant.sender, variant.load) == (Sender::Hawser, Load::Udp);
            same.then_some(mbit / hercules::LINK)
        };
        let ceilings: Vec<f64> = runs.iter().map(|run| run.ceiling).collect();
        Self {
            variant,
            ceiling_mbit: (!runs.is_empty()).then(|| median(&ceilings)),
            runs: runs.iter().map(|run| run.facts(phases)).collect(),
            paper_least_share: of_paper(hercules::LEAST),
            paper_overall_share: of_paper(hercules::OVERALL),
            over_time: OverTime::of(runs, phases.end),
            failure,
        }
    }

    /// The median of a fact over all runs; `None` without runs.
    pub fn median(&self, fact: impl Fn(&Facts) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().map(fact).collect();
        (!values.is_empty()).then(|| median(&values))
    }
}

impl OverTime {
    fn of(runs: &[Recorded], end: f64) -> Self {
        let steps = match runs {
            [] => 0,
            _ => (end / STEP).floor() as usize,
        };
        let mean = |series: &dyn Fn(&Recorded) -> Samples| {
            let series: Vec<Samples> = runs.iter().map(series).collect();
            let at = |step: usize| {
                let (from, to) = (step as f64 * STEP, (step + 1) as f64 * STEP);
                let sum: f64 = series.iter().map(|one| one.rate(from, to)).sum();
                sum / series.len() as f64
            };
            (0..steps).map(at).collect()
        };
        Self {
            step_seconds: STEP,
            total_mbit: mean(&Recorded::total),
            clear_mbit: mean(&|run| run.clear.clone()),
            congested_mbit: mean(&|run| run.congested.clone()),
            load_mbit: mean(&|run| run.load.clone()),
        }
    }
}

fn as_text<S: serde::Serializer>(case: &Case, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(mbit: f64) -> Samples {
        let points = (0..=450).map(|step| {
            let time = f64::from(step) / 10.0;
            (time, time * mbit * 125_000.0)
        });
        Samples(points.collect())
    }

    #[test]
    fn rows_have_the_papers_figures_and_means_over_time() {
        let run = |mbit: f64| Recorded {
            clear: steady(mbit),
            congested: steady(10.0),
            load: Samples::default(),
            ceiling: 100.0,
        };
        let phases = Phases::of(45.0);
        let runs = [run(80.0), run(90.0)];
        let row = CongestedRow::new(Case::ALL[0], &runs, phases, None);
        assert_eq!(row.paper_least_share, Some(0.75));
        assert_eq!(row.over_time.total_mbit.len(), 225);
        assert!((row.over_time.total_mbit[100] - 95.0).abs() < 1e-6);
        assert!((row.median(|run| run.during_share).unwrap() - 0.95).abs() < 1e-6);
        let none = CongestedRow::new(Case::ALL[1], &[], phases, Some("x".into()));
        assert_eq!((none.paper_least_share, none.ceiling_mbit), (None, None));
        assert!(none.over_time.total_mbit.is_empty() && none.median(|_| 0.0).is_none());
    }
}
