//! How far the rate of frames is from the limit.

use std::time::{Duration, Instant};

use super::bed::{Bed, far};
use super::count::Counter;
use super::load::{Load, LoadKind};
use super::names::{IpVersion, LimitTool, Traffic, Way};
use super::tool::Set;
use crate::error::ExperimentError;

/// The limits, in bit/s.
pub const LIMITS: [u64; 3] = [500_000, 10_000_000, 1_000_000_000];
/// Below this rate windows are longer, and the traffic before them.
const SLOW_RATE: u64 = 1_000_000;
const SLOWER: u32 = 3;
/// Above this rate datagrams are handed over several at once: one by one the processor does not keep the
/// queue full.
const FAST: u64 = 100_000_000;
/// Traffic before a window: the burst is over.
const WARM_UP: Duration = Duration::from_secs(1);
/// Time between two looks whether packets wait.
const LOOK: Duration = Duration::from_millis(20);

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub tool: LimitTool,
    pub limit: u64,
    pub direction: Way,
    pub ip: IpVersion,
    pub traffic: Traffic,
}

impl Case {
    /// Measures for `window`, thrice as long if the limit is low: the error in percent of the limit, the
    /// goodput in percent of it, and the share of readings at which packets waited. To be called inside
    /// the attachment point.
    pub fn measure(self, bed: &Bed, window: Duration) -> Result<[f64; 3], ExperimentError> {
        let Self {
            tool,
            limit,
            direction,
            ip,
            traffic,
        } = self;
        let set = Set::new(tool, &[far(ip, 0)], limit)?;
        let length = match traffic {
            Traffic::UdpSmall => 1000,
            _ => ip.full_datagram(),
        };
        let kind = match traffic {
            Traffic::Tcp => LoadKind::Tcp,
            _ if limit > FAST => LoadKind::UdpSegmented { length },
            _ => LoadKind::Udp {
                length,
                rate: Some(2 * limit),
            },
        };
        let load = Load::start(bed, direction, ip, 0, kind)?;
        let mut counter = Counter::open(direction)?;
        let times = if limit < SLOW_RATE { SLOWER } else { 1 };
        std::thread::sleep(WARM_UP * times);
        let begin = counter.at_frame()?;
        let received = (load.received(), Instant::now());
        let (mut looks, mut waited) = (0, 0);
        while begin.time.elapsed() < window * times {
            std::thread::sleep(LOOK);
            looks += 1;
            waited += u32::from(counter.read()?.waiting > 0);
        }
        let goodput =
            (load.received() - received.0) as f64 * 8.0 / received.1.elapsed().as_secs_f64();
        let end = counter.at_frame()?;
        drop(load);
        set.reset()?;
        let percent = |rate: f64| 100.0 * rate / limit as f64;
        Ok([
            percent(end.rate_since(&begin)) - 100.0,
            percent(goodput),
            f64::from(waited) / f64::from(looks.max(1)),
        ])
    }
}
