//! Checks: a path that was kept is paused, to see whether another that fell rises without it.

use std::collections::BTreeMap;
use std::time::Instant;

use super::estimate::Estimate;
use super::sensing::{Differs, LONGEST, Phase, Sense, SenseAction, bits};
use crate::{Reason, Sensed};

impl<K: Copy + Ord> Sense<K> {
    /// Looks whether a path fell beside one that was kept; that one is then paused for a check.
    pub(super) fn watch(
        &mut self,
        sharing: &BTreeMap<K, &[K]>,
        now: Instant,
    ) -> Option<SenseAction<K>> {
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
                let Some(seen) = Estimate::of(&known, spread) else {
                    continue;
                };
                let best = (seen.least(), seen.spread);
                let (had, spread) = kept.before.entry(*other).or_insert(best);
                if seen.least() > *had {
                    (*had, *spread) = best;
                }
                if now < kept.check.0 || check.is_some() {
                    continue;
                }
                let limit = *had * (1.0 - self.options.tolerance);
                let ends = (1..=LONGEST).map(|many| many * self.options.slots);
                let lows = ends.filter_map(|count| {
                    let last = &known[known.len().checked_sub(count)?..];
                    Estimate::of(last, *spread)
                });
                check = lows
                    .filter(|low| low.rate + low.margin < limit)
                    .map(|low| (*path, *other, *had, low))
                    .next();
            }
        }
        let (path, fallen, had, low) = check?;
        self.change(Phase::Check {
            path,
            fallen,
            had,
            low,
            ticks: 0,
        });
        let reason = Reason::Sensed(Sensed::Check {
            had: bits(had),
            has: bits(low.rate),
        });
        Some(SenseAction::Pause(path, reason))
    }

    /// Looks at a check after another slot, and ends it once its outcome is clear.
    pub(super) fn go_on_checking(
        &mut self,
        path: K,
        fallen: K,
        (had, low): (f64, Estimate),
        ticks: usize,
        now: Instant,
    ) -> Vec<SenseAction<K>> {
        let without = self.estimate(fallen, low.spread);
        let rose = without.map_or(Differs::Unclear(false), |without| {
            let margin = without.margin_to(&low);
            // That it fell may have been chance; that it rises again may be as well.
            self.differs(without.rate - low.rate, low.rate, margin, f64::INFINITY)
        });
        if matches!(rose, Differs::Unclear(_)) && self.may_go_on(ticks) {
            self.phase = Phase::Check {
                path,
                fallen,
                had,
                low,
                ticks,
            };
            return Vec::new();
        }
        self.change(Phase::Idle);
        let rate = without.map_or(0.0, |without| without.rate);
        if rose.likely() {
            self.kept.remove(&path);
            let reason = Reason::Sensed(Sensed::Recovered {
                has: bits(low.rate),
                without: bits(rate),
                again: self.rest(path, [fallen].into_iter(), now),
            });
            return vec![SenseAction::Drop(path, reason)];
        }
        if let Some(kept) = self.kept.get_mut(&path) {
            // From now on it is held to what it carries now.
            let before = without.map_or((0.0, 0.0), |it| (it.least(), it.spread));
            kept.before.insert(fallen, before);
            let pause = kept.check.1;
            kept.check = (now + pause, (pause * 2).min(self.options.longest_pause));
        }
        let reason = Reason::Sensed(Sensed::Innocent {
            without: bits(rate),
        });
        vec![SenseAction::Keep(path, reason)]
    }
}
