//! The figure of a [`MptcpTable`]: goodput by the number of paths, as on slide 46 of 002 with the values
//! of slide 47, and the time in which connections are set up.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::carrier::MptcpCarrier;
use super::table::{Connection, MptcpRow, MptcpTable, SetUpRow};
use crate::bulk::chart::{svg, text};
use crate::error::ExperimentError;
use crate::plot::{Area, COLOURS, Drawn, GREY, PALE};

/// Size of the picture; width of the chart, and heights of the heading and of the part below, in
/// pixels.
const SIZE: (u32, u32) = (960, 580);
const CHART: u32 = 660;
const HEADING: u32 = 60;
const BELOW: u32 = 150;
/// Height of a line of the legend, begin of its texts, and of a bar with its gap, in pixels.
const ROW: i32 = 19;
const TEXT: i32 = 36;
const BAR_ROW: i32 = 24;
/// Right edge of the names of bars, their begin, and the length of the longest.
const NAME: i32 = 226;
const BAR: (i32, i32) = (234, 524);
/// Half the height of a bar, and half the width of the ends of a deviation.
const HALF: i32 = 7;
const END: i32 = 4;
/// Length of a dash of a ceiling and of the paper's values, and of the gap after it.
const CEILING: (i32, i32) = (8, 5);
const PAPER: (i32, i32) = (2, 4);
/// Space above the largest value, as a factor.
const ROOM: f64 = 1.08;

/// Draws the figure; returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if it cannot be drawn.
pub fn draw(table: &MptcpTable) -> Result<String, ExperimentError> {
    svg(SIZE, |area| {
        let (heading, rest) = area.split_vertically(HEADING);
        let (above, below) = rest.split_vertically(SIZE.1 - HEADING - BELOW);
        let (left, right) = above.split_horizontally(CHART);
        let title = table.experiment;
        text(&heading, (66, 18), (18, BLACK), HPos::Left, title)?;
        text(&heading, (66, 42), (12, GREY), HPos::Left, &table.about)?;
        chart(table, &left)?;
        legend(table, &right)?;
        set_up(&table.set_up, &below)
    })
}

fn colour(carrier: MptcpCarrier) -> RGBColor {
    COLOURS[match carrier {
        MptcpCarrier::Mptcp => 0,
        MptcpCarrier::Quic => 1,
        MptcpCarrier::Tcp => 2,
        MptcpCarrier::Streams => 3,
    }]
}

/// The rows of a carrier that were measured, and whether there are any.
fn rows(table: &MptcpTable, carrier: MptcpCarrier) -> impl Iterator<Item = &MptcpRow> + Clone {
    let rows = table.rows.iter();
    rows.filter(move |row| row.carrier == carrier && row.mean_mbit.is_some())
}

/// The carriers that were measured.
fn measured(table: &MptcpTable) -> impl Iterator<Item = MptcpCarrier> {
    let all = MptcpCarrier::ALL.into_iter();
    all.filter(|carrier| rows(table, *carrier).next().is_some())
}

/// Numbers of paths, with a value for each.
type Points = Vec<(f64, f64)>;

fn points(table: &MptcpTable, carrier: MptcpCarrier, of: fn(&MptcpRow) -> Option<f64>) -> Points {
    let rows = rows(table, carrier);
    rows.filter_map(|row| Some((f64::from(row.paths), of(row)?)))
        .collect()
}

