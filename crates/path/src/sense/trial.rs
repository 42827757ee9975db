//! Trials: one more path is used beside those it shares interfaces with.

use std::collections::BTreeMap;
use std::time::Instant;

use super::estimate::Estimate;
use super::sensing::{Differs, Kept, Phase, Sense, SenseAction, bits, sum};
use crate::{Reason, Sensed};

impl<K: Copy + Ord> Sense<K> {
    /// Begins a trial, if there is something to try and the rates before it are known.
    pub(super) fn start(
        &mut self,
        candidates: &[(K, Vec<K>)],
        now: Instant,
    ) -> Option<SenseAction<K>> {
        for (path, with) in candidates {
            let rests = |other: &K| {
                let pause = self.pauses.get(&(*path, *other));
                pause.is_some_and(|(until, _)| now < *until)
            };
            if self.kept.contains_key(path) || with.is_empty() || with.iter().any(rests) {
                continue;
            }
            // Of paths that carry nothing nothing could be learned.
            let before = with.iter().map(|it| Some((*it, self.estimate(*it, 0.0)?)));
            let Some(before) = before.collect::<Option<BTreeMap<_, _>>>() else {
                continue;
            };
            if !before.iter().all(|(other, it)| self.is_steady(*other, it)) {
                continue;
            }
            let reason = Sensed::Trial {
                sharing: before.len(),
                rate: bits(sum(before.values().map(|it| it.rate))),
            };
            self.change(Phase::Trial {
                path: *path,
                before,
                ticks: 0,
            });
            return Some(SenseAction::Try(*path, Reason::Sensed(reason)));
        }
        None
    }

    /// Looks at a trial after another slot, and ends it once its outcome is clear.
    pub(super) fn go_on_trying(
        &mut self,
        path: K,
        before: &BTreeMap<K, Estimate>,
        ticks: usize,
        sharing: &BTreeMap<K, &[K]>,
        now: Instant,
    ) -> Vec<SenseAction<K>> {
        let Some(with) = sharing.get(&path) else {
            self.change(Phase::Idle);
            return Vec::new();
        };
        if before.len() != with.len() || with.iter().any(|other| !before.contains_key(other)) {
            // Not its fault: it may be tried again as soon as the rates are known.
            self.change(Phase::Idle);
            return vec![SenseAction::Drop(path, Reason::Sensed(Sensed::Changed))];
        }
        let go_on = Phase::Trial {
            path,
            before: before.clone(),
            ticks,
        };
        let during = before
            .iter()
            .map(|(other, had)| Some((*other, self.estimate(*other, had.spread)?)));
        let during: Option<BTreeMap<K, Estimate>> = during.collect();
        let spread = before.values().map(|had| had.spread).fold(0.0, f64::max);
        let (Some(during), Some(own)) = (during, self.estimate(path, spread)) else {
            if self.may_go_on(ticks) {
                self.phase = go_on;
                return Vec::new();
            }
            let again = self.rest(path, before.keys().copied(), now);
            self.change(Phase::Idle);
            let reason = Sensed::Unmeasured { again };
            return vec![SenseAction::Drop(path, Reason::Sensed(reason))];
        };
        let sum_before = sum(before.values().map(|it| it.rate));
        let sum_after = sum(during.values().map(|it| it.rate)) + own.rate;
        let (mut sure, mut unclear) = (false, false);
        let mut fallen: Vec<(K, f64, f64)> = Vec::new();
        for (other, had) in before {
            let Some(has) = during.get(other) else {
                continue;
            };
            // In a full bottleneck, what it carries is taken from them all alike.
            let cost = had.rate * own.rate / sum_after;
            let lost = had.rate - has.rate;
            let fell = self.differs(lost, had.rate, had.margin_to(has), cost);
            sure |= fell == Differs::Yes;
            unclear |= matches!(fell, Differs::Unclear(_));
            if fell.likely() {
                fallen.push((*other, had.rate, has.rate));
            }
        }
        let margins = before.values().chain(during.values()).chain([&own]);
        let margin = margins.fold(0.0, |all: f64, it| all.hypot(it.margin));
        // Any gain counts; but one that may be noise has to be half of what it carries.
        let (gain, least) = (sum_after - sum_before, margin.min(own.rate / 2.0));
        unclear |= margin > self.options.tolerance * sum_before && (gain - least).abs() < margin;
        if unclear && !sure && self.may_go_on(ticks) {
            self.phase = go_on;
            return Vec::new();
        }
        let reason = if let Some((_, had, has)) = fallen.first() {
            Sensed::Bottleneck {
                had: bits(*had),
                has: bits(*has),
                own: bits(own.rate),
                again: self.rest(path, fallen.iter().map(|(other, ..)| *other), now),
            }
        } else if gain <= least {
            Sensed::NoGain {
                before: bits(sum_before),
                after: bits(sum_after),
                again: self.rest(path, before.keys().copied(), now),
            }
        } else {
            let reason = Reason::Sensed(Sensed::Gain {
                own: bits(own.rate),
                before: bits(sum_before),
                after: bits(sum_after),
            });
            self.kept.insert(
                path,
                Kept {
                    before: before
                        .iter()
                        .map(|(other, had)| (*other, (had.least(), had.spread)))
                        .collect(),
                    check: (now, self.options.pause),
                },
            );
            // Nothing about what is used changes: what was measured stays good.
            self.phase = Phase::Idle;
            return vec![SenseAction::Keep(path, reason)];
        };
        self.change(Phase::Idle);
        vec![SenseAction::Drop(path, Reason::Sensed(reason))]
    }
}
