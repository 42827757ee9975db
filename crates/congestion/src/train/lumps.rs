//! Trains that few acknowledgements cover, as those of a busy machine, which come in lumps.
//!
//! A lump covers what has arrived since the one before. So much came within its time, if more of the train
//! came after it. Of the first lump it is known how long its oldest packet has waited; that is its time,
//! if it is about as long as that of the next.

use std::time::Duration;

use super::MIN_PACKETS;

/// The least part of the longer one of two lumps that the shorter one takes.
const EVEN: f64 = 0.6;

/// Lumps of a train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lumps {
    count: u32,
    first: u64,
    /// The time since the oldest packet of the first was sent.
    since: Duration,
    /// The time from the first to the second.
    second: Duration,
    /// The last one after the first: its bytes, and its time.
    last: (u64, Duration),
    /// The fastest after the first that more followed, in bytes per second.
    best: Option<f64>,
}

impl Lumps {
    /// The first lump covers `bytes` of the train, the oldest of them sent `since`.
    pub(super) fn new(bytes: u64, since: Duration) -> Self {
        Self {
            count: 1,
            first: bytes,
            since,
            second: Duration::ZERO,
            last: (0, Duration::ZERO),
            best: None,
        }
    }

    /// Another one covers `bytes` of the train, `gap` after the one before.
    pub(super) fn add(&mut self, bytes: u64, gap: Duration) {
        match self.count {
            1 => self.second = gap,
            _ => self.best = faster(self.best, self.last_rate()),
        }
        self.count += 1;
        self.last = (bytes, gap);
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// How long the oldest packet has waited for the first lump, at most.
    pub(super) fn held(&self, min_rtt: Duration) -> Duration {
        self.since.saturating_sub(min_rtt)
    }

    /// The rate at which the first has arrived, in bytes per second.
    pub(super) fn first_rate(&self, min_rtt: Duration, packet: u64) -> Option<f64> {
        let held = self.held(min_rtt);
        let is_enough = self.first >= MIN_PACKETS * packet && !held.is_zero();
        is_enough.then(|| self.first as f64 / held.as_secs_f64())
    }

    /// The rate at which the train has arrived, in bytes per second.
    pub(super) fn rate(&self, min_rtt: Duration, packet: u64) -> Option<f64> {
        let (held, second) = (self.held(min_rtt), self.second);
        let is_even = held >= second.mul_f64(EVEN) && held.mul_f64(EVEN) <= second;
        let first = self.first as f64 / held.max(second).as_secs_f64();
        let first = (is_even && self.first >= MIN_PACKETS * packet).then_some(first);
        let shown = faster(self.best, first)?;
        // What the last one covers may have come in less time.
        Some(shown.max(self.last_rate().unwrap_or_default()))
    }

    fn last_rate(&self) -> Option<f64> {
        let (bytes, gap) = self.last;
        (!gap.is_zero()).then(|| bytes as f64 / gap.as_secs_f64())
    }
}

fn faster(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        _ => one.or(other),
    }
}
