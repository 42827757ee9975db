//! Throughput through limits of many links, as fast as the CPU sends, and how long it takes to set them.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use super::bed::{Bed, USED, far};
use super::load::{Load, LoadKind};
use super::names::{IpVersion, LimitTool, Traffic, Way};
use super::tool::Set;
use crate::error::ExperimentError;

/// A limit that the CPU does not reach, in bit/s.
pub const HIGH: u64 = 100_000_000_000;
/// Bytes of payload of a datagram.
const LENGTH: usize = 1400;
/// Traffic before the measurement.
const WARM_UP: Duration = Duration::from_millis(500);

/// The far ends of `count` links; those with traffic are spread over all, the last one among them.
pub fn addresses(count: usize) -> Vec<IpAddr> {
    let mut links: Vec<IpAddr> = (0..count as u32)
        .map(|i| Ipv4Addr::from(0x0a08_0000 + i).into())
        .collect();
    for number in 0..USED {
        links[used(count, number)] = far(IpVersion::V4, number);
    }
    links
}

/// The place of a link with traffic.
pub fn used(count: usize, number: u8) -> usize {
    (usize::from(number) + 1) * count / usize::from(USED) - 1
}

/// Sets limits of `count` links, in both directions, and returns how long that takes, in milliseconds.
pub fn program(tool: LimitTool, count: usize) -> Result<(Set, f64), ExperimentError> {
    let links = addresses(count);
    let begin = Instant::now();
    let set = Set::new(tool, &links, HIGH)?;
    Ok((set, 1e3 * begin.elapsed().as_secs_f64()))
}

/// Gbit/s of payload that arrive over the links with traffic together. To be called inside the
/// attachment point.
pub fn throughput(
    bed: &Bed,
    way: Way,
    traffic: Traffic,
    time: Duration,
) -> Result<f64, ExperimentError> {
    let kind = match traffic {
        Traffic::Tcp => LoadKind::Tcp,
        Traffic::UdpSegmented => LoadKind::UdpSegmented { length: LENGTH },
        _ => LoadKind::Udp {
            length: LENGTH,
            rate: None,
        },
    };
    let start = |number| Load::start(bed, way, IpVersion::V4, number, kind);
    let loads = (0..USED).map(start).collect::<Result<Vec<_>, _>>()?;
    let all = || loads.iter().map(Load::received).sum::<u64>();
    std::thread::sleep(WARM_UP);
    let (begin, before) = (Instant::now(), all());
    std::thread::sleep(time);
    let bits = 8 * (all() - before);
    Ok(bits as f64 / begin.elapsed().as_secs_f64() / 1e9)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn links_with_traffic_are_spread_over_all() {
        for count in [10, 4000] {
            let links = addresses(count);
            assert_eq!(links.iter().collect::<BTreeSet<_>>().len(), count);
            assert_eq!(links[count - 1], far(IpVersion::V4, USED - 1));
            assert_eq!(links[used(count, 0)], far(IpVersion::V4, 0));
        }
    }
}
