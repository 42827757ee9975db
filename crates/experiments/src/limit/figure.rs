//! Figures in the shape of those of 004, chapter 6: means and samples at zero by the size of datagrams
//! or by the rate that is offered.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::names::{IpVersion, LimitTool, Part, Way};
use super::point::{LIMIT, Point, PointRun};
use crate::error::ExperimentError;
use crate::numbers::mean;
use crate::plot::{
    Area, CEILING, COLOURS, Drawn, GREY, Plane, dashed_sign, deviation, sign, svg, text,
};
use crate::shape::{Choice, Figure, Series};

type Row = Series<Point, PointRun>;

const SIZE: (u32, u32) = (900, 480);
const CHART: u32 = 700;
const HEADING: u32 = 60;
const ROW: i32 = 22;
const TEXT: i32 = 36;
/// Space above the largest value, as a factor.
const ROOM: f64 = 1.1;

/// A group of points that are drawn together.
struct Group {
    /// The name in those of files.
    name: &'static str,
    about: &'static str,
    /// The horizontal axis, and the place of a point on it.
    x: &'static str,
    place: fn(&Point) -> f64,
    has: fn(&Point) -> bool,
}

const SIZES: [Group; 1] = [Group {
    name: "size",
    about: "004, Figures 6.1 and 6.2: limit 500 kbit/s, 2 Mbit/s offered",
    x: "size of datagrams (bytes)",
    place: |point| point.datagram as f64,
    has: |_| true,
}];

const RATES: [Group; 2] = [
    Group {
        name: "rate-10000",
        about: "004, Figures 6.6 and 6.7: limit 500 kbit/s, datagrams of 10000 bytes",
        x: "offered rate (kbit/s)",
        place: |point| point.offered as f64 / 1e3,
        has: |point| point.datagram != point.ip.full_datagram(),
    },
    Group {
        name: "rate-mtu",
        about: "004, Figure 6.8: limit 500 kbit/s, datagrams that fill the MTU of 1500 bytes",
        x: "offered rate (kbit/s)",
        place: |point| point.offered as f64 / 1e3,
        has: |point| point.datagram == point.ip.full_datagram(),
    },
];

/// A value of the points, each with its deviation.
struct Kind {
    /// The name in those of files.
    name: &'static str,
    title: &'static str,
    y: &'static str,
    /// Whether the limit is marked.
    marks_limit: bool,
    value: fn(&PointRun) -> (f64, f64),
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "goodput",
        title: "Bandwidth",
        y: "goodput (kbit/s)",
        marks_limit: true,
        value: |run| mean(&run.samples),
    },
    Kind {
        name: "frames",
        title: "Frames that pass",
        y: "frames (kbit/s)",
        marks_limit: true,
        value: |run| (run.frames, 0.0),
    },
    Kind {
        name: "zeros",
        title: "Samples without a datagram",
        y: "samples at zero (%)",
        marks_limit: false,
        value: |run| {
            (
                100.0 * run.zeros() as f64 / run.samples.len().max(1) as f64,
                0.0,
            )
        },
    },
];

/// The line of a tool in a direction: place, value and deviation of each point.
struct Line {
    tool: LimitTool,
    direction: Way,
    points: Vec<(f64, f64, f64)>,
}

fn groups(part: Part) -> &'static [Group] {
    match part {
        Part::Size => &SIZES,
        Part::Rate => &RATES,
        Part::Accuracy | Part::Links => &[],
    }
}

/// The names of the files of the figures of a part.
pub fn file_names(part: Part, ip: IpVersion) -> impl Iterator<Item = String> {
    let groups = groups(part).iter();
    groups.flat_map(move |group| KINDS.iter().map(move |kind| file_name(group, kind, ip)))
}

fn file_name(group: &Group, kind: &Kind, ip: IpVersion) -> String {
    format!("{}-{}-ipv{ip}.svg", group.name, kind.name)
}

/// Draws all figures of a part for which something was measured.
///
/// # Errors
/// [`ExperimentError::Step`] if one cannot be drawn.
pub fn draw(part: Part, ip: IpVersion, all: &[&Row]) -> Result<Vec<Figure>, ExperimentError> {
    let mut figures = Vec::new();
    for group in groups(part) {
        let own = |row: &&&Row| row.case.ip == ip && (group.has)(&row.case);
        let rows: Vec<&Row> = all.iter().filter(own).copied().collect();
        for kind in &KINDS {
            let lines = lines(&rows, group, kind);
            if !lines.is_empty() {
                figures.push(Figure {
                    file: file_name(group, kind, ip),
                    svg: document(group, kind, ip, &lines)?,
                });
            }
        }
    }
    Ok(figures)
}

fn lines(rows: &[&Row], group: &Group, kind: &Kind) -> Vec<Line> {
    let tools = |way| LimitTool::ALL.iter().map(move |tool| (way, *tool));
    let each = Way::ALL.iter().flat_map(|way| tools(*way));
    let lines = each.map(|(direction, tool)| {
        let own = rows
            .iter()
            .filter(|row| (row.case.direction, row.case.tool) == (direction, tool));
        let points = own.filter_map(|row| {
            let (value, deviation) = (kind.value)(row.runs.first()?);
            Some(((group.place)(&row.case), value, deviation))
        });
        Line {
            tool,
            direction,
            points: points.collect(),
        }
    });
    lines.filter(|line| !line.points.is_empty()).collect()
}

