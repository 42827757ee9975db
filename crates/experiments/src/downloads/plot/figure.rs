//! The contents of a figure: lines with their ceilings and the papers' values.

use crate::experiment::Window;

/// A paper's value above this multiple of the largest measured one appears in the legend only: its
/// links may have been much faster.
const REACH: f64 = 1.5;
/// Ceilings closer than this share of the scale are drawn as one line.
const SAME: f64 = 0.02;

/// A point of a line: its place on the axis, the mean over the runs, and their standard deviation.
pub type Point = (f64, f64, f64);

/// A figure to draw.
pub struct Figure {
    /// The experiment's name.
    pub title: &'static str,
    /// The section or figure of the paper, or what is compared.
    pub about: &'static str,
    /// Runs of each variant.
    pub runs: usize,
    /// The time of cross traffic, if any: then the figure is by time.
    pub window: Option<Window>,
    /// One line for each variant.
    pub lines: Vec<Line>,
}

/// The line of one variant.
pub struct Line {
    /// The variant's name.
    pub name: String,
    /// Means and standard deviations.
    pub points: Vec<Point>,
    /// The limits less headers, in Mbit/s.
    pub ceiling: Option<f64>,
    /// The paper's measurement, in Mbit/s.
    pub paper: Option<f64>,
}

impl Figure {
    /// The largest measured or possible value; the scale extends slightly beyond it.
    pub fn largest(&self) -> f64 {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let means = points.map(|(_, mean, deviation)| mean + deviation);
        let ceilings = self.lines.iter().filter_map(|line| line.ceiling);
        means.chain(ceilings).fold(1.0, f64::max)
    }

    /// Whether a paper's value is drawn.
    pub fn reaches(&self, paper: f64) -> bool {
        paper <= REACH * self.largest()
    }

    /// The ceilings, lowest first, each with its variants; ceilings that are too close to
    /// distinguish count as one.
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
