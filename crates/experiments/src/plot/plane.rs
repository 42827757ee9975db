//! A plane with axes, on which values are drawn.

use std::error::Error;

use plotters::chart::ChartContext;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::area::{Area, Drawn, GREY, PALE, SHADE};

/// Half the width of the ends of a deviation, in pixels.
const END: i32 = 4;
/// Heights or widths of the parts beside the plane with numbers and descriptions, in pixels.
const BELOW: u32 = 44;
const LEFT: u32 = 66;

/// A plane whose axes begin at 0.
pub struct Plane<'a> {
    /// The end of the horizontal axis, what it shows, and its number of labels.
    pub x: (f64, &'a str, usize),
    /// The same of the vertical one.
    pub y: (f64, &'a str, usize),
    /// A part of the horizontal axis that is marked.
    pub window: Option<(f64, f64)>,
}

/// A plane that takes series.
pub type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl Plane<'_> {
    /// Draws the axes into all of `area`.
    pub fn draw<'a, 'b>(&self, area: &'a Area<'b>) -> Result<Chart<'a, 'b>, Box<dyn Error>> {
        let ((right, x, x_labels), (top, y, y_labels)) = (self.x, self.y);
        let mut chart = ChartBuilder::on(area)
            .margin_left(8)
            .margin_right(16)
            .margin_bottom(8)
            .x_label_area_size(BELOW)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        if let Some((from, to)) = self.window {
            let shade = Rectangle::new([(from, 0.0), (to.min(right), top)], SHADE.filled());
            chart.draw_series([shade])?;
        }
        // Hides rounding errors of sums.
        let tick = |value: &f64| ((value * 1e3).round() / 1e3).to_string();
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(PALE)
            .axis_style(GREY)
            .x_labels(x_labels)
            .y_labels(y_labels)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .x_desc(x)
            .y_desc(y)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .draw()?;
        Ok(chart)
    }
}

/// Draws a standard deviation around a mean.
pub fn deviation(
    chart: &mut Chart<'_, '_>,
    (x, mean): (f64, f64),
    by: f64,
    colour: RGBColor,
) -> Drawn {
    let ends = [(mean - by).max(0.0), mean + by].map(|y| (x, y));
    chart.draw_series([PathElement::new(ends.to_vec(), colour.stroke_width(1))])?;
    chart.draw_series(ends.into_iter().map(|end| {
        let line = PathElement::new([(-END, 0), (END, 0)], colour.stroke_width(1));
        EmptyElement::at(end) + line
    }))?;
    Ok(())
}
