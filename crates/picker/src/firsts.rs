//! How often a leecher has lately been the first to have a piece: that is its part of what seeders send, as far as
//! it shows.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Time after which a piece counts half.
const HALF_LIFE: Duration = Duration::from_secs(3);

/// What counts for each leecher beside the pieces that it was first to have: few of these say little.
const PRIOR: f64 = 1.0;

/// A leecher counts as one that fetches from seeders until it was not the first to have a piece for its mean interval
/// times this.
const INTERVALS: f64 = 5.0;

/// The shortest and the longest such time.
const PATIENCE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(10);

/// Others wait for it for this time plus this number of its mean intervals.
const WAIT: (Duration, f64) = (Duration::from_millis(300), 2.0);

/// The pieces that a leecher was the first to have.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    /// Those since the last review.
    new: u32,
    /// Those until then, the older the less.
    recent: f64,
    /// When the leecher came, or was last seen to be the first.
    active_at: Option<Instant>,
    /// Its mean interval then, in seconds.
    interval: f64,
}

impl Firsts {
    /// Adds a piece.
    pub fn add(&mut self) {
        self.new += 1;
    }

    /// Takes note of the time, `elapsed` since the last call.
    pub fn review(&mut self, elapsed: Duration, now: Instant) {
        let kept = (-elapsed.div_duration_f64(HALF_LIFE)).exp2();
        self.recent = self.recent * kept + f64::from(self.new);
        if std::mem::take(&mut self.new) > 0 || self.active_at.is_none() {
            self.active_at = Some(now);
            self.interval = self.interval();
        }
    }

    /// Whether the leecher fetches from seeders now.
    pub fn is_active(&self, now: Instant) -> bool {
        let patience = Duration::from_secs_f64(INTERVALS * self.interval);
        let patience = patience.clamp(*PATIENCE.start(), *PATIENCE.end());
        let since = |at: Instant| now.saturating_duration_since(at);
        self.active_at.is_none_or(|at| since(at) <= patience)
    }

    /// Whether the leecher is likely to be the first to have one more piece soon.
    pub fn is_awaited(&self, now: Instant) -> bool {
        let (time, intervals) = WAIT;
        let longest = time + Duration::from_secs_f64(intervals * self.interval);
        let since = |at: Instant| now.saturating_duration_since(at);
        self.active_at.is_some_and(|at| since(at) <= longest)
    }

    /// The part of the leecher, compared with others. It grows with the square root of how often the leecher was
    /// first: as others leave seeders to one with a great part, it would grow by itself until it is all.
    pub fn weight(&self) -> f64 {
        self.count().sqrt()
    }

    /// How often it was lately the first.
    fn count(&self) -> f64 {
        PRIOR + self.recent
    }

    /// The mean time in seconds in which the leecher is the first to have one more piece.
    pub fn interval(&self) -> f64 {
        HALF_LIFE.as_secs_f64() * std::f64::consts::LOG2_E / self.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_leecher_that_was_often_first_is_soon_seen_to_fetch_no_more() {
        for (every, patience, wait) in
            [(100, 1000, 500), (1000, 3700, 1800), (10_000, 10_000, 4400)]
        {
            let (mut firsts, mut now) = (Firsts::default(), Instant::now());
            assert!(firsts.is_active(now) && !firsts.is_awaited(now));
            for ms in (0..60_000).step_by(50) {
                if ms % every == 0 {
                    firsts.add();
                }
                firsts.review(50 * MS, now);
                now += 50 * MS;
            }
            let last = now - every * MS;
            assert!(firsts.is_active(last + patience * 9 / 10 * MS), "{every}");
            assert!(!firsts.is_active(last + patience * 11 / 10 * MS), "{every}");
            assert!(firsts.is_awaited(last + wait * 9 / 10 * MS), "{every}");
            assert!(!firsts.is_awaited(last + wait * 11 / 10 * MS), "{every}");
        }
    }

    #[test]
    fn the_interval_is_that_of_its_pieces() {
        let (mut firsts, mut now) = (Firsts::default(), Instant::now());
        for _ in 0..1000 {
            firsts.add();
            now += 50 * MS;
            firsts.review(50 * MS, now);
        }
        let interval = firsts.interval();
        assert!((0.045..0.055).contains(&interval), "{interval}");
        // Half counts after the half-life.
        firsts.review(HALF_LIFE, now + HALF_LIFE);
        let longer = firsts.interval();
        assert!(
            (1.9 * interval..2.0 * interval).contains(&longer),
            "{longer}"
        );
    }
}
