//! Which of the connected paths are used: first by their handshakes, then slot by slot (000,
//! section 3.3.2).
//!
//! Where the thesis closes a connection, the path waits here: it stays connected, nothing is asked
//! for over it, and it is used for a slot again now and then to see whether it got better.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::{Decision, Fingerprint, Reason};

/// How long a time slot is where nothing else is set (000, section 3.3.2).
pub const TIME_SLOT: Duration = Duration::from_secs(1);

/// Handshakes are compared this long after the first one, even if others are still missing.
const HANDSHAKES: Duration = Duration::from_secs(1);

/// Most slots a waiting path waits before it is probed.
const MOST_SLOTS: u32 = 32;

/// A round trip counts as no longer than this, so that a path cannot put off being weighed.
const MOST_RTT: Duration = Duration::from_secs(2);

/// A path that has carried enough waits only after this many light slots in a row: rates differ from
/// slot to slot.
const LIGHT_SLOTS: u32 = 3;

/// After this many slots of enough weight, a path that waited is trusted as if it never had.
const TRUSTED_SLOTS: u32 = MOST_SLOTS;

/// A slot in which even the best path carries less than this share of what was carried before says
/// nothing: there is little to send.
const IDLE: f64 = 0.1;

/// The factor by which the peak of earlier slots fades with each slot.
const FADES: f64 = 0.9;

/// How paths are weighed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotOptions {
    /// A path waits when its weight is less than this share of the best path's, 0 to 1
    /// (`minWeightPercentage`): three slots in a row, or in the first slot it is weighed in less
    /// than half of this. 0 lets no path wait.
    pub min_weight: f64,
    /// How long a time slot is; at least 10 ms.
    pub time_slot: Duration,
    /// Slots a waiting path waits before it is used for one again; doubled each time, up to 32,
    /// until it has carried enough for 32 slots in a row.
    pub probe_every: u32,
}

impl Default for SlotOptions {
    fn default() -> Self {
        Self {
            min_weight: 0.01,
            time_slot: TIME_SLOT,
            probe_every: 4,
        }
    }
}

/// The connected paths to one address-level peer, and which of them wait.
#[derive(Debug)]
pub struct Slots {
    options: SlotOptions,
    paths: BTreeMap<Fingerprint, State>,
    handshakes: Handshakes,
    /// When the slot that runs began; `None` while nothing is connected.
    begun: Option<Instant>,
    /// What the best path carried lately, in bits per second.
    peak: f64,
}

#[derive(Debug, Clone, Copy)]
enum Handshakes {
    /// How many handshakes are expected, and when the first was done.
    On(usize, Option<Instant>),
    Compared,
}

#[derive(Debug)]
struct State {
    handshake: Duration,
    use_: Use,
    /// Bytes read at the end of the last slot; `None` if it could not be used.
    mark: Option<u64>,
    /// Its share of the best's weight, when last weighed.
    share: f64,
    /// How many slots it waits the next time.
    patience: u32,
    /// Whether it has carried enough since it is used.
    proved: bool,
    /// How many slots in a row it was too light.
    light: u32,
    /// How many slots in a row it was not.
    enough: u32,
    decision: Option<Decision>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Use {
    /// Since when; weighed only after its grace.
    Active(Instant),
    /// Used again to be weighed, since when.
    Probed(Instant),
    /// For this many more slots.
    Waiting(u32),
}

impl Slots {
    /// Nothing connected yet. Options out of their bounds are moved into them.
    pub fn new(options: SlotOptions) -> Self {
        let min_weight = options.min_weight;
        Self {
            options: SlotOptions {
                min_weight: if min_weight.is_nan() {
                    0.0
                } else {
                    min_weight.clamp(0.0, 1.0)
                },
                time_slot: options.time_slot.max(Duration::from_millis(10)),
                probe_every: options.probe_every.clamp(1, MOST_SLOTS),
            },
            paths: BTreeMap::new(),
            handshakes: Handshakes::On(usize::MAX, None),
            begun: None,
            peak: 0.0,
        }
    }

    /// How many handshakes are compared. That happens when they are done, or 1 s after the first;
    /// without this call always after that second.
    pub fn expect(&mut self, handshakes: usize) {
        if let Handshakes::On(expected, _) = &mut self.handshakes {
            *expected = handshakes;
        }
    }

