//! The state of sensing: what is tried or kept, and what was measured.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::estimate::Estimate;
use crate::Decision;

/// A trial or check goes on for up to this many times the slots it needs, where rates are too
/// uncertain to judge it; if nothing was measured until then, it is broken off.
pub(super) const LONGEST: usize = 5;

/// A slot in which all paths together carry less than this share of what they did lately says
/// nothing: there is little to send.
const IDLE: f64 = 0.1;

/// The factor by which the peak of earlier slots fades with each slot.
const FADES: f64 = 0.9;

/// How much is looked at, and what counts as the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SenseOptions {
    /// A rate that differs by less than this share is the same rate. Where rates differ by more
    /// from slot to slot, up to half of what a shared bottleneck would cost is too.
    pub tolerance: f64,
    /// How many slots the rates are compared over, before and after; at least 1. Up to five times
    /// as many where rates differ from slot to slot; with 1, that cannot be seen.
    pub slots: usize,
    /// How long a pair of paths that share a bottleneck is not tried again; doubled each time.
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
    /// The last rates of each path, since what is used last changed.
    pub(super) rates: BTreeMap<K, VecDeque<f64>>,
    /// What is used has just changed: the rates of this slot belong to neither time.
    settling: bool,
    /// What all paths carried together lately.
    peak: f64,
    pub(super) phase: Phase<K>,
    pub(super) kept: BTreeMap<K, Kept<K>>,
    /// Pairs not to be tried until then, and how long that is.
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
    /// What each path it shares with carried before.
    pub before: BTreeMap<K, Estimate>,
    pub ticks: usize,
}

/// A kept path is paused, since another one fell.
#[derive(Debug)]
pub(super) struct Check<K> {
    pub path: K,
    pub fallen: K,
    /// What the other surely carried, and what it carries now.
    pub had: f64,
    pub low: Estimate,
    pub ticks: usize,
}

#[derive(Debug)]
pub(super) struct Kept<K> {
    /// What each path it shares with surely carried at best, and the spread.
    pub before: BTreeMap<K, (f64, f64)>,
    /// When it may be paused for a check, and how long after that again.
    pub check: (Instant, Duration),
}

impl<K: Copy + Ord> Sense<K> {
    /// Nothing tried yet.
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

    /// The paths to use because of this: those kept, and the one on trial.
    pub fn used(&self) -> BTreeSet<K> {
        let mut used: BTreeSet<K> = self.kept.keys().copied().collect();
        match &self.phase {
            Phase::Trial(trial) => drop(used.insert(trial.path)),
            Phase::Check(check) => drop(used.remove(&check.path)),
            Phase::Idle => {}
        }
        used
    }

    /// The path that is paused, if one is.
    pub fn paused(&self) -> Option<K> {
        match &self.phase {
            Phase::Check(check) => Some(check.path),
            _ => None,
        }
    }

    /// A time slot is over. To be called once for each. Returns what is to be done with a path now:
    /// one that is taken is used, on trial at first; one that waits is paused for some slots.
    ///
    /// `rates` has what each path in use carried in it, in bits per second; a path that was not
    /// used for all of the slot is left out, and one that carried nothing counts as such: it may be
    /// that nothing was to be sent. `candidates` are the paths that may be added and those that
    /// were, the most wanted first, each with the paths in use it shares interfaces with. Set
    /// `room` if one more may be used.
    pub fn tick(
        &mut self,
        now: Instant,
        rates: &BTreeMap<K, f64>,
        candidates: &[(K, Vec<K>)],
        room: bool,
    ) -> Option<(K, Decision)> {
        let carried: f64 = rates.values().sum();
        self.peak = carried.max(self.peak * FADES);
        let idle = carried <= self.peak * IDLE;
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
            if known.len() > self.options.slots * LONGEST {
                known.pop_front();
            }
        }
    }

    /// What is used changes: what was measured belongs to the past.
    pub(super) fn change(&mut self, phase: Phase<K>) {
        self.phase = phase;
        self.rates.clear();
        self.settling = true;
    }

    /// What a path carries, once enough slots are known; its rate is known to spread at least this
    /// much.
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
        known >= slots * LONGEST || is_like && estimate.margin <= 2.0 * tolerance * estimate.rate
    }

    /// Whether that many ticks of a trial or check may be followed by more.
    pub(super) fn may_go_on(&self, ticks: usize) -> bool {
        ticks <= self.options.slots * LONGEST
    }

    /// How a rate differs from what it was. `most` is the least that it would have to differ by if
    /// there were a cause.
    pub(super) fn differs(&self, by: f64, rate: f64, margin: f64, most: f64) -> Differs {
        let same = self.options.tolerance * rate;
        let limit = same.max(margin.min(most / 2.0));
        match by > limit {
            _ if margin > same && (by - limit).abs() < margin => Differs::Unclear(by > limit),
            true => Differs::Yes,
            false => Differs::No,
        }
    }

    /// A path is not tried beside these for a while. Returns how long at most.
    pub(super) fn rest(
        &mut self,
        path: K,
        others: impl Iterator<Item = K>,
        now: Instant,
    ) -> Duration {
        let mut longest = Duration::ZERO;
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
    /// Not known before more slots; until then, what is likelier.
    Unclear(bool),
}

impl Differs {
    pub fn likely(self) -> bool {
        matches!(self, Self::Yes | Self::Unclear(true))
    }
}
