//! When which connection has something to do that no packet brings.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use noq_proto::ConnectionHandle;

/// The deadlines of an endpoint's connections, one each at most.
#[derive(Debug, Default)]
pub(super) struct Timers(Mutex<Deadlines>);

#[derive(Debug, Default)]
struct Deadlines {
    all: BTreeSet<(Instant, ConnectionHandle)>,
    /// Until when the thread of the endpoint waits at most, since it has looked last; `None` without a limit.
    awaited: Option<Instant>,
}

impl Timers {
    fn lock(&self) -> MutexGuard<'_, Deadlines> {
        // No operation on the set can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the deadline `before` of a connection by `after`. Returns whether the thread waits for too
    /// long now. A deadline that became later, as with every packet, needs no wake-up: the thread looks again
    /// at the former one.
    pub(super) fn set(
        &self,
        connection: ConnectionHandle,
        before: Option<Instant>,
        after: Option<Instant>,
    ) -> bool {
        let mut timers = self.lock();
        if let Some(before) = before {
            timers.all.remove(&(before, connection));
        }
        let Some(after) = after else {
            return false;
        };
        timers.all.insert((after, connection));
        timers.awaited.is_none_or(|awaited| after < awaited)
    }

    /// A connection whose deadline is not after `now`, and what it was; it has none any more.
    pub(super) fn pop(&self, now: Instant) -> Option<(Instant, ConnectionHandle)> {
        let mut timers = self.lock();
        let first = timers.all.first()?;
        match first.0 <= now {
            true => timers.all.pop_first(),
            false => None,
        }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.lock().next()
    }

    /// Until when the thread waits from `now` on, if not for ever: the earliest deadline, or the one before it
    /// that it has waited for and that is not due any more. Deadlines become later with a packet that arrives
    /// and earlier with the next one that is sent, which thus ends no wait.
    pub(super) fn await_next(&self, now: Instant) -> Option<Instant> {
        let mut timers = self.lock();
        let kept = timers.awaited.filter(|awaited| *awaited > now);
        timers.awaited = kept.into_iter().chain(timers.next()).min();
        timers.awaited
    }
}

impl Deadlines {
    fn next(&self) -> Option<Instant> {
        self.all.first().map(|(deadline, _)| *deadline)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_an_earlier_deadline_than_the_awaited_one_ends_the_wait() {
        let (timers, began) = (Timers::default(), Instant::now());
        let at = |millis| Some(began + Duration::from_millis(millis));
        let (one, other) = (ConnectionHandle(1), ConnectionHandle(2));
        let await_next = |millis| timers.await_next(began + Duration::from_millis(millis));
        assert_eq!(await_next(0), None);
        // The thread waits without a limit.
        assert!(timers.set(one, None, at(50)));
        assert_eq!(await_next(0), at(50));
        assert!(!timers.set(one, at(50), at(60)));
        assert!(!timers.set(other, None, at(55)));
        // It looks at 50, and finds nothing; whatever ends its wait before.
        assert_eq!(await_next(10), at(50));
        assert_eq!(timers.pop(began + Duration::from_millis(50)), None);
        assert_eq!(await_next(50), at(55));
        assert!(timers.set(one, at(60), at(52)));
        assert!(!timers.set(one, at(52), None));
        assert_eq!(timers.next(), at(55));
        let expired = timers.pop(began + Duration::from_millis(55));
        assert_eq!(expired, at(55).map(|deadline| (deadline, other)));
    }

    /// Deadlines set in any order: the thread never waits beyond the earliest one without being woken.
    #[test]
    fn no_deadline_is_missed() {
        let (timers, began) = (Timers::default(), Instant::now());
        let mut random = fastrand::Rng::with_seed(1);
        let mut deadlines = [None; 4];
        let mut now = 0;
        let mut awaited = None;
        for _ in 0..10_000 {
            let which = random.usize(0..deadlines.len());
            let after = random.bool();
            let after = after.then(|| began + Duration::from_millis(random.u64(0..100)));
            let ends_the_wait = timers.set(ConnectionHandle(which), deadlines[which], after);
            deadlines[which] = after;
            // Something else may end it, too.
            if ends_the_wait || random.u32(0..10) == 0 {
                now = (now + random.u64(0..5)) % 100;
                awaited = timers.await_next(began + Duration::from_millis(now));
            }
            let earliest = deadlines.iter().flatten().min();
            assert_eq!(timers.next().as_ref(), earliest);
            assert!(
                earliest.is_none() || awaited.is_some_and(|awaited| Some(&awaited) <= earliest)
            );
        }
    }
}
