//! Whether paths that share interfaces share a bottleneck, found out by trying (001, section VIII).
//!
//! The outlook of the paper: observe the rates of the paths in use while one more that shares hops
//! with them is added; if none falls, the shared hops are no bottleneck. A path added so stays
//! under watch, since a bottleneck may come later.
//!
//! Rates differ from slot to slot without any cause. So how much they do is measured too, and the
//! more that is, the more slots are looked at before anything is concluded.
//!
//! Keys are the caller's: a downloader names paths, an uploader pairs of peer and path.

mod estimate;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use self::estimate::Estimate;
use crate::{Reason, Sensed};

/// A trial or check goes on for up to this many times the slots it needs, where rates are too
/// uncertain to judge it; if nothing was measured until then, it is broken off.
const LONGEST: usize = 5;

/// A slot in which all paths together carry less than this share of what they did lately says
/// nothing: there is little to send.
const IDLE: f64 = 0.1;

/// By so much what was carried before counts less with each slot.
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
    /// What all paths carried together lately.
    peak: f64,
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
struct Kept<K> {
    /// What each path it shares with surely carried at best, and the spread.
    before: BTreeMap<K, (f64, f64)>,
    /// When it may be paused for a check, and how long after that again.
    check: (Instant, Duration),
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
    /// `rates`, in bits per second, tells what each path in use carried in it; a path that was not
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
    fn change(&mut self, phase: Phase<K>) {
        self.phase = phase;
        self.rates.clear();
        self.settling = true;
    }

    /// What a path carries, once enough slots are known; its rate is known to spread so much.
    fn estimate(&self, path: K, spread: f64) -> Option<Estimate> {
        let known = self.rates.get(&path)?;
        let rates: Vec<f64> = known.iter().copied().collect();
        (rates.len() >= self.options.slots)
            .then(|| Estimate::of(&rates, spread))
            .flatten()
    }

    /// Whether more slots would hardly tell more of what a path carries.
    fn is_steady(&self, path: K, estimate: &Estimate) -> bool {
        let slots = self.options.slots;
        let known = self.rates.get(&path).map_or(0, VecDeque::len);
        let tolerance = self.options.tolerance;
        // A few slots may be alike by chance, but hardly that much.
        let is_like = known >= 2 * slots || estimate.spread < tolerance / 5.0;
        known >= slots * LONGEST || is_like && estimate.margin <= 2.0 * tolerance * estimate.rate
    }

    /// Whether that many ticks of a trial or check may be followed by more.
    fn may_go_on(&self, ticks: usize) -> bool {
        ticks <= self.options.slots * LONGEST
    }

    /// How a rate differs from what it was. `most` is the least that it would have to differ by if
    /// there were a cause.
    fn differs(&self, by: f64, rate: f64, margin: f64, most: f64) -> Differs {
        let same = self.options.tolerance * rate;
        let limit = same.max(margin.min(most / 2.0));
        match by > limit {
            _ if margin > same && (by - limit).abs() < margin => Differs::Unclear(by > limit),
            true => Differs::Yes,
            false => Differs::No,
        }
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

    fn go_on_trying(
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

    /// Looks whether a path fell beside one that was kept; that one is then paused for a check.
    fn watch(&mut self, sharing: &BTreeMap<K, &[K]>, now: Instant) -> Option<SenseAction<K>> {
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

    fn go_on_checking(
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

/// Whether a rate differs from what it was by more than chance.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Differs {
    Yes,
    No,
    /// More slots may tell; until then, what is likelier.
    Unclear(bool),
}

impl Differs {
    fn likely(self) -> bool {
        matches!(self, Self::Yes | Self::Unclear(true))
    }
}

fn sum(rates: impl Iterator<Item = f64>) -> f64 {
    rates.sum()
}

fn bits(rate: f64) -> u64 {
    rate as u64
}
