//! How long something is waited for, without the time in which this process did not run.
//!
//! A process that was stopped, or not scheduled, has missed what arrived meanwhile: what it waits for
//! may be in its sockets when it runs again. Its own pause is no silence of the peer.

use std::time::{Duration, Instant};

/// Most time that is counted between two looks at the clock. Waiting looks more often than that.
const MAX_STEP: Duration = Duration::from_millis(500);
/// Interval of the looks of [`elapse`].
const INTERVAL: Duration = Duration::from_millis(100);
/// How many times the limit is counted at most, if this process runs late at every look.
const MAX_FACTOR: u32 = 2;

/// Counts the time of a wait.
#[derive(Debug)]
pub struct Patience {
    seen: Instant,
    waited: Duration,
}

impl Patience {
    /// A wait that begins at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            seen: now,
            waited: Duration::ZERO,
        }
    }

    /// Whether `limit` was waited at `now`. Must be asked more often than twice in a second; of a
    /// longer interval, which is a pause of this process, only half a second counts. A wait is not over
    /// just after a pause: what has arrived meanwhile is to be read first.
    pub fn is_over(&mut self, limit: Duration, now: Instant) -> bool {
        let step = now.saturating_duration_since(self.seen);
        self.waited += step.min(MAX_STEP);
        self.seen = now;
        let is_late = step > MAX_STEP;
        self.waited >= limit && (!is_late || self.waited >= limit.saturating_mul(MAX_FACTOR))
    }
}

/// By how much the intervals between looks at the clock, which are to be `interval` long, exceed that:
/// this process did not run.
#[derive(Debug)]
pub struct Lateness {
    seen: Instant,
    interval: Duration,
}

impl Lateness {
    /// The first interval begins at `now`.
    pub fn new(interval: Duration, now: Instant) -> Self {
        Self {
            seen: now,
            interval,
        }
    }

    /// How long this process did not run since the last look: what the interval up to `now` has more
    /// than twice its length.
    pub fn look(&mut self, now: Instant) -> Duration {
        let step = now.saturating_duration_since(self.seen);
        self.seen = now;
        step.saturating_sub(self.interval * 2)
    }
}

/// Waits for `future` up to `limit`. `None` means that the limit was reached while this process ran.
pub async fn wait<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    tokio::select! {
        // What is there already counts more than a limit that is reached.
        biased;
        output = future => Some(output),
        () = elapse(limit) => None,
    }
}

/// Completes once `limit` was reached while this process ran.
pub async fn elapse(limit: Duration) {
    let mut patience = Patience::new(now());
    loop {
        let rest = limit.checked_sub(patience.waited);
        let rest = rest.filter(|rest| !rest.is_zero() && *rest < INTERVAL);
        tokio::time::sleep(rest.unwrap_or(INTERVAL)).await;
        if patience.is_over(limit, now()) {
            return;
        }
    }
}

/// The time of the runtime's timers.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::time::{advance, sleep};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn time_is_counted_while_the_process_runs() {
        let began = Instant::now();
        let mut patience = Patience::new(began);
        for tick in 1..600 {
            let now = began + tick * Duration::from_millis(50);
            assert!(!patience.is_over(LIMIT, now), "{:?}", now - began);
        }
        assert!(patience.is_over(LIMIT, began + LIMIT));
    }

    #[test]
    fn a_pause_of_this_process_counts_as_half_a_second() {
        let began = Instant::now();
        let mut patience = Patience::new(began);
        let woken = began + Duration::from_secs(3600);
        assert!(!patience.is_over(LIMIT, woken));
        for tick in 1..590 {
            let now = woken + tick * Duration::from_millis(50);
            assert!(!patience.is_over(LIMIT, now), "{:?}", now - woken);
        }
        assert!(patience.is_over(LIMIT, woken + Duration::from_millis(29_500)));
    }

    #[test]
    fn what_came_during_a_pause_is_read_before_the_wait_is_over() {
        let began = Instant::now();
        let (limit, step) = (Duration::from_secs(5), Duration::from_millis(100));
        let mut patience = Patience::new(began);
        let mut now = began;
        while now < began + Duration::from_millis(4900) {
            now += step;
            assert!(!patience.is_over(limit, now));
        }
        now += Duration::from_secs(10);
        assert!(!patience.is_over(limit, now));
        assert!(patience.is_over(limit, now + step));
    }

    #[test]
    fn a_process_that_is_always_late_waits_no_longer_than_twice_as_often() {
        let began = Instant::now();
        let mut patience = Patience::new(began);
        let late = Duration::from_secs(2);
        let looks = (1..).find(|look| patience.is_over(LIMIT, began + *look * late));
        assert_eq!(looks, Some(120));
    }

    #[test]
    fn what_an_interval_has_too_much_is_lateness() {
        let ms = Duration::from_millis;
        let began = Instant::now();
        let mut lateness = Lateness::new(ms(20), began);
        let looks = [20, 42, 80, 200, 220].map(|at| lateness.look(began + ms(at)));
        assert_eq!(looks, [ms(0), ms(0), ms(0), ms(80), ms(0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_in_time_is_returned() {
        assert_eq!(wait(LIMIT, async { 7 }).await, Some(7));
        let began = tokio::time::Instant::now();
        let never = std::future::pending::<()>();
        assert_eq!(wait(LIMIT, never).await, None);
        // The runtime's timers have milliseconds.
        let waited = began.elapsed();
        assert!(waited >= LIMIT && waited < LIMIT + INTERVAL, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_a_pause_of_this_process_is_in_time() {
        let (sender, receiver) = oneshot::channel();
        let waiting = tokio::spawn(wait(LIMIT, receiver));
        sleep(LIMIT - INTERVAL).await;
        advance(Duration::from_secs(3600)).await;
        sleep(Duration::from_millis(10)).await;
        sender.send(()).unwrap();
        assert_eq!(waiting.await.unwrap(), Some(Ok(())));
    }
}
