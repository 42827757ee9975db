//! What sensing found, in figures.

use std::time::Duration;

use thiserror::Error;

use crate::text::mbit;

/// What was found out about a path that shares interfaces with paths in use. Rates are in bits per
/// second.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Sensed {
    /// It is being tried.
    #[error("tried beside {} {}", tried_beside(*.sharing), mbit(*.rate))]
    Trial {
        /// How many paths in use it shares interfaces with.
        sharing: usize,
        /// What they carry together without it.
        rate: u64,
    },
    /// It adds to the rest.
    #[error(
        "no shared bottleneck: with its {} the sum rose from {} to {}",
        mbit(*.own), mbit(*.before), mbit(*.after)
    )]
    Gain {
        /// What it carries.
        own: u64,
        /// What those it shares with carried without it.
        before: u64,
        /// What they and it carry together.
        after: u64,
    },
    /// A path in use lost by it.
    #[error(
        "shared bottleneck: a path fell from {} to {} beside its {}; tried again after {} s",
        mbit(*.had), mbit(*.has), mbit(*.own), .again.as_secs()
    )]
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
    #[error(
        "no gain: {} before it, {} with it; tried again after {} s",
        mbit(*.before), mbit(*.after), .again.as_secs()
    )]
    NoGain {
        /// What those it shares with carried without it.
        before: u64,
        /// What they and it carried together.
        after: u64,
        /// How long it is not tried again.
        again: Duration,
    },
    /// Nothing could be measured during the trial.
    #[error("its trial measured nothing; tried again after {} s", .again.as_secs())]
    Unmeasured {
        /// How long it is not tried again.
        again: Duration,
    },
    /// The paths it shares with changed during the trial.
    #[error("what it shares with changed during its trial")]
    Changed,
    /// A path in use carries less than it did, so this one is paused to see whether it is why.
    #[error(
        "paused for a check: a path it shares with fell from {} to {}",
        mbit(*.had), mbit(*.has)
    )]
    Check {
        /// What that carried.
        had: u64,
        /// What it carries now.
        has: u64,
    },
    /// With this one paused, the other path carried more.
    #[error(
        "shared bottleneck: a path rose from {} to {} without it; tried again after {} s",
        mbit(*.has), mbit(*.without), .again.as_secs()
    )]
    Recovered {
        /// What that carried beside it.
        has: u64,
        /// What that carried while it was paused.
        without: u64,
        /// How long it is not tried again.
        again: Duration,
    },
    /// With this one paused, the other path carried no more: that has another cause.
    #[error("no shared bottleneck: without it the other path stayed at {}", mbit(*.without))]
    Innocent {
        /// What that carried while it was paused.
        without: u64,
    },
}

fn tried_beside(sharing: usize) -> String {
    match sharing {
        1 => "a path it shares interfaces with, which carries".to_owned(),
        _ => format!("{sharing} paths it shares interfaces with, which carry"),
    }
}
