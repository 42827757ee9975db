//! The figure of a [`DistanceTable`]: for each link, goodput by tool (003, Fig. 2) and over time
//! (Fig. 3).

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::table::{DistanceRow, DistanceTable};
use super::tool::Tool;
use crate::bulk::chart::{Chart, Line, svg, text};
use crate::error::ExperimentError;
use crate::plot::{Area, COLOURS, Drawn, GREY};

/// Widths of the picture and of its bars, heights of the heading, of the text above a link, of a bar
/// with its gap, and of the lowest chart, in pixels.
const WIDTH: u32 = 1180;
const BARS: u32 = 500;
const HEADING: u32 = 64;
const TITLE: u32 = 36;
const ROW: i32 = 24;
const LOWEST: u32 = 300;
/// Right edge of names, and begin and length of bars.
const NAME: i32 = 110;
const BAR: (i32, i32) = (118, 290);
/// Half the height of a bar.
const HALF: i32 = 8;

/// Draws the figure; returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if it cannot be drawn.
pub fn draw(table: &DistanceTable) -> Result<String, ExperimentError> {
    let links = || table.rows.chunk_by(|a, b| a.loss_percent == b.loss_percent);
    let height = |rows: &[DistanceRow]| LOWEST.max((ROW as u32) * (rows.len() as u32 + 1));
    let all: u32 = links().map(|rows| TITLE + height(rows)).sum();
    svg((WIDTH, HEADING + all), |area| {
        let (heading, mut rest) = area.split_vertically(HEADING);
        text(
            &heading,
            (20, 18),
            (18, BLACK),
            HPos::Left,
            table.experiment,
        )?;
        text(&heading, (20, 44), (12, GREY), HPos::Left, &about(table))?;
        for rows in links() {
            let (title, below) = rest.split_vertically(TITLE);
            let (place, below) = below.split_vertically(height(rows));
            let loss = format!("{} % loss", rows[0].loss_percent);
            text(&title, (20, 20), (15, BLACK), HPos::Left, &loss)?;
            let (left, right) = place.split_horizontally(BARS);
            draw_bars(rows, &left)?;
            chart(rows, table.step_seconds).draw(&right)?;
            rest = below;
        }
        Ok(())
    })
}

fn about(table: &DistanceTable) -> String {
    let runs = match table.repeat {
        1 => "the only run".to_owned(),
        runs => format!("medians of {runs} runs, line: smallest to largest"),
    };
    let DistanceTable {
        about,
        settled_seconds,
        ..
    } = table;
    format!(
        "{about}. Left: goodput in Mbit/s after {settled_seconds} s, {runs}, dashed: the ceiling. Right: over time"
    )
}

/// Colour of a tool: one for each kind, paler for fewer flows.
fn colour(tool: Tool) -> RGBAColor {
    match tool {
        Tool::Bulk => COLOURS[0].mix(1.0),
        Tool::Quic => COLOURS[5].mix(1.0),
        Tool::Rsync => COLOURS[6].mix(1.0),
        Tool::Tcp { algorithm, flows } => {
            let colour = match algorithm {
                "cubic" => COLOURS[1],
                "bbr" => COLOURS[2],
                _ => COLOURS[3],
            };
            colour.mix(match flows {
                0..=1 => 0.4,
                2..=4 => 0.7,
                _ => 1.0,
            })
        }
    }
}

fn draw_bars(rows: &[DistanceRow], area: &Area<'_>) -> Drawn {
    let values = rows.iter().flat_map(|row| row.runs_mbit.iter().copied());
    let ceilings = rows.iter().filter_map(|row| row.ceiling_mbit);
    let scale = f64::from(BAR.1) / values.chain(ceilings).fold(1.0, f64::max);
    let x = |mbit: f64| BAR.0 + (mbit * scale) as i32;
    for (index, row) in rows.iter().enumerate() {
        let y = ROW * (index as i32 + 1) - ROW / 2;
        text(
            area,
            (NAME, y),
            (13, BLACK),
            HPos::Right,
            &row.tool.to_string(),
        )?;
        let (Some(mbit), Some(ceiling)) = (row.mbit, row.ceiling_mbit) else {
            let why = row.failure.as_deref().unwrap_or("not measured");
            let why = format!("left out: {why}");
            text(area, (BAR.0, y), (12, GREY), HPos::Left, &why)?;
            continue;
        };
        let corners = [(BAR.0, y - HALF), (x(mbit), y + HALF)];
        area.draw(&Rectangle::new(corners, colour(row.tool).filled()))?;
        let smallest = row.runs_mbit.iter().copied().fold(mbit, f64::min);
        let largest = row.runs_mbit.iter().copied().fold(mbit, f64::max);
        let ends = [(x(smallest), y), (x(largest), y)];
        area.draw(&PathElement::new(ends, BLACK.stroke_width(1)))?;
        for part in [(-HALF - 2, -HALF / 2), (-2, 2), (HALF / 2, HALF + 2)] {
            let ends = [(x(ceiling), y + part.0), (x(ceiling), y + part.1)];
            area.draw(&PathElement::new(ends, GREY.stroke_width(1)))?;
        }
        let beside = x(largest.max(ceiling)) + 6;
        text(
            area,
            (beside, y),
            (12, BLACK),
            HPos::Left,
            &format!("{mbit:.0}"),
        )?;
    }
    Ok(())
}

fn chart(rows: &[DistanceRow], step: f64) -> Chart<'_> {
    let lines = rows
        .iter()
        .filter(|row| row.mbit.is_some())
        .map(|row| Line {
            name: "",
            style: colour(row.tool).stroke_width(if row.tool == Tool::Bulk { 3 } else { 2 }),
            step,
            mbit: &row.over_time_mbit,
        });
    let ours = rows.iter().find(|row| row.tool == Tool::Bulk);
    Chart {
        lines: lines.collect(),
        ceiling: ours.and_then(|row| row.ceiling_mbit),
        window: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::distance::table::{Measured, STEP};
    use crate::samples::Samples;

    #[test]
    fn every_link_and_tool_is_drawn() {
        let samples = Samples(vec![(0.0, 0.0), (20.0, 2e9)]);
        let runs = [Measured::new(&samples, (5.0, 20.0), 890.0).unwrap()];
        let missing = Some("the kernel has no congestion control htcp".to_owned());
        let rows = [0.0, 0.01].into_iter().flat_map(|loss| {
            Tool::ALL.map(|tool| match tool {
                Tool::Tcp {
                    algorithm: "htcp", ..
                } => DistanceRow::new(loss, tool, &[], missing.clone()),
                tool => DistanceRow::new(loss, tool, &runs, None),
            })
        });
        let table = DistanceTable {
            experiment: "bulk-distance",
            about: "003".into(),
            rate_mbit: 1000.0,
            paper_rate_mbit: 10_000.0,
            round_trip_ms: 194.0,
            seconds: 20.0,
            settled_seconds: 5.0,
            step_seconds: STEP,
            repeat: 1,
            rows: rows.collect(),
        };
        let text = draw(&table).unwrap();
        for name in Tool::ALL.map(|tool| tool.to_string()) {
            assert_eq!(
                text.matches(&format!("\n{name}\n")).count(),
                2,
                "{name} in {text}"
            );
        }
        for part in ["0.01 % loss", "no congestion control htcp", "800"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
