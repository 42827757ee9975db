//! When a failed path is retried: the table of pauses, for downloads and uploads.

use std::time::{Duration, Instant};

/// What went wrong with a subflow. Decisions follow from this alone; the accompanying text is for
/// people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// No connection could be made: there was no answer, or an error.
    Failed,
    /// The remote answered, but did not begin the transfer; it may do so later.
    Rejected,
    /// The remote does not allow this path.
    Refused,
    /// The subflow was connected and has ended.
    Closed,
    /// The subflow was connected and has ended while the remote received over it: the remote most
    /// likely wants more.
    Interrupted,
    /// The subflow is connected, but delivers nothing of what was requested.
    Stalled,
}

/// How soon a failed path is retried, depending on what a try costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pace {
    /// No other remote waits for the path: a try costs a few packets.
    Own,
    /// The path is taken from other remotes while it is tried.
    Assigned,
}

/// Pauses by number of failures in a row. The first is a few round trips, so that a lost packet
/// costs little. The last bounds how long a path that works again stays unused.
const OWN_BACKOFFS: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Pauses of paths that other remotes could use meanwhile: longer, so that a path that keeps
/// failing is seldom taken from them, but bounded.
const ASSIGNED_BACKOFFS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(60),
];

/// Pause after [`Failure::Rejected`]. Its cause lasts longer than a few round trips, such as files
/// that are still being checked.
const REJECTED_BACKOFF: Duration = Duration::from_secs(10);

/// Pause after [`Failure::Refused`]. Policies seldom change, but which paths they allow may depend
/// on the other paths.
const REFUSED_BACKOFF: Duration = Duration::from_secs(60);

/// Shortest pause while nothing has to be fetched: the remote can dial too.
pub const STANDBY: Duration = Duration::from_secs(60);

/// Longest pause while something shows that a try is worth it: another path to the remote delivers, or
/// did a moment ago. A path that works again is used about that much later, whether or not anybody
/// reports that it does.
const EAGER: Duration = Duration::from_millis(500);

/// After this many failures in a row another path takes the place of this one, which is still
/// retried.
const REPLACE_FAILURES: u32 = 2;

/// A connection that ends before this, and was of no use, is brief. The path works then, but whatever accepts
/// connections ends them: to try again at once would do so hundreds of times per second.
const BRIEF: Duration = Duration::from_secs(2);

/// The failures of one path, and when it may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pace: Pace,
    failures: u32,
    /// Number of brief connections in a row.
    brief: u32,
    until: Option<Instant>,
    /// Whether the pause is what the remote or the transfer wants, and no guess about the path.
    is_told: bool,
}

impl Backoff {
    /// The backoff of a path that has not failed.
    pub const fn new(pace: Pace) -> Self {
        Self {
            pace,
            failures: 0,
            brief: 0,
            until: None,
            is_told: false,
        }
    }

    /// Shortens the pause of a path that could not be connected, if it is longer than while a try is
    /// worth it: see [`PathSet`](crate::PathSet).
    pub(crate) fn hasten(&mut self, now: Instant) {
        self.shorten(now + EAGER);
    }

    /// Ends the pause of a path that could not be connected.
    pub(crate) fn end_pause(&mut self, now: Instant) {
        self.shorten(now);
    }

    fn shorten(&mut self, until: Instant) {
        if !self.is_told {
            self.until = self.until.map(|before| before.min(until));
        }
    }

    /// Records a failure. The path is not retried before the pause of the table, or `at_least` if
    /// that is longer, is over.
    pub fn fail(&mut self, failure: Failure, at_least: Duration, now: Instant) {
        let (step, steps) = (self.pause_after(self.failures), self.table().len() as u32);
        let pause = match failure {
            Failure::Stalled => Duration::ZERO,
            Failure::Refused => REFUSED_BACKOFF,
            Failure::Rejected if self.pace == Pace::Own => step.max(REJECTED_BACKOFF),
            _ => step,
        };
        self.failures = match failure {
            Failure::Stalled => self.failures.max(REPLACE_FAILURES),
            // Trying it sooner would be in vain, and take the path from other remotes.
            Failure::Refused => steps,
            _ => self.failures.saturating_add(1),
        };
        self.is_told = at_least > pause || matches!(failure, Failure::Refused | Failure::Rejected);
        self.until = Some(now + pause.max(at_least));
    }

