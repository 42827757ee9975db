//! Bandwidth and latency that the ASes on a path announce.

use std::time::Duration;

use hawser_endhost::Path;

/// Bytes around a SCION packet between two routers: UDP, IPv4.
const UNDERLAY: u128 = 28;

/// The announced bandwidth and latency of a path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Announced {
    /// The path's announced bandwidth, in bytes of QUIC packets per second.
    pub(crate) bandwidth: Option<u64>,
    /// The announced round-trip time.
    pub(crate) rtt: Option<Duration>,
}

impl Announced {
    /// The announcements of `path`, which takes QUIC packets of `mtu` bytes.
    pub(crate) fn of(path: &Path, mtu: u16) -> Self {
        let info = path.info();
        Self {
            bandwidth: carried(&info.metadata.bandwidth, info.metadata.mtu, mtu),
            rtt: info.latency().map(|latency| latency * 2),
        }
    }
}

/// Bytes of QUIC packets per second over links that announce `bandwidth` in bit/s; `None` if none
/// does. A link that announces none may be narrower; then slow start ends at the first loss or
/// delay.
fn carried(bandwidth: &[Option<u64>], scion_mtu: u16, mtu: u16) -> Option<u64> {
    let narrowest = bandwidth.iter().copied().flatten().min()?;
    let packet = u128::from(scion_mtu) + UNDERLAY;
    let bytes = u128::from(narrowest / 8) * u128::from(mtu) / packet;
    u64::try_from(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bandwidth_counts_less_headers() {
        assert_eq!(carried(&[], 1472, 1300), None);
        assert_eq!(carried(&[None, None], 1472, 1300), None);
        let parts = [Some(80_000_000), None, Some(12_000_000)];
        assert_eq!(carried(&parts, 1472, 1300), Some(1_300_000));
        assert_eq!(carried(&[Some(u64::MAX)], 0, u16::MAX), None);
        assert_eq!(carried(&[Some(0)], 1472, 1300), Some(0));
    }
}
