//! Whether MPTCP may use a lane. No I/O, no clock.
//!
//! The path manager holds a lane that loses too much, and tries it again from time to time. What MPTCP
//! sends over it meanwhile would be lost as before, and everything behind it wait. So a lane is tried with
//! probes first: it stays out of use until they have shown for long enough that they arrive, or it is held
//! again.

use std::time::{Duration, Instant};

use hawser_manager::Cause;
use hawser_path::Reason;

/// For how long a lane is tried: twice what the path manager needs to find its loss.
const TRIAL: Duration = Duration::from_secs(1);
/// Probes in each interval at which paths are weighed: enough for a measurement of loss in 250 ms, also if
/// many of them are lost.
const PROBES: usize = 8;

/// Whether MPTCP may use a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Hold {
    /// It may.
    #[default]
    None,
    /// It may not, as the path manager wants; `lossy`, because of its loss.
    Held { lossy: bool },
    /// It may from this time on, unless it is held again.
    Trial(Instant),
}

impl Hold {
    /// Carries out an order to hold the lane, for this reason.
    pub(super) fn hold(&mut self, cause: &Cause) {
        let lossy = matches!(cause, Cause::Decided(Reason::Loses { .. }));
        *self = Self::Held { lossy };
    }

    /// Carries out an order to use it again.
    pub(super) fn resume(&mut self, now: Instant) {
        *self = match self {
            Self::Held { lossy: true } => Self::Trial(now + TRIAL),
            Self::Held { lossy: false } | Self::None => Self::None,
            Self::Trial(until) => Self::Trial(*until),
        };
    }

    /// Ends a trial whose time is over. Returns how many probes are to be sent now.
    pub(super) fn tick(&mut self, now: Instant) -> usize {
        match *self {
            Self::Trial(until) if until > now => PROBES,
            Self::Trial(_) => {
                *self = Self::None;
                0
            }
            Self::None | Self::Held { .. } => 0,
        }
    }

    /// Whether MPTCP may use the lane.
    pub(super) fn is_usable(self) -> bool {
        self == Self::None
    }

    /// Whether it is tried, so that what it carries says nothing.
    pub(super) fn is_trial(self) -> bool {
        matches!(self, Self::Trial(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSES: Cause = Cause::Decided(Reason::Loses {
        share_ppm: 300_000,
        best_ppm: 0,
    });

    #[test]
    fn a_lossy_lane_is_probed_before_it_is_used_again() {
        let now = Instant::now();
        let mut hold = Hold::default();
        hold.hold(&LOSES);
        assert_eq!(hold.tick(now), 0);
        hold.resume(now);
        assert_eq!(hold.tick(now + TRIAL / 2), PROBES);
        assert!(!hold.is_usable());
        // A second order changes nothing.
        hold.resume(now + TRIAL / 2);
        assert_eq!(hold.tick(now + TRIAL), 0);
        assert!(hold.is_usable());
    }

    #[test]
    fn a_trial_ends_when_the_lane_is_held_again() {
        let now = Instant::now();
        let mut hold = Hold::default();
        hold.hold(&LOSES);
        hold.resume(now);
        hold.hold(&LOSES);
        assert_eq!(hold.tick(now + TRIAL), 0);
        assert!(!hold.is_usable() && !hold.is_trial());
    }

    #[test]
    fn a_lane_that_was_held_for_something_else_is_used_at_once() {
        let mut hold = Hold::default();
        hold.hold(&Cause::Stalled);
        assert!(!hold.is_usable());
        hold.resume(Instant::now());
        assert!(hold.is_usable());
    }
}
