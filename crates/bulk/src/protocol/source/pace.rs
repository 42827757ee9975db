//! When a subflow may send, and how much at once.

use std::time::{Duration, Instant};

use super::super::packet::DATA_OVERHEAD;

/// The longest batch, in time at the pacing rate: a queue of a millisecond at a link takes it.
const BATCH: Duration = Duration::from_micros(500);

/// The least packets of a batch.
pub(super) const MIN_PACKETS: u64 = 2;

/// The most packets of a batch.
const MAX_PACKETS: u64 = 44;

/// The most bytes that the system takes at once, and what the headers below take of them in each
/// packet (IP, UDP, SCION with a path of average length).
const MAX_BYTES: u64 = 65_000;
const LOWER_HEADERS: u64 = 160;

/// Over a path with a shorter round trip than this a batch may have all that the system takes at once,
/// over one of less than twice as much half of it, and so on: a burst is a matter of bytes where the round trip is
/// short, and each call costs sender, routers and receiver a wake-up. As Linux does for TCP
/// (`tcp_tso_rtt_log`).
const SHORT_RTT: Duration = Duration::from_micros(512);

/// The part of the window that a batch longer than [`BATCH`] may have: what is on its way stays spread
/// over the round trip.
const WINDOW_SHARE: u64 = 4;

/// The slowest pace, in bytes per second: a subflow never stops for good.
const MIN_RATE: f64 = 1000.0;

/// Paces the packets of one subflow.
#[derive(Debug)]
pub(super) struct Pacing {
    /// Bytes per second.
    rate: f64,
    /// When the next batch may be sent.
    next: Instant,
}

impl Pacing {
    pub(super) fn new(rate: f64, now: Instant) -> Self {
        let mut pacing = Self { rate, next: now };
        pacing.set_rate(rate);
        pacing
    }

    pub(super) fn set_rate(&mut self, rate: f64) {
        // `max` also takes the place of what is not a number.
        self.rate = rate.max(MIN_RATE);
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Until when nothing may be sent.
    pub(super) fn wait(&self, now: Instant) -> Option<Instant> {
        (now < self.next).then_some(self.next)
    }

    /// The time that `bytes` take.
    pub(super) fn time(&self, bytes: u64) -> Duration {
        // A day is as good as longer times, and never overflows.
        Duration::from_secs_f64((bytes as f64 / self.rate).min(86_400.0))
    }

    /// Packets of `bytes` bytes in a batch over a path whose shortest round trip is `min_rtt`, with a
    /// window of `window` bytes.
    pub(super) fn packets(&self, bytes: u64, min_rtt: Duration, window: u64) -> u64 {
        let bytes = bytes.max(1);
        let timed = (self.rate * BATCH.as_secs_f64()) as u64;
        let halvings = (min_rtt.as_micros() / SHORT_RTT.as_micros()).min(63) as u32;
        let short = (MAX_BYTES >> halvings).min(window / WINDOW_SHARE);
        let most = (MAX_BYTES / (bytes + LOWER_HEADERS)).clamp(1, MAX_PACKETS);
        (timed.max(short) / bytes).max(MIN_PACKETS).min(most)
    }

    /// `bytes` are sent. A batch that was late lets the next follow earlier, but not more than one.
    pub(super) fn on_send(&mut self, bytes: u64, now: Instant) {
        let earliest = now.checked_sub(BATCH).unwrap_or(now);
        self.next = self.next.max(earliest) + self.time(bytes);
    }
}

/// Bytes of a data packet with `content` bytes of content.
pub(super) fn data_packet(content: u64) -> u64 {
    content + DATA_OVERHEAD as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_half_a_millisecond_within_bounds() {
        let long = Duration::from_millis(20);
        let packets =
            |rate, bytes| Pacing::new(rate, Instant::now()).packets(bytes, long, 10_000_000);
        // 100 Mbit/s: 6250 bytes.
        assert_eq!(packets(12.5e6, 1400), 4);
        assert_eq!(packets(1e3, 1400), 2);
        assert_eq!(packets(f64::NAN, 1400), 2);
        assert_eq!(packets(1e10, 1400), 41);
        assert_eq!(packets(1e10, 100), MAX_PACKETS);
        assert_eq!(packets(1e10, 8900), 7);
        assert_eq!(packets(1e10, 100_000), 1);
    }

    #[test]
    fn batches_over_short_paths_are_what_the_system_takes_within_a_quarter_of_the_window() {
        let packets = |micros, window| {
            let min_rtt = Duration::from_micros(micros);
            Pacing::new(12.5e6, Instant::now()).packets(1400, min_rtt, window)
        };
        assert_eq!(packets(200, 10_000_000), 41);
        assert_eq!(packets(600, 10_000_000), 23);
        assert_eq!(packets(200, 56_000), 10);
        assert_eq!(packets(200, 0), 4);
        assert_eq!(packets(u64::MAX, 10_000_000), 4);
    }

    #[test]
    fn a_late_batch_is_made_up_for_once() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut pacing = Pacing::new(1e6, start);
        pacing.on_send(1000, start);
        assert_eq!(pacing.wait(start), Some(start + ms(1)));
        // 0.2 ms late.
        pacing.on_send(1000, start + Duration::from_micros(1200));
        assert_eq!(pacing.next(), start + ms(2));
        // Long idle.
        pacing.on_send(1000, start + ms(100));
        assert_eq!(pacing.next(), start + ms(101) - BATCH);
    }
}
