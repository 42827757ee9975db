//! Runs the parts.

use std::time::Duration;

use super::accuracy::{Case, LIMITS};
use super::bed::Bed;
use super::change::{CHANGES, measure as measure_change};
use super::links::{program, throughput};
use super::names::{IpVersion, LimitTool, Part, Traffic, Way};
use super::points::{LIMIT, OFFERED, Point};
use super::table::{
    AccuracyRow, ChangeRow, LimitTable, LinksRow, PointRow, ProgramRow, SkippedTool,
};
use super::tool::lacks;
use crate::error::{During, ExperimentError};
use crate::report::median;

/// Sizes of datagrams, in bytes (004, Figure 6.1).
const SIZES: std::ops::RangeInclusive<usize> = 1000..=10_000;
const SIZE_STEP: usize = 1000;
/// Rates that are offered, in bit/s (004, Figure 6.6).
const RATES: std::ops::RangeInclusive<u64> = 100_000..=1_000_000;
const RATE_STEP: usize = 100_000;
/// The size at which datagrams are fragmented (004, Figure 6.6).
const FRAGMENTED_SIZE: usize = 10_000;

/// What is measured.
#[derive(Debug, Clone)]
pub struct LimitBench {
    /// The parts.
    pub parts: Vec<Part>,
    /// The tools.
    pub tools: Vec<LimitTool>,
    /// The versions of IP of `size`, `rate` and `accuracy`.
    pub ip: Vec<IpVersion>,
    /// The limits of `accuracy`, in bit/s; all of the if empty.
    pub limits: Vec<u64>,
    /// Samples of each point of `size` and `rate`.
    pub samples: u16,
    /// The length of a sample.
    pub sample: Duration,
    /// The length of a window of `accuracy` and of a run of `links`.
    pub time: Duration,
    /// Runs of `accuracy` and `links`, in turn.
    pub repeat: u16,
    /// Measures every n-th point of `size` and `rate` only, the last one always.
    pub every: usize,
    /// Numbers of links of `links`, ascending.
    pub links: Vec<usize>,
}

