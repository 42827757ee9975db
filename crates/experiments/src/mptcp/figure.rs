//! The figure: goodput by the number of paths, as on slide 46 of 002 with the values
//! of slide 47, and the time in which connections are set up.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::carrier::MptcpCarrier;
use super::case::Connection;
use super::rows::MptcpRow;
use super::set_up::SetUpRow;
use crate::error::ExperimentError;
use crate::plot::{
    Area, CEILING, COLOURS, Drawn, GREY, PAPER, Plane, bar, dashed_sign, deviation, range, sign,
    svg, text,
};
use crate::shape::Choice;

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
/// Space above the largest value, as a factor.
const ROOM: f64 = 1.08;

/// Draws the figure of what `about` says, of that many runs; returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if it cannot be drawn.
pub(super) fn draw(
    (about, repeat): (&str, u16),
    all: &[MptcpRow<'_>],
    connections: &[SetUpRow],
) -> Result<String, ExperimentError> {
    svg(SIZE, |area| {
        let (heading, rest) = area.split_vertically(HEADING);
        let (above, below) = rest.split_vertically(SIZE.1 - HEADING - BELOW);
        let (left, right) = above.split_horizontally(CHART);
        text(&heading, (66, 18), (18, BLACK), HPos::Left, "mptcp")?;
        text(&heading, (66, 42), (12, GREY), HPos::Left, about)?;
        chart(all, &left)?;
        legend(all, repeat, &right)?;
        set_up(connections, &below)
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
fn rows<'a, 'b>(
    all: &'a [MptcpRow<'b>],
    carrier: MptcpCarrier,
) -> impl Iterator<Item = &'a MptcpRow<'b>> + Clone {
    let rows = all.iter();
    rows.filter(move |row| row.runs.case.carrier == carrier && row.mean().is_some())
}

/// The carriers that were measured.
fn measured(all: &[MptcpRow<'_>]) -> impl Iterator<Item = MptcpCarrier> {
    let carriers = MptcpCarrier::ALL.iter().copied();
    carriers.filter(|carrier| rows(all, *carrier).next().is_some())
}

/// The paper's goodput and its deviation, in Mbit/s.
fn paper(row: &MptcpRow<'_>) -> Option<(f64, f64)> {
    let paper = row.runs.case.carrier.paper(row.runs.case.paths)?;
    Some(paper[0])
}

/// Numbers of paths, with a value for each.
type Points = Vec<(f64, f64)>;

fn points(
    all: &[MptcpRow<'_>],
    carrier: MptcpCarrier,
    of: impl Fn(&MptcpRow<'_>) -> Option<f64>,
) -> Points {
    let rows = rows(all, carrier);
    rows.filter_map(|row| Some((f64::from(row.runs.case.paths), of(row)?)))
        .collect()
}

fn chart(all: &[MptcpRow<'_>], area: &Area<'_>) -> Drawn {
    let values = all.iter().flat_map(|row| {
        let paper = paper(row).map(|(mean, deviation)| mean + deviation);
        let most = Some(row.mean()? + row.deviation()?);
        Some([most, row.ceiling(), paper])
    });
    let top = values.flatten().flatten().fold(1.0, f64::max) * ROOM;
    let paths = all.iter().map(|row| row.runs.case.paths).max().unwrap_or(1);
    let plane = Plane {
        x: (
            f64::from(paths) + 0.5,
            "number of paths",
            usize::from(paths) + 1,
        ),
        y: (top, "goodput (Mbit/s)", 7),
        window: None,
    };
    let mut chart = plane.draw(area)?;
    for carrier in measured(all) {
        let colour = colour(carrier);
        let ceilings = points(all, carrier, |row| row.ceiling());
        let style = GREY.stroke_width(1);
        chart.draw_series(DashedLineSeries::new(ceilings, CEILING.0, CEILING.1, style))?;
        let papers = points(all, carrier, |row| Some(paper(row)?.0));
        let style = colour.stroke_width(2);
        chart.draw_series(DashedLineSeries::new(
            papers.clone(),
            PAPER.0,
            PAPER.1,
            style,
        ))?;
        let circle = |at| Circle::new(at, 4, colour.stroke_width(1));
        chart.draw_series(papers.into_iter().map(circle))?;
        let means = points(all, carrier, |row| row.mean());
        chart.draw_series(LineSeries::new(means.clone(), colour.stroke_width(2)))?;
        chart.draw_series(
            means
                .into_iter()
                .map(|at| Circle::new(at, 3, colour.filled())),
        )?;
        for row in rows(all, carrier) {
            if let (Some(mean), Some(by)) = (row.mean(), row.deviation()) {
                let at = f64::from(row.runs.case.paths);
                deviation(&mut chart, (at, mean), by, colour)?;
            }
        }
    }
    Ok(())
}

fn legend(all: &[MptcpRow<'_>], repeat: u16, area: &Area<'_>) -> Drawn {
    let mut y = ROW;
    for carrier in measured(all) {
        sign(area, y, colour(carrier).stroke_width(2))?;
        text(area, (TEXT, y), (13, BLACK), HPos::Left, carrier.about())?;
        y += ROW;
        let ratio = |row: &MptcpRow<'_>| row.by_quic(row.runs.case.paths);
        let ratios = rows(all, carrier).filter_map(|row| Some((row.runs.case.paths, ratio(row)?)));
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
    let runs = match repeat {
        1 => "the only run".to_owned(),
        runs => format!("means of {runs} runs, bars: deviation"),
    };
    y += ROW / 2;
    dashed_sign(area, y, CEILING, GREY.stroke_width(1))?;
    let left = |y, name: &str| text(area, (TEXT, y), (12, GREY), HPos::Left, name);
    left(y, "what headers leave")?;
    dashed_sign(area, y + ROW, PAPER, BLACK.stroke_width(2))?;
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
        bar(area, y, (BAR.0, x(row.ms)), colour(row.carrier).filled())?;
        range(area, y, (x(row.least_ms), x(row.most_ms)))?;
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
    use crate::mptcp::rows::Runs;
    use crate::mptcp::set_up;
    use crate::mptcp::testing::series;
    use crate::plot::check::{assert_palette, assert_texts_fit};

    const ABOUT: &str =
        "002, Performance evaluation: in SCIONLab there; links of 20 Mbit/s and 20 ms here";

    fn all() -> Vec<Runs> {
        let mut all = Vec::new();
        for paths in [1, 2, 4, 6, 8] {
            let mbit = f64::from(paths) * 16.5;
            for &carrier in MptcpCarrier::ALL {
                let mbit = match carrier {
                    MptcpCarrier::Quic => mbit + 1.0,
                    _ => mbit,
                };
                let goodputs: Vec<f64> =
                    (1..=10).map(|turn| mbit + f64::from(turn) / 4.0).collect();
                let mut one = series(carrier, paths, &goodputs);
                if (carrier, paths) == (MptcpCarrier::Mptcp, 6) {
                    one.runs.clear();
                    one.failure = Some("the shim used 5 of 6 paths".to_owned());
                }
                let connections: &[Connection] = match carrier {
                    MptcpCarrier::Quic => &[],
                    MptcpCarrier::Tcp => &[Connection::Later],
                    _ => &[Connection::First, Connection::Later],
                };
                for run in &mut one.runs {
                    let plain = f64::from(u8::from(carrier != MptcpCarrier::Tcp)) * 22.0;
                    let times = |&which| [(which, 30.0), (which, 40.0 + plain), (which, 250.0)];
                    run.set_up = connections.iter().flat_map(times).collect();
                }
                if carrier.takes(paths) {
                    all.push(one);
                }
            }
        }
        all
    }

    fn drawn(all: &[Runs], repeat: u16) -> String {
        let rows: Vec<_> = all.iter().map(|runs| MptcpRow { runs, all }).collect();
        let runs = all
            .iter()
            .flat_map(|one| one.runs.iter().map(|run| (one.case.carrier, run)));
        draw((ABOUT, repeat), &rows, &set_up::rows(runs)).unwrap()
    }

    #[test]
    fn everything_measured_is_drawn_and_fits() {
        let svg = drawn(&all(), 10);
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
    fn what_has_no_runs_is_drawn() {
        let mut only = series(MptcpCarrier::Mptcp, 8, &[]);
        only.failure = Some("it needs root".into());
        assert_texts_fit(&drawn(&[only], 1), SIZE);
    }
}
