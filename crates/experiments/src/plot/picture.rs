//! A figure as an SVG document.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::figure::Figure;
use super::legend;
use super::style::{GREY, Look, PALE, SHADE};
use crate::experiment::Window;

/// Width and height, in pixels.
pub const SIZE: (u32, u32) = (960, 520);
/// Width of the column at the right, for the legend.
const LEGEND: u32 = 250;
/// Height of the heading.
const HEADING: u32 = 56;
type Drawn = Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A number at an axis, without what rounding leaves of sums.
fn tick(value: &f64) -> String {
    ((value * 1e3).round() / 1e3).to_string()
}

impl Figure {
    /// The SVG document.
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
