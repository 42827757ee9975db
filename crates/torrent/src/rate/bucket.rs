//! A token bucket.

use std::time::{Duration, Instant};

/// What may pass late, in time at the rate: tasks wake up late.
pub(super) const BURST: Duration = Duration::from_millis(50);

/// Longest time for which what has passed delays what follows. A lower rate is not kept to.
const MAX_DEBT: Duration = Duration::from_secs(86_400);

/// A token bucket, as a virtual clock: what passes moves the time at which more may pass.
///
/// Over any time, no more than the rate × (the time + [`BURST`]) passes, and what passed last.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Bytes per second, 1 at least; `None` without a limit.
    rate: Option<u64>,
    /// When more may pass; `None` before anything has.
    free: Option<Instant>,
}

impl Bucket {
    /// A bucket for this rate in bytes per second, 1 at least; `None` for no limit.
    pub fn new(rate: Option<u64>) -> Self {
        Self { rate, free: None }
    }

    /// Sets the rate. What has passed before delays what follows as long as it takes at the new
    /// rate.
    pub fn set_rate(&mut self, rate: Option<u64>, now: Instant) {
        let before = std::mem::replace(&mut self.rate, rate);
        let debt = self.free.and_then(|free| free.checked_duration_since(now));
        self.free = match (debt, before, rate) {
            (Some(debt), Some(before), Some(rate)) => {
                Some(now + time(debt.as_secs_f64() * before as f64, rate))
            }
            _ => None,
        };
    }

    /// When more may pass: a time that is over, if that is now.
    pub fn due(&self, now: Instant) -> Instant {
        match self.rate {
            Some(_) => self.free.unwrap_or(now),
            None => now,
        }
    }

    /// `bytes` pass.
    pub fn spend(&mut self, bytes: u64, now: Instant) {
        if let Some(rate) = self.rate {
            let earliest = now.checked_sub(BURST).unwrap_or(now);
            let from = self.free.map_or(earliest, |free| free.max(earliest));
            self.free = Some(from + time(bytes as f64, rate));
        }
    }
}

/// The time that bytes take at a rate in bytes per second.
fn time(bytes: f64, rate: u64) -> Duration {
    let seconds = bytes / rate.max(1) as f64;
    Duration::from_secs_f64(seconds.min(MAX_DEBT.as_secs_f64()))
}
