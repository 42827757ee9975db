//! Figures in the shape of those of 004, chapter 6: means and samples at zero by the size of datagrams
//! or by the rate that is offered, and errors of the limits.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::names::{IpVersion, LimitTool, Part, Way};
use super::run::LimitBench;
use super::table::{LimitTable, PointRow};
use crate::bulk::chart::{svg, text};
use crate::error::ExperimentError;
use crate::plot::{Area, COLOURS, Drawn, GREY, PALE};

const SIZE: (u32, u32) = (900, 480);
const CHART: u32 = 700;
const HEADING: u32 = 60;
const ROW: i32 = 22;
const TEXT: i32 = 36;
/// Length of a dash, and of the gap after it, in pixels.
const DASH: (i32, i32) = (8, 5);
/// Half the width of the ends of a deviation, in pixels.
const END: i32 = 4;
/// Space above the largest value, as a factor.
const ROOM: f64 = 1.1;

/// What is drawn of each series of points, as the names of files say it.
const KINDS: [&str; 3] = ["goodput", "frames", "zeros"];

/// A figure as an SVG document.
#[derive(Debug)]
pub struct LimitFigure {
    /// The name of its file, without a folder.
    pub file: String,
    /// The document.
    pub svg: String,
}

/// The line of a tool in a direction: place, value and deviation of each point.
struct Line {
    tool: LimitTool,
    direction: Way,
    points: Vec<(f64, f64, f64)>,
}

struct Chart<'a> {
    title: String,
    about: &'a str,
    x: &'a str,
    y: &'a str,
    /// A value that is marked: the limit.
    level: Option<f64>,
    lines: Vec<Line>,
}

/// Draws all figures for which something was measured.
///
/// # Errors
/// [`ExperimentError::Step`] if one cannot be drawn.
pub fn figures(table: &LimitTable) -> Result<Vec<LimitFigure>, ExperimentError> {
    let mut figures = Vec::new();
    for &ip in IpVersion::ALL {
        let by_size = |row: &&PointRow| row.ip == ip;
        let rows: Vec<_> = table.size.iter().filter(by_size).collect();
        let size = |row: &PointRow| row.datagram as f64;
        let about = "004, Figures 6.1 and 6.2: limit 500 kbit/s, 2 Mbit/s offered";
        let x = "size of datagrams (bytes)";
        add(&mut figures, &rows, ("size", ip, about), x, size)?;
        let offered = |row: &PointRow| row.offered_kbit;
        let x = "offered rate (kbit/s)";
        let large = |row: &&PointRow| row.ip == ip && row.datagram != ip.full_datagram();
        let rows: Vec<_> = table.rate.iter().filter(large).collect();
        let about = "004, Figures 6.6 and 6.7: limit 500 kbit/s, datagrams of 10000 bytes";
        add(&mut figures, &rows, ("rate-10000", ip, about), x, offered)?;
        let full = |row: &&PointRow| row.ip == ip && row.datagram == ip.full_datagram();
        let rows: Vec<_> = table.rate.iter().filter(full).collect();
        let about = "004, Figure 6.8: limit 500 kbit/s, datagrams that fill the MTU of 1500 bytes";
        add(&mut figures, &rows, ("rate-mtu", ip, about), x, offered)?;
    }
    Ok(figures)
}

impl LimitBench {
    /// The names of the files of its figures.
    pub fn figure_names(&self) -> Vec<String> {
        let kinds = [
            (Part::Size, "size"),
            (Part::Rate, "rate-10000"),
            (Part::Rate, "rate-mtu"),
        ];
        let kinds = kinds
            .into_iter()
            .filter(|(part, _)| self.parts.contains(part));
        let each = kinds.flat_map(|(_, name)| self.ip.iter().map(move |ip| (name, *ip)));
        each.flat_map(|(name, ip)| KINDS.map(|kind| file_name(name, kind, ip)))
            .collect()
    }
}

fn file_name(name: &str, kind: &str, ip: IpVersion) -> String {
    format!("{name}-{kind}-ipv{ip}.svg")
}

/// Adds the figures of goodput, frames and samples at zero.
fn add(
    figures: &mut Vec<LimitFigure>,
    rows: &[&PointRow],
    (name, ip, about): (&str, IpVersion, &str),
    x: &str,
    place: fn(&PointRow) -> f64,
) -> Result<(), ExperimentError> {
    type Value = fn(&PointRow) -> (f64, f64);
    let limit = LimitBench::LIMIT as f64 / 1e3;
    let kinds: [(&str, &str, Option<f64>, Value); 3] = [
        ("Bandwidth", "goodput (kbit/s)", Some(limit), |row| {
            (row.mean_kbit, row.deviation_kbit)
        }),
        ("Frames that pass", "frames (kbit/s)", Some(limit), |row| {
            (row.frames_kbit, 0.0)
        }),
        (
            "Samples without a datagram",
            "samples at zero (%)",
            None,
            |row| {
                let samples = row.samples_kbit.len().max(1) as f64;
                (100.0 * row.zeros as f64 / samples, 0.0)
            },
        ),
    ];
    if rows.is_empty() {
        return Ok(());
    }
    for (kind, (title, y, level, value)) in KINDS.into_iter().zip(kinds) {
        let chart = Chart {
            title: format!("{title}, IPv{ip}"),
            about,
            x,
            y,
            level,
            lines: lines(rows, place, value),
        };
        figures.push(LimitFigure {
            file: file_name(name, kind, ip),
            svg: chart.svg()?,
        });
    }
    Ok(())
}

