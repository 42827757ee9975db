//! The state of sensing: trials, kept paths and measurements.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::estimate::Estimate;
use crate::Decision;

/// A trial or check lasts up to this many times the slots it needs, if rates are too uncertain to
/// judge it; if nothing was measured by then, it is aborted.
pub(super) const MAX_SLOTS_FACTOR: usize = 5;

/// A slot in which all paths together carry less than this share of the recent peak is ignored:
/// there is little to send.
const MIN_PEAK_SHARE: f64 = 0.1;

/// The factor by which the peak decays per slot.
const FADES: f64 = 0.9;

/// How many slots are compared, and which rates count as equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SenseOptions {
    /// Rates that differ by less than this share are equal. If rates vary more from slot to slot,
    /// so are rates that differ by up to half of what a shared bottleneck would cost.
    pub tolerance: f64,
    /// How many slots rates are compared over, before and after a change; at least 1. Up to five
    /// times as many if rates vary from slot to slot; with 1, the variation cannot be measured.
    pub slots: usize,
    /// How long a pair of paths that share a bottleneck is not retried; doubled each time.
    pub pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
}

impl Default for SenseOptions {
    fn default() -> Self {
        Self {
            tolerance: 0.05,
            slots: 3,
            pause: Duration::from_secs(30),
            longest_pause: Duration::from_secs(480),
        }
    }
}

/// Tries paths that share interfaces with those in use, one at a time.
#[derive(Debug)]
pub struct Sense<K> {
    pub(super) options: SenseOptions,
    /// The last rates of each path since the set of used paths changed.
    pub(super) rates: BTreeMap<K, VecDeque<f64>>,
    /// The set of used paths has just changed: the rates of this slot belong to neither set.
    settling: bool,
    /// The recent peak of what all paths carried together, in bit/s.
    peak: f64,
    pub(super) phase: Phase<K>,
    pub(super) kept: BTreeMap<K, Kept<K>>,
    /// Pairs that must not be tried until then, and the length of that pause.
    pub(super) pauses: BTreeMap<(K, K), (Instant, Duration)>,
}

#[derive(Debug)]
pub(super) enum Phase<K> {
    Idle,
    Trial(Trial<K>),
    Check(Check<K>),
}

#[derive(Debug)]
pub(super) struct Trial<K> {
    pub path: K,
    /// The rate of each path it shares with before the trial.
    pub before: BTreeMap<K, Estimate>,
    pub ticks: usize,
}

/// A check: a kept path is paused, since the rate of another one fell.
#[derive(Debug)]
pub(super) struct Check<K> {
    pub path: K,
    pub fallen: K,
    /// The least rate of the other before (`had`), and its current rate (`low`).
    pub had: f64,
    pub low: Estimate,
    pub ticks: usize,
}

#[derive(Debug)]
pub(super) struct Kept<K> {
    /// The highest rate, less its margin, of each path it shares with, and the spread.
    pub before: BTreeMap<K, (f64, f64)>,
    /// When it may next be paused for a check, and the pause after that check.
    pub check: (Instant, Duration),
}

impl<K: Copy + Ord> Sense<K> {
    /// Sensing without trials so far.
    pub fn new(options: SenseOptions) -> Self {
        Self {
            options: SenseOptions {
                slots: options.slots.max(1),
                ..options
            },
            rates: BTreeMap::new(),
            settling: true,
            peak: 0.0,
            phase: Phase::Idle,
            kept: BTreeMap::new(),
            pauses: BTreeMap::new(),
        }
    }

    /// The paths used because of sensing: those kept, and the one on trial.
    pub fn used(&self) -> BTreeSet<K> {
        let mut used: BTreeSet<K> = self.kept.keys().copied().collect();
        match &self.phase {
            Phase::Trial(trial) => drop(used.insert(trial.path)),
            Phase::Check(check) => drop(used.remove(&check.path)),
            Phase::Idle => {}
        }
        used
    }

    /// The path that is paused for a check; `None` if there is none.
    pub fn paused(&self) -> Option<K> {
        match &self.phase {
            Phase::Check(check) => Some(check.path),
            _ => None,
        }
    }

