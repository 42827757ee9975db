//! Goodput over time.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::plot::{Area, CEILING, Drawn, GREY, Plane, text};

/// Space above the largest value, as a factor.
const ROOM: f64 = 1.08;
/// The largest value by the ceiling that is drawn as it is: what waited for a lost packet arrives at once
/// where content is handed over in order.
const PEAK: f64 = 1.25;

/// A line of goodput over time.
pub struct Line<'a> {
    pub name: &'a str,
    pub style: ShapeStyle,
    /// Seconds of each value.
    pub step: f64,
    pub mbit: &'a [f64],
}

/// Goodput over time.
pub struct Chart<'a> {
    pub lines: Vec<Line<'a>>,
    /// In Mbit/s.
    pub ceiling: Option<f64>,
    /// A time that is marked, in seconds.
    pub window: Option<(f64, f64)>,
}

impl Chart<'_> {
    /// Draws axes and lines into all of `area`.
    pub fn draw(&self, area: &Area<'_>) -> Drawn {
        let values = self.lines.iter().flat_map(|line| line.mbit);
        let top = values.copied().chain(self.ceiling).fold(1.0, f64::max);
        let most = self.ceiling.map_or(f64::INFINITY, |ceiling| PEAK * ceiling);
        let top = top.min(most) * ROOM;
        let ends = self.lines.iter();
        let right = ends.map(|line| line.mbit.len() as f64 * line.step);
        let right = right.fold(1.0, f64::max);
        let plane = Plane {
            x: (right, "time (s)", 9),
            y: (top, "goodput (Mbit/s)", 6),
            window: self.window,
        };
        let mut chart = plane.draw(area)?;
        if let Some(ceiling) = self.ceiling {
            let ends = [(0.0, ceiling), (right, ceiling)];
            let style = GREY.stroke_width(1);
            chart.draw_series(DashedLineSeries::new(ends, CEILING.0, CEILING.1, style))?;
        }
        for line in &self.lines {
            // Each value is the mean of a step: it is drawn at its middle.
            let points = line.mbit.iter().enumerate();
            let points =
                points.map(|(index, mbit)| ((index as f64 + 0.5) * line.step, mbit.min(top)));
            chart.draw_series(LineSeries::new(points, line.style))?;
        }
        Ok(())
    }

    /// Draws the meanings of the lines in a row, from `at` on, each `width` pixels wide.
    pub fn legend(&self, area: &Area<'_>, at: (i32, i32), width: i32) -> Drawn {
        for (index, line) in self.lines.iter().enumerate() {
            let x = at.0 + width * index as i32;
            area.draw(&PathElement::new([(x, at.1), (x + 22, at.1)], line.style))?;
            text(area, (x + 28, at.1), (12, BLACK), HPos::Left, line.name)?;
        }
        Ok(())
    }
}
