//! UDP through a limit, in samples, as the thesis measures it with iPerf3.

use std::time::{Duration, Instant};

use hawser_limit::Limit;

use super::bed::{Bed, far};
use super::count::Counter;
use super::load::{Load, LoadKind};
use super::names::{IpVersion, LimitTool, Way};
use super::table::{PointRow, mean};
use super::tool::Set;
use crate::error::ExperimentError;

/// The limit of 004, chapter 6, in bit/s.
pub const LIMIT: u64 = 500_000;
/// The rate that is offered while the size changes.
pub const OFFERED: u64 = 2_000_000;
/// Traffic before the first sample, at least.
const WARM_UP: Duration = Duration::from_secs(2);

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

/// A point of a figure.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub tool: LimitTool,
    pub direction: Way,
    pub ip: IpVersion,
    /// Bytes of payload of a datagram.
    pub datagram: usize,
    /// In bit/s of payload.
    pub offered: u64,
}

impl Point {
    /// Takes samples of this length. To be called inside the attachment point.
    pub fn measure(
        self,
        bed: &Bed,
        samples: u16,
        length: Duration,
    ) -> Result<PointRow, ExperimentError> {
        let Self {
            tool,
            direction,
            ip,
            datagram,
            offered,
        } = self;
        let set = Set::new(tool, &[far(ip, 0)], LIMIT)?;
        let kind = LoadKind::Udp {
            length: datagram,
            rate: Some(offered),
        };
        let load = Load::start(bed, direction, ip, 0, kind)?;
        let mut counter = Counter::open(direction)?;
        std::thread::sleep(settling_time(offered));
        let begin = counter.read()?;
        let mut samples_kbit = Vec::new();
        let mut before = (Instant::now(), load.received());
        for _ in 0..samples {
            std::thread::sleep(length);
            let now = (Instant::now(), load.received());
            let bits = 8 * (now.1 - before.1);
            samples_kbit.push(bits as f64 / 1e3 / (now.0 - before.0).as_secs_f64());
            before = now;
        }
        let end = counter.read()?;
        drop(load);
        set.reset()?;
        let (mean_kbit, deviation_kbit) = mean(&samples_kbit);
        Ok(PointRow {
            tool,
            direction,
            ip,
            limit_kbit: LIMIT as f64 / 1e3,
            datagram,
            offered_kbit: offered as f64 / 1e3,
            mean_kbit,
            deviation_kbit,
            frames_kbit: end.rate_since(&begin) / 1e3,
            zeros: samples_kbit.iter().filter(|one| **one == 0.0).count(),
            drops: end.drops.wrapping_sub(begin.drops),
            samples_kbit,
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
}
