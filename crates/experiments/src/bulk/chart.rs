//! Parts of the figures: a picture, and goodput over time.

use std::error::Error;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::{During, ExperimentError};
use crate::plot::{Area, Drawn, GREY, PALE, SHADE};

/// Length of a dash of a ceiling, and of the gap after it, in pixels.
const DASH: (i32, i32) = (8, 5);
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

/// An SVG document of that many pixels.
pub fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<String, ExperimentError> {
    let mut text = String::new();
    let document = |text: &mut String| -> Result<(), Box<dyn Error>> {
        let area = SVGBackend::with_string(text, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area)?;
        Ok(area.present()?)
    };
    document(&mut text).during("drawing the figure")?;
    Ok(text)
}

/// Writes a text that begins or ends at a place.
pub fn text(
    area: &Area<'_>,
    at: (i32, i32),
    (size, colour): (i32, RGBColor),
    side: HPos,
    text: &str,
) -> Drawn {
    let font = ("sans-serif", size).into_font().color(&colour);
    let style = font.pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text, at, style))?)
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
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(40)
            .y_label_area_size(62)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        if let Some((from, to)) = self.window {
            let corners = [(from, 0.0), (to.min(right), top)];
            chart.draw_series([Rectangle::new(corners, SHADE.filled())])?;
        }
        let tick = |value: &f64| ((value * 1e3).round() / 1e3).to_string();
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(PALE)
            .axis_style(GREY)
            .x_labels(9)
            .y_labels(6)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .x_desc("time (s)")
            .y_desc("goodput (Mbit/s)")
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13))
            .draw()?;
        if let Some(ceiling) = self.ceiling {
            let ends = [(0.0, ceiling), (right, ceiling)];
            let style = GREY.stroke_width(1);
            chart.draw_series(DashedLineSeries::new(ends, DASH.0, DASH.1, style))?;
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
