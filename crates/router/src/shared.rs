//! What the threads of a router share about one interface.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::budget::TokenBucket;

/// Rate and burst of SCMP errors to one interface: enough to inform every sender within
/// milliseconds, too few to amplify a flood.
const ERRORS_PER_SECOND: u32 = 1000;
const ERRORS_AT_ONCE: u32 = 100;
/// Rate and burst of SCMP replies to one interface.
const REPLIES_PER_SECOND: u32 = 10_000;
const REPLIES_AT_ONCE: u32 = 1000;

/// Rate and burst of STUN answers at one interface: a host asks once per NAT binding.
const BINDINGS_PER_SECOND: u32 = 10_000;
const BINDINGS_AT_ONCE: u32 = 1000;

/// The shared state of one interface.
pub(crate) struct Shared {
    start: Instant,
    /// When the last packet other than BFD arrived, in nanoseconds after the start; 0 if none did.
    last_arrival: AtomicU64,
    /// The same of the last packet that was sent.
    last_departure: AtomicU64,
    errors: Mutex<TokenBucket>,
    replies: Mutex<TokenBucket>,
    bindings: Mutex<TokenBucket>,
}

impl Shared {
    pub fn new(now: Instant) -> Self {
        let bucket = |rate, burst| Mutex::new(TokenBucket::new(rate, burst, now));
        Self {
            start: now,
            last_arrival: AtomicU64::new(0),
            last_departure: AtomicU64::new(0),
            errors: bucket(ERRORS_PER_SECOND, ERRORS_AT_ONCE),
            replies: bucket(REPLIES_PER_SECOND, REPLIES_AT_ONCE),
            bindings: bucket(BINDINGS_PER_SECOND, BINDINGS_AT_ONCE),
        }
    }

    /// Notes that a packet other than BFD has arrived.
    #[inline]
    pub fn note_arrival(&self, now: Instant) {
        self.note(&self.last_arrival, now);
    }

    /// Notes that a packet other than BFD was sent.
    #[inline]
    pub fn note_departure(&self, now: Instant) {
        self.note(&self.last_departure, now);
    }

    /// When the last packet other than BFD arrived.
    pub fn last_arrival(&self) -> Option<Instant> {
        self.read(&self.last_arrival)
    }

    /// When the last packet other than BFD arrived or was sent.
    pub fn last_use(&self) -> Option<Instant> {
        self.last_arrival().max(self.read(&self.last_departure))
    }

    #[inline]
    fn note(&self, last: &AtomicU64, now: Instant) {
        // At least 1, and far from the maximum.
        let after = (now - self.start).as_nanos() as u64 + 1;
        last.fetch_max(after, Relaxed);
    }

    fn read(&self, last: &AtomicU64) -> Option<Instant> {
        let after = last.load(Relaxed).checked_sub(1)?;
        Some(self.start + Duration::from_nanos(after))
    }

    /// Whether the rate limit allows another SCMP error.
    pub fn may_send_error(&self, now: Instant) -> bool {
        take(&self.errors, now)
    }

    /// Whether the rate limit allows another SCMP reply.
    pub fn may_send_reply(&self, now: Instant) -> bool {
        take(&self.replies, now)
    }

    /// Whether the rate limit allows another STUN answer.
    pub fn may_answer_binding(&self, now: Instant) -> bool {
        take(&self.bindings, now)
    }
}

fn take(bucket: &Mutex<TokenBucket>, now: Instant) -> bool {
    let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
    bucket.take(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_arrival_counts() {
        let start = Instant::now();
        let shared = Shared::new(start);
        assert_eq!(shared.last_arrival(), None);
        shared.note_arrival(start);
        assert_eq!(shared.last_arrival(), Some(start));
        let [early, late] = [5, 9].map(|ms| start + Duration::from_millis(ms));
        shared.note_arrival(late);
        shared.note_arrival(early);
        assert_eq!(shared.last_arrival(), Some(late));
        shared.note_departure(early);
        assert_eq!(shared.last_use(), Some(late));
        shared.note_departure(late + Duration::from_millis(1));
        assert_eq!(shared.last_use(), Some(late + Duration::from_millis(1)));
        assert_eq!(shared.last_arrival(), Some(late));
    }
}
