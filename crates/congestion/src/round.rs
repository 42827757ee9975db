//! Round-trip times and delivery rate of the path, round by round.

use std::time::{Duration, Instant};

/// Samples after which a round's shortest round-trip time counts (RFC 9406, `N_RTT_SAMPLE`).
const SAMPLES: u32 = 8;
/// The round-trip time has grown when it is longer by an eighth, within these bounds (RFC 9406,
/// 4.3).
const MIN_GROWN: Duration = Duration::from_millis(4);
const MAX_GROWN: Duration = Duration::from_millis(16);
const GROWN: u32 = 8;

/// Whether a round-trip time of `now` shows that a queue has grown since it was `since`.
pub(crate) fn grown(since: Duration, now: Duration) -> bool {
    now >= since.saturating_add((since / GROWN).clamp(MIN_GROWN, MAX_GROWN))
}

/// Round-trip times, and the rate at which packets arrive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    /// The shortest round-trip time of all.
    pub(crate) min: Option<Duration>,
    /// Smoothed as RFC 9002, 5.3 does, acknowledgement delay included.
    pub(crate) smoothed: Option<Duration>,
    /// Start of the present round, which ends when a packet sent since is acknowledged.
    began: Option<Instant>,
    present: Round,
    last: Round,
}

/// One round: from a packet's sending to its acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    min: Option<Duration>,
    samples: u32,
    bytes: u64,
    /// Bytes acknowledged per second; 0 until the round is over.
    rate: f64,
}

impl Rounds {
    /// Records an acknowledged packet; returns whether it begins a new round.
    pub(crate) fn acked(&mut self, now: Instant, sent: Instant, bytes: u64) -> bool {
        let rtt = now.saturating_duration_since(sent);
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.smoothed = Some(self.smoothed.map_or(rtt, |old| (7 * old + rtt) / 8));
        let over = self.began.is_none_or(|began| sent >= began);
        if over {
            let took = self.began.map(|began| now.saturating_duration_since(began));
            if let Some(took) = took.filter(|took| !took.is_zero()) {
                self.present.rate = self.present.bytes as f64 / took.as_secs_f64();
            }
            self.last = self.present;
            self.present = Round::default();
            self.began = Some(now);
        }
        let round = &mut self.present;
        round.min = Some(round.min.map_or(rtt, |min| min.min(rtt)));
        round.samples += 1;
        round.bytes += bytes;
        over
    }

    /// The shortest round-trip time of this round, once there are enough samples.
    pub(crate) fn present(&self) -> Option<Duration> {
        self.present.min.filter(|_| self.present.samples >= SAMPLES)
    }

    /// The shortest round-trip time of the round before.
    pub(crate) fn last(&self) -> Option<Duration> {
        self.last.min.filter(|_| self.last.samples >= SAMPLES)
    }

    /// Bytes acknowledged per second in the last whole round.
    pub(crate) fn rate(&self) -> Option<f64> {
        Some(self.last.rate).filter(|rate| *rate > 0.0)
    }
}
