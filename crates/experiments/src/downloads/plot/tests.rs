use std::collections::BTreeSet;

use super::*;
use crate::catalog::CATALOG;
use crate::experiment::Variant;
use crate::plot::check::{assert_palette, assert_texts_fit, elements};
use crate::samples::Samples;
use crate::shape::Series;

/// Runs that differ slightly, like recorded ones: slow at the start, and slower during cross
/// traffic.
fn recorded(experiment: &DownloadExperiment) -> Vec<Runs> {
    let variants = experiment.variants.iter().enumerate();
    variants
        .map(|(index, variant)| {
            let fits = variant.paper_mbit.filter(|mbit| *mbit < 100.0);
            let mbit = fits.unwrap_or(8.0 + 4.0 * index as f64);
            let runs = (0..5).map(|turn| run(experiment, mbit, f64::from(turn)));
            series(variant, runs.collect())
        })
        .collect()
}

fn series(variant: &Variant, runs: Vec<Run>) -> Runs {
    Series {
        case: variant.clone(),
        runs,
        failure: None,
    }
}

fn run(experiment: &DownloadExperiment, mbit: f64, turn: f64) -> Run {
    let (mut bytes, mut samples) = (0.0, vec![(0.0, 0.0)]);
    for step in 1..=400 {
        let time = f64::from(step) / 10.0;
        let starting = (time / 2.0).min(1.0);
        let within = |window: Window| time > window.from && time <= window.to;
        let congested = experiment.window.is_some_and(within);
        let share = if congested { 0.3 } else { 1.0 };
        let wave = 1.0 + 0.06 * (time * 1.7 + turn * 2.0).sin();
        bytes += mbit * starting * share * wave * 0.1 * 125_000.0;
        samples.push((time, bytes));
    }
    recorded_run(mbit, Some(mbit * 1.08), samples)
}

fn recorded_run(mbit: f64, ceiling_mbit: Option<f64>, samples: Vec<(f64, f64)>) -> Run {
    Run {
        seconds: samples.last().unwrap().0,
        goodput_mbit: mbit,
        ceiling_mbit,
        samples: Samples(samples),
        ..Run::default()
    }
}

fn all() -> impl Iterator<Item = (DownloadExperiment, Figure, String)> {
    CATALOG.iter().map(|entry| {
        let experiment = entry.experiment(1.0).unwrap();
        let recorded = recorded(&experiment);
        let figure = figure(&experiment, &recorded.iter().collect::<Vec<_>>());
        let svg = picture::document(&figure).unwrap();
        (experiment, figure, svg)
    })
}

#[test]
fn points_have_the_mean_and_deviation_of_the_runs() {
    let fig8 = CATALOG.iter().find(|entry| entry.name == "fig8");
    let experiment = fig8.unwrap().experiment(1.0).unwrap();
    let run = |mbit: f64| {
        let point = |step| (f64::from(step), f64::from(step) * mbit * 125_000.0);
        recorded_run(mbit, None, (0..=100).map(point).collect())
    };
    let runs = [9.5, 9.0, 8.0, 26.0].map(|mbit| vec![run(mbit), run(mbit + 1.0)]);
    for (_, mean, bar) in by_completion(&runs[3]) {
        assert!((mean - 26.5).abs() < 1e-6 && (bar - 0.5).abs() < 1e-6);
    }
    let variants = experiment.variants.iter().zip(runs);
    let all: Vec<Runs> = variants
        .map(|(variant, runs)| series(variant, runs))
        .collect();
    let all: Vec<&Runs> = all.iter().collect();
    assert!(draw(&experiment, &all).unwrap().contains("<svg"));
}

#[test]
fn the_legend_explains_every_element() {
    for (experiment, figure, svg) in all() {
        let elements = elements(&svg);
        let texts: Vec<&str> = elements.iter().map(|(_, _, text)| *text).collect();
        let has = |wanted: &str| texts.iter().any(|text| text.contains(wanted));
        for line in &figure.lines {
            assert!(has(&line.name), "{}: {texts:?}", line.name);
            if let Some(paper) = line.paper {
                assert!(has("paper: ") && has("Mbit/s"), "{paper}: {texts:?}");
            }
        }
        for wanted in [
            experiment.name,
            "mean of 5 runs",
            "standard deviation",
            "ceilings (Mbit/s)",
            "goodput (Mbit/s)",
        ] {
            assert!(has(wanted), "{wanted}: {texts:?}");
        }
        assert_eq!(has("cross traffic flows"), experiment.window.is_some());
        let axis = if experiment.window.is_some() {
            "(s)"
        } else {
            "(%)"
        };
        assert!(has(axis), "{texts:?}");
    }
}

#[test]
fn ceilings_and_papers_have_dashed_lines() {
    for (_, figure, svg) in all() {
        // A dashed line consists of many short ones at one height.
        let mut dashes = std::collections::BTreeMap::new();
        for (name, attributes, _) in elements(&svg) {
            let points = attributes.iter().find(|(key, _)| *key == "points");
            let Some((_, points)) = points.filter(|_| name == "polyline") else {
                continue;
            };
            let heights: BTreeSet<&str> = points
                .split_whitespace()
                .filter_map(|point| Some(point.split_once(',')?.1))
                .collect();
            if let (1, Some(height)) = (heights.len(), heights.first()) {
                *dashes.entry((*height).to_owned()).or_insert(0) += 1;
            }
        }
        let lines = dashes.values().filter(|count| **count > 20).count();
        let papers = figure.lines.iter().filter_map(|line| line.paper);
        let papers = papers.filter(|paper| figure.reaches(*paper)).count();
        let wanted = figure.ceilings().len() + papers;
        // Two lines may be at one height.
        assert!(lines > 0 && lines <= wanted, "{}: {dashes:?}", figure.title);
        assert!(lines + 2 >= wanted, "{}: {dashes:?}", figure.title);
    }
}

#[test]
fn nothing_is_clipped_and_colours_are_those_of_the_palette() {
    for (_, _, svg) in all() {
        assert_texts_fit(&svg, picture::SIZE);
        assert_palette(&svg);
    }
}
