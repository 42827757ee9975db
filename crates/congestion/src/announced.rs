//! Bandwidth and latency that the ASes on a path announce.

use std::time::Duration;

/// Bytes around a SCION packet between two routers: UDP, IPv4.
const UNDERLAY: u128 = 28;
/// The initial window in packets, and in bytes (RFC 9002, 7.2).
const INITIAL: (u64, u64) = (10, 14_720);
/// The first window is the announced bandwidth-delay product divided by this. It is
/// paced over a round trip, so it takes that share of the path's rate.
const INITIAL_SHARE: f64 = 4.0;
/// Largest first window, in packets.
const INITIAL_MOST: u64 = 64;
/// The part of the announced bandwidth that a start relies on: headers below the packets, and what is
/// lost, take some of it.
const MARGIN: f64 = 0.97;
/// The round-trip time before the first measurement.
pub(crate) const INITIAL_RTT: Duration = Duration::from_millis(100);
/// Growth of the rate in each step of a start: while it is below what is announced, and beyond it.
const DOUBLE: f64 = 2.0;
const GENTLE: f64 = 1.25;

/// What a path is expected to carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hint {
    /// Bytes per second.
    pub(crate) bandwidth: f64,
}

impl Hint {
    /// What a path with a round-trip time of `rtt` holds at this bandwidth, in bytes.
    pub(crate) fn holds(&self, rtt: Duration) -> f64 {
        self.bandwidth * rtt.as_secs_f64()
    }
}

/// The announced bandwidth and latency of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Announced {
    /// The path's announced bandwidth, in bytes of the subflow's packets per second.
    pub bandwidth: Option<u64>,
    /// The round-trip time: as announced, or as measured (see [`with_rtt`](Self::with_rtt)).
    pub rtt: Option<Duration>,
}

impl Announced {
    /// The announcements of a path over links of `bandwidth` bit/s, with SCION packets of `mtu`
    /// bytes that hold `packet` bytes of the subflow, and with a latency of `latency` one way. A
    /// link that announces no bandwidth may be narrower than those that do: an announcement only
    /// slows growth, so a false one costs time and nothing else.
    pub fn of(bandwidth: &[Option<u64>], mtu: u16, packet: u16, latency: Option<Duration>) -> Self {
        Self {
            bandwidth: carried(bandwidth, mtu, packet),
            rtt: latency.map(|latency| latency * 2),
        }
    }

    /// The same with `measured` in place of the announced round-trip time, if it was measured: by the
    /// handshake of the connection over the same path, for example.
    #[must_use]
    pub fn with_rtt(self, measured: Option<Duration>) -> Self {
        Self {
            rtt: measured.or(self.rtt),
            ..self
        }
    }

    /// What a start may expect of the path.
    pub(crate) fn hint(&self) -> Option<Hint> {
        let bandwidth = self.bandwidth.filter(|bandwidth| *bandwidth > 0)?;
        Some(Hint {
            bandwidth: MARGIN * bandwidth as f64,
        })
    }

    /// The first window, in bytes: a share of the announced bandwidth-delay product, at least the
    /// initial window of RFC 9002, at most 64 packets.
    pub(crate) fn initial_window(&self, packet: u64) -> u64 {
        let always = default_window(packet);
        let holds = match (self.bandwidth, self.rtt) {
            (Some(rate), Some(rtt)) => rate as f64 * rtt.as_secs_f64(),
            _ => 0.0,
        };
        ((holds / INITIAL_SHARE) as u64).clamp(always, INITIAL_MOST * packet)
    }

    /// The rate after `rate` while a path's bandwidth is being found, in bytes per second: twice as
    /// much, but up to the announced bandwidth first, and gently beyond it.
    pub(crate) fn grow(&self, rate: f64) -> f64 {
        match self.bandwidth.map(|announced| announced as f64) {
            Some(announced) => announced.clamp(GENTLE * rate, DOUBLE * rate),
            None => DOUBLE * rate,
        }
    }
}

/// The initial window of RFC 9002, 7.2, in bytes, for packets of `packet` bytes.
pub(crate) fn default_window(packet: u64) -> u64 {
    INITIAL.1.max(2 * packet).min(INITIAL.0 * packet)
}

/// Bytes of the subflow's packets per second over links that announce `bandwidth` in bit/s; `None`
/// if none does.
fn carried(bandwidth: &[Option<u64>], mtu: u16, packet: u16) -> Option<u64> {
    let narrowest = bandwidth.iter().copied().flatten().min()?;
    let whole = u128::from(mtu) + UNDERLAY;
    let bytes = u128::from(narrowest / 8) * u128::from(packet) / whole;
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

    #[test]
    fn the_first_window_is_for_the_measured_round_trip() {
        let announced = Announced {
            bandwidth: Some(2_500_000),
            rtt: Some(Duration::from_millis(200)),
        };
        assert_eq!(announced.initial_window(1300), 64 * 1300);
        assert_eq!(announced.with_rtt(None), announced);
        let measured = announced.with_rtt(Some(Duration::from_millis(40)));
        assert_eq!(measured.initial_window(1300), 25_000);
    }

    #[test]
    fn a_rate_doubles_up_to_what_is_announced() {
        let announcing = |bandwidth| Announced {
            bandwidth,
            rtt: None,
        };
        assert_eq!(announcing(None).grow(100.0), 200.0);
        assert_eq!(announcing(Some(1000)).grow(100.0), 200.0);
        assert_eq!(announcing(Some(150)).grow(100.0), 150.0);
        assert_eq!(announcing(Some(0)).grow(100.0), 125.0);
    }
}