fn chart(table: &MptcpTable, area: &Area<'_>) -> Drawn {
    let values = table.rows.iter().flat_map(|row| {
        let paper = row.paper_mbit.map(|(mean, deviation)| mean + deviation);
        let most = Some(row.mean_mbit? + row.deviation_mbit?);
        Some([most, row.ceiling_mbit, paper])
    });
    let top = values.flatten().flatten().fold(1.0, f64::max) * ROOM;
    let paths = table.rows.iter().map(|row| row.paths).max().unwrap_or(1);
    let mut chart = ChartBuilder::on(area)
        .margin_left(8)
        .margin_right(16)
        .margin_bottom(8)
        .x_label_area_size(44)
        .y_label_area_size(66)
        .build_cartesian_2d(0.0..f64::from(paths) + 0.5, 0.0..top)?;
    let tick = |value: &f64| ((value * 1e3).round() / 1e3).to_string();
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(PALE)
        .axis_style(GREY)
        .x_labels(usize::from(paths) + 1)
        .y_labels(7)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .x_desc("number of paths")
        .y_desc("goodput (Mbit/s)")
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .draw()?;
    for carrier in measured(table) {
        let colour = colour(carrier);
        let ceilings = points(table, carrier, |row| row.ceiling_mbit);
        let style = GREY.stroke_width(1);
        chart.draw_series(DashedLineSeries::new(ceilings, CEILING.0, CEILING.1, style))?;
        let papers = points(table, carrier, |row| Some(row.paper_mbit?.0));
        let style = colour.stroke_width(2);
        chart.draw_series(DashedLineSeries::new(
            papers.clone(),
            PAPER.0,
            PAPER.1,
            style,
        ))?;
        let circle = |at| Circle::new(at, 4, colour.stroke_width(1));
        chart.draw_series(papers.into_iter().map(circle))?;
        let means = points(table, carrier, |row| row.mean_mbit);
        chart.draw_series(LineSeries::new(means.clone(), colour.stroke_width(2)))?;
        chart.draw_series(
            means
                .into_iter()
                .map(|at| Circle::new(at, 3, colour.filled())),
        )?;
        for row in rows(table, carrier) {
            let (mean, deviation) = (row.mean_mbit.unwrap_or(0.0), row.deviation_mbit);
            let deviation = deviation.unwrap_or(0.0);
            let at = f64::from(row.paths);
            let ends = [mean - deviation, mean + deviation].map(|value| (at, value));
            chart.draw_series([PathElement::new(ends.to_vec(), colour.stroke_width(1))])?;
            chart.draw_series(ends.into_iter().map(|end| {
                let line = PathElement::new([(-END, 0), (END, 0)], colour.stroke_width(1));
                EmptyElement::at(end) + line
            }))?;
        }
    }
    Ok(())
}

fn legend(table: &MptcpTable, area: &Area<'_>) -> Drawn {
    let mut y = ROW;
    let line = |y: i32, style: ShapeStyle, name: &str| -> Drawn {
        area.draw(&PathElement::new([(4, y), (28, y)], style))?;
        text(area, (TEXT, y), (13, BLACK), HPos::Left, name)
    };
    for carrier in measured(table) {
        line(y, colour(carrier).stroke_width(2), carrier.about())?;
        y += ROW;
        let ratios = rows(table, carrier).filter_map(|row| Some((row.paths, row.by_quic?)));
        if carrier != MptcpCarrier::Quic {
            for (paths, ratio) in ratios {
                let over = match paths {
                    1 => "over one path".to_owned(),
                    paths => format!("over the same {paths}"),
                };
                let by = format!("{ratio:.2} of QUIC {over}");
                text(area, (TEXT, y), (12, GREY), HPos::Left, &by)?;
                y += ROW - 3;
            }
        }
    }
    let runs = match table.repeat {
        1 => "the only run".to_owned(),
        runs => format!("means of {runs} runs, bars: deviation"),
    };
    let dashed = |y: i32, (dash, gap): (i32, i32), style: ShapeStyle| -> Drawn {
        for x in (4..28).step_by((dash + gap) as usize) {
            area.draw(&PathElement::new([(x, y), (x + dash, y)], style))?;
        }
        Ok(())
    };
    y += ROW / 2;
    dashed(y, CEILING, GREY.stroke_width(1))?;
    let left = |y, name: &str| text(area, (TEXT, y), (12, GREY), HPos::Left, name);
    left(y, "what headers leave")?;
    dashed(y + ROW, PAPER, BLACK.stroke_width(2))?;
    left(y + ROW, "002, slide 47, in SCIONLab: Shila")?;
    left(y + 2 * ROW, "and QUIC over one path (circles)")?;
    left(y + 3 * ROW, &runs)
}

