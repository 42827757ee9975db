//! Whether paths that share interfaces share a bottleneck, found out by trying (001, section VIII).
//!
//! The outlook of the paper: observe the rates of the paths in use while one more that shares hops
//! with them is added; if none falls, the shared hops are no bottleneck. A path added so stays under
//! watch, since a bottleneck may come later.
//!
//! Keys are the caller's: a downloader names paths, an uploader pairs of peer and path.

mod sensed;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

pub use self::sensed::Sensed;
use crate::Reason;

/// A trial or check that cannot be judged after this many times the slots it needs is broken off.
const BROKEN_OFF: usize = 5;

/// How much is looked at, and what counts as the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SenseOptions {
    /// A rate that differs by less than this share is the same rate.
    pub tolerance: f64,
    /// How many slots the rates are compared over, before and after; at least 1.
    pub slots: usize,
    /// How long a pair of paths that share a bottleneck is not tried again; doubled each time.
    pub pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
}

impl Default for SenseOptions {
    fn default() -> Self {
        SenseOptions {
            tolerance: 0.05,
            slots: 3,
            pause: Duration::from_secs(30),
            longest_pause: Duration::from_secs(480),
        }
    }
}

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
    options: SenseOptions,
    /// The last rates of each path, since what is used last changed.
    rates: BTreeMap<K, VecDeque<f64>>,
    /// What is used has just changed: the rates of this slot belong to neither time.
    settling: bool,
    phase: Phase<K>,
    kept: BTreeMap<K, Kept<K>>,
    /// Pairs not to be tried until then, and how long that is.
    pauses: BTreeMap<(K, K), (Instant, Duration)>,
}

#[derive(Debug, Clone)]
enum Phase<K> {
    Idle,
    Trial {
        path: K,
        /// What each path it shares with carried before.
        before: BTreeMap<K, f64>,
        ticks: usize,
    },
    /// A kept path is paused, since another one fell.
    Check {
        path: K,
        fallen: K,
        had: f64,
        low: f64,
        ticks: usize,
    },
}

#[derive(Debug)]
struct Kept<K> {
    /// What each path it shares with carried at best.
    before: BTreeMap<K, f64>,
    /// When it may be paused for a check, and how long after that again.
    check: (Instant, Duration),
}