/// What is done.
#[derive(Debug)]
#[non_exhaustive]
pub enum LimitProgress<'a> {
    /// A tool is left out.
    Skipped(&'a SkippedTool),
    /// A point of `size` or `rate`.
    Point(&'a PointRow),
    /// All runs of a case of `accuracy`.
    Accuracy(&'a AccuracyRow),
    /// A run of `links`: the number of links and the throughput in Gbit/s.
    Links(LimitTool, usize, Way, Traffic, f64),
    /// Limits were set: the number of links and the milliseconds.
    Program(LimitTool, usize, f64),
    /// What a link saw.
    Change(&'a ChangeRow),
}

type Observe<'a> = &'a mut (dyn FnMut(LimitProgress<'_>) + Send);

/// Most links with the commands of 004: a `u32` table without buckets has numbers for no more filters.
const TC_LINKS: usize = 2047;

impl LimitBench {
    /// Runs the parts. Blocks; without root the calling process moves into a user namespace, for which
    /// it must have one thread.
    ///
    /// # Errors
    /// When the namespaces cannot be made, or a step fails.
    pub fn run(&self, observe: Observe<'_>) -> Result<LimitTable, ExperimentError> {
        let bed = Bed::make()?;
        let done = bed.point.run(|| self.inside(&bed, observe));
        done.during("entering a network namespace")?
    }

    fn inside(&self, bed: &Bed, observe: Observe<'_>) -> Result<LimitTable, ExperimentError> {
        let mut table = LimitTable {
            experiment: "limit",
            about: "004, chapter 6: limits between two namespaces, offloads of the veth pair on"
                .to_owned(),
            ..LimitTable::default()
        };
        let mut tools = Vec::new();
        for &tool in &self.tools {
            match lacks(tool) {
                None => tools.push(tool),
                Some(why) => {
                    let skipped = SkippedTool { tool, why };
                    observe(LimitProgress::Skipped(&skipped));
                    table.skipped.push(skipped);
                }
            }
        }
        let has = |part| self.parts.contains(&part);
        if has(Part::Size) {
            let sizes = every(SIZES.step_by(SIZE_STEP), self.every);
            let points = sizes
                .map(|datagram| (datagram, OFFERED))
                .collect::<Vec<_>>();
            table.size = self.points(bed, &tools, |_| points.clone(), observe)?;
        }
        if has(Part::Rate) {
            let points = |ip: IpVersion| {
                let sizes = [FRAGMENTED_SIZE, ip.full_datagram()].into_iter();
                let rates = || every(RATES.step_by(RATE_STEP), self.every);
                sizes
                    .flat_map(|size| rates().map(move |rate| (size, rate)))
                    .collect()
            };
            table.rate = self.points(bed, &tools, points, observe)?;
        }
        if has(Part::Accuracy) {
            table.accuracy = self.accuracy(bed, &tools, observe)?;
        }
        if has(Part::Links) {
            self.links(bed, &tools, &mut table, observe)?;
        }
        Ok(table)
    }

    fn points(
        &self,
        bed: &Bed,
        tools: &[LimitTool],
        points: impl Fn(IpVersion) -> Vec<(usize, u64)>,
        observe: Observe<'_>,
    ) -> Result<Vec<PointRow>, ExperimentError> {
        let mut rows = Vec::new();
        for &ip in &self.ip {
            for (datagram, offered) in points(ip) {
                for &direction in Way::ALL {
                    for &tool in tools {
                        let point = Point {
                            tool,
                            direction,
                            ip,
                            datagram,
                            offered,
                        };
                        let row = point.measure(bed, self.samples, self.sample)?;
                        observe(LimitProgress::Point(&row));
                        rows.push(row);
                    }
                }
            }
        }
        Ok(rows)
    }

    fn accuracy(
        &self,
        bed: &Bed,
        tools: &[LimitTool],
        observe: Observe<'_>,
    ) -> Result<Vec<AccuracyRow>, ExperimentError> {
        let limits = match &self.limits[..] {
            [] => &LIMITS,
            limits => limits,
        };
        let mut rows = Vec::new();
        for &limit in limits {
            for &ip in &self.ip {
                for &direction in Way::ALL {
                    for traffic in Traffic::ACCURACY {
                        let name = (limit, direction, ip, traffic);
                        for row in self.case(bed, tools, name) {
                            observe(LimitProgress::Accuracy(&row));
                            rows.push(row);
                        }
                    }
                }
            }
        }
        Ok(rows)
    }

    /// The runs of all tools, in turn.
    fn case(
        &self,
        bed: &Bed,
        tools: &[LimitTool],
        (limit, direction, ip, traffic): (u64, Way, IpVersion, Traffic),
    ) -> Vec<AccuracyRow> {
        let mut runs = vec![(Vec::new(), None); tools.len()];
        for _ in 0..self.repeat {
            for (&tool, (runs, failure)) in tools.iter().zip(&mut runs) {
                if failure.is_some() {
                    continue;
                }
                let case = Case {
                    tool,
                    limit,
                    direction,
                    ip,
                    traffic,
                };
                match case.measure(bed, self.time) {
                    Ok(run) => runs.push(run),
                    Err(error) => *failure = Some(error.to_string()),
                }
            }
        }
        let rows = tools.iter().zip(runs).map(|(&tool, (runs, failure))| {
            AccuracyRow::new((tool, limit, direction, ip, traffic), &runs, failure)
        });
        rows.collect()
    }

    fn links(
        &self,
        bed: &Bed,
        tools: &[LimitTool],
        table: &mut LimitTable,
        observe: Observe<'_>,
    ) -> Result<(), ExperimentError> {
        for &tool in tools {
            let possible = |count: &&_| tool == LimitTool::Hawser || **count <= TC_LINKS;
            let numbers: Vec<_> = self.links.iter().filter(possible).copied().collect();
            let cells: Vec<_> = Way::ALL
                .iter()
                .flat_map(|way| Traffic::LINKS.map(|traffic| (*way, traffic)))
                .collect();
            // Of each number of links: the times of setting them, and the throughput of each cell.
            let mut times = vec![Vec::new(); numbers.len()];
            let mut gbit = vec![vec![Vec::new(); cells.len()]; numbers.len()];
            for _ in 0..self.repeat {
                for (number, &count) in numbers.iter().enumerate() {
                    let (set, ms) = program(tool, count)?;
                    times[number].push(ms);
                    observe(LimitProgress::Program(tool, count, ms));
                    for (cell, &(way, traffic)) in cells.iter().enumerate() {
                        let run = throughput(bed, way, traffic, self.time)?;
                        gbit[number][cell].push(run);
                        observe(LimitProgress::Links(tool, count, way, traffic, run));
                    }
                    set.reset()?;
                }
            }
            for (number, &links) in numbers.iter().enumerate() {
                let runs_ms = std::mem::take(&mut times[number]);
                table.program.push(ProgramRow {
                    tool,
                    links,
                    ms: median(&runs_ms),
                    runs_ms,
                });
                for (cell, &(direction, traffic)) in cells.iter().enumerate() {
                    let runs_gbit = gbit[number][cell].clone();
                    let few = &gbit[0][cell];
                    let ratios: Vec<f64> = runs_gbit.iter().zip(few).map(|(a, b)| a / b).collect();
                    table.links.push(LinksRow {
                        tool,
                        links,
                        direction,
                        traffic,
                        gbit: median(&runs_gbit),
                        ratio: median(&ratios),
                        runs_gbit,
                    });
                }
            }
            for &links in &numbers {
                for changes in [0, CHANGES] {
                    let row = measure_change(bed, tool, links, changes)?;
                    observe(LimitProgress::Change(&row));
                    table.change.push(row);
                }
            }
        }
        Ok(())
    }

    /// The limit of `size` and `rate`, in bit/s.
    pub const LIMIT: u64 = LIMIT;
}

/// Every n-th value, counted from the last one.
fn every<T: Copy>(values: impl Iterator<Item = T>, step: usize) -> impl Iterator<Item = T> {
    let all: Vec<T> = values.collect();
    let count = all.len();
    let kept = all.into_iter().enumerate();
    kept.filter(move |(index, _)| (count - 1 - index).is_multiple_of(step.max(1)))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_point_is_always_measured() {
        let sizes = || SIZES.step_by(SIZE_STEP);
        assert_eq!(every(sizes(), 1).count(), 10);
        assert_eq!(every(sizes(), 9).collect::<Vec<_>>(), [1000, 10_000]);
        assert_eq!(every(sizes(), 4).collect::<Vec<_>>(), [2000, 6000, 10_000]);
    }
}
