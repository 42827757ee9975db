//! The state of sensing: what is tried or kept, and what was measured.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::estimate::Estimate;
use super::options::SenseOptions;
use crate::Reason;

/// A trial or check goes on for up to this many times the slots it needs, where rates are too
/// uncertain to judge it; if nothing was measured until then, it is broken off.
pub(super) const LONGEST: usize = 5;

/// A slot in which all paths together carry less than this share of what they did lately says
/// nothing: there is little to send.
const IDLE: f64 = 0.1;

/// The factor by which the peak of earlier slots fades with each slot.
const FADES: f64 = 0.9;

/// What is to be done with a path, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenseAction<K> {
    /// Use it on trial.
    Try(K, Reason),
    /// Use it, or go on using it.
    Keep(K, Reason),
    /// Send nothing over it for some slots; `Keep` or `Drop` follows.
    Pause(K, Reason),
    /// Do not use it any more.
    Drop(K, Reason),
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

#[derive(Debug, Clone)]
pub(super) enum Phase<K> {
    Idle,
    Trial {
        path: K,
        /// What each path it shares with carried before.
        before: BTreeMap<K, Estimate>,
        ticks: usize,
    },
    /// A kept path is paused, since another one fell.
    Check {
        path: K,
        fallen: K,
        had: f64,
        low: Estimate,
        ticks: usize,
    },
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
        match self.phase {
            Phase::Trial { path, .. } => drop(used.insert(path)),
            Phase::Check { path, .. } => drop(used.remove(&path)),
            Phase::Idle => {}
        }
        used
    }

    /// The path that is paused, if one is.
    pub fn paused(&self) -> Option<K> {
        match self.phase {
            Phase::Check { path, .. } => Some(path),
            _ => None,
        }
    }

    /// A time slot is over. To be called once for each.
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
    ) -> Vec<SenseAction<K>> {
        let carried = sum(rates.values().copied());
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
        let mut actions = match self.phase.clone() {
            Phase::Idle => Vec::new(),
            Phase::Trial {
                path,
                before,
                ticks,
            } => self.go_on_trying(path, &before, ticks + usize::from(!idle), &sharing, now),
            Phase::Check {
                path,
                fallen,
                had,
                low,
                ticks,
            } => match sharing.get(&path) {
                None => {
                    self.change(Phase::Idle);
                    Vec::new()
                }
                Some(_) => {
                    let ticks = ticks + usize::from(!idle);
                    self.go_on_checking(path, fallen, (had, low), ticks, now)
                }
            },
        };
        if matches!(self.phase, Phase::Idle) && actions.is_empty() {
            actions.extend(self.watch(&sharing, now));
        }
        if matches!(self.phase, Phase::Idle) && actions.is_empty() && room && !idle {
            actions.extend(self.start(candidates, now));
        }
        actions
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
        (rates.len() >= self.options.slots)
            .then(|| Estimate::of(&rates, spread))
            .flatten()
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

pub(super) fn sum(rates: impl Iterator<Item = f64>) -> f64 {
    rates.sum()
}

pub(super) fn bits(rate: f64) -> u64 {
    rate as u64
}
