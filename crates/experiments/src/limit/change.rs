//! What one link sees while the limit of another is changed.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::bed::{LimitBed, Namespaces};
use super::bench::LimitBench;
use super::links::{addresses, used};
use super::load::{Load, LoadKind};
use super::names::{IpVersion, LimitTool, Way};
use super::tool::Set;
use crate::error::ExperimentError;
use crate::numbers::{extremes, median};
use crate::shape::{Columns, Experiment, Format, Observe, Results, Row, Section, Table};

/// The limit of the link that is watched, in bit/s; half of it is sent.
const LIMIT: u64 = 100_000_000;
/// Bytes of payload of a datagram, and with it of its frame.
const LENGTH: usize = 1400;
const FRAME: u64 = 1442;
/// How often a limit is changed, and the time from one change to the next.
const CHANGES: usize = 100;
const EVERY: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_millis(500);

/// What changes of limits cost.
pub struct Changes {
    pub bench: LimitBench,
}

/// How often a limit is changed beside that of other links.
#[derive(Debug, Clone, Copy)]
pub struct ChangesCase {
    tool: LimitTool,
    links: usize,
    /// 0 for comparison.
    changes: usize,
}

/// What a link saw meanwhile.
#[derive(Debug, Clone)]
pub struct ChangesRun {
    /// Milliseconds of each change.
    times: Vec<f64>,
    /// Datagrams that were sent over the other link, and those that did not arrive.
    sent: u64,
    lost: u64,
    /// The longest delay there, and the longest time without a datagram, in milliseconds.
    delay: f64,
    gap: f64,
}

impl fmt::Display for ChangesCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tool, links, changes) = (self.tool, self.links, self.changes);
        write!(f, "{tool}: {links} links, {changes} changes")
    }
}

impl Experiment for Changes {
    type Place = ();
    type Bed = LimitBed;
    type Case = ChangesCase;
    type Run = ChangesRun;

    /// A run has many changes.
    fn turns(&self) -> u16 {
        1
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<ChangesCase> {
        let cases = self.bench.numbers().flat_map(|(tool, links)| {
            [0, CHANGES].map(|changes| ChangesCase {
                tool,
                links,
                changes,
            })
        });
        cases.collect()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<LimitBed, ExperimentError> {
        LimitBed::make()
    }

    async fn measure(
        &self,
        bed: &LimitBed,
        case: &ChangesCase,
    ) -> Result<ChangesRun, ExperimentError> {
        let case = *case;
        bed.inside(move |bed| case.measure(bed)).await
    }

    fn summary(&self, run: &ChangesRun) -> String {
        let (lost, sent) = (run.lost, run.sent);
        let (delay, gap) = (run.delay, run.gap);
        format!("{lost} of {sent} lost, longest delay {delay:.2} ms, longest gap {gap:.2} ms")
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let title = "another link while one limit is changed, ms";
        Table {
            experiment: "change",
            sections: vec![Section::of("change", self, results, &columns()).titled(title)],
            ..Table::default()
        }
    }
}

fn columns<'a>() -> Columns<Row<'a, Changes>> {
    use Format::{Name, Number};
    Columns::<Row<'a, Changes>>::new()
        .name("tool", "tool", |case| case.tool)
        .both("links", "links", Name, |row| row.case.links)
        .both("changes", "changes", Name, |row| row.case.changes)
        .both("ms", "median", Number(2), |row| time(row, median))
        .both("most_ms", "longest", Number(2), |row| {
            time(row, |times| extremes(times).1)
        })
        .both("sent", "sent", Number(0), |row| {
            row.series.runs.first().map(|run| run.sent)
        })
        .both("lost", "lost", Number(0), |row| {
            row.series.runs.first().map(|run| run.lost)
        })
        .median("delay_ms", "longest delay", Number(2), |run| run.delay)
        .median("gap_ms", "longest gap", Number(2), |run| run.gap)
}

/// What the times of changes come to; `None` without changes.
fn time(row: &Row<'_, Changes>, of: impl Fn(&[f64]) -> f64) -> Option<f64> {
    let times = &row.series.runs.first()?.times;
    (!times.is_empty()).then(|| of(times))
}

impl ChangesCase {
    /// Sends over a link at half its limit while the limit of another one is changed, in as long a time
    /// if not at all. To be called inside the attachment point.
    fn measure(self, bed: &Namespaces) -> Result<ChangesRun, ExperimentError> {
        let all = addresses(self.links);
        let mut set = Set::new(self.tool, &all, LIMIT)?;
        let kind = LoadKind::Udp {
            length: LENGTH,
            rate: Some(LIMIT / 2 * LENGTH as u64 / FRAME),
        };
        let load = Load::start(bed, Way::Egress, IpVersion::V4, 0, kind)?;
        std::thread::sleep(WARM_UP);
        for longest in [&load.tally.delay, &load.tally.gap] {
            longest.store(0, Ordering::Relaxed);
        }
        let other = used(self.links, 1);
        let mut times = Vec::new();
        let begin = Instant::now();
        for turn in 1..=CHANGES as u32 {
            if times.len() < self.changes {
                let rate = LIMIT + 1_000_000 * u64::from(turn % 2);
                let start = Instant::now();
                set.change(&all, other, rate)?;
                times.push(1e3 * start.elapsed().as_secs_f64());
            }
            let next = begin + EVERY * turn;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        let milliseconds = |longest: u64| longest as f64 / 1e6;
        let delay = milliseconds(load.tally.delay.load(Ordering::Relaxed));
        let gap = milliseconds(load.tally.gap.load(Ordering::Relaxed));
        let (sent, received) = load.finish();
        set.reset()?;
        Ok(ChangesRun {
            times,
            sent,
            lost: sent.saturating_sub(received),
            delay,
            gap,
        })
    }
}
