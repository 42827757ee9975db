//! The figure: for each link, goodput by tool (003, Fig. 2) and over time
//! (Fig. 3).

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::measured::{Measured, STEP, over_time};
use super::tool::Tool;
use crate::bulk::chart::{Chart, Line};
use crate::error::ExperimentError;
use crate::numbers::extremes;
use crate::plot::{Area, COLOURS, Drawn, GREY, HALF_BAR, bar, range, svg, text};
use crate::shape::{Experiment, Results, Series};

type Row = Series<Tool, Measured>;

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

/// Draws the figure of what `about` says, of goodput after a number of seconds, and of that many runs;
/// returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if it cannot be drawn.
pub fn draw(
    (about, settled, repeat): (String, f64, u16),
    results: &Results<impl Experiment<Place = f64, Case = Tool, Run = Measured>>,
) -> Result<String, ExperimentError> {
    let height = |rows: &[Row]| LOWEST.max((ROW as u32) * (rows.len() as u32 + 1));
    let links = results.places.iter();
    let all: u32 = links.map(|(_, rows)| TITLE + height(rows)).sum();
    let runs = match repeat {
        1 => "the only run".to_owned(),
        runs => format!("medians of {runs} runs, line: smallest to largest"),
    };
    let about = format!(
        "{about}. Left: goodput in Mbit/s after {settled} s, {runs}, dashed: the ceiling. Right: over time"
    );
    svg((WIDTH, HEADING + all), |area| {
        let (heading, mut rest) = area.split_vertically(HEADING);
        let left = HPos::Left;
        text(&heading, (20, 18), (18, BLACK), left, "bulk-distance")?;
        text(&heading, (20, 44), (12, GREY), left, &about)?;
        for (loss, rows) in &results.places {
            let (title, below) = rest.split_vertically(TITLE);
            let (place, below) = below.split_vertically(height(rows));
            let loss = format!("{loss} % loss");
            text(&title, (20, 20), (15, BLACK), left, &loss)?;
            let (bars, over) = place.split_horizontally(BARS);
            draw_bars(rows, &bars)?;
            draw_over_time(rows, &over)?;
            rest = below;
        }
        Ok(())
    })
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

fn draw_bars(rows: &[Row], area: &Area<'_>) -> Drawn {
    let values = rows.iter().flat_map(|row| row.values(|run| run.mbit));
    let ceilings = rows.iter().filter_map(ceiling);
    let scale = f64::from(BAR.1) / values.chain(ceilings).fold(1.0, f64::max);
    let x = |mbit: f64| BAR.0 + (mbit * scale) as i32;
    for (index, row) in rows.iter().enumerate() {
        let y = ROW * (index as i32 + 1) - ROW / 2;
        text(
            area,
            (NAME, y),
            (13, BLACK),
            HPos::Right,
            &row.case.to_string(),
        )?;
        let (Some(mbit), Some(ceiling)) = (row.median(|run| run.mbit), ceiling(row)) else {
            let why = row.missing().unwrap_or_default();
            let why = format!("left out: {why}");
            text(area, (BAR.0, y), (12, GREY), HPos::Left, &why)?;
            continue;
        };
        bar(area, y, (BAR.0, x(mbit)), colour(row.case).filled())?;
        let (smallest, largest) = extremes(&row.values(|run| run.mbit));
        range(area, y, (x(smallest), x(largest)))?;
        for part in [
            (-HALF_BAR - 2, -HALF_BAR / 2),
            (-2, 2),
            (HALF_BAR / 2, HALF_BAR + 2),
        ] {
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

/// What headers leave of the limit.
fn ceiling(row: &Row) -> Option<f64> {
    row.median(|run| run.ceiling)
}

fn draw_over_time(rows: &[Row], area: &Area<'_>) -> Drawn {
    let measured = || rows.iter().filter(|row| !row.runs.is_empty());
    let series: Vec<Vec<f64>> = measured().map(|row| over_time(&row.runs)).collect();
    let lines = measured().zip(&series).map(|(row, mbit)| Line {
        name: "",
        style: colour(row.case).stroke_width(if row.case == Tool::Bulk { 3 } else { 2 }),
        step: STEP,
        mbit,
    });
    let ours = rows.iter().find(|row| row.case == Tool::Bulk);
    let chart = Chart {
        lines: lines.collect(),
        ceiling: ours.and_then(ceiling),
        window: None,
    };
    chart.draw(area)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::distance::Distance;
    use crate::samples::Samples;
    use crate::shape::Choice;

    #[test]
    fn every_link_and_tool_is_drawn() {
        let samples = Samples(vec![(0.0, 0.0), (20.0, 2e9)]);
        let runs = [Measured::new(&samples, (5.0, 20.0), 890.0).unwrap()];
        let missing = "the kernel has no congestion control htcp".to_owned();
        let row = |case: Tool| match case {
            Tool::Tcp {
                algorithm: "htcp", ..
            } => Series {
                case,
                runs: Vec::new(),
                failure: Some(missing.clone()),
            },
            case => Series {
                case,
                runs: runs.to_vec(),
                failure: None,
            },
        };
        let rows = || Tool::ALL.iter().copied().map(row).collect();
        let results = Results::<Distance> {
            places: vec![(0.0, rows()), (0.01, rows())],
        };
        let text = draw(("003".to_owned(), 5.0, 1), &results).unwrap();
        for name in Tool::ALL.iter().map(Tool::to_string) {
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