fn lines(
    rows: &[&PointRow],
    place: fn(&PointRow) -> f64,
    value: fn(&PointRow) -> (f64, f64),
) -> Vec<Line> {
    let each = Way::ALL
        .iter()
        .flat_map(|way| LimitTool::ALL.iter().map(|tool| (*way, *tool)));
    let line = |(direction, tool): (Way, LimitTool)| {
        let own = rows
            .iter()
            .filter(|row| (row.direction, row.tool) == (direction, tool));
        let point = |row: &&PointRow| {
            let (value, deviation) = value(row);
            (place(row), value, deviation)
        };
        Line {
            tool,
            direction,
            points: own.map(point).collect(),
        }
    };
    each.map(line)
        .filter(|line| !line.points.is_empty())
        .collect()
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

impl Chart<'_> {
    fn svg(&self) -> Result<String, ExperimentError> {
        svg(SIZE, |area| {
            let (heading, rest) = area.split_vertically(HEADING);
            let (left, right) = rest.split_horizontally(CHART);
            text(&heading, (66, 18), (18, BLACK), HPos::Left, &self.title)?;
            text(&heading, (66, 42), (12, GREY), HPos::Left, self.about)?;
            self.draw(&left)?;
            self.legend(&right)
        })
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let right = points().map(|point| point.0).fold(1.0, f64::max);
        let tops = points().map(|point| point.1 + point.2);
        let top = tops.chain(self.level).fold(1.0, f64::max) * ROOM;
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(44)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..right * 1.03, 0.0..top)?;
        let tick = |value: &f64| ((value * 1e3).round() / 1e3).to_string();
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(PALE)
            .axis_style(GREY)
            .x_labels(11)
            .y_labels(7)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .x_desc(self.x)
            .y_desc(self.y)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .draw()?;
        if let Some(level) = self.level {
            let ends = [(0.0, level), (right * 1.03, level)];
            chart.draw_series(LineSeries::new(ends, GREY.stroke_width(1)))?;
        }
        for line in &self.lines {
            let colour = line.colour();
            let style = colour.stroke_width(2);
            let means = line.points.iter().map(|point| (point.0, point.1));
            match line.is_dashed() {
                true => {
                    chart.draw_series(DashedLineSeries::new(
                        means.clone(),
                        DASH.0,
                        DASH.1,
                        style,
                    ))?;
                }
                false => {
                    chart.draw_series(LineSeries::new(means.clone(), style))?;
                }
            }
            chart.draw_series(means.map(|at| Circle::new(at, 3, colour.filled())))?;
            for &(x, mean, deviation) in &line.points {
                if deviation == 0.0 {
                    continue;
                }
                let ends = [(mean - deviation).max(0.0), mean + deviation].map(|y| (x, y));
                chart.draw_series([PathElement::new(ends.to_vec(), colour.stroke_width(1))])?;
                chart.draw_series(ends.into_iter().map(|end| {
                    let line = PathElement::new([(-END, 0), (END, 0)], colour.stroke_width(1));
                    EmptyElement::at(end) + line
                }))?;
            }
        }
        Ok(())
    }

    fn legend(&self, area: &Area<'_>) -> Drawn {
        let mut y = ROW;
        for line in &self.lines {
            let style = line.colour().stroke_width(2);
            let (length, gap) = if line.is_dashed() { DASH } else { (24, 1) };
            for x in (4..28).step_by((length + gap) as usize) {
                let ends = [(x, y), ((x + length).min(28), y)];
                area.draw(&PathElement::new(ends, style))?;
            }
            let name = format!("{}, {}", line.direction, line.tool);
            text(area, (TEXT, y), (13, BLACK), HPos::Left, &name)?;
            y += ROW;
        }
        if self.level.is_some() {
            area.draw(&PathElement::new([(4, y), (28, y)], GREY.stroke_width(1)))?;
            text(area, (TEXT, y), (12, GREY), HPos::Left, "limit, of frames")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::check::{assert_palette, assert_texts_fit};

    #[test]
    fn figures_fit_and_keep_to_the_palette() {
        let row = |direction, tool, datagram: usize| PointRow {
            tool,
            direction,
            ip: IpVersion::V4,
            limit_kbit: 500.0,
            datagram,
            offered_kbit: 2000.0,
            samples_kbit: vec![400.0, 0.0],
            mean_kbit: 200.0,
            deviation_kbit: 200.0,
            frames_kbit: 500.0,
            zeros: 1,
            drops: 3,
        };
        let mut rows = Vec::new();
        for &way in Way::ALL {
            for &tool in LimitTool::ALL {
                rows.extend([1000, 10_000].map(|size| row(way, tool, size)));
            }
        }
        let mut rate = rows.clone();
        rate.iter_mut().for_each(|row| row.datagram = 10_000);
        let table = LimitTable {
            size: rows,
            rate,
            ..LimitTable::default()
        };
        let figures = figures(&table).unwrap();
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
        for figure in &figures {
            assert_palette(&figure.svg);
            assert_texts_fit(&figure.svg, SIZE);
            assert!(figure.svg.contains("ingress, tc-by-hand"));
        }
    }
}
