//! Trials: one more path is used beside those it shares interfaces with.

use std::collections::BTreeMap;
use std::time::Instant;

use super::estimate::Estimate;
use super::sensing::{Differs, Kept, Phase, Sense, Trial};
use crate::{Decision, Sensed};

impl<K: Copy + Ord> Sense<K> {
    /// Begins a trial, if there is something to try and the rates before it are known.
    pub(super) fn start(
        &mut self,
        candidates: &[(K, Vec<K>)],
        now: Instant,
    ) -> Option<(K, Decision)> {
        for (path, with) in candidates {
            let rests = |other: &K| {
                let pause = self.pauses.get(&(*path, *other));
                pause.is_some_and(|(until, _)| now < *until)
            };
            if self.kept.contains_key(path) || with.is_empty() || with.iter().any(rests) {
                continue;
            }
            // A trial beside paths that carry nothing shows nothing.
            let before = with.iter().map(|it| Some((*it, self.estimate(*it, 0.0)?)));
            let Some(before) = before.collect::<Option<BTreeMap<_, _>>>() else {
                continue;
            };
            if !before.iter().all(|(other, it)| self.is_steady(*other, it)) {
                continue;
            }
            let reason = Sensed::Trial {
                sharing: before.len(),
                rate: before.values().map(|it| it.rate).sum::<f64>() as u64,
            };
            self.change(Phase::Trial(Trial {
                path: *path,
                before,
                ticks: 0,
            }));
            return Some((*path, Decision::taken(reason.into())));
        }
        None
    }

    /// Judges a trial after another slot, and ends it once its outcome is clear.
    pub(super) fn go_on_trying(
        &mut self,
        trial: Trial<K>,
        sharing: &BTreeMap<K, &[K]>,
        now: Instant,
    ) -> Option<(K, Decision)> {
        let (path, before) = (trial.path, &trial.before);
        let left = |reason: Sensed| Some((path, Decision::left(reason.into())));
        let Some(with) = sharing.get(&path) else {
            self.change(Phase::Idle);
            return None;
        };
        if before.len() != with.len() || with.iter().any(|other| !before.contains_key(other)) {
            // The path is not the cause: it may be tried again as soon as the rates are known.
            self.change(Phase::Idle);
            return left(Sensed::Changed);
        }
        let may_go_on = self.may_go_on(trial.ticks);
        let during = before.iter();
        let during = during.map(|(other, had)| self.estimate(*other, had.spread));
        let during: Option<Vec<Estimate>> = during.collect();
        let spread = before.values().map(|had| had.spread).fold(0.0, f64::max);
        let (Some(during), Some(own)) = (during, self.estimate(path, spread)) else {
            if may_go_on {
                self.phase = Phase::Trial(trial);
                return None;
            }
            let again = self.pause_trials(path, before.keys().copied(), now);
            self.change(Phase::Idle);
            return left(Sensed::Unmeasured { again });
        };
        let sum_before: f64 = before.values().map(|it| it.rate).sum();
        let sum_after = during.iter().map(|it| it.rate).sum::<f64>() + own.rate;
        let (mut sure, mut unclear) = (false, false);
        let mut fallen: Vec<(K, f64, f64)> = Vec::new();
        for ((other, had), has) in before.iter().zip(&during) {
            // In a full bottleneck, its rate is taken from all of them in proportion.
            let cost = had.rate * own.rate / sum_after;
            let lost = had.rate - has.rate;
            let fell = self.differs(lost, had.rate, had.margin_to(has), cost);
            sure |= fell == Differs::Yes;
            unclear |= matches!(fell, Differs::Unclear(_));
            if fell.likely() {
                fallen.push((*other, had.rate, has.rate));
            }
        }
        let margins = before.values().chain(&during).chain([&own]);
        let margin = margins.fold(0.0, |all: f64, it| all.hypot(it.margin));
        // Any gain counts, but one that may be noise must be half of its rate.
        let (gain, least) = (sum_after - sum_before, margin.min(own.rate / 2.0));
        unclear |= margin > self.options.tolerance * sum_before && (gain - least).abs() < margin;
        if unclear && !sure && may_go_on {
            self.phase = Phase::Trial(trial);
            return None;
        }
        let own = own.rate as u64;
        let (rate_before, after) = (sum_before as u64, sum_after as u64);
        let reason = if let Some((_, had, has)) = fallen.first() {
            Sensed::Bottleneck {
                had: *had as u64,
                has: *has as u64,
                own,
                again: self.pause_trials(path, fallen.iter().map(|(other, ..)| *other), now),
            }
        } else if gain <= least {
            Sensed::NoGain {
                before: rate_before,
                after,
                again: self.pause_trials(path, before.keys().copied(), now),
            }
        } else {
            let best = before.iter();
            let best = best.map(|(other, had)| (*other, (had.least(), had.spread)));
            let kept = Kept {
                before: best.collect(),
                check: (now, self.options.pause),
            };
            self.kept.insert(path, kept);
            // The set of used paths stays the same, so the measurements stay valid.
            let reason = Sensed::Gain {
                own,
                before: rate_before,
                after,
            };
            return Some((path, Decision::taken(reason.into())));
        };
        self.change(Phase::Idle);
        left(reason)
    }
}
