//! What one run shows.

use crate::error::ExperimentError;
use crate::samples::Samples;

/// Seconds of each point of the goodput over time.
pub(super) const STEP: f64 = 0.5;

/// What one run shows.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Goodput after the start, in Mbit/s.
    pub mbit: f64,
    /// That of the whole run, start included.
    pub whole: f64,
    /// What the headers leave of the limit, in Mbit/s.
    pub ceiling: f64,
    /// In each step, in Mbit/s.
    pub over_time: Vec<f64>,
}

impl Measured {
    /// The goodput until second `end`, which is steady from second `settled` on.
    pub(super) fn new(
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

/// Goodput over time: means of the runs, in Mbit/s.
pub(super) fn over_time(runs: &[Measured]) -> Vec<f64> {
    let steps = runs.iter().map(|run| run.over_time.len()).min();
    let mean = |step: usize| {
        let sum: f64 = runs.iter().map(|run| run.over_time[step]).sum();
        sum / runs.len() as f64
    };
    (0..steps.unwrap_or(0)).map(mean).collect()
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
}
