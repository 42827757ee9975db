//! A figure as an SVG document: the chart, and a legend beside it.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::Figure;
use crate::experiment::Window;

/// Width and height, in pixels.
pub const SIZE: (u32, u32) = (960, 520);
/// Width of the legend at the right, in pixels.
const LEGEND: u32 = 250;
/// Height of the heading, in pixels.
const HEADING: u32 = 56;
/// Height of a line of the legend, in pixels.
const ROW: i32 = 19;
/// Begin and end of the legend's signs, and begin of its texts, in pixels from its left.
const SIGN: (i32, i32) = (4, 28);
const TEXT: i32 = 36;
/// Letters of small print that fit in a line of the legend.
const LETTERS: usize = 29;
/// Lengths of dashes and gaps: of a ceiling, and of a paper's value.
const CEILING: (i32, i32) = (8, 5);
const PAPER: (i32, i32) = (2, 4);

/// Colours that people with any colour vision can distinguish and that stand out on white: those of
/// Okabe and Ito (2008) without yellow. Further lines repeat them, with marks.
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Colour of axes, ceilings and small print.
pub const GREY: RGBColor = RGBColor(90, 90, 90);
/// Colour of the grid.
pub const PALE: RGBColor = RGBColor(225, 225, 225);
/// Colour of the time of cross traffic.
pub const SHADE: RGBColor = RGBColor(243, 243, 243);

/// All colours of figures.
#[cfg(test)]
pub fn colours() -> impl Iterator<Item = RGBColor> {
    COLOURS.into_iter().chain([GREY, PALE, SHADE, BLACK, WHITE])
}

/// The colour of the line at `index`, and whether its points are marked.
fn look(index: usize) -> (RGBColor, bool) {
    (COLOURS[index % COLOURS.len()], index >= COLOURS.len())
}

/// Whether something was drawn.
pub type Drawn = Result<(), Box<dyn Error>>;
/// A part of a picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The SVG document of a figure.
pub fn svg(figure: &Figure) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (heading, rest) = area.split_vertically(HEADING);
        let (left, right) = rest.split_horizontally(SIZE.0 - LEGEND);
        let sans = |size| ("sans-serif", size).into_font();
        heading.draw(&Text::new(figure.title, (66, 12), sans(18).color(&BLACK)))?;
        heading.draw(&Text::new(figure.about, (66, 36), sans(12).color(&GREY)))?;
        chart(figure, &left)?;
        legend(figure, &right)?;
        area.present()?;
    }
    Ok(text)
}

fn chart(figure: &Figure, area: &Area<'_>) -> Drawn {
    let points = || figure.lines.iter().flat_map(|line| &line.points);
    let right = points().map(|(place, ..)| *place).fold(1.0, f64::max);
    let paper = figure.lines.iter().filter_map(|line| line.paper);
    let paper = paper.filter(|value| figure.reaches(*value));
    let top = paper.fold(figure.largest(), f64::max) * 1.08;
    let mut chart = ChartBuilder::on(area)
        .margin_left(8)
        .margin_right(16)
        .margin_bottom(8)
        .x_label_area_size(44)
        .y_label_area_size(66)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    if let Some(Window { from, to }) = figure.window {
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
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .x_desc(match figure.window {
            None => "part of the download that is complete (%)",
            Some(_) => "time since the download began (s)",
        })
        .y_desc("goodput (Mbit/s)")
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .draw()?;
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
        let ends = [(SIGN.0, legend.y), (SIGN.1, legend.y)];
        area.draw(&PathElement::new(ends, colour.stroke_width(2)))?;
        if marked {
            area.draw(&Circle::new((16, legend.y), 3, colour.filled()))?;
        }
        legend.text(13, BLACK, &line.name)?;
        if let Some(paper) = line.paper {
            let beyond = match figure.reaches(paper) {
                true => {
                    legend.dashes(PAPER, colour.stroke_width(2))?;
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
        legend.dashes(CEILING, GREY.stroke_width(1))?;
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
        let font = ("sans-serif", size).into_font().color(&colour);
        let style = font.pos(Pos::new(HPos::Left, VPos::Center));
        self.area.draw(&Text::new(text, (TEXT, self.y), style))?;
        self.y += ROW;
        Ok(())
    }

    fn band(&self, style: ShapeStyle) -> Drawn {
        let corners = [(SIGN.0, self.y - 6), (SIGN.1, self.y + 6)];
        Ok(self.area.draw(&Rectangle::new(corners, style))?)
    }

    fn dashes(&self, (length, gap): (i32, i32), style: ShapeStyle) -> Drawn {
        for x in (SIGN.0..SIGN.1).step_by((length + gap) as usize) {
            let ends = [(x, self.y), ((x + length).min(SIGN.1), self.y)];
            self.area.draw(&PathElement::new(ends, style))?;
        }
        Ok(())
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
