//! Trackers of which one is asked at a time.

use std::time::{Duration, Instant};

use super::tracker::Tracker;

/// Tiers of trackers, by their numbers. One tracker of all of them is asked at a time.
#[derive(Debug)]
pub(super) struct Group {
    /// Each in the order in which it is asked.
    pub tiers: Vec<Vec<usize>>,
    /// When the next announce is due.
    pub next: Instant,
    /// When an announce was last answered.
    pub answered: Option<Instant>,
    /// Least time between announces, by the last answer.
    pub min_interval: Duration,
}

impl Group {
    /// With one tier, due at `now`.
    pub fn new(tier: Vec<usize>, now: Instant) -> Self {
        Self {
            tiers: vec![tier],
            next: now,
            answered: None,
            min_interval: Duration::ZERO,
        }
    }

    /// Is asked when the other was to be.
    pub fn take_times(&mut self, other: &Self) {
        self.next = other.next;
        self.answered = other.answered;
        self.min_interval = other.min_interval;
    }

    /// All trackers, in the order in which they are asked.
    pub fn members(&self) -> impl Iterator<Item = usize> {
        self.tiers.iter().flatten().copied()
    }

    /// When an announce is due; `None` while one is under way, or if no tracker can be asked. While peers
    /// are wanted (`hungry`), the least interval counts. The download may be `completed`.
    pub fn due(&self, trackers: &[Tracker], hungry: bool, completed: bool) -> Option<Instant> {
        if self
            .members()
            .any(|member| trackers[member].flight.is_some())
        {
            return None;
        }
        let sooner = self
            .answered
            .filter(|_| hungry)
            .map(|at| at + self.min_interval);
        let due = sooner.map_or(self.next, |sooner| sooner.min(self.next));
        let ready = self
            .members()
            .filter_map(|member| trackers[member].ready(due, completed));
        ready.min()
    }

    /// The tracker that is asked at `now`.
    pub fn choose(&self, trackers: &[Tracker], completed: bool, now: Instant) -> Option<usize> {
        let is_ready = |member: &usize| trackers[*member].ready(now, completed) == Some(now);
        self.members().find(is_ready)
    }

    /// A tracker has answered: it comes first in its tier.
    pub fn answered(&mut self, tracker: usize, intervals: (Duration, Duration), now: Instant) {
        let (interval, min_interval) = intervals;
        for tier in &mut self.tiers {
            if let Some(at) = tier.iter().position(|member| *member == tracker) {
                tier[..=at].rotate_right(1);
            }
        }
        self.next = now + interval;
        self.answered = Some(now);
        self.min_interval = min_interval;
    }
}