impl<K: Copy + Ord> Sense<K> {
    /// Nothing tried yet.
    pub fn new(options: SenseOptions) -> Sense<K> {
        Sense {
            options: SenseOptions {
                slots: options.slots.max(1),
                ..options
            },
            rates: BTreeMap::new(),
            settling: true,
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
    /// `rates`, in bits per second, tells what each path in use carried in it; a path that was not
    /// used for all of the slot is left out. `candidates` are the paths that may be added and those
    /// that were, the most wanted first, each with the paths in use it shares interfaces with. Set
    /// `room` if one more may be used.
    pub fn tick(
        &mut self,
        now: Instant,
        rates: &BTreeMap<K, f64>,
        candidates: &[(K, Vec<K>)],
        room: bool,
    ) -> Vec<SenseAction<K>> {
        self.sample(rates);
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
            } => self.go_on_trying(path, &before, ticks, &sharing, now),
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
                Some(_) => self.go_on_checking(path, fallen, (had, low), ticks, now),
            },
        };
        if matches!(self.phase, Phase::Idle) && actions.is_empty() {
            actions.extend(self.watch(&sharing, now));
        }
        if matches!(self.phase, Phase::Idle) && actions.is_empty() && room {
            actions.extend(self.start(candidates, now));
        }
        actions
    }

    fn sample(&mut self, rates: &BTreeMap<K, f64>) {
        if std::mem::take(&mut self.settling) {
            return;
        }
        self.rates.retain(|path, _| rates.contains_key(path));
        for (path, rate) in rates {
            let known = self.rates.entry(*path).or_default();
            known.push_back(*rate);
            if known.len() > self.options.slots {
                known.pop_front();
            }
        }
    }

    /// What is used changes: what was measured belongs to the past.
    fn change(&mut self, phase: Phase<K>) {
        self.phase = phase;
        self.rates.clear();
        self.settling = true;
    }

    /// The last rates of a path in order of size, once there are enough.
    fn sorted(&self, path: K) -> Option<Vec<f64>> {
        let known = self.rates.get(&path)?;
        let mut rates: Vec<f64> = known.iter().copied().collect();
        rates.sort_by(f64::total_cmp);
        (rates.len() >= self.options.slots).then_some(rates)
    }

    fn median(&self, path: K) -> Option<f64> {
        let rates = self.sorted(path)?;
        rates.get(rates.len() / 2).copied()
    }

    fn medians(&self, paths: impl Iterator<Item = K>) -> Option<BTreeMap<K, f64>> {
        paths.map(|path| Some((path, self.median(path)?))).collect()
    }

    /// Begins a trial, if there is something to try and the rates before it are known.
    fn start(&mut self, candidates: &[(K, Vec<K>)], now: Instant) -> Option<SenseAction<K>> {
        for (path, with) in candidates {
            let rests = |other: &K| {
                let pause = self.pauses.get(&(*path, *other));
                pause.is_some_and(|(until, _)| now < *until)
            };
            if self.kept.contains_key(path) || with.is_empty() || with.iter().any(rests) {
                continue;
            }
            // Of paths that carry nothing nothing could be learned.
            let before = self.medians(with.iter().copied());
            let Some(before) = before.filter(|rates| rates.values().all(|rate| *rate > 0.0)) else {
                continue;
            };
            let reason = Sensed::Trial {
                sharing: before.len(),
                rate: bits(before.values().sum()),
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

    fn go_on_trying(
        &mut self,
        path: K,
        before: &BTreeMap<K, f64>,
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
        let during = self.medians(before.keys().copied());
        let (Some(during), Some(own)) = (during, self.median(path)) else {
            if ticks < self.options.slots * BROKEN_OFF {
                let before = before.clone();
                self.phase = Phase::Trial {
                    path,
                    before,
                    ticks: ticks + 1,
                };
                return Vec::new();
            }
            let again = self.rest(path, before.keys().copied(), now);
            self.change(Phase::Idle);
            let reason = Sensed::Unmeasured { again };
            return vec![SenseAction::Drop(path, Reason::Sensed(reason))];
        };
        let fell = |(other, had): (&K, &f64)| {
            let has = during.get(other).copied().unwrap_or(0.0);
            (has < had * (1.0 - self.options.tolerance)).then_some((*other, *had, has))
        };
        let fallen: Vec<(K, f64, f64)> = before.iter().filter_map(fell).collect();
        let (sum_before, sum) = (sum(before), sum(&during) + own);
        let reason = if let Some((_, had, has)) = fallen.first() {
            Sensed::Bottleneck {
                had: bits(*had),
                has: bits(*has),
                own: bits(own),
                again: self.rest(path, fallen.iter().map(|(other, ..)| *other), now),
            }
        } else if own <= 0.0 || sum <= sum_before {
            Sensed::NoGain {
                before: bits(sum_before),
                after: bits(sum),
                again: self.rest(path, before.keys().copied(), now),
            }
        } else {
            let reason = Reason::Sensed(Sensed::Gain {
                own: bits(own),
                before: bits(sum_before),
                after: bits(sum),
            });
            self.kept.insert(
                path,
                Kept {
                    before: before.clone(),
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

    /// Looks whether a path fell beside one that was kept; that one is then paused for a check.
    fn watch(&mut self, sharing: &BTreeMap<K, &[K]>, now: Instant) -> Option<SenseAction<K>> {
        let seen: BTreeMap<K, Vec<f64>> = self
            .rates
            .keys()
            .filter_map(|path| Some((*path, self.sorted(*path)?)))
            .collect();
        let mut check = None;
        for (path, kept) in &mut self.kept {
            let with = sharing.get(path).copied().unwrap_or_default();
            kept.before.retain(|other, _| with.contains(other));
            for other in with {
                let Some((least, most)) = seen
                    .get(other)
                    .and_then(|rates| Some((rates.first()?, rates.last()?)))
                else {
                    continue;
                };
                let had = kept.before.entry(*other).or_insert(*least);
                // What it carried in each of these slots is what it can carry.
                *had = had.max(*least);
                let (had, low) = (*had, *most);
                if low < had * (1.0 - self.options.tolerance) && now >= kept.check.0 {
                    check.get_or_insert((*path, *other, had, low));
                }
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
            has: bits(low),
        });
        Some(SenseAction::Pause(path, reason))
    }

    fn go_on_checking(
        &mut self,
        path: K,
        fallen: K,
        (had, low): (f64, f64),
        ticks: usize,
        now: Instant,
    ) -> Vec<SenseAction<K>> {
        let without = self.median(fallen);
        if without.is_none() && ticks < self.options.slots * BROKEN_OFF {
            self.phase = Phase::Check {
                path,
                fallen,
                had,
                low,
                ticks: ticks + 1,
            };
            return Vec::new();
        }
        self.change(Phase::Idle);
        let without = without.unwrap_or(0.0);
        if without > low * (1.0 + self.options.tolerance) {
            self.kept.remove(&path);
            let reason = Reason::Sensed(Sensed::Recovered {
                has: bits(low),
                without: bits(without),
                again: self.rest(path, [fallen].into_iter(), now),
            });
            return vec![SenseAction::Drop(path, reason)];
        }
        if let Some(kept) = self.kept.get_mut(&path) {
            // From now on it is held to what it carries now.
            kept.before.insert(fallen, without);
            let pause = kept.check.1;
            kept.check = (now + pause, (pause * 2).min(self.options.longest_pause));
        }
        let reason = Reason::Sensed(Sensed::Innocent {
            without: bits(without),
        });
        vec![SenseAction::Keep(path, reason)]
    }

    /// A path is not tried beside these for a while. Returns how long at most.
    fn rest(&mut self, path: K, others: impl Iterator<Item = K>, now: Instant) -> Duration {
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

fn sum<K>(rates: &BTreeMap<K, f64>) -> f64 {
    rates.values().sum()
}

fn bits(rate: f64) -> u64 {
    rate as u64
}
