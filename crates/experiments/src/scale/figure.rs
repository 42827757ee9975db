//! The figure: for each axis, the cost of a byte and the goodput by those of the base case, beside the
//! line that flat growth would be.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Scale, gbit_ratio, is_base, ratio};
use crate::error::ExperimentError;
use crate::plot::{Area, CEILING, COLOURS, Drawn, GREY, bar, svg, text};
use crate::shape::{Results, Row};

/// Width of the picture, in pixels.
const WIDTH: u32 = 900;
/// Heights of the heading, of a gap between axes, and of a bar with its gap.
const HEADING: i32 = 76;
const GAP: i32 = 14;
const ROW: i32 = 22;
/// Begin and width of the bars of cost and of goodput, and the right edge of names.
const COST: (i32, i32) = (210, 300);
const GOODPUT: (i32, i32) = (580, 220);
const NAME: i32 = 202;

/// Draws the figure; returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if it cannot be drawn.
pub fn draw(repeat: u16, results: &Results<Scale>) -> Result<String, ExperimentError> {
    let rows = results.rows().flat_map(|(_, rows)| rows);
    let rows: Vec<Row<'_, Scale>> = rows.filter(|row| !is_base(row)).collect();
    let axes = rows.chunk_by(|a, b| a.case.axis == b.case.axis);
    let gaps = axes.clone().count() as i32;
    let height = HEADING + rows.len() as i32 * ROW + gaps * GAP + ROW;
    let largest = |of: &dyn Fn(&Row<'_, Scale>) -> Option<f64>| {
        rows.iter().filter_map(of).fold(1.0, f64::max)
    };
    let scales = [largest(&cost), largest(&gbit_ratio)];
    svg((WIDTH, height as u32), |area| {
        heading(area, repeat)?;
        let mut y = HEADING;
        for axis in axes {
            y += GAP;
            let top = y - ROW / 2;
            for row in axis {
                draw_row(area, y, row, scales)?;
                y += ROW;
            }
            for ((begin, width), largest) in [COST, GOODPUT].into_iter().zip(scales) {
                let x = begin + (f64::from(width) / largest) as i32;
                flat(area, x, (top, y - ROW / 2))?;
            }
        }
        Ok(())
    })
}

fn heading(area: &Area<'_>, repeat: u16) -> Drawn {
    text(area, (20, 20), (18, BLACK), HPos::Left, "growth")?;
    let runs = match repeat {
        1 => "the only run".to_owned(),
        runs => format!("medians of {runs} runs"),
    };
    let cost = format!("processor time per byte by that of the base case: {runs}");
    text(area, (COST.0, 46), (12, GREY), HPos::Left, &cost)?;
    text(
        area,
        (GOODPUT.0, 46),
        (12, GREY),
        HPos::Left,
        "goodput by that of the base case",
    )?;
    let line = "dashed: flat growth";
    text(area, (COST.0, 64), (12, GREY), HPos::Left, line)
}

fn draw_row(area: &Area<'_>, y: i32, row: &Row<'_, Scale>, scales: [f64; 2]) -> Drawn {
    text(
        area,
        (NAME, y),
        (13, BLACK),
        HPos::Right,
        &row.case.to_string(),
    )?;
    let (Some(cost), Some(goodput)) = (cost(row), gbit_ratio(row)) else {
        let why = row.series.missing().unwrap_or("its base case is missing");
        return text(area, (COST.0, y), (12, GREY), HPos::Left, why);
    };
    let values = [cost, goodput].into_iter().zip([COST, GOODPUT]).zip(scales);
    for (((value, (begin, width)), largest), colour) in values.zip(COLOURS) {
        let end = begin + (f64::from(width) * value / largest) as i32;
        bar(area, y, (begin, end), colour.filled())?;
        let label = format!("{value:.2}");
        text(area, (end + 6, y), (12, BLACK), HPos::Left, &label)?;
    }
    Ok(())
}

/// The processor time of all processes by that of the base case.
fn cost(row: &Row<'_, Scale>) -> Option<f64> {
    ratio(row, |cpu| cpu.all)
}

/// The line of flat growth.
fn flat(area: &Area<'_>, x: i32, (top, bottom): (i32, i32)) -> Drawn {
    let (length, gap) = CEILING;
    for y in (top..bottom).step_by((length + gap) as usize) {
        let ends = [(x, y), (x, (y + length).min(bottom))];
        area.draw(&PathElement::new(ends, GREY.stroke_width(1)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::Carried;
    use crate::scale::{Axis, Case, Work};
    use crate::shape::Series;

    #[test]
    fn every_case_is_drawn_beside_the_base_case() {
        let cases = Case::all(Work::Flows, &[Axis::Flows], 1, true);
        let series = cases
            .into_iter()
            .zip([Some(1.0), Some(1.5), None, Some(3.0)]);
        let series = series.map(|(case, cost)| Series {
            case,
            runs: cost.map(run).into_iter().collect(),
            failure: cost.is_none().then(|| "the lab is down".to_owned()),
        });
        let places = vec![(Work::Flows, series.collect())];
        let text = draw(1, &Results { places }).unwrap();
        for shown in [
            "flows 4",
            "1.50",
            "flows 16",
            "the lab is down",
            "3.00",
            "dashed",
        ] {
            assert!(text.contains(shown), "{shown} is not in {text}");
        }
        assert!(!text.contains("flows 1<"), "{text}");
    }

    fn run(cost: f64) -> Carried {
        Carried {
            bytes: 1_000_000_000,
            seconds: 1.0,
            sender: cost,
            receiver: cost,
            routers: vec![cost],
            paths: 1,
            memory: None,
        }
    }
}
