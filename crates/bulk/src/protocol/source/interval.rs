//! How often the sink acknowledges.

use std::time::{Duration, Instant};

/// The interval of acknowledgements is an eighth of a round trip, within these bounds.
const MIN: Duration = Duration::from_millis(1);
const MAX: Duration = Duration::from_millis(25);

/// The longest interval that keeps acknowledgements few on slow subflows.
const MAX_SLOW: Duration = Duration::from_millis(250);

/// An acknowledgement with all headers, in bytes, and the share of the data that it may take.
const ACK_BYTES: f64 = 256.0;
const SHARE: f64 = 0.005;

/// Acknowledgements until their share counts: until then the rate is that of the beginning.
const MIN_ACKS: u64 = 64;

/// The shortest time over which the delivery rate is measured.
const DELIVERY_TIME: Duration = Duration::from_millis(100);

/// The interval of acknowledgements of one subflow, and the delivery rate that it depends on.
#[derive(Debug)]
pub(super) struct Interval {
    /// The interval that the sink was named.
    named: Option<Duration>,
    acks: u64,
    /// Bytes acknowledged per second, once measured.
    delivery: Option<f64>,
    since: Instant,
    /// Bytes acknowledged since.
    bytes: u64,
}

impl Interval {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            named: None,
            acks: 0,
            delivery: None,
            since: now,
            bytes: 0,
        }
    }

    /// The interval that the sink uses.
    pub(super) fn named(&self) -> Duration {
        self.named.unwrap_or(MAX)
    }

    /// Bytes acknowledged per second.
    pub(super) fn delivery(&self) -> f64 {
        self.delivery.unwrap_or(0.0)
    }

    /// An acknowledgement of `bytes` new bytes arrived.
    pub(super) fn on_ack(&mut self, now: Instant, bytes: u64, rtt: Duration) {
        self.acks += 1;
        self.bytes += bytes;
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= rtt.max(DELIVERY_TIME) {
            let rate = self.bytes as f64 / elapsed.as_secs_f64();
            // A pause must not make acknowledgements rare at once.
            self.delivery = Some(rate.max(self.delivery() * 0.8));
            (self.since, self.bytes) = (now, 0);
        }
    }

    /// The interval to name to the sink, if it differs by a quarter from the last one. `pacing`: the
    /// rate in bytes per second until delivery is measured.
    pub(super) fn poll(&mut self, rtt: Duration, pacing: f64) -> Option<Duration> {
        self.name(self.wanted(rtt, pacing))
    }

    /// The same while trains of packets probe the path: the shortest one, as acknowledgements show how
    /// fast packets arrive. Many acknowledgements later the start is over.
    pub(super) fn poll_shortest(&mut self) -> Option<Duration> {
        self.name(MIN)
    }

    /// Whether only few acknowledgements have arrived.
    pub(super) fn is_new(&self) -> bool {
        self.acks < 2 * MIN_ACKS
    }

    fn name(&mut self, interval: Duration) -> Option<Duration> {
        let is_new = (self.named).is_none_or(|named| named.abs_diff(interval) > named / 4);
        is_new.then(|| {
            self.named = Some(interval);
            interval
        })
    }

    fn wanted(&self, rtt: Duration, pacing: f64) -> Duration {
        let interval = (rtt / 8).clamp(MIN, MAX);
        if self.acks < MIN_ACKS {
            return interval;
        }
        let rate = self.delivery.unwrap_or(pacing).max(1.0);
        let cheap = (ACK_BYTES / (SHARE * rate)).min(MAX_SLOW.as_secs_f64());
        interval.max(Duration::from_secs_f64(cheap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_interval_is_an_eighth_of_the_round_trip_within_bounds() {
        let now = Instant::now();
        let mut interval = Interval::new(now);
        assert_eq!(interval.poll(80 * MS, 1e9), Some(10 * MS));
        assert_eq!(interval.poll(90 * MS, 1e9), None);
        assert_eq!(interval.poll(MS, 1e9), Some(MS));
        assert_eq!(interval.poll(1000 * MS, 1e9), Some(25 * MS));
        assert_eq!(interval.poll_shortest(), Some(MS));
        assert_eq!(interval.poll_shortest(), None);
    }

    #[test]
    fn acknowledgements_of_slow_subflows_are_rare_once_the_rate_is_known() {
        let start = Instant::now();
        let mut interval = Interval::new(start);
        // 1 MB/s: 0.5 % are 5000 bytes a second, 19 acknowledgements of 256 bytes.
        for ack in 1..=MIN_ACKS {
            assert_eq!(interval.wanted(20 * MS, 1e9), 20 * MS / 8);
            interval.on_ack(start + MS * ack as u32 * 2, 2000, 20 * MS);
        }
        assert_eq!(interval.delivery(), 1e6);
        assert_eq!(interval.wanted(20 * MS, 1e9).as_micros(), 51_200);
        // Almost nothing is delivered for a while.
        for ack in 1..=20 {
            interval.on_ack(start + 200 * MS * (ack + 1), 1, 20 * MS);
        }
        assert_eq!(interval.wanted(20 * MS, 1e9), MAX_SLOW);
    }
}
