//! A figure as an SVG document: the chart, and a legend beside it.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::figure::Figure;
use crate::error::ExperimentError;
use crate::plot::{
    Area, CEILING, COLOURS, Drawn, GREY, PAPER, Plane, SHADE, SIGN, dashed_sign, sign, svg, text,
};

/// Width and height, in pixels.
pub const SIZE: (u32, u32) = (960, 520);
/// Width of the legend at the right, in pixels.
const LEGEND: u32 = 250;
/// Height of the heading, in pixels.
const HEADING: u32 = 56;
/// Height of a line of the legend, in pixels.
const ROW: i32 = 19;
/// Begin of the texts of the legend, in pixels from its left.
const TEXT: i32 = 36;
/// Letters of small print that fit in a line of the legend.
const LETTERS: usize = 29;

/// The colour of the line at `index`, and whether its points are marked.
fn look(index: usize) -> (RGBColor, bool) {
    (COLOURS[index % COLOURS.len()], index >= COLOURS.len())
}

/// The SVG document of a figure.
pub fn document(figure: &Figure) -> Result<String, ExperimentError> {
    svg(SIZE, |area| {
        let (heading, rest) = area.split_vertically(HEADING);
        let (left, right) = rest.split_horizontally(SIZE.0 - LEGEND);
        text(&heading, (66, 20), (18, BLACK), HPos::Left, figure.title)?;
        text(&heading, (66, 42), (12, GREY), HPos::Left, figure.about)?;
        chart(figure, &left)?;
        legend(figure, &right)
    })
}

fn chart(figure: &Figure, area: &Area<'_>) -> Drawn {
    let points = || figure.lines.iter().flat_map(|line| &line.points);
    let right = points().map(|(place, ..)| *place).fold(1.0, f64::max);
    let paper = figure.lines.iter().filter_map(|line| line.paper);
    let paper = paper.filter(|value| figure.reaches(*value));
    let top = paper.fold(figure.largest(), f64::max) * 1.08;
    let x = match figure.window {
        None => "part of the download that is complete (%)",
        Some(_) => "time since the download began (s)",
    };
    let plane = Plane {
        x: (right, x, 6),
        y: (top, "goodput (Mbit/s)", 6),
        window: figure.window.map(|window| (window.from, window.to)),
    };
    let mut chart = plane.draw(area)?;
    for (index, line) in figure.lines.iter().enumerate() {
        let edge = |sign: f64| {
            line.points
                .iter()
                .map(move |(x, mean, by)| (*x, mean + sign * by))
        };
        let outline: Vec<_> = edge(1.0).chain(edge(-1.0).rev()).collect();
        chart.draw_series([Polygon::new(outline, look(index).0.mix(0.18))])?;
    }
    let across = |value, (length, gap), style: ShapeStyle| {
        DashedLineSeries::new([(0.0, value), (right, value)], length, gap, style)
    };
    for (value, _) in figure.ceilings() {
        chart.draw_series(across(value, CEILING, GREY.stroke_width(1)))?;
    }
    for (index, line) in figure.lines.iter().enumerate() {
        let (colour, marked) = look(index);
        if let Some(value) = line.paper.filter(|value| figure.reaches(*value)) {
            chart.draw_series(across(value, PAPER, colour.stroke_width(2)))?;
        }
        let means = line.points.iter().map(|(place, mean, _)| (*place, *mean));
        if marked {
            let marks = means.clone().map(|at| Circle::new(at, 3, colour.filled()));
            chart.draw_series(marks)?;
        }
        chart.draw_series(LineSeries::new(means, colour.stroke_width(2)))?;
    }
    Ok(())
}

/// Draws the meanings of the figure's lines, from the top of `area` down.
fn legend(figure: &Figure, area: &Area<'_>) -> Drawn {
    let mut legend = Legend { area, y: ROW / 2 };
    for (index, line) in figure.lines.iter().enumerate() {
        let (colour, marked) = look(index);
        legend.band(colour.mix(0.18).filled())?;
        sign(area, legend.y, colour.stroke_width(2))?;
        if marked {
            area.draw(&Circle::new((16, legend.y), 3, colour.filled()))?;
        }
        legend.text(13, BLACK, &line.name)?;
        if let Some(paper) = line.paper {
            let beyond = match figure.reaches(paper) {
                true => {
                    dashed_sign(area, legend.y, PAPER, colour.stroke_width(2))?;
                    ""
                }
                false => ", beyond the scale",
            };
            legend.text(
                12,
                GREY,
                &format!("paper: {} Mbit/s{beyond}", number(paper)),
            )?;
        }
    }
    legend.y += ROW / 2;
    match figure.runs {
        1 => legend.text(12, GREY, "line: the only run")?,
        runs => legend.text(12, GREY, &format!("line: mean of {runs} runs"))?,
    }
    if figure.runs > 1 {
        legend.text(12, GREY, "band: standard deviation")?;
    }
    let ceilings = figure.ceilings();
    if !ceilings.is_empty() {
        legend.y += ROW / 2;
        legend.text(12, GREY, "ceilings (Mbit/s):")?;
    }
    for (ceiling, names) in ceilings {
        dashed_sign(area, legend.y, CEILING, GREY.stroke_width(1))?;
        let text = format!("{} of {}", number(ceiling), names.join(", "));
        legend.text(12, GREY, &cut(&text))?;
    }
    if figure.window.is_some() {
        legend.band(SHADE.filled())?;
        legend.text(12, GREY, "cross traffic flows")?;
    }
    Ok(())
}

/// A legend that is being drawn.
struct Legend<'a, 'b> {
    area: &'a Area<'b>,
    /// The vertical middle of the next line.
    y: i32,
}

impl Legend<'_, '_> {
    /// Writes a text and advances to the next line.
    fn text(&mut self, size: i32, colour: RGBColor, text: &str) -> Drawn {
        crate::plot::text(self.area, (TEXT, self.y), (size, colour), HPos::Left, text)?;
        self.y += ROW;
        Ok(())
    }

    fn band(&self, style: ShapeStyle) -> Drawn {
        let corners = [(SIGN.0, self.y - 6), (SIGN.1, self.y + 6)];
        Ok(self.area.draw(&Rectangle::new(corners, style))?)
    }
}

/// The text, cut to the letters that fit.
fn cut(text: &str) -> String {
    match text.chars().count() > LETTERS {
        true => text.chars().take(LETTERS - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A value with three digits.
fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
