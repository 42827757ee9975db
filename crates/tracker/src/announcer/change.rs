//! Other trackers while the announcer is there.

use std::time::Instant;

use super::group::Group;
use super::tracker::Tracker;
use super::{Announcer, MAX_TRACKERS};

impl Announcer {
    /// Has the torrent the trackers `tiers` from now on, as [`Self::new`] takes them. Those that it had keep what
    /// is known of them; a tier without one that knows of the client is asked at once. Trackers that it
    /// has no longer get `stopped`, if they may know of the client.
    pub fn set_trackers(&mut self, tiers: &[Vec<String>], now: Instant) {
        if self.stopping.is_some() {
            return;
        }
        let old = std::mem::take(&mut self.groups);
        // Where each was that is kept.
        let mut pool: Vec<Option<Tracker>> = self.trackers.drain(..).map(Some).collect();
        let mut was_at = Vec::new();
        for (number, urls) in tiers.iter().enumerate() {
            let mut tier = Vec::new();
            for url in urls {
                let is_listed = self.trackers.iter().any(|tracker| tracker.url == *url);
                if is_listed || self.trackers.len() >= MAX_TRACKERS {
                    continue;
                }
                let is_it = |it: &Option<Tracker>| it.as_ref().is_some_and(|it| it.url == *url);
                let at = pool.iter().position(is_it);
                let kept = at.and_then(|at| pool[at].take());
                tier.push(self.trackers.len());
                was_at.push(at.filter(|at| *at < self.listed));
                self.trackers.push(match kept {
                    Some(tracker) => tracker.listed_again(number),
                    None => Tracker::new(url.clone(), number),
                });
            }
            self.add_tier(tier, now);
        }
        let rank = |member: usize| {
            let at = was_at[member]?;
            old.iter().flat_map(Group::members).position(|it| it == at)
        };
        for group in &mut self.groups {
            // Those that it had come first, as before: one of them has answered last.
            for tier in &mut group.tiers {
                tier.sort_by_key(|member| rank(*member).unwrap_or(usize::MAX));
            }
            let before = group.members().find_map(|member| {
                let at = was_at[member].filter(|_| self.trackers[member].may_know())?;
                old.iter().find(|it| it.members().any(|it| it == at))
            });
            if let Some(before) = before {
                group.take_times(before);
            }
        }
        self.listed = self.trackers.len();
        let removed = pool.into_iter().flatten();
        let to_tell = removed.filter_map(|tracker| tracker.removed(now));
        self.trackers.extend(to_tell);
        let surplus = (self.trackers.len() - self.listed).saturating_sub(MAX_TRACKERS);
        self.trackers.drain(self.listed..self.listed + surplus);
    }

    /// Adds a tier to those that are asked.
    pub(super) fn add_tier(&mut self, mut tier: Vec<usize>, now: Instant) {
        self.rng.shuffle(&mut tier);
        match self.groups.last_mut() {
            _ if tier.is_empty() => {}
            Some(group) if !self.options.all_tiers => group.tiers.push(tier),
            _ => self.groups.push(Group::new(tier, now)),
        }
    }
}