impl Line {
    fn colour(&self) -> RGBColor {
        COLOURS[usize::from(self.direction == Way::Ingress)]
    }

    /// What the other tool did is dashed.
    fn is_dashed(&self) -> bool {
        self.tool == LimitTool::TcByHand
    }
}

fn document(
    group: &Group,
    kind: &Kind,
    ip: IpVersion,
    lines: &[Line],
) -> Result<String, ExperimentError> {
    svg(SIZE, |area| {
        let (heading, rest) = area.split_vertically(HEADING);
        let (left, right) = rest.split_horizontally(CHART);
        let title = format!("{}, IPv{ip}", kind.title);
        text(&heading, (66, 18), (18, BLACK), HPos::Left, &title)?;
        text(&heading, (66, 42), (12, GREY), HPos::Left, group.about)?;
        chart(group, kind, lines, &left)?;
        legend(kind, lines, &right)
    })
}

fn chart(group: &Group, kind: &Kind, lines: &[Line], area: &Area<'_>) -> Drawn {
    let limit = kind.marks_limit.then_some(LIMIT as f64 / 1e3);
    let points = || lines.iter().flat_map(|line| &line.points);
    let right = 1.03 * points().map(|point| point.0).fold(1.0, f64::max);
    let tops = points().map(|point| point.1 + point.2);
    let top = tops.chain(limit).fold(1.0, f64::max) * ROOM;
    let plane = Plane {
        x: (right, group.x, 11),
        y: (top, kind.y, 7),
        window: None,
    };
    let mut chart = plane.draw(area)?;
    if let Some(limit) = limit {
        let ends = [(0.0, limit), (right, limit)];
        chart.draw_series(LineSeries::new(ends, GREY.stroke_width(1)))?;
    }
    for line in lines {
        let colour = line.colour();
        let style = colour.stroke_width(2);
        let means = line.points.iter().map(|point| (point.0, point.1));
        if line.is_dashed() {
            let dashes = DashedLineSeries::new(means.clone(), CEILING.0, CEILING.1, style);
            chart.draw_series(dashes)?;
        } else {
            chart.draw_series(LineSeries::new(means.clone(), style))?;
        }
        chart.draw_series(means.map(|at| Circle::new(at, 3, colour.filled())))?;
        for &(x, mean, by) in line.points.iter().filter(|point| point.2 != 0.0) {
            deviation(&mut chart, (x, mean), by, colour)?;
        }
    }
    Ok(())
}

fn legend(kind: &Kind, lines: &[Line], area: &Area<'_>) -> Drawn {
    let mut y = ROW;
    for line in lines {
        let style = line.colour().stroke_width(2);
        match line.is_dashed() {
            true => dashed_sign(area, y, CEILING, style)?,
            false => sign(area, y, style)?,
        }
        let name = format!("{}, {}", line.direction, line.tool);
        text(area, (TEXT, y), (13, BLACK), HPos::Left, &name)?;
        y += ROW;
    }
    if kind.marks_limit {
        sign(area, y, GREY.stroke_width(1))?;
        text(area, (TEXT, y), (12, GREY), HPos::Left, "limit, of frames")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::check::{assert_palette, assert_texts_fit};

    #[test]
    fn figures_fit_and_keep_to_the_palette() {
        let row = |direction, tool, datagram: usize| Series {
            case: Point {
                tool,
                direction,
                ip: IpVersion::V4,
                datagram,
                offered: 2_000_000,
            },
            runs: vec![PointRun {
                samples: vec![400.0, 0.0],
                frames: 500.0,
                drops: 3,
            }],
            failure: None,
        };
        let mut rows = Vec::new();
        for &way in Way::ALL {
            for &tool in LimitTool::ALL {
                rows.extend([1000, 10_000].map(|size| row(way, tool, size)));
            }
        }
        let rows: Vec<&Row> = rows.iter().collect();
        let drawn = |part| draw(part, IpVersion::V4, &rows).unwrap();
        let figures = [drawn(Part::Size), drawn(Part::Rate)].concat();
        let names: Vec<_> = figures.iter().map(|figure| &figure.file[..]).collect();
        assert_eq!(
            names,
            [
                "size-goodput-ipv4.svg",
                "size-frames-ipv4.svg",
                "size-zeros-ipv4.svg",
                "rate-10000-goodput-ipv4.svg",
                "rate-10000-frames-ipv4.svg",
                "rate-10000-zeros-ipv4.svg",
            ]
        );
        let expected = [Part::Size, Part::Rate].map(|part| file_names(part, IpVersion::V4));
        assert_eq!(expected.into_iter().flatten().count(), 9);
        for figure in &figures {
            assert_palette(&figure.svg);
            assert_texts_fit(&figure.svg, SIZE);
            assert!(figure.svg.contains("ingress, tc-by-hand"));
        }
    }
}