    /// A path is connected, after a handshake of this length. It is used from now on, and weighed
    /// after a slot and two round trips.
    pub fn connected(&mut self, path: Fingerprint, handshake: Duration, now: Instant) {
        self.begun.get_or_insert(now);
        if let Handshakes::On(_, first) = &mut self.handshakes {
            first.get_or_insert(now);
        }
        self.paths.insert(
            path,
            State {
                handshake,
                use_: Use::Active(now),
                mark: None,
                share: 1.0,
                patience: self.options.probe_every,
                proved: false,
                light: 0,
                enough: 0,
                decision: None,
            },
        );
    }

    /// A path is not connected any more, or delivers nothing. If it was in use, the best of those
    /// that wait takes over at once.
    pub fn gone(&mut self, path: Fingerprint, now: Instant) -> Option<(Fingerprint, Decision)> {
        let state = self.paths.remove(&path)?;
        match state.use_ {
            Use::Waiting(_) => None,
            Use::Active(_) | Use::Probed(_) => self.take_over(Some(path), now),
        }
    }

    /// Whether [`slot`](Self::slot) is to be called.
    pub fn due(&self, now: Instant) -> bool {
        self.is_comparison_due(now) || self.is_slot_over(now)
    }

    /// When [`slot`](Self::slot) is to be called next; `None` while nothing is connected.
    pub fn next_due(&self) -> Option<Instant> {
        let handshakes = match self.handshakes {
            Handshakes::On(_, first) => first.map(|first| first + HANDSHAKES),
            Handshakes::Compared => None,
        };
        let slot = self.begun.map(|begun| begun + self.options.time_slot);
        [handshakes, slot].into_iter().flatten().min()
    }

    /// Compares the handshakes or ends the slot, if that is due, and returns what changed.
    ///
    /// `read` returns how many bytes were read over a path in all; `None` if it could not be used for
    /// all of the slot, being choked or having nothing we lack. Then it is not weighed: the thesis
    /// names that as the condition of a true weight. Neither is any path in a slot in which the
    /// best carries less than a tenth of what it did lately: there is little to send.
    pub fn slot(
        &mut self,
        read: impl Fn(Fingerprint) -> Option<u64>,
        now: Instant,
    ) -> Vec<(Fingerprint, Decision)> {
        let mut changes = Vec::new();
        if self.is_comparison_due(now) {
            self.handshakes = Handshakes::Compared;
            self.compare_handshakes(&mut changes);
        }
        if self.is_slot_over(now) {
            self.end_slot(read, now, &mut changes);
        }
        changes
    }

    /// Whether nothing is to be sent over a path for now.
    pub fn is_waiting(&self, path: Fingerprint) -> bool {
        let state = self.paths.get(&path);
        state.is_some_and(|state| matches!(state.use_, Use::Waiting(_)))
    }

    /// What was last decided about a path; `None` if it was never found too light.
    pub fn decision(&self, path: Fingerprint) -> Option<Decision> {
        self.paths.get(&path)?.decision.clone()
    }

    fn is_comparison_due(&self, now: Instant) -> bool {
        match self.handshakes {
            Handshakes::On(expected, Some(first)) => {
                self.paths.len() >= expected || now.saturating_duration_since(first) >= HANDSHAKES
            }
            Handshakes::On(_, None) | Handshakes::Compared => false,
        }
    }

    fn is_slot_over(&self, now: Instant) -> bool {
        let long = |begun| now.saturating_duration_since(begun) >= self.options.time_slot;
        self.begun.is_some_and(long)
    }

    /// 000, Alg. 2: the weight of a handshake is one over its length.
    fn compare_handshakes(&mut self, changes: &mut Vec<(Fingerprint, Decision)>) {
        let Some(best) = self.paths.values().map(|state| state.handshake).min() else {
            return;
        };
        for (path, state) in &mut self.paths {
            // No handshake takes no time at all; a clock may be coarse.
            let length = state.handshake.max(Duration::from_micros(1));
            let share = best.max(Duration::from_micros(1)).as_secs_f64() / length.as_secs_f64();
            if share < self.options.min_weight {
                state.wait(share, |share_ppm| Reason::SlowHandshake {
                    handshake: length,
                    share_ppm,
                });
                changes.extend(state.decision.clone().map(|decision| (*path, decision)));
            }
        }
    }

