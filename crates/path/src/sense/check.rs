//! Checks: a kept path is paused, to find out whether the rate of another, which fell, rises
//! without it.

use std::collections::BTreeMap;
use std::time::Instant;

use super::estimate::Estimate;
use super::sensing::{Check, Differs, MAX_SLOTS_FACTOR, Phase, Sense};
use crate::{Decision, Sensed};

impl<K: Copy + Ord> Sense<K> {
    /// Looks for a path whose rate fell beside a kept one, and pauses that one for a check.
    pub(super) fn watch(
        &mut self,
        sharing: &BTreeMap<K, &[K]>,
        now: Instant,
    ) -> Option<(K, Decision)> {
        let mut check = None;
        for (path, kept) in &mut self.kept {
            let with = sharing.get(path).copied().unwrap_or_default();
            kept.before.retain(|other, _| with.contains(other));
            for other in with {
                let known = self.rates.get(other).into_iter().flatten();
                let known: Vec<f64> = known.copied().collect();
                if known.len() < self.options.slots {
                    continue;
                }
                let spread = kept.before.get(other).map_or(0.0, |(_, spread)| *spread);
                let seen = Estimate::of(&known, spread);
                let best = (seen.least(), seen.spread);
                let (had, spread) = kept.before.entry(*other).or_insert(best);
                if seen.least() > *had {
                    (*had, *spread) = best;
                }
                if now < kept.check.0 || check.is_some() {
                    continue;
                }
                let limit = *had * (1.0 - self.options.tolerance);
                let ends = (1..=MAX_SLOTS_FACTOR).map(|many| many * self.options.slots);
                let lows = ends.filter_map(|count| {
                    let last = &known[known.len().checked_sub(count)?..];
                    Some(Estimate::of(last, *spread))
                });
                let mut lows = lows.filter(|low| low.rate + low.margin < limit);
                check = lows.next().map(|low| Check {
                    path: *path,
                    fallen: *other,
                    had: *had,
                    low,
                    ticks: 0,
                });
            }
        }
        let check = check?;
        let path = check.path;
        let reason = Sensed::Check {
            had: check.had as u64,
            has: check.low.rate as u64,
        };
        self.change(Phase::Check(check));
        Some((path, Decision::waiting(reason.into())))
    }

    /// Judges a check after another slot, and ends it once its outcome is clear.
    pub(super) fn go_on_checking(
        &mut self,
        check: Check<K>,
        now: Instant,
    ) -> Option<(K, Decision)> {
        let (path, fallen, low) = (check.path, check.fallen, check.low);
        let without = self.estimate(fallen, low.spread);
        let rose = without.map_or(Differs::Unclear(false), |without| {
            let margin = without.margin_to(&low);
            // The fall may have been chance, and so may the rise.
            self.differs(without.rate - low.rate, low.rate, margin, f64::INFINITY)
        });
        if matches!(rose, Differs::Unclear(_)) && self.may_go_on(check.ticks) {
            self.phase = Phase::Check(check);
            return None;
        }
        self.change(Phase::Idle);
        let rate = without.map_or(0.0, |without| without.rate) as u64;
        if rose.likely() {
            self.kept.remove(&path);
            let reason = Sensed::Recovered {
                has: low.rate as u64,
                without: rate,
                again: self.pause_trials(path, [fallen].into_iter(), now),
            };
            return Some((path, Decision::left(reason.into())));
        }
        if let Some(kept) = self.kept.get_mut(&path) {
            // Later falls are measured against this rate.
            let before = without.map_or((0.0, 0.0), |it| (it.least(), it.spread));
            kept.before.insert(fallen, before);
            let pause = kept.check.1;
            kept.check = (now + pause, (pause * 2).min(self.options.longest_pause));
        }
        let reason = Sensed::Innocent { without: rate };
        Some((path, Decision::taken(reason.into())))
    }
}
