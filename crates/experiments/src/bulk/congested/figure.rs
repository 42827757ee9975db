//! The figure, in the shape of 003, Fig. 1: goodput over time of the total and
//! of each path, a chart for each case.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::case::Case;
use super::facts::Phases;
use super::recorded::{OverTime, Recorded};
use crate::bulk::chart::{Chart, Line};
use crate::error::ExperimentError;
use crate::plot::{Area, COLOURS, Drawn, GREY, svg, text};
use crate::shape::{Experiment, Results, Series};

type Row = Series<Case, Recorded>;

/// Width of the picture and height of its heading, of a chart, and of the text above it, in pixels.
const WIDTH: u32 = 960;
const HEADING: u32 = 80;
const CHART: u32 = 300;
const TITLE: u32 = 34;
/// Begin of texts, and width of an entry of the legend, in pixels.
const LEFT: i32 = 70;
const ENTRY: i32 = 205;

/// Draws the figure of what `about` says; returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if it cannot be drawn.
pub fn draw(
    about: &str,
    phases: Phases,
    results: &Results<impl Experiment<Case = Case, Run = Recorded>>,
) -> Result<String, ExperimentError> {
    let rows: Vec<&Row> = results.places.iter().flat_map(|(_, rows)| rows).collect();
    let height = HEADING + rows.len() as u32 * (TITLE + CHART);
    svg((WIDTH, height), |area| {
        let (heading, mut rest) = area.split_vertically(HEADING);
        let left = HPos::Left;
        text(&heading, (LEFT, 18), (18, BLACK), left, "bulk-congested")?;
        text(&heading, (LEFT, 42), (12, GREY), left, about)?;
        if let Some(row) = rows.first() {
            let over = OverTime::of(&row.runs, phases.end);
            chart(row, &over, phases).legend(&heading, (LEFT, 66), ENTRY)?;
        }
        for row in rows {
            let (title, below) = rest.split_vertically(TITLE);
            let (place, below) = below.split_vertically(CHART);
            draw_row(row, phases, (&title, &place))?;
            rest = below;
        }
        Ok(())
    })
}

fn draw_row(row: &Row, phases: Phases, at: (&Area<'_>, &Area<'_>)) -> Drawn {
    let (title, place) = at;
    let name = row.case.to_string();
    text(title, (LEFT, 20), (15, BLACK), HPos::Left, &name)?;
    let runs = match (row.runs.len(), row.median(|run| run.ceiling)) {
        (0, _) | (_, None) => row.missing().unwrap_or_default().to_owned(),
        (1, Some(ceiling)) => format!("the only run; dashed: the ceiling, {ceiling:.0} Mbit/s"),
        (runs, Some(ceiling)) => {
            format!("means of {runs} runs; dashed: the ceiling, {ceiling:.0} Mbit/s")
        }
    };
    text(title, (LEFT + 180, 20), (12, GREY), HPos::Left, &runs)?;
    match row.runs.is_empty() {
        true => Ok(()),
        false => chart(row, &OverTime::of(&row.runs, phases.end), phases).draw(place),
    }
}

fn chart<'a>(row: &Row, over: &'a OverTime, phases: Phases) -> Chart<'a> {
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
        ceiling: row.median(|run| run.ceiling),
        window: Some((phases.from, phases.to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::congested::Congested;
    use crate::samples::Samples;
    use crate::shape::Choice;

    #[test]
    fn every_case_is_drawn() {
        let phases = Phases::of(45.0);
        let run = Recorded {
            clear: Samples(vec![(0.0, 0.0), (45.0, 4.5e8)]),
            congested: Samples(vec![(0.0, 0.0), (45.0, 1e8)]),
            load: Samples::default(),
            ceiling: 100.0,
        };
        let measured = Series {
            case: Case::ALL[0],
            runs: vec![run],
            failure: None,
        };
        let missing = Series {
            case: Case::ALL[1],
            runs: Vec::new(),
            failure: Some("install the program iperf3".to_owned()),
        };
        let places = vec![((), vec![measured, missing])];
        let results = Results::<Congested> { places };
        let text = draw("003", phases, &results).unwrap();
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