    /// Ends a time slot; must be called once for each. Returns the decision about a path, if one
    /// changed: a taken path is used, on trial at first; a waiting path is paused for some slots; a
    /// path that is left is no longer used.
    ///
    /// `rates` has the rate of each path in use during the slot, in bit/s. A path that was not used
    /// for the whole slot must be left out; a rate of 0 is ignored, since there may have been
    /// nothing to send. `candidates` are the paths that may be added and those that were, the most
    /// wanted first, each with the paths in use it shares interfaces with. `room` says whether one
    /// more path may be used.
    pub fn tick(
        &mut self,
        now: Instant,
        rates: &BTreeMap<K, f64>,
        candidates: &[(K, Vec<K>)],
        room: bool,
    ) -> Option<(K, Decision)> {
        let carried: f64 = rates.values().sum();
        self.peak = carried.max(self.peak * FADES);
        let idle = carried <= self.peak * MIN_PEAK_SHARE;
        if !idle {
            self.sample(rates);
        }
        let sharing: BTreeMap<K, &[K]> = candidates
            .iter()
            .map(|(path, with)| (*path, with.as_slice()))
            .collect();
        self.kept.retain(|path, _| sharing.contains_key(path));
        self.pauses
            .retain(|_, (until, longest)| now < *until + *longest);
        let mut action = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => None,
            Phase::Trial(mut trial) => {
                trial.ticks += usize::from(!idle);
                self.go_on_trying(trial, &sharing, now)
            }
            Phase::Check(mut check) if sharing.contains_key(&check.path) => {
                check.ticks += usize::from(!idle);
                self.go_on_checking(check, now)
            }
            Phase::Check(_) => {
                self.change(Phase::Idle);
                None
            }
        };
        if matches!(self.phase, Phase::Idle) && action.is_none() {
            action = self.watch(&sharing, now);
        }
        if matches!(self.phase, Phase::Idle) && action.is_none() && room && !idle {
            action = self.start(candidates, now);
        }
        action
    }

    fn sample(&mut self, rates: &BTreeMap<K, f64>) {
        if std::mem::take(&mut self.settling) {
            return;
        }
        self.rates.retain(|path, _| rates.contains_key(path));
        for (path, rate) in rates.iter().filter(|(_, rate)| **rate > 0.0) {
            let known = self.rates.entry(*path).or_default();
            known.push_back(*rate);
            if known.len() > self.options.slots * MAX_SLOTS_FACTOR {
                known.pop_front();
            }
        }
    }

    /// Enters a phase with another set of used paths, and discards earlier measurements.
    pub(super) fn change(&mut self, phase: Phase<K>) {
        self.phase = phase;
        self.rates.clear();
        self.settling = true;
    }

    /// The estimate for a path with at least this spread; `None` until enough slots are known.
    pub(super) fn estimate(&self, path: K, spread: f64) -> Option<Estimate> {
        let known = self.rates.get(&path)?;
        let rates: Vec<f64> = known.iter().copied().collect();
        (rates.len() >= self.options.slots).then(|| Estimate::of(&rates, spread))
    }

    /// Whether more slots would hardly improve the estimate of what a path carries.
    pub(super) fn is_steady(&self, path: K, estimate: &Estimate) -> bool {
        let slots = self.options.slots;
        let known = self.rates.get(&path).map_or(0, VecDeque::len);
        let tolerance = self.options.tolerance;
        // A few slots may be alike by chance, but hardly that much.
        let is_like = known >= 2 * slots || estimate.spread < tolerance / 5.0;
        known >= slots * MAX_SLOTS_FACTOR
            || is_like && estimate.margin <= 2.0 * tolerance * estimate.rate
    }

    /// Whether a trial or check may continue after that many ticks.
    pub(super) fn may_go_on(&self, ticks: usize) -> bool {
        ticks <= self.options.slots * MAX_SLOTS_FACTOR
    }

    /// Whether a rate changed. `by` is the change, `rate` the rate before, `margin` the uncertainty
    /// of the change, and `most` the least change that a shared bottleneck would cause.
    pub(super) fn differs(&self, by: f64, rate: f64, margin: f64, most: f64) -> Differs {
        let same = self.options.tolerance * rate;
        let limit = same.max(margin.min(most / 2.0));
        match by > limit {
            _ if margin > same && (by - limit).abs() < margin => Differs::Unclear(by > limit),
            true => Differs::Yes,
            false => Differs::No,
        }
    }

    /// Pauses trials of a path beside these. Returns the longest of the pauses.
    pub(super) fn pause_trials(
        &mut self,
        path: K,
        others: impl Iterator<Item = K>,
        now: Instant,
    ) -> Duration {
        let mut longest = Duration::ZERO;
        // A pair whose pause ended long ago begins with the first one again.
        let remembered = self.options.longest_pause;
        self.pauses
            .retain(|_, (until, _)| *until + remembered > now);
        for other in others {
            let before = self.pauses.get(&(path, other)).map(|(_, pause)| *pause * 2);
            let pause = before
                .unwrap_or(self.options.pause)
                .min(self.options.longest_pause);
            self.pauses.insert((path, other), (now + pause, pause));
            longest = longest.max(pause);
        }
        longest
    }
}

/// Whether a rate differs from what it was by more than chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Differs {
    Yes,
    No,
    /// Not known before more slots; the value says which is likelier.
    Unclear(bool),
}

impl Differs {
    pub fn likely(self) -> bool {
        matches!(self, Self::Yes | Self::Unclear(true))
    }
}