    /// Records how long a connection has `lasted` that ended, which is a [failure](Self::fail) as well. From
    /// the second brief one in a row on, the path is not retried before the pause of the table is over, which
    /// nothing shortens.
    pub(crate) fn ended(&mut self, lasted: Duration, was_of_use: bool, now: Instant) {
        if was_of_use || lasted >= BRIEF {
            self.brief = 0;
            return;
        }
        if let Some(before) = self.brief.checked_sub(1) {
            self.until = self.until.max(Some(now + self.pause_after(before)));
            self.is_told = true;
        }
        self.brief = self.brief.saturating_add(1);
    }

    /// The pauses by number of failures in a row.
    fn table(&self) -> &'static [Duration] {
        match self.pace {
            Pace::Own => &OWN_BACKOFFS,
            Pace::Assigned => &ASSIGNED_BACKOFFS,
        }
    }

    /// The pause of the table after this many failures in a row, before the one that just happened.
    fn pause_after(&self, failures: u32) -> Duration {
        let table = self.table();
        table[(failures as usize).min(table.len() - 1)]
    }

    /// Forgets all failures: the path works, or has changed so that they no longer count. Brief connections
    /// still do.
    pub fn reset(&mut self) {
        self.failures = 0;
        self.until = None;
    }

    /// Ends the pause if it is over. Returns whether it did.
    pub fn end(&mut self, now: Instant) -> bool {
        let over = self.until.is_some_and(|until| until <= now);
        if over {
            self.until = None;
        }
        over
    }

    /// When the path may be tried again; `None` if it may be tried now.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Number of failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether another path must take its place.
    pub fn is_replaced(&self) -> bool {
        self.failures >= REPLACE_FAILURES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses after failures in a row.
    fn pauses(pace: Pace, failure: Failure, count: usize) -> Vec<Duration> {
        let (mut backoff, now) = (Backoff::new(pace), Instant::now());
        let pause = |_| {
            backoff.fail(failure, Duration::ZERO, now);
            backoff.until().unwrap() - now
        };
        (0..count).map(pause).collect()
    }

    #[test]
    fn pauses_grow_to_the_end_of_the_table() {
        let own = pauses(Pace::Own, Failure::Failed, 8);
        assert!(own.is_sorted() && own[0] < own[1]);
        assert_eq!(own[..5], OWN_BACKOFFS);
        assert_eq!(own[7], OWN_BACKOFFS[4]);
        let assigned = pauses(Pace::Assigned, Failure::Closed, 6);
        assert_eq!(assigned[..4], ASSIGNED_BACKOFFS);
        assert_eq!(assigned[5], ASSIGNED_BACKOFFS[3]);
    }

    #[test]
    fn a_refusal_has_the_longest_pause_at_once_and_a_stall_none() {
        for pace in [Pace::Own, Pace::Assigned] {
            assert_eq!(pauses(pace, Failure::Refused, 2), [REFUSED_BACKOFF; 2]);
        }
        assert_eq!(pauses(Pace::Own, Failure::Stalled, 1), [Duration::ZERO]);
        assert_eq!(pauses(Pace::Own, Failure::Rejected, 1), [REJECTED_BACKOFF]);
    }

    #[test]
    fn a_path_that_works_starts_over() {
        let (mut backoff, now) = (Backoff::new(Pace::Own), Instant::now());
        backoff.fail(Failure::Failed, STANDBY, now);
        assert_eq!(backoff.until(), Some(now + STANDBY));
        assert!(!backoff.is_replaced());
        backoff.fail(Failure::Failed, Duration::ZERO, now);
        assert!(backoff.is_replaced());
        assert!(!backoff.end(now));
        assert!(backoff.end(now + OWN_BACKOFFS[1]));
        assert!(!backoff.end(now + OWN_BACKOFFS[1]));
        // The pause is over, the failures still count.
        assert!(backoff.is_replaced());
        backoff.reset();
        assert_eq!((backoff.failures(), backoff.until()), (0, None));
    }
}
