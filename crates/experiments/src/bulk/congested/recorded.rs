//! What one run recorded, and the means of several over time.

use serde::Serialize;

use super::facts::{Facts, Phases};
use crate::samples::Samples;

/// Seconds of each point over time.
const STEP: f64 = 0.2;

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
pub struct Recorded {
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
    /// What it shows.
    pub(super) fn facts(&self, phases: Phases) -> Facts {
        let total = self.total();
        let series = (&total, &self.clear, &self.congested, &self.load);
        Facts::of(series, phases, self.ceiling)
    }

    fn total(&self) -> Samples {
        Samples::together(&[self.clear.clone(), self.congested.clone()])
    }
}

impl OverTime {
    pub(super) fn of(runs: &[Recorded], end: f64) -> Self {
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
