//! The figure: for each course, a bar of goodput and a bar of processor time for each
//! carrier.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::carrier::Carrier;
use super::course::Course;
use super::per_gigabyte::PerGigabyte;
use crate::bed::Carried;
use crate::error::ExperimentError;
use crate::plot::{self, Area, COLOURS, Drawn, GREY, range, svg};
use crate::shape::{Experiment, Results, Series};

type Row = Series<super::Carrier, Carried>;

/// Width of the picture, in pixels.
const WIDTH: u32 = 960;
/// Heights of the heading, of the name of a course, and of a bar with its gap.
const HEADING: i32 = 76;
const COURSE: i32 = 44;
const ROW: i32 = 22;
/// Begin and width of the bars of goodput and of processor time, and the right edge of names.
const GOODPUT: (i32, i32) = (130, 330);
const CPU: (i32, i32) = (580, 290);
const NAME: i32 = 122;

/// Draws the figure; returns an SVG document.
///
/// # Errors
/// [`ExperimentError::Step`] if it cannot be drawn.
pub fn draw(
    repeat: u16,
    results: &Results<impl Experiment<Place = Course, Case = Carrier, Run = Carried>>,
) -> Result<String, ExperimentError> {
    let courses = results.places.iter();
    let height = courses
        .clone()
        .map(|(_, rows)| COURSE + ROW * rows.len() as i32);
    let height = HEADING + height.sum::<i32>() + ROW;
    svg((WIDTH, height as u32), |area| {
        let largest = |of: &dyn Fn(&Row) -> Option<f64>| {
            let rows = courses.clone().flat_map(|(_, rows)| rows);
            rows.filter_map(of).fold(1e-9, f64::max)
        };
        let picture = Picture {
            area,
            goodput: largest(&|row| row.median(Carried::gbit)),
            cpu: largest(&|row| Some(PerGigabyte::of(&row.runs)?.all)),
        };
        picture.heading(repeat)?;
        let mut y = HEADING;
        for (course, rows) in courses {
            y += COURSE / 2;
            picture.text((20, y), 15, BLACK, HPos::Left, &course.to_string())?;
            y += COURSE / 2;
            for row in rows {
                picture.row(y, row)?;
                y += ROW;
            }
        }
        Ok(())
    })
}

struct Picture<'a, 'b> {
    area: &'a Area<'b>,
    /// The largest values, for the scales.
    goodput: f64,
    cpu: f64,
}

impl Picture<'_, '_> {
    fn heading(&self, repeat: u16) -> Drawn {
        self.text((20, 20), 18, BLACK, HPos::Left, "throughput")?;
        let runs = match repeat {
            1 => "the only run".to_owned(),
            runs => format!("medians of {runs} runs, line: smallest to largest"),
        };
        let goodput = format!("goodput (Gbit/s): {runs}");
        self.text((GOODPUT.0, 46), 12, GREY, HPos::Left, &goodput)?;
        self.text(
            (CPU.0, 46),
            12,
            GREY,
            HPos::Left,
            "processor time (s per GB):",
        )?;
        let parts = ["sender", "receiver", "border routers"];
        for (index, part) in parts.into_iter().enumerate() {
            let x = CPU.0 + 100 * index as i32;
            let corners = [(x, 58), (x + 10, 68)];
            self.area
                .draw(&Rectangle::new(corners, COLOURS[index].filled()))?;
            self.text((x + 16, 63), 12, GREY, HPos::Left, part)?;
        }
        Ok(())
    }

    fn row(&self, y: i32, row: &Row) -> Drawn {
        self.text((NAME, y), 13, BLACK, HPos::Right, &row.case.to_string())?;
        let figures = (row.median(Carried::gbit), PerGigabyte::of(&row.runs));
        let (Some(gbit), Some(cpu)) = figures else {
            let why = row.missing().unwrap_or_default();
            return self.text((GOODPUT.0, y), 12, GREY, HPos::Left, why);
        };
        let goodput = |value: f64| GOODPUT.0 + (f64::from(GOODPUT.1) * value / self.goodput) as i32;
        self.bar(y, GOODPUT.0, goodput(gbit), COLOURS[0])?;
        let smallest = row.values(Carried::gbit).into_iter().fold(gbit, f64::min);
        let largest = row.values(Carried::gbit).into_iter().fold(gbit, f64::max);
        range(self.area, y, (goodput(smallest), goodput(largest)))?;
        let beside = goodput(largest).max(goodput(gbit)) + 6;
        self.text((beside, y), 12, BLACK, HPos::Left, &format!("{gbit:.2}"))?;
        let scale = f64::from(CPU.1) / self.cpu;
        let parts = [cpu.sender, cpu.receiver, cpu.routers.iter().sum()];
        let mut x = f64::from(CPU.0);
        for (part, colour) in parts.into_iter().zip(COLOURS) {
            let end = x + part * scale;
            self.bar(y, x as i32, end as i32, colour)?;
            x = end;
        }
        let text = format!("{:.2}", cpu.all);
        self.text((x as i32 + 6, y), 12, BLACK, HPos::Left, &text)
    }

    fn bar(&self, y: i32, from: i32, to: i32, colour: RGBColor) -> Drawn {
        plot::bar(self.area, y, (from, to), colour.filled())
    }

    fn text(&self, at: (i32, i32), size: i32, colour: RGBColor, side: HPos, text: &str) -> Drawn {
        plot::text(self.area, at, (size, colour), side, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::Matrix;

    #[test]
    fn every_course_and_carrier_is_drawn() {
        let run = Carried {
            bytes: 1_000_000_000,
            seconds: 2.0,
            sender: 1.0,
            receiver: 1.0,
            routers: vec![0.5],
            paths: 1,
            memory: None,
        };
        let row = |case| Series {
            case,
            runs: vec![run.clone()],
            failure: None,
        };
        let [first, second, ..] = Course::TELLING;
        let missing = Series {
            case: Carrier::Tcp,
            runs: Vec::new(),
            failure: Some("iperf3 is missing".to_owned()),
        };
        let results = Results::<Matrix> {
            places: vec![
                (first, vec![row(Carrier::Quic), missing]),
                (second, vec![row(Carrier::Torrent(1))]),
            ],
        };
        let text = draw(1, &results).unwrap();
        let names = [
            first.to_string(),
            second.to_string(),
            "torrent-1".to_owned(),
        ];
        for name in names
            .iter()
            .map(String::as_str)
            .chain(["4.00", "2.50", "iperf3 is missing"])
        {
            assert!(text.contains(name), "{name} is not in {text}");
        }
    }
}