/// Draws how long connections take.
fn set_up(rows: &[SetUpRow], area: &Area<'_>) -> Drawn {
    if rows.is_empty() {
        return Ok(());
    }
    let about = "set-up of a connection until the first byte of an answer: median, line: shortest to \
                 longest (ms)";
    text(area, (66, 16), (13, BLACK), HPos::Left, about)?;
    let longest = rows.iter().map(|row| row.most_ms).fold(1.0, f64::max);
    let x = |ms: f64| BAR.0 + (f64::from(BAR.1) * ms / longest) as i32;
    for (row, y) in rows.iter().zip((40..).step_by(BAR_ROW as usize)) {
        let which = match (row.carrier, row.connection) {
            (MptcpCarrier::Tcp, _) => "",
            (_, Connection::First) => ", first",
            (_, Connection::Later) => ", later",
        };
        let name = format!("{}{which}", row.carrier.about());
        text(area, (NAME, y), (12, BLACK), HPos::Right, &name)?;
        let corners = [(BAR.0, y - HALF), (x(row.ms), y + HALF)];
        area.draw(&Rectangle::new(corners, colour(row.carrier).filled()))?;
        let ends = [(x(row.least_ms), y), (x(row.most_ms), y)];
        area.draw(&PathElement::new(ends, BLACK.stroke_width(1)))?;
        let value = match row.more_ms {
            Some(more) => format!("{:.1}, {more:+.1} to plain TCP", row.ms),
            None => format!("{:.1}", row.ms),
        };
        text(
            area,
            (x(row.most_ms) + 8, y),
            (12, BLACK),
            HPos::Left,
            &value,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::table::Measured;
    use crate::plot::check::{assert_palette, assert_texts_fit};

    fn table() -> MptcpTable {
        let runs = |mbit: f64| -> Vec<Measured> {
            let run = |turn: u16| Measured {
                turn,
                goodput: mbit + f64::from(turn) / 4.0,
                throughput: mbit * 1.2,
                ceiling: mbit * 1.04,
            };
            (1..=10).map(run).collect()
        };
        let rows = [1, 2, 4, 6, 8].into_iter().flat_map(|paths| {
            let carriers = MptcpCarrier::ALL.into_iter();
            let mbit = f64::from(paths) * 16.5;
            carriers
                .filter(move |carrier| carrier.takes(paths))
                .map(move |carrier| match (carrier, paths) {
                    (MptcpCarrier::Mptcp, 6) => {
                        let why = Some("the shim used 5 of 6 paths".to_owned());
                        MptcpRow::new((carrier, paths), &[], [&[], &[]], why)
                    }
                    _ => {
                        let quic = runs(mbit + 1.0);
                        MptcpRow::new((carrier, paths), &runs(mbit), [&quic, &quic], None)
                    }
                })
        });
        let set_up = |carrier, connection, plain| {
            SetUpRow::new((carrier, connection), vec![41.0, 62.0, 250.0], plain)
        };
        MptcpTable {
            experiment: "mptcp",
            about:
                "002, Performance evaluation: in SCIONLab there; links of 20 Mbit/s and 20 ms here"
                    .to_owned(),
            rate_mbit: 20.0,
            round_trip_ms: 20.0,
            seconds: 30.0,
            repeat: 10,
            rows: rows.collect(),
            headers: Vec::new(),
            set_up: vec![
                set_up(MptcpCarrier::Mptcp, Connection::First, Some(40.0)),
                set_up(MptcpCarrier::Mptcp, Connection::Later, Some(40.0)),
                set_up(MptcpCarrier::Streams, Connection::First, Some(40.0)),
                set_up(MptcpCarrier::Streams, Connection::Later, Some(40.0)),
                set_up(MptcpCarrier::Tcp, Connection::Later, None),
            ],
        }
    }

    #[test]
    fn everything_measured_is_drawn_and_fits() {
        let svg = draw(&table()).unwrap();
        assert_texts_fit(&svg, SIZE);
        assert_palette(&svg);
        for carrier in MptcpCarrier::ALL {
            assert!(svg.contains(carrier.about()), "{carrier}");
        }
        // The paper's three values, and four, five, five and one of ours.
        assert_eq!(svg.matches("<circle").count(), 3 + 4 + 5 + 5 + 1);
        assert!(
            svg.contains("0.95 of QUIC over one path") && svg.contains("+22.0 to plain TCP"),
            "{svg}"
        );
    }

    #[test]
    fn a_table_without_runs_is_drawn() {
        let mut table = table();
        table.set_up.clear();
        table.rows = vec![MptcpRow::new(
            (MptcpCarrier::Mptcp, 8),
            &[],
            [&[], &[]],
            Some("it needs root".into()),
        )];
        assert_texts_fit(&draw(&table).unwrap(), SIZE);
    }
}
