//! How long a transfer tries to reach its server again.

use std::time::{Duration, Instant};

use hawser_backoff::Backoff;

/// The pause after the first attempt in vain.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
/// The longest pause: a server that can be reached again is unused for no longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Decides whether a transfer whose server cannot be reached tries again.
///
/// A server that was never reached is waited for only as long as that is requested: its address may be
/// wrong.
#[derive(Debug)]
pub(super) struct Retry {
    /// How long a server is waited for that was never reached.
    wait: Duration,
    /// How long one is that was.
    limit: Duration,
    was_reached: bool,
    /// Since when nothing was reached.
    lost: Option<Instant>,
    backoff: Backoff,
}

/// The next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Again {
    /// The pause before it.
    pub pause: Duration,
    /// Time that is left to reach the server.
    pub left: Duration,
    /// Whether it is the first one since the server was lost.
    pub is_first: bool,
}

impl Retry {
    /// Tries again until nothing was reached for `wait` from the beginning, or for `limit` later on;
    /// zero for never.
    pub(super) fn new(wait: Duration, limit: Duration) -> Self {
        Self {
            wait,
            limit,
            was_reached: false,
            lost: None,
            backoff: Backoff::new(INITIAL_BACKOFF, LONGEST_PAUSE),
        }
    }

    /// Records that the server has accepted a session.
    pub(super) fn reached(&mut self) {
        self.was_reached = true;
        self.lost = None;
        self.backoff.reset();
    }

    /// Records that at `now` an attempt has failed, and that nothing was reached since `since`.
    /// Returns the next attempt; `None` to give up.
    pub(super) fn failed(&mut self, since: Instant, now: Instant) -> Option<Again> {
        let is_first = self.lost.is_none();
        let lost = *self.lost.get_or_insert(since);
        let limit = match self.was_reached {
            true => self.limit,
            false => self.wait,
        };
        let left = limit.saturating_sub(now.saturating_duration_since(lost));
        if left.is_zero() {
            return None;
        }
        let pause = self.backoff.fail().min(left);
        Some(Again {
            pause,
            left: left - pause,
            is_first,
        })
    }

    /// Whether the server has ever accepted a session.
    pub(super) fn was_reached(&self) -> bool {
        self.was_reached
    }

    /// Whether the server was reached, lost, and not reached since.
    pub(super) fn is_lost(&self) -> bool {
        self.was_reached && self.lost.is_some()
    }

    /// How long nothing was reached.
    pub(super) fn lost_for(&self, now: Instant) -> Duration {
        let lost = self.lost.map(|lost| now.saturating_duration_since(lost));
        lost.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

    /// Attempts of `each`, all in vain, after a session was lost for [`SESSION_TIMEOUT`]: when each began, from
    /// the loss on, and how long nothing was reached at the end.
    fn attempts(retry: &mut Retry, each: Duration) -> (Vec<Duration>, Duration) {
        let began = Instant::now();
        let (mut now, mut starts) = (began + SESSION_TIMEOUT, Vec::new());
        while let Some(again) = retry.failed(began, now) {
            assert_eq!(again.is_first, starts.is_empty());
            now += again.pause;
            starts.push(now - began);
            now += each.min(again.left);
        }
        (starts, retry.lost_for(now))
    }

    #[test]
    fn a_server_that_was_lost_is_tried_again_until_the_time_is_over() {
        let mut retry = Retry::new(Duration::ZERO, Duration::from_secs(300));
        retry.reached();
        let (starts, lost_for) = attempts(&mut retry, Duration::from_secs(10));
        assert_eq!(starts[0], SESSION_TIMEOUT + INITIAL_BACKOFF);
        assert!(
            starts
                .windows(2)
                .all(|two| two[1] - two[0] <= Duration::from_secs(14))
        );
        assert_eq!(lost_for, Duration::from_secs(300));
        // What is reached again has all of its time again.
        retry.reached();
        assert_eq!(
            attempts(&mut retry, Duration::ZERO).0[0],
            SESSION_TIMEOUT + INITIAL_BACKOFF
        );
    }

    #[test]
    fn an_outage_of_100_s_is_outlasted() {
        let mut retry = Retry::new(Duration::ZERO, Duration::from_secs(300));
        retry.reached();
        let began = Instant::now();
        let mut now = began + SESSION_TIMEOUT;
        while now < began + Duration::from_secs(100) {
            now += retry.failed(began, now).unwrap().pause;
        }
        assert!(now <= began + Duration::from_secs(100) + LONGEST_PAUSE);
    }

    #[test]
    fn a_server_that_was_never_reached_is_not_waited_for() {
        let mut retry = Retry::new(Duration::ZERO, Duration::from_secs(300));
        assert!(attempts(&mut retry, SESSION_TIMEOUT).0.is_empty());
    }

    #[test]
    fn a_server_is_waited_for_as_long_as_requested() {
        let wait = Duration::from_secs(60);
        let mut retry = Retry::new(wait, Duration::ZERO);
        let (starts, lost_for) = attempts(&mut retry, Duration::from_secs(4));
        assert!(!starts.is_empty() && lost_for >= wait, "{starts:?}");
        assert!(!retry.is_lost(), "it was never reached");
        // Once it was reached, that is over.
        let mut retry = Retry::new(wait, Duration::ZERO);
        retry.reached();
        assert!(attempts(&mut retry, Duration::from_secs(4)).0.is_empty());
        // Without an end.
        let mut retry = Retry::new(Duration::MAX, Duration::ZERO);
        let now = Instant::now();
        let day = now + Duration::from_secs(86_400);
        assert!(retry.failed(now, now).is_some() && retry.failed(now, day).is_some());
    }

    #[test]
    fn without_time_nothing_is_tried_again() {
        for limit in [Duration::ZERO, SESSION_TIMEOUT] {
            let mut retry = Retry::new(Duration::ZERO, limit);
            retry.reached();
            assert_eq!(
                attempts(&mut retry, SESSION_TIMEOUT),
                (Vec::new(), SESSION_TIMEOUT)
            );
        }
    }
}
