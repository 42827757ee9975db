//! Figures in the shape of the papers': goodput by how much is there, or by time where cross
//! traffic comes and goes; a line a variant, bars for the standard deviation over the runs.

use super::experiment::{Experiment, Window};
use super::run::{Run, at, rate};
use crate::failure::Failure;
use plotters::prelude::*;

/// Parts that a download is cut into, each 5 %.
const PARTS: usize = 20;

/// A point of a line: where, the mean over the runs, their standard deviation.
type Point = (f64, f64, f64);

/// Draws the figure of an experiment; returns it as SVG.
pub fn draw(experiment: &Experiment, runs: &[Vec<Run>]) -> Result<String, Failure> {
    let lines: Vec<Vec<Point>> = runs
        .iter()
        .map(|runs| match experiment.window {
            None => by_completion(runs),
            Some(window) => by_time(runs, window),
        })
        .collect();
    let mut svg = String::new();
    picture(&mut svg, experiment, &lines)
        .map_err(|error| Failure::job(format!("cannot draw the figure: {error}")))?;
    Ok(svg)
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

fn picture(
    svg: &mut String,
    experiment: &Experiment,
    lines: &[Vec<Point>],
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, (900, 560)).into_drawing_area();
    area.fill(&WHITE)?;
    let points = || lines.iter().flatten();
    let right = points().map(|(place, ..)| *place).fold(1.0, f64::max);
    let top = points()
        .map(|(_, mean, bar)| mean + bar)
        .fold(1.0, f64::max);
    let caption = format!("{} ({})", experiment.name, experiment.about);
    let mut chart = ChartBuilder::on(&area)
        .caption(caption, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..right, 0.0..top * 1.1)?;
    chart
        .configure_mesh()
        .x_desc(match experiment.window {
            None => "download completion [%]",
            Some(_) => "time [s]",
        })
        .y_desc("goodput [Mbit/s]")
        .label_style(("sans-serif", 13))
        .draw()?;
    if let Some(window) = experiment.window {
        for time in [window.from, window.to] {
            let line = [(time, 0.0), (time, top * 1.1)];
            chart.draw_series(LineSeries::new(line, BLACK.stroke_width(1)))?;
        }
    }
    for (index, (variant, line)) in experiment.variants.iter().zip(lines).enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let means = line.iter().map(|(place, mean, _)| (*place, *mean));
        chart
            .draw_series(LineSeries::new(means, colour.stroke_width(2)))?
            .label(variant.name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(line.iter().map(|(place, mean, bar)| {
            let ends = [(*place, mean - bar), (*place, mean + bar)];
            PathElement::new(ends, colour.stroke_width(1))
        }))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_a_line_for_each_variant() {
        let experiment = Experiment::of(crate::cli::BenchName::Fig8, 1.0).unwrap();
        let run = |mbit: f64| Run {
            goodput_mbit: mbit,
            ceiling_mbit: None,
            around: None,
            samples: (0..=100)
                .map(|step| (f64::from(step), f64::from(step) * mbit * 125_000.0))
                .collect(),
        };
        let runs: Vec<Vec<Run>> = [9.5, 9.0, 8.0, 26.0]
            .map(|mbit| vec![run(mbit), run(mbit + 1.0)])
            .into();
        for (_, mean, bar) in by_completion(&runs[3]) {
            assert!((mean - 26.5).abs() < 1e-6 && (bar - 0.5).abs() < 1e-6);
        }
        let text = draw(&experiment, &runs).unwrap();
        for variant in &experiment.variants {
            assert!(text.contains(&variant.name), "{} is missing", variant.name);
        }
        assert!(text.contains("<polyline") || text.contains("<path"));
    }
}
