//! Busy polling: a thread looks for packets again at once for a while after traffic, in place of a wait. What
//! comes in that time is found without a wake-up, which costs more than the work on a packet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long threads look again after traffic before they wait, to the nanosecond. It may be changed at any
/// time, and is 0 at first: they wait at once. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct BusyPoll(Arc<AtomicU64>);

impl BusyPoll {
    /// Changes the time.
    pub fn set(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanos, Ordering::Relaxed);
    }

    /// The time.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// They are equal if a change of one is one of the other.
impl PartialEq for BusyPoll {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for BusyPoll {}

/// Decides for one thread whether it looks again at once.
#[derive(Debug)]
pub struct Spin {
    busy_poll: BusyPoll,
    /// When there was something to do last.
    worked: Option<Instant>,
}

impl Spin {
    /// For the time that `busy_poll` has.
    pub fn new(busy_poll: BusyPoll) -> Self {
        Self {
            busy_poll,
            worked: None,
        }
    }

    /// Records that there was something to do.
    pub fn note(&mut self, now: Instant) {
        self.worked = Some(now);
    }

    /// Whether to look again at once; the thread should yield to others before it does.
    pub fn spins(&self, now: Instant) -> bool {
        let since = |worked| now.saturating_duration_since(worked);
        self.worked
            .is_some_and(|worked| since(worked) < self.busy_poll.time())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_looks_again_for_a_while_after_traffic() {
        let (busy_poll, began) = (BusyPoll::default(), Instant::now());
        let at = |micros| began + Duration::from_micros(micros);
        let mut spin = Spin::new(busy_poll.clone());
        spin.note(at(0));
        assert!(!spin.spins(at(0)));
        busy_poll.set(Duration::from_micros(100));
        assert!(spin.spins(at(0)) && spin.spins(at(99)) && !spin.spins(at(100)));
        spin.note(at(150));
        assert!(spin.spins(at(249)) && !spin.spins(at(250)));
        busy_poll.set(Duration::ZERO);
        assert!(!spin.spins(at(151)));
    }

    #[test]
    fn nothing_is_looked_for_before_the_first_traffic() {
        let busy_poll = BusyPoll::default();
        busy_poll.set(Duration::MAX);
        let mut spin = Spin::new(busy_poll);
        let now = Instant::now();
        assert!(!spin.spins(now));
        spin.note(now);
        assert!(spin.spins(now + Duration::from_secs(1000)));
    }
}
