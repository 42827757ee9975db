//! What a figure shows: lines with their ceilings and the papers' values.

use crate::experiment::Window;

/// A paper's value above this many times what was measured is in the legend only: the links there
/// may have been much faster.
const REACH: f64 = 1.5;
/// Ceilings closer than this share of the scale have one line.
const SAME: f64 = 0.02;

/// A point of a line: where, the mean over the runs, their standard deviation.
pub type Point = (f64, f64, f64);

/// What is drawn.
pub struct Figure {
    /// The experiment's name.
    pub title: &'static str,
    /// The section or figure of the paper that has it, or what it compares.
    pub about: &'static str,
    /// Runs of each variant.
    pub runs: usize,
    /// When cross traffic flows: the figure is by time then.
    pub window: Option<Window>,
    /// One for each variant.
    pub lines: Vec<Line>,
}

/// One variant.
pub struct Line {
    /// Its name.
    pub name: String,
    /// Means and standard deviations.
    pub points: Vec<Point>,
    /// What headers leave of the limits, in Mbit/s.
    pub ceiling: Option<f64>,
    /// What the paper measured, in Mbit/s.
    pub paper: Option<f64>,
}

impl Figure {
    /// The largest value measured or possible: the scale reaches it and a little more.
    pub fn largest(&self) -> f64 {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let means = points.map(|(_, mean, deviation)| mean + deviation);
        let ceilings = self.lines.iter().filter_map(|line| line.ceiling);
        means.chain(ceilings).fold(1.0, f64::max)
    }

    /// Whether a value of a paper is drawn.
    pub fn reaches(&self, paper: f64) -> bool {
        paper <= REACH * self.largest()
    }

    /// The ceilings, lowest first, with the variants that each is of; ceilings that
    /// are too close to be told apart count as one.
    pub fn ceilings(&self) -> Vec<(f64, Vec<&str>)> {
        let mut all: Vec<(f64, Vec<&str>)> = Vec::new();
        for line in &self.lines {
            all.extend(
                line.ceiling
                    .map(|ceiling| (ceiling, vec![line.name.as_str()])),
            );
        }
        all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let near = SAME * self.largest();
        all.dedup_by(|(next, names), (value, kept)| {
            let same = *next - *value < near;
            if same {
                kept.append(names);
            }
            same
        });
        all
    }
}
