//! Figures in the shape of the papers': goodput by how much is there, or by time where cross
//! traffic comes and goes; a line for the mean of each variant's runs, a band for their standard
//! deviation, dashed lines for the ceiling and for what the paper measured.

mod legend;
mod picture;

use self::picture::{Figure, Line};
use super::experiment::{Experiment, Window};
use super::report::median;
use super::run::{Run, at, rate};
use crate::failure::{Doing, Failure};

/// Parts that a download is cut into, each 5 %.
const PARTS: usize = 20;

/// A point of a line: where, the mean over the runs, their standard deviation.
type Point = (f64, f64, f64);

/// Draws the figure of an experiment; returns it as SVG.
pub fn draw(experiment: &Experiment, runs: &[Vec<Run>]) -> Result<String, Failure> {
    figure(experiment, runs).svg().doing("drawing the figure")
}

fn figure(experiment: &Experiment, runs: &[Vec<Run>]) -> Figure {
    let variants = experiment.variants.iter().zip(runs);
    let lines = variants.map(|(variant, runs)| {
        let ceilings: Option<Vec<f64>> = runs.iter().map(|run| run.ceiling_mbit).collect();
        Line {
            name: variant.name.clone(),
            points: match experiment.window {
                None => by_completion(runs),
                Some(window) => by_time(runs, window),
            },
            ceiling: ceilings
                .filter(|all| !all.is_empty())
                .map(|all| median(&all)),
            paper: variant.paper_mbit,
        }
    });
    Figure {
        title: experiment.name,
        about: experiment.about,
        runs: runs.iter().map(Vec::len).max().unwrap_or(0),
        window: experiment.window,
        lines: lines.collect(),
    }
}

/// Goodput in each twentieth of the download.
fn by_completion(runs: &[Run]) -> Vec<Point> {
    let part = |run: &Run, index: usize| {
        let total = run.samples.last().map_or(0.0, |(_, bytes)| *bytes);
        let when = |index| time_of(&run.samples, total * index as f64 / PARTS as f64);
        rate(&run.samples, when(index), when(index + 1))
    };
    (0..PARTS)
        .map(|index| {
            let place = 100.0 * (index + 1) as f64 / PARTS as f64;
            let rates: Vec<f64> = runs.iter().map(|run| part(run, index)).collect();
            point(place, &rates)
        })
        .collect()
}

/// Goodput in each second that all runs had, until as long after the window as it lasts.
fn by_time(runs: &[Run], window: Window) -> Vec<Point> {
    let ends = runs.iter().filter_map(|run| run.samples.last());
    let end = ends.map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
    let until = (2.0 * window.to - window.from).min(end).floor() as usize;
    (0..until)
        .map(|second| {
            let (from, to) = (second as f64, (second + 1) as f64);
            let rates = runs.iter().map(|run| rate(&run.samples, from, to));
            point(to, &rates.collect::<Vec<_>>())
        })
        .collect()
}

/// When so many bytes were there.
fn time_of(samples: &[(f64, f64)], bytes: f64) -> f64 {
    // Swapped, the samples tell times of bytes.
    let times: Vec<(f64, f64)> = samples
        .iter()
        .map(|(time, bytes)| (*bytes, *time))
        .collect();
    at(&times, bytes)
}

fn point(place: f64, rates: &[f64]) -> Point {
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (place, mean, (squares / count).sqrt())
}

#[cfg(test)]
mod tests;
