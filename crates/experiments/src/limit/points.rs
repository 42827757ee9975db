//! UDP through a limit, in samples, as the thesis measures it with iPerf3.

use std::time::{Duration, Instant};

use hawser_limit::Limit;

use super::bed::{LimitBed, Namespaces, far};
use super::bench::LimitBench;
use super::count::Counter;
use super::figure;
use super::load::{Load, LoadKind};
use super::names::{IpVersion, Part, Way};
use super::point::{LIMIT, Point, PointRun};
use super::tool::Set;
use crate::error::ExperimentError;
use crate::numbers::mean;
use crate::shape::{
    Choice, Columns, Experiment, Figure, Format, Observe, Results, Row, Section, Table,
};

/// The rate that is offered while the size changes.
const OFFERED: u64 = 2_000_000;
/// Sizes of datagrams, in bytes (004, Figure 6.1).
const SIZES: std::ops::RangeInclusive<usize> = 1000..=10_000;
const SIZE_STEP: usize = 1000;
/// Rates that are offered, in bit/s (004, Figure 6.6).
const RATES: std::ops::RangeInclusive<u64> = 100_000..=1_000_000;
const RATE_STEP: usize = 100_000;
/// The size at which datagrams are fragmented (004, Figure 6.6).
const FRAGMENTED_SIZE: usize = 10_000;
/// Traffic before the first sample, at least.
const WARM_UP: Duration = Duration::from_secs(2);

/// Goodput by the size of datagrams, or by the rate at which is sent.
pub struct Points {
    pub bench: LimitBench,
    pub part: Part,
}

impl Experiment for Points {
    type Place = ();
    type Bed = LimitBed;
    type Case = Point;
    type Run = PointRun;

