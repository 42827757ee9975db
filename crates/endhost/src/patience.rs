//! How long something is waited for, without the time in which this process did not run.
//!
//! A process that was stopped, or not scheduled, has missed what arrived meanwhile: what it waits for
//! may be in its sockets when it runs again. Its own pause is no silence of the peer.

use std::time::{Duration, Instant};

/// Most time that is counted between two looks at the clock. Waiting looks more often than that.
const MAX_STEP: Duration = Duration::from_secs(1);

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

    /// Whether `limit` was waited at `now`. Must be asked more often than once in a second; of a
    /// longer interval, only a second counts.
    pub fn is_over(&mut self, limit: Duration, now: Instant) -> bool {
        let step = now.saturating_duration_since(self.seen);
        self.waited += step.min(MAX_STEP);
        self.seen = now;
        self.waited >= limit
    }
}

/// Waits for `future` up to `limit`. `None` means that the limit was reached while this process ran.
pub async fn wait<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let mut patience = Patience::new(Instant::now());
    let mut tick = tokio::time::interval(MAX_STEP / 4);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // What is there already counts more than a limit that is reached.
            biased;
            output = &mut future => return Some(output),
            _ = tick.tick() => {
                if patience.is_over(limit, Instant::now()) {
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn a_pause_of_this_process_counts_as_one_second() {
        let began = Instant::now();
        let mut patience = Patience::new(began);
        let woken = began + Duration::from_secs(3600);
        assert!(!patience.is_over(LIMIT, woken));
        for tick in 1..580 {
            let now = woken + tick * Duration::from_millis(50);
            assert!(!patience.is_over(LIMIT, now), "{:?}", now - woken);
        }
        assert!(patience.is_over(LIMIT, woken + Duration::from_secs(29)));
    }

    #[tokio::test]
    async fn what_happens_in_time_is_returned() {
        assert_eq!(wait(LIMIT, async { 7 }).await, Some(7));
        let never = std::future::pending::<()>();
        assert_eq!(wait(Duration::from_millis(1), never).await, None);
    }
}
