//! What sensing found, in figures.

use std::fmt;
use std::time::Duration;

use crate::rate::Rate;

/// What was found out about a path that shares interfaces with paths in use. Rates are in bits per
/// second.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sensed {
    /// It is being tried.
    Trial {
        /// How many paths in use it shares interfaces with.
        sharing: usize,
        /// What they carry together without it.
        rate: u64,
    },
    /// It adds to the rest.
    Gain {
        /// What it carries.
        own: u64,
        /// What those it shares with carried without it.
        before: u64,
        /// What they and it carry together.
        after: u64,
    },
    /// A path in use lost by it.
    Bottleneck {
        /// What that carried without it.
        had: u64,
        /// What that carries beside it.
        has: u64,
        /// What it carries itself.
        own: u64,
        /// How long it is not tried again.
        again: Duration,
    },
    /// No path in use lost, but all together did not gain.
    NoGain {
        /// What those it shares with carried without it.
        before: u64,
        /// What they and it carried together.
        after: u64,
        /// How long it is not tried again.
        again: Duration,
    },
    /// Nothing could be measured during the trial.
    Unmeasured {
        /// How long it is not tried again.
        again: Duration,
    },
    /// The paths it shares with changed during the trial.
    Changed,
    /// A path in use carries less than it did, so this one is paused to see whether it is why.
    Check {
        /// What that carried.
        had: u64,
        /// What it carries now.
        has: u64,
    },
    /// With this one paused, the other path carried more.
    Recovered {
        /// What that carried beside it.
        has: u64,
        /// What that carried while it was paused.
        without: u64,
        /// How long it is not tried again.
        again: Duration,
    },
    /// With this one paused, the other path carried no more: that has another cause.
    Innocent {
        /// What that carried while it was paused.
        without: u64,
    },
}

impl fmt::Display for Sensed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Trial { sharing: 1, rate } => write!(
                f,
                "tried beside a path it shares interfaces with, which carries {}",
                Rate(rate)
            ),
            Self::Trial { sharing, rate } => write!(
                f,
                "tried beside {sharing} paths it shares interfaces with, which carry {}",
                Rate(rate)
            ),
            Self::Gain { own, before, after } => write!(
                f,
                "no shared bottleneck: with its {} the sum rose from {} to {}",
                Rate(own),
                Rate(before),
                Rate(after)
            ),
            Self::Bottleneck {
                had,
                has,
                own,
                again,
            } => write!(
                f,
                "shared bottleneck: a path fell from {} to {} beside its {}; tried again after {} s",
                Rate(had),
                Rate(has),
                Rate(own),
                again.as_secs()
            ),
            Self::NoGain {
                before,
                after,
                again,
            } => write!(
                f,
                "no gain: {} before it, {} with it; tried again after {} s",
                Rate(before),
                Rate(after),
                again.as_secs()
            ),
            Self::Unmeasured { again } => write!(
                f,
                "its trial measured nothing; tried again after {} s",
                again.as_secs()
            ),
            Self::Changed => f.write_str("what it shares with changed during its trial"),
            Self::Check { had, has } => write!(
                f,
                "paused for a check: a path it shares with fell from {} to {}",
                Rate(had),
                Rate(has)
            ),
            Self::Recovered {
                has,
                without,
                again,
            } => write!(
                f,
                "shared bottleneck: a path rose from {} to {} without it; tried again after {} s",
                Rate(has),
                Rate(without),
                again.as_secs()
            ),
            Self::Innocent { without } => write!(
                f,
                "no shared bottleneck: without it the other path stayed at {}",
                Rate(without)
            ),
        }
    }
}
