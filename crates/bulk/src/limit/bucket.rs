//! A token bucket that several sessions share, each in turn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Holder;

/// What may be sent late, in time at the rate: threads wake up late, and paths have their own pace.
pub(super) const BURST: Duration = Duration::from_millis(20);
/// One turn, in time at the rate.
const BATCH: Duration = Duration::from_micros(500);
/// How long a turn is kept free for the session that it belongs to.
const TURN_TIMEOUT: Duration = Duration::from_millis(1);

/// A token bucket, as a virtual clock: what is sent moves the time at which more may be sent.
///
/// Over any time, no more than the rate × (the time + [`BURST`]) and one batch is sent.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Bytes per second.
    rate: f64,
    /// When more may be sent; `None` before anything was.
    free: Option<Instant>,
    /// Sessions that wait to send, in the order of their turns.
    queue: VecDeque<Holder>,
}

impl Bucket {
    /// A bucket for `rate` bit/s, which is not 0.
    pub(super) fn new(rate: u64) -> Self {
        Self {
            rate: rate as f64 / 8.0,
            free: None,
            queue: VecDeque::new(),
        }
    }

    /// How many bytes `holder` may send now: it is its turn until it [spends](Self::spend) them or
    /// [leaves](Self::leave).
    ///
    /// # Errors
    /// When to ask again. The holder is in the queue from now on.
    pub(super) fn ask(&mut self, holder: Holder, now: Instant) -> Result<u64, Instant> {
        let free = self.free.unwrap_or(now);
        let is_first = self.queue.front().is_none_or(|first| *first == holder);
        if now >= free && (is_first || now >= free + TURN_TIMEOUT) {
            // Those before have missed their turns.
            let place = self.queue.iter().position(|waiting| *waiting == holder);
            self.queue.drain(..place.map_or(0, |place| place + 1));
            self.queue.push_front(holder);
            return Ok((self.rate * BATCH.as_secs_f64()) as u64);
        }
        if !self.queue.contains(&holder) {
            self.queue.push_back(holder);
        }
        // The first in the queue is expected to take its turn, of one batch.
        Err(if now < free { free } else { now + BATCH })
    }

    /// `holder` sends `bytes`, which [`ask`](Self::ask) has allowed. More than that delays what follows.
    pub(super) fn spend(&mut self, holder: Holder, bytes: u64, now: Instant) {
        self.leave(holder);
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        let from = self.free.unwrap_or(now).max(earliest);
        self.free = Some(from + self.time(bytes));
    }

    /// `holder` has nothing to send now.
    pub(super) fn leave(&mut self, holder: Holder) {
        self.queue.retain(|waiting| *waiting != holder);
    }

    /// The time that `bytes` take.
    fn time(&self, bytes: u64) -> Duration {
        // A day is as good as longer times, and never overflows.
        Duration::from_secs_f64((bytes as f64 / self.rate).min(86_400.0))
    }
}
