//! Figures of downloads in the style of the papers': goodput by the completed part of the download, or
//! by time where there is cross traffic; a line for the mean of each variant's runs, a band for their
//! standard deviation, dashed lines for the ceiling and for the paper's measurement.

mod figure;
mod picture;

use self::figure::{Figure, Line, Point};
use super::table::ceiling;
use super::{Run, Runs};
use crate::error::ExperimentError;
use crate::experiment::{DownloadExperiment, Window};
use crate::numbers::mean;

/// Number of parts of a download, each 5 %.
const PARTS: usize = 20;

/// Draws the figure of an experiment; returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if the figure cannot be drawn.
pub fn draw(
    experiment: &DownloadExperiment,
    variants: &[&Runs],
) -> Result<String, ExperimentError> {
    let figure = figure(experiment, variants);
    picture::document(&figure)
}

fn figure(experiment: &DownloadExperiment, variants: &[&Runs]) -> Figure {
    let lines = variants.iter().map(|variant| Line {
        name: variant.case.name.clone(),
        points: match experiment.window {
            None => by_completion(&variant.runs),
            Some(window) => by_time(&variant.runs, window),
        },
        ceiling: ceiling(variant),
        paper: variant.case.paper_mbit,
    });
    Figure {
        title: experiment.name,
        about: experiment.about,
        runs: variants.iter().map(|one| one.runs.len()).max().unwrap_or(0),
        window: experiment.window,
        lines: lines.collect(),
    }
}

/// Goodput in each part of the download.
fn by_completion(runs: &[Run]) -> Vec<Point> {
    let part = |run: &Run, index: usize| {
        let samples = &run.samples;
        let when = |index| samples.time_of(samples.total() * index as f64 / PARTS as f64);
        samples.rate(when(index), when(index + 1))
    };
    let points = (0..PARTS).map(|index| {
        let place = 100.0 * (index + 1) as f64 / PARTS as f64;
        let rates: Vec<f64> = runs.iter().map(|run| part(run, index)).collect();
        point(place, &rates)
    });
    points.collect()
}

/// Goodput in each second that all runs had, until the window's length has passed again after the
/// window.
fn by_time(runs: &[Run], window: Window) -> Vec<Point> {
    let ends = runs.iter().map(|run| run.samples.end());
    let end = ends.fold(f64::INFINITY, f64::min);
    let until = (2.0 * window.to - window.from).min(end).floor() as usize;
    let points = (0..until).map(|second| {
        let (from, to) = (second as f64, (second + 1) as f64);
        let rates = runs.iter().map(|run| run.samples.rate(from, to));
        point(to, &rates.collect::<Vec<_>>())
    });
    points.collect()
}

/// The mean and the standard deviation of `rates`.
fn point(place: f64, rates: &[f64]) -> Point {
    let (mean, deviation) = mean(rates);
    (place, mean, deviation)
}

#[cfg(test)]
mod tests;
