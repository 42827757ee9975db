//! Which of the connected paths are used: decided by handshake times, then per time slot (000,
//! section 3.3.2).
//!
//! Where the thesis closes a connection, the path waits here: it stays connected, nothing is
//! requested over it, and it is probed for a slot from time to time.
//!
//! # The life of a path
//!
//! It is *active* from when it is connected. Once, when the expected handshakes are complete or 1 s
//! after the first, paths with a handshake that took too long begin to wait. At the end of each
//! slot an active path is weighed by the bytes read over it: below the least weight in three slots
//! in a row, or below half of it if it never carried enough, it *waits*, but not before it had a
//! slot and two round trips. After its slots it is *probed*: used, and weighed as an active one.
//! What carries enough is active again; what does not waits for twice as many slots, up to 32,
//! until it has carried enough for 32 in a row. When a used path is gone, or none carries anything,
//! the best of those that wait is probed at once. Its life ends with [`Slots::gone`], whatever its
//! state.
//!
//! The caller owns it, passes the time, and calls [`Slots::slot`] at [`Slots::next_due`]. It keeps
//! a few numbers for each connected path.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::{Decision, Fingerprint, Reason};

/// Default length of a time slot (000, section 3.3.2).
pub const TIME_SLOT: Duration = Duration::from_secs(1);

/// Handshakes are compared this long after the first one, even if some are not complete.
const HANDSHAKES: Duration = Duration::from_secs(1);

/// Most slots a waiting path waits before it is probed.
const MAX_SLOTS: u32 = 32;

/// A round trip counts as at most this long, so that a path cannot delay being weighed.
const MAX_RTT: Duration = Duration::from_secs(2);

/// A path that has carried enough before waits only after this many light slots in a row, because
/// rates vary from slot to slot.
const LIGHT_SLOTS: u32 = 3;

/// After this many slots in which it carried enough, a path that waited is treated like one that
/// never did.
const TRUSTED_SLOTS: u32 = MAX_SLOTS;

/// A slot in which even the best path carries less than this share of the recent peak is ignored:
/// there is little to send.
const MIN_PEAK_SHARE: f64 = 0.1;

/// The factor by which the peak decays per slot.
const FADES: f64 = 0.9;

/// How paths are weighed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotOptions {
    /// Smallest weight of a used path, as a share of the best path's, 0 to 1
    /// (`minWeightPercentage`). A path below it for three slots in a row waits, and so does a path
    /// below half of it that has not carried enough yet. With 0, no path waits.
    pub min_weight: f64,
    /// Length of a time slot; at least 10 ms.
    pub time_slot: Duration,
    /// Slots that a path waits before it is probed, 1 to 32; doubled with each wait, up to 32,
    /// until the path has carried enough for 32 slots in a row.
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
    paths: BTreeMap<Fingerprint, SlotState>,
    handshakes: Handshakes,
    /// When the current slot began; `None` until a path is connected for the first time.
    begun: Option<Instant>,
    /// The recent peak of the best path, in bit/s.
    peak: f64,
}

#[derive(Debug, Clone, Copy)]
enum Handshakes {
    /// The number of handshakes expected, and when the first was complete.
    On(usize, Option<Instant>),
    Compared,
}

