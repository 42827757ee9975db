//! A figure as an SVG document.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Point, legend};
use crate::bench::experiment::Window;

/// Colours that people with any colour vision tell apart and that stand out on white: those of
/// Okabe and Ito (2008) without yellow. Further lines have them again, with marks.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Of axes, ceilings and small print.
pub(super) const GREY: RGBColor = RGBColor(90, 90, 90);
/// Of the grid.
const PALE: RGBColor = RGBColor(225, 225, 225);
/// Of the time in which cross traffic flows.
pub(super) const SHADE: RGBColor = RGBColor(243, 243, 243);

/// Every colour of a figure.
#[cfg(test)]
pub(super) fn colours() -> impl Iterator<Item = RGBColor> {
    COLOURS.into_iter().chain([GREY, PALE, SHADE, BLACK, WHITE])
}

/// Width and height, in pixels.
pub(super) const SIZE: (u32, u32) = (960, 520);
/// Width of the column at the right, for the legend.
const LEGEND: u32 = 250;
/// Height of the heading.
const HEADING: u32 = 56;
/// Figures above this many times what was measured are left to the legend: the links of the papers
/// may have been much faster.
const REACH: f64 = 1.5;
/// Values closer than this share of the scale have one line.
const SAME: f64 = 0.02;

/// What is drawn.
pub(super) struct Figure {
    /// The experiment's name.
    pub title: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Runs of each variant.
    pub runs: usize,
    /// When cross traffic flows: the figure then is by time.
    pub window: Option<Window>,
    /// One for each variant.
    pub lines: Vec<Line>,
}

/// One variant.
pub(super) struct Line {
    /// Its name.
    pub name: String,
    /// Means and standard deviations.
    pub points: Vec<Point>,
    /// What headers leave of the limits, in Mbit/s.
    pub ceiling: Option<f64>,
    /// What the paper measured, in Mbit/s.
    pub paper: Option<f64>,
}

/// How a line looks.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// Its colour.
    pub colour: RGBColor,
    /// Whether its points are marked.
    pub marked: bool,
}

impl Look {
    pub(super) fn of(index: usize) -> Self {
        Self {
            colour: COLOURS[index % COLOURS.len()],
            marked: index >= COLOURS.len(),
        }
    }
}

type Drawn = Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A number at an axis, without what rounding leaves of sums.
fn tick(value: &f64) -> String {
    ((value * 1e3).round() / 1e3).to_string()
}

impl Figure {
    /// The document.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            area.fill(&WHITE)?;
            let (heading, rest) = area.split_vertically(HEADING);
            let (chart, column) = rest.split_horizontally(SIZE.0 - LEGEND);
            let sans = |size| ("sans-serif", size).into_font();
            heading.draw(&Text::new(self.title, (66, 12), sans(18).color(&BLACK)))?;
            heading.draw(&Text::new(self.about, (66, 36), sans(12).color(&GREY)))?;
            self.chart(&chart)?;
            legend::draw(self, &column)?;
            area.present()?;
        }
        Ok(text)
    }

    /// The largest value measured or possible: the scale reaches it and a little more.
    fn largest(&self) -> f64 {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let means = points.map(|(_, mean, deviation)| mean + deviation);
        let ceilings = self.lines.iter().filter_map(|line| line.ceiling);
        means.chain(ceilings).fold(1.0, f64::max)
    }

    /// Whether a value of a paper is drawn.
    pub(super) fn reaches(&self, paper: f64) -> bool {
        paper <= REACH * self.largest()
    }

    /// The ceilings, lowest first, with the variants that each is of; those too close to be told
    /// apart count as one.
    pub(super) fn ceilings(&self) -> Vec<(f64, Vec<&str>)> {
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

    fn chart(&self, area: &Area<'_>) -> Drawn {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let right = points().map(|(place, ..)| *place).fold(1.0, f64::max);
        let paper = self.lines.iter().filter_map(|line| line.paper);
        let paper = paper.filter(|value| self.reaches(*value));
        let top = paper.fold(self.largest(), f64::max) * 1.08;
        let mut chart = ChartBuilder::on(area)
            .margin_left(8)
            .margin_right(16)
            .margin_bottom(8)
            .x_label_area_size(44)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        if let Some(Window { from, to }) = self.window {
            let shade = Rectangle::new([(from, 0.0), (to.min(right), top)], SHADE.filled());
            chart.draw_series([shade])?;
        }
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(PALE)
            .axis_style(GREY)
            .x_labels(6)
            .y_labels(6)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .x_desc(match self.window {
                None => "part of the download that is complete (%)",
                Some(_) => "time since the download began (s)",
            })
            .y_desc("goodput (Mbit/s)")
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .draw()?;
        for (index, line) in self.lines.iter().enumerate() {
            let colour = Look::of(index).colour;
            let above = line
                .points
                .iter()
                .map(|(place, mean, by)| (*place, mean + by));
            let below = line
                .points
                .iter()
                .map(|(place, mean, by)| (*place, mean - by));
            let outline: Vec<_> = above.chain(below.rev()).collect();
            chart.draw_series([Polygon::new(outline, colour.mix(0.18))])?;
        }
        for (value, _) in self.ceilings() {
            let ends = [(0.0, value), (right, value)];
            chart.draw_series(DashedLineSeries::new(ends, 8, 5, GREY.stroke_width(1)))?;
        }
        for (index, line) in self.lines.iter().enumerate() {
            let Look { colour, marked } = Look::of(index);
            if let Some(value) = line.paper.filter(|value| self.reaches(*value)) {
                let ends = [(0.0, value), (right, value)];
                chart.draw_series(DashedLineSeries::new(ends, 2, 4, colour.stroke_width(2)))?;
            }
            let means: Vec<_> = line
                .points
                .iter()
                .map(|(place, mean, _)| (*place, *mean))
                .collect();
            if marked {
                let marks = means.iter().map(|at| Circle::new(*at, 3, colour.filled()));
                chart.draw_series(marks)?;
            }
            chart.draw_series(LineSeries::new(means, colour.stroke_width(2)))?;
        }
        Ok(())
    }
}