    /// 000, Alg. 3: the weight is what was read within the slot.
    fn end_slot(
        &mut self,
        read: impl Fn(Fingerprint) -> Option<u64>,
        now: Instant,
        changes: &mut Vec<(Fingerprint, Decision)>,
    ) {
        let begun = self.begun.replace(now).unwrap_or(now);
        let seconds = now.saturating_duration_since(begun).as_secs_f64().max(1e-6);
        let mut weights: BTreeMap<Fingerprint, f64> = BTreeMap::new();
        let mut unknown = false;
        for (path, state) in &mut self.paths {
            let total = read(*path);
            let before = std::mem::replace(&mut state.mark, total);
            if matches!(state.use_, Use::Waiting(_)) {
                continue;
            }
            unknown |= total.is_some() && before.is_none();
            if let (Some(total), Some(before)) = (total, before) {
                weights.insert(*path, total.saturating_sub(before) as f64 * 8.0 / seconds);
            }
        }
        let best = weights.values().copied().fold(0.0, f64::max);
        self.peak = best.max(self.peak * FADES);
        let idle = best <= self.peak * IDLE;
        let settled = self.options.time_slot;
        for (path, state) in &mut self.paths {
            let waited = match &mut state.use_ {
                Use::Waiting(slots) => {
                    *slots -= 1;
                    *slots == 0
                }
                Use::Active(_) | Use::Probed(_) => false,
            };
            let decision = if waited {
                state.begin(Use::Probed(now));
                let slots = state.patience;
                state.patience = (slots * 2).min(MOST_SLOTS);
                Some(Decision::taken(Reason::Probing { slots }))
            } else {
                let weight = weights.get(path).copied().filter(|_| !idle);
                let grace = settled + state.handshake.min(MOST_RTT) * 2;
                weight.and_then(|weight| {
                    let (min, most) = (self.options.min_weight, self.options.probe_every);
                    state.weigh(weight, best, min, most, grace, now)
                })
            };
            if let Some(decision) = decision {
                state.decision = Some(decision.clone());
                changes.push((*path, decision));
            }
        }
        // The paths in use deliver nothing, whether choked or broken.
        if best == 0.0 && !unknown {
            changes.extend(self.take_over(None, now));
        }
    }

    /// The best of those that wait is used again.
    fn take_over(
        &mut self,
        from: Option<Fingerprint>,
        now: Instant,
    ) -> Option<(Fingerprint, Decision)> {
        // One that is choked too would be of no help.
        let waiting = |state: &State| {
            matches!(state.use_, Use::Waiting(_)) && (from.is_some() || state.mark.is_some())
        };
        let waiting = self.paths.iter_mut().filter(|(_, state)| waiting(state));
        let (path, state) = waiting.max_by(|(_, a), (_, b)| a.share.total_cmp(&b.share))?;
        state.begin(Use::Probed(now));
        let decision = Decision::taken(Reason::TakesOver { from });
        state.decision = Some(decision.clone());
        Some((*path, decision))
    }
}

impl State {
    /// What follows from a weight, in bits per second, after its grace.
    fn weigh(
        &mut self,
        weight: f64,
        best: f64,
        min: f64,
        patience: u32,
        grace: Duration,
        now: Instant,
    ) -> Option<Decision> {
        let (Use::Active(since) | Use::Probed(since)) = self.use_ else {
            return None;
        };
        let (rate, share) = (weight as u64, weight / best);
        if share >= min {
            // As soon as it shows enough: no need to wait for the end of the grace.
            self.share = share;
            self.proved = true;
            self.light = 0;
            self.enough += 1;
            if self.enough >= TRUSTED_SLOTS {
                self.patience = patience;
            }
            let probed = matches!(self.use_, Use::Probed(_));
            return probed.then(|| {
                self.use_ = Use::Active(since);
                Decision::taken(Reason::ProbedAgain { rate })
            });
        }
        if now.saturating_duration_since(since) < grace {
            return None;
        }
        self.light += 1;
        self.enough = 0;
        let clear = !self.proved && share < min / 2.0;
        if !clear && self.light < LIGHT_SLOTS {
            return None;
        }
        self.wait(share, |share_ppm| Reason::SlowSlot { rate, share_ppm });
        self.decision.clone()
    }

    /// It is used again, and has to prove itself.
    fn begin(&mut self, use_: Use) {
        self.use_ = use_;
        self.proved = false;
        self.light = 0;
        self.enough = 0;
    }

    fn wait(&mut self, share: f64, reason: impl Fn(u32) -> Reason) {
        self.use_ = Use::Waiting(self.patience);
        self.share = share;
        self.decision = Some(Decision::waiting(reason((share * 1e6) as u32)));
    }
}

#[cfg(test)]
mod tests;
