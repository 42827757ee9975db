//! How fast a connection delivers, and whether it delivers at all.

use std::time::{Duration, Instant};

use super::silence::Silence;
use crate::pipeline::Meter;

/// A connection with outstanding requests that delivers no byte for this long, or for this many
/// round trips if that is longer, is stalled.
pub(super) const STALL: (Duration, u32) = (Duration::from_secs(1), 4);

/// Longest time until the first block arrives over a connection that delivers.
pub(super) fn patience(rtt: Duration) -> Duration {
    rtt * 2 + Duration::from_millis(200)
}

/// The rate of a connection while blocks are requested over it.
#[derive(Debug)]
pub(crate) struct Pace {
    meter: Meter,
    /// Bytes read from it when last observed.
    read: u64,
    /// How long nothing has arrived although this side was ready to read.
    silence: Silence,
    /// Since when requests are outstanding; `None` while there are none.
    busy: Option<Instant>,
    /// The rate when requests were last outstanding, in bytes per second.
    last_rate: Option<f64>,
    /// Whether any block has arrived.
    has_delivered: bool,
    /// Whether it has stalled: what arrives first then is an answer to earlier requests.
    has_stalled: bool,
}

impl Pace {
    pub fn new(now: Instant) -> Self {
        Self {
            meter: Meter::new(now),
            read: 0,
            silence: Silence::new(now),
            busy: None,
            last_rate: None,
            has_delivered: false,
            has_stalled: false,
        }
    }

    /// Takes note of the bytes read so far. Returns whether there are more than at the last call.
    /// `backlogged` says that nothing is read at present, as what was read waits for the disk.
    pub fn observe(&mut self, read: u64, backlogged: bool, now: Instant) -> bool {
        let new = read - self.read;
        if new == 0 && backlogged {
            self.silence.skip(now);
            return false;
        }
        self.silence.observe(new > 0, now);
        if new > 0 {
            self.read = read;
            self.meter.add(now, new);
        }
        new > 0
    }

    /// Notes that a block arrived.
    pub fn delivered(&mut self) {
        self.has_delivered = true;
    }

    /// Sets the number of outstanding requests; `rtt` is the round-trip time.
    pub fn set_asked(&mut self, asked: usize, rtt: Duration, now: Instant) {
        match (asked, self.busy) {
            (0, Some(_)) => {
                self.last_rate = self.rate(rtt, now);
                self.busy = None;
            }
            (1.., None) => {
                // After a stall it is what has just arrived that shows the rate.
                if !std::mem::take(&mut self.has_stalled) {
                    self.meter.restart(now);
                }
                self.busy = Some(now);
                self.silence.reset();
            }
            _ => {}
        }
    }

    /// Bytes per second that it delivers on request; `None` until that is known.
    pub fn rate(&self, rtt: Duration, now: Instant) -> Option<f64> {
        self.estimate(self.meter.rate(now), rtt, now)
    }

    /// The same while it grows.
    pub fn peak(&self, rtt: Duration, now: Instant) -> Option<f64> {
        self.estimate(self.meter.peak(now), rtt, now)
    }

    /// `measured`, unless requests were resumed so recently that nothing can have arrived.
    fn estimate(&self, measured: f64, rtt: Duration, now: Instant) -> Option<f64> {
        let Some(busy) = self.busy else {
            return self.last_rate;
        };
        let warming = now.saturating_duration_since(busy) < patience(rtt);
        match self.last_rate {
            Some(last) if warming => Some(measured.max(last)),
            None if !self.has_delivered && warming => None,
            _ => Some(measured),
        }
    }

    /// Whether requests are outstanding and nothing has arrived for too long.
    pub fn is_silent(&self, rtt: Duration) -> bool {
        self.is_busy() && self.silence.time() > STALL.0.max(rtt * STALL.1)
    }

    /// Whether requests are outstanding.
    pub fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// Forgets the rate of a connection that has stalled: it predicts nothing any more.
    pub fn stall(&mut self) {
        self.busy = None;
        self.last_rate = None;
        self.has_stalled = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A connection with outstanding requests, over which one byte was read.
    fn busy(start: Instant) -> Pace {
        let mut pace = Pace::new(start);
        pace.set_asked(1, 10 * MS, start);
        assert!(pace.observe(1, false, start));
        pace
    }

    #[test]
    fn a_peer_that_sends_nothing_for_a_second_is_silent() {
        let start = Instant::now();
        let mut pace = busy(start);
        for tick in 1..=20 {
            pace.observe(1, false, start + tick * 50 * MS);
            assert!(!pace.is_silent(10 * MS));
        }
        pace.observe(1, false, start + 1050 * MS);
        assert!(pace.is_silent(10 * MS));
        pace.observe(2, false, start + 1100 * MS);
        assert!(!pace.is_silent(10 * MS));
    }

    #[test]
    fn what_arrives_at_once_after_a_stall_shows_the_rate() {
        let start = Instant::now();
        let mut pace = busy(start);
        pace.delivered();
        pace.stall();
        // All that was requested arrives between two observations, and then more is requested.
        let later = start + 3000 * MS;
        assert!(pace.observe(1_000_001, false, later));
        pace.set_asked(1, 10 * MS, later);
        assert_eq!(pace.rate(10 * MS, later), Some(2_000_000.0));
        assert_eq!(pace.rate(10 * MS, later + 501 * MS), Some(0.0));
        // Without a stall, what came before does not count.
        pace.set_asked(0, 10 * MS, later + 600 * MS);
        assert!(pace.observe(2_000_001, false, later + 700 * MS));
        pace.set_asked(1, 10 * MS, later + 701 * MS);
        assert_eq!(pace.rate(10 * MS, later + 1001 * MS), Some(0.0));
    }

    #[test]
    fn a_pause_of_this_program_is_not_silence_of_the_peer() {
        let start = Instant::now();
        let mut pace = busy(start);
        pace.observe(1, false, start + 12_000 * MS);
        assert!(!pace.is_silent(10 * MS));
    }

    #[test]
    fn a_slow_disk_is_not_silence_of_the_peer() {
        let start = Instant::now();
        let mut pace = busy(start);
        for tick in 1..=100 {
            pace.observe(1, true, start + tick * 50 * MS);
        }
        assert!(!pace.is_silent(10 * MS));
    }
}