#[derive(Debug)]
struct SlotState {
    handshake: Duration,
    use_: Use,
    /// Bytes read in all at the end of the last slot; `None` if the path could not be used in it.
    mark: Option<u64>,
    /// Its weight as a share of the best path's, when last weighed.
    share: f64,
    /// Number of slots of its next wait.
    patience: u32,
    /// Whether it has carried enough in any slot since it was last taken into use.
    proved: bool,
    /// Number of slots in a row in which it was too light.
    light: u32,
    /// Number of slots in a row in which it carried enough.
    enough: u32,
    decision: Option<Decision>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Use {
    /// In use since then; it can be too light only after its grace period.
    Active(Instant),
    /// Probed since then.
    Probed(Instant),
    /// Waiting for this many more slots.
    Waiting(u32),
}

impl Slots {
    /// A set without connected paths. Options out of bounds are clamped.
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
                probe_every: options.probe_every.clamp(1, MAX_SLOTS),
            },
            paths: BTreeMap::new(),
            handshakes: Handshakes::On(usize::MAX, None),
            begun: None,
            peak: 0.0,
        }
    }

    /// Sets how many handshakes are compared. They are compared when that many are complete, or 1 s
    /// after the first; without this call, always after 1 s.
    pub fn expect(&mut self, handshakes: usize) {
        if let Handshakes::On(expected, _) = &mut self.handshakes {
            *expected = handshakes;
        }
    }

    /// Adds a path that is connected, after a handshake of this length. The path is used, and
    /// weighed after a slot and two round trips.
    pub fn connected(&mut self, path: Fingerprint, handshake: Duration, now: Instant) {
        self.begun.get_or_insert(now);
        if let Handshakes::On(_, first) = &mut self.handshakes {
            first.get_or_insert(now);
        }
        self.paths.insert(
            path,
            SlotState {
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

    /// Removes a path that is no longer connected, or delivers nothing. If it was in use, the best
    /// waiting path takes over at once; returns that path and its decision.
    pub fn gone(&mut self, path: Fingerprint, now: Instant) -> Option<(Fingerprint, Decision)> {
        let state = self.paths.remove(&path)?;
        match state.use_ {
            Use::Waiting(_) => None,
            Use::Active(_) | Use::Probed(_) => self.take_over(Some(path), now),
        }
    }

    /// Whether [`slot`](Self::slot) must be called now.
    pub fn due(&self, now: Instant) -> bool {
        self.is_comparison_due(now) || self.is_slot_over(now)
    }

    /// When [`slot`](Self::slot) must be called next; `None` until a path is connected for the first
    /// time.
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
    /// `read` returns how many bytes were read over a path in all; `None` if the path could not be
    /// used for the whole slot, because the peer choked it or has nothing that is missing here.
    /// Such a path is not weighed: the thesis names this as the condition of a true weight. No path
    /// is weighed in a slot in which the best one carries less than a tenth of its recent peak:
    /// there is little to send.
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

    /// Whether a path waits, so that nothing may be sent over it for now.
    pub fn is_waiting(&self, path: Fingerprint) -> bool {
        let state = self.paths.get(&path);
        state.is_some_and(|state| matches!(state.use_, Use::Waiting(_)))
    }

    /// The last decision about a path; `None` if it was never found too light.
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

    /// 000, Alg. 2: the weight of a path is the inverse of its handshake time.
    fn compare_handshakes(&mut self, changes: &mut Vec<(Fingerprint, Decision)>) {
        let Some(best) = self.paths.values().map(|state| state.handshake).min() else {
            return;
        };
        for (path, state) in &mut self.paths {
            // A coarse clock may measure a handshake of length zero.
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

    /// 000, Alg. 3: the weight is the number of bytes read within the slot.
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
        let idle = best <= self.peak * MIN_PEAK_SHARE;
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
                state.patience = (slots * 2).min(MAX_SLOTS);
                Some(Decision::taken(Reason::Probing { slots }))
            } else {
                let weight = weights.get(path).copied().filter(|_| !idle);
                let grace = settled + state.handshake.min(MAX_RTT) * 2;
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

    /// Uses the best waiting path again.
    fn take_over(
        &mut self,
        from: Option<Fingerprint>,
        now: Instant,
    ) -> Option<(Fingerprint, Decision)> {
        // A path that is choked too would not help.
        let waiting = |state: &SlotState| {
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

impl SlotState {
    /// Applies a weight, in bit/s, and returns the decision that follows. A path is too light only
    /// after its grace period.
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
            // A sufficient weight counts at once, before the grace period ends.
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

    /// Uses the path again, without regard to what it carried before.
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
