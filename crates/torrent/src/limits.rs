//! Limits on how long a download seeds once it is complete.

use std::time::{Duration, Instant};

/// When seeding ends: at the first limit reached, or only when stopped if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SeedLimits {
    /// Bytes of blocks sent since the download began, divided by the bytes of the torrent; with 0
    /// it ends at once.
    pub ratio: Option<f64>,
    /// Time since the last piece was verified.
    pub time: Option<Duration>,
}

impl SeedLimits {
    /// The limit reached after `uploaded` bytes of blocks, for a torrent of `total` bytes, and
    /// `elapsed` since the last piece was verified; `None` if no limit is reached.
    pub(crate) fn reached(&self, uploaded: u64, total: u64, elapsed: Duration) -> Option<SeedEnd> {
        let enough = |ratio| uploaded as f64 >= ratio * total as f64;
        if self.ratio.is_some_and(enough) {
            return Some(SeedEnd::Ratio);
        }
        let late = self.time.is_some_and(|time| elapsed >= time);
        late.then_some(SeedEnd::Time)
    }
}

/// What ended seeding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SeedEnd {
    /// The ratio of [`SeedLimits`] was reached.
    Ratio,
    /// The time of [`SeedLimits`] has passed.
    Time,
    /// It was stopped.
    Stopped,
}

/// The result of seeding after a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seeded {
    /// Time since the last piece was verified.
    pub time: Duration,
    /// What ended it.
    pub end: SeedEnd,
}

/// Seeding, once everything is verified.
#[derive(Debug)]
pub(crate) struct Seeding {
    pub limits: SeedLimits,
    pub since: Instant,
    /// The limit that was reached; `None` before.
    pub end: Option<SeedEnd>,
}

impl Seeding {
    pub fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_limit_reached_ends_seeding() {
        let second = Duration::from_secs(1);
        let none = SeedLimits::default();
        assert_eq!(none.reached(u64::MAX, 1, Duration::MAX), None);
        let time = SeedLimits {
            time: Some(second),
            ..none
        };
        let both = SeedLimits {
            ratio: Some(0.5),
            ..time
        };
        assert_eq!(both.reached(49, 100, second / 2), None);
        assert_eq!(both.reached(50, 100, second / 2), Some(SeedEnd::Ratio));
        assert_eq!(both.reached(49, 100, second), Some(SeedEnd::Time));
        // An empty torrent has nothing to send.
        assert_eq!(both.reached(0, 0, second / 2), Some(SeedEnd::Ratio));
        assert_eq!(time.reached(0, 0, second / 2), None);
    }
}
