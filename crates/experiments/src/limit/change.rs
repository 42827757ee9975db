//! What one link sees while the limit of another is changed.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::bed::Bed;
use super::links::{addresses, used};
use super::load::{Load, LoadKind};
use super::names::{IpVersion, LimitTool, Way};
use super::table::{ChangeRow, extremes};
use super::tool::Set;
use crate::error::ExperimentError;
use crate::report::median;

/// The limit of the link that is watched, in bit/s; half of it is sent.
const LIMIT: u64 = 100_000_000;
/// Bytes of payload of a datagram, and with it of its frame.
const LENGTH: usize = 1400;
const FRAME: u64 = 1442;
/// How often a limit is changed, and the time from one change to the next.
pub const CHANGES: usize = 100;
const EVERY: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_millis(500);

/// Sends over a link at half its limit while the limit of another of `links` links is changed `changes`
/// times, in as long a time if not at all. To be called inside the attachment point.
pub fn measure(
    bed: &Bed,
    tool: LimitTool,
    links: usize,
    changes: usize,
) -> Result<ChangeRow, ExperimentError> {
    let all = addresses(links);
    let mut set = Set::new(tool, &all, LIMIT)?;
    let kind = LoadKind::Udp {
        length: LENGTH,
        rate: Some(LIMIT / 2 * LENGTH as u64 / FRAME),
    };
    let load = Load::start(bed, Way::Egress, IpVersion::V4, 0, kind)?;
    std::thread::sleep(WARM_UP);
    for longest in [&load.tally.delay, &load.tally.gap] {
        longest.store(0, Ordering::Relaxed);
    }
    let other = used(links, 1);
    let mut times = Vec::new();
    let begin = Instant::now();
    for turn in 1..=CHANGES as u32 {
        if times.len() < changes {
            let rate = LIMIT + 1_000_000 * u64::from(turn % 2);
            let start = Instant::now();
            set.change(&all, other, rate)?;
            times.push(1e3 * start.elapsed().as_secs_f64());
        }
        let next = begin + EVERY * turn;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let milliseconds = |longest: u64| longest as f64 / 1e6;
    let delay_ms = milliseconds(load.tally.delay.load(Ordering::Relaxed));
    let gap_ms = milliseconds(load.tally.gap.load(Ordering::Relaxed));
    let (sent, received) = load.finish();
    set.reset()?;
    let any = !times.is_empty();
    Ok(ChangeRow {
        tool,
        links,
        changes,
        ms: any.then(|| median(&times)),
        most_ms: any.then(|| extremes(&times).0),
        sent,
        lost: sent.saturating_sub(received),
        delay_ms,
        gap_ms,
    })
}