    /// Of each point there are several samples instead.
    fn turns(&self) -> u16 {
        1
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<Point> {
        let mut cases = Vec::new();
        for &ip in &self.bench.ip {
            for (datagram, offered) in self.points(ip) {
                for &direction in Way::ALL {
                    let tools = self.bench.tools.iter();
                    cases.extend(tools.map(|&tool| Point {
                        tool,
                        direction,
                        ip,
                        datagram,
                        offered,
                    }));
                }
            }
        }
        cases
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<LimitBed, ExperimentError> {
        LimitBed::make()
    }

    async fn measure(&self, bed: &LimitBed, point: &Point) -> Result<PointRun, ExperimentError> {
        let (point, samples, length) = (*point, self.bench.samples, self.bench.sample);
        bed.inside(move |bed| point.measure(bed, samples, length))
            .await
    }

    fn summary(&self, run: &PointRun) -> String {
        let (mean, deviation) = mean(&run.samples);
        let (frames, drops) = (run.frames, run.drops);
        format!("{mean:.1} ± {deviation:.1} kbit/s, frames {frames:.1}, {drops} dropped")
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let (key, title) = match self.part {
            Part::Size => ("size", "size"),
            _ => ("rate", "rate"),
        };
        let title = format!("{title}: kbit/s; frames by the counters of the limit's HTB class");
        Table {
            experiment: key,
            sections: vec![Section::of(key, self, results, &columns()).titled(title)],
            ..Table::default()
        }
    }

    fn plot(&self, results: &Results<Self>) -> Result<Vec<Figure>, ExperimentError> {
        let all: Vec<_> = results.places.iter().flat_map(|(_, all)| all).collect();
        let figures = self.bench.ip.iter();
        let figures = figures.map(|&ip| figure::draw(self.part, ip, &all));
        let figures = figures.collect::<Result<Vec<_>, _>>()?;
        Ok(figures.into_iter().flatten().collect())
    }
}

fn columns<'a>() -> Columns<Row<'a, Points>> {
    use Format::{Name, Number, Text};
    Columns::<Row<'a, Points>>::new()
        .name("tool", "tool", |case| case.tool)
        .name("direction", "direction", |case| case.direction)
        .name("ip", "IP", |case| case.ip)
        .json("limit_kbit", |_| LIMIT as f64 / 1e3)
        .both("datagram", "datagram", Name, |row| row.case.datagram)
        .both("offered_kbit", "offered", Name, |row| {
            row.case.offered as f64 / 1e3
        })
        .json("samples_kbit", |row| {
            let run = row.series.runs.first();
            run.map(|run| run.samples.clone())
        })
        .median("mean_kbit", "goodput", Number(1), |run| {
            mean(&run.samples).0
        })
        .median("deviation_kbit", "deviation", Number(1), |run| {
            mean(&run.samples).1
        })
        .median("frames_kbit", "frames", Number(1), |run| run.frames)
        .json("zeros", |row| row.series.runs.first().map(PointRun::zeros))
        .text("at zero", Text, |row| {
            let run = row.series.runs.first()?;
            Some(format!("{}/{}", run.zeros(), run.samples.len()))
        })
        .both("drops", "drops", Number(0), |row| {
            row.series.runs.first().map(|run| run.drops)
        })
}

impl Points {
    /// Sizes of datagrams with the rates at which they are offered.
    fn points(&self, ip: IpVersion) -> Vec<(usize, u64)> {
        let step = self.bench.every;
        match self.part {
            Part::Size => {
                let sizes = every(SIZES.step_by(SIZE_STEP), step);
                sizes.map(|size| (size, OFFERED)).collect()
            }
            _ => {
                let sizes = [FRAGMENTED_SIZE, ip.full_datagram()].into_iter();
                let rates = || every(RATES.step_by(RATE_STEP), step);
                let points = sizes.flat_map(|size| rates().map(move |rate| (size, rate)));
                points.collect()
            }
        }
    }
}

/// Every n-th value, counted from the last one.
fn every<T: Copy>(values: impl Iterator<Item = T>, step: usize) -> impl Iterator<Item = T> {
    let all: Vec<T> = values.collect();
    let count = all.len();
    let kept = all.into_iter().enumerate();
    kept.filter(move |(index, _)| (count - 1 - index).is_multiple_of(step.max(1)))
        .map(|(_, value)| value)
}

/// Traffic before the first sample: what exceeds the limit has filled the queue, and what waited when the
/// first packet was dropped has left. Until then all that arrives was sent before there were losses.
fn settling_time(offered: u64) -> Duration {
    let queue = f64::from(8 * Limit::LEAST);
    let settles = match offered.checked_sub(LIMIT) {
        None | Some(0) => 0.0,
        Some(excess) => queue / excess as f64 + queue / LIMIT as f64,
    };
    WARM_UP.max(Duration::from_secs_f64(settles + 1.0))
}

impl Point {
    /// Takes samples of this length. To be called inside the attachment point.
    fn measure(
        self,
        bed: &Namespaces,
        count: u16,
        length: Duration,
    ) -> Result<PointRun, ExperimentError> {
        let set = Set::new(self.tool, &[far(self.ip, 0)], LIMIT)?;
        let kind = LoadKind::Udp {
            length: self.datagram,
            rate: Some(self.offered),
        };
        let load = Load::start(bed, self.direction, self.ip, 0, kind)?;
        let mut counter = Counter::open(self.direction)?;
        std::thread::sleep(settling_time(self.offered));
        let begin = counter.read()?;
        let mut samples = Vec::new();
        let mut before = (Instant::now(), load.received());
        for _ in 0..count {
            std::thread::sleep(length);
            let now = (Instant::now(), load.received());
            let bits = 8 * (now.1 - before.1);
            samples.push(bits as f64 / 1e3 / (now.0 - before.0).as_secs_f64());
            before = now;
        }
        let end = counter.read()?;
        drop(load);
        set.reset()?;
        Ok(PointRun {
            samples,
            frames: end.rate_since(&begin) / 1e3,
            drops: end.drops.wrapping_sub(begin.drops),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_begin_when_the_queue_has_been_full_for_its_length() {
        assert_eq!(settling_time(LIMIT), WARM_UP);
        // 2.1 Mbit fill in 1.4 s, and leave in 4.2 s.
        assert_eq!(settling_time(OFFERED).as_secs(), 6);
    }

    #[test]
    fn the_last_point_is_always_measured() {
        let sizes = || SIZES.step_by(SIZE_STEP);
        assert_eq!(every(sizes(), 1).count(), 10);
        assert_eq!(every(sizes(), 9).collect::<Vec<_>>(), [1000, 10_000]);
        assert_eq!(every(sizes(), 4).collect::<Vec<_>>(), [2000, 6000, 10_000]);
    }
}
