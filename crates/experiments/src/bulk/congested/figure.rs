//! The figure of a [`CongestedTable`], in the shape of 003, Fig. 1: goodput over time of the total and
//! of each path, a chart for each case.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::table::{CongestedRow, CongestedTable};
use crate::bulk::chart::{Chart, Line, svg, text};
use crate::error::ExperimentError;
use crate::plot::{Area, COLOURS, Drawn, GREY};

/// Width of the picture and height of its heading, of a chart, and of the text above it, in pixels.
const WIDTH: u32 = 960;
const HEADING: u32 = 80;
const CHART: u32 = 300;
const TITLE: u32 = 34;
/// Begin of texts, and width of an entry of the legend, in pixels.
const LEFT: i32 = 70;
const ENTRY: i32 = 205;

/// Draws the figure; returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if it cannot be drawn.
pub fn draw(table: &CongestedTable) -> Result<String, ExperimentError> {
    let rows = table.rows.len() as u32;
    svg((WIDTH, HEADING + rows * (TITLE + CHART)), |area| {
        let (heading, mut rest) = area.split_vertically(HEADING);
        let left = HPos::Left;
        text(&heading, (LEFT, 18), (18, BLACK), left, table.experiment)?;
        text(&heading, (LEFT, 42), (12, GREY), left, &table.about)?;
        if let Some(row) = table.rows.first() {
            chart(row, table).legend(&heading, (LEFT, 66), ENTRY)?;
        }
        for row in &table.rows {
            let (title, below) = rest.split_vertically(TITLE);
            let (place, below) = below.split_vertically(CHART);
            draw_row(row, table, (&title, &place))?;
            rest = below;
        }
        Ok(())
    })
}

fn draw_row(row: &CongestedRow, table: &CongestedTable, at: (&Area<'_>, &Area<'_>)) -> Drawn {
    let (title, place) = at;
    let name = row.variant.to_string();
    text(title, (LEFT, 20), (15, BLACK), HPos::Left, &name)?;
    let runs = match (row.runs.len(), row.ceiling_mbit) {
        (0, _) | (_, None) => row.failure.clone().unwrap_or_default(),
        (1, Some(ceiling)) => format!("the only run; dashed: the ceiling, {ceiling:.0} Mbit/s"),
        (runs, Some(ceiling)) => {
            format!("means of {runs} runs; dashed: the ceiling, {ceiling:.0} Mbit/s")
        }
    };
    text(title, (LEFT + 180, 20), (12, GREY), HPos::Left, &runs)?;
    match row.runs.is_empty() {
        true => Ok(()),
        false => chart(row, table).draw(place),
    }
}

fn chart<'a>(row: &'a CongestedRow, table: &CongestedTable) -> Chart<'a> {
    let over = &row.over_time;
    let line = |name, mbit, style| Line {
        name,
        style,
        step: over.step_seconds,
        mbit,
    };
    Chart {
        lines: vec![
            line("total", &over.total_mbit[..], COLOURS[0].stroke_width(3)),
            line(
                "path without congestion",
                &over.clear_mbit,
                COLOURS[2].stroke_width(2),
            ),
            line(
                "congested path",
                &over.congested_mbit,
                COLOURS[1].stroke_width(2),
            ),
            line("what congests it", &over.load_mbit, GREY.stroke_width(1)),
        ],
        ceiling: row.ceiling_mbit,
        window: Some((table.phases.from, table.phases.to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::congested::case::Case;
    use crate::bulk::congested::facts::Phases;
    use crate::bulk::congested::table::Recorded;
    use crate::samples::Samples;

    #[test]
    fn every_case_is_drawn() {
        let phases = Phases::of(45.0);
        let run = Recorded {
            clear: Samples(vec![(0.0, 0.0), (45.0, 4.5e8)]),
            congested: Samples(vec![(0.0, 0.0), (45.0, 1e8)]),
            load: Samples::default(),
            ceiling: 100.0,
        };
        let missing = Some("install the program iperf3".to_owned());
        let table = CongestedTable {
            experiment: "bulk-congested",
            about: "003".into(),
            rate_mbit: 125.0,
            paper_rate_mbit: 10_000.0,
            phases,
            repeat: 1,
            rows: vec![
                CongestedRow::new(Case::ALL[0], &[run], phases, None),
                CongestedRow::new(Case::ALL[1], &[], phases, missing),
            ],
        };
        let text = draw(&table).unwrap();
        let names = [
            "hawser-beside-udp",
            "tcp-beside-udp",
            "iperf3",
            "100 Mbit/s",
            "total",
        ];
        for name in names {
            assert!(text.contains(name), "{name} is not in {text}");
        }
    }
}
