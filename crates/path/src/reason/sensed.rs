//! Results of sensing.

use std::time::Duration;

use thiserror::Error;

use crate::text::mbit;

/// What sensing found about a path that shares interfaces with paths in use. Rates are in bit/s.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Sensed {
    /// The path is on trial.
    #[error("tried beside {} {}", tried_beside(*.sharing), mbit(*.rate))]
    Trial {
        /// Number of paths in use that it shares interfaces with.
        sharing: usize,
        /// Their total rate without it.
        rate: u64,
    },
    /// The path adds to the total rate.
    #[error(
        "no shared bottleneck: with its {} the sum rose from {} to {}",
        mbit(*.own), mbit(*.before), mbit(*.after)
    )]
    Gain {
        /// Its rate.
        own: u64,
        /// Total rate of the paths it shares with, without it.
        before: u64,
        /// Total rate with it.
        after: u64,
    },
    /// A path in use lost rate to it.
    #[error(
        "shared bottleneck: a path fell from {} to {} beside its {}; tried again after {} s",
        mbit(*.had), mbit(*.has), mbit(*.own), .again.as_secs()
    )]
    Bottleneck {
        /// Rate of that path without it.
        had: u64,
        /// Rate of that path beside it.
        has: u64,
        /// Its own rate.
        own: u64,
        /// How long it is not retried.
        again: Duration,
    },
    /// No path in use lost rate, but the total rate did not rise.
    #[error(
        "no gain: {} before it, {} with it; tried again after {} s",
        mbit(*.before), mbit(*.after), .again.as_secs()
    )]
    NoGain {
        /// Total rate of the paths it shares with, without it.
        before: u64,
        /// Total rate with it.
        after: u64,
        /// How long it is not retried.
        again: Duration,
    },
    /// Nothing could be measured during the trial.
    #[error("its trial measured nothing; tried again after {} s", .again.as_secs())]
    Unmeasured {
        /// How long it is not retried.
        again: Duration,
    },
    /// The paths it shares with changed during the trial.
    #[error("what it shares with changed during its trial")]
    Changed,
    /// A path in use carries less than before, so this path is paused to find out whether it is the
    /// cause.
    #[error(
        "paused for a check: a path it shares with fell from {} to {}",
        mbit(*.had), mbit(*.has)
    )]
    Check {
        /// Rate of that path before.
        had: u64,
        /// Rate of that path now.
        has: u64,
    },
    /// While this path was paused, the other path carried more.
    #[error(
        "shared bottleneck: a path rose from {} to {} without it; tried again after {} s",
        mbit(*.has), mbit(*.without), .again.as_secs()
    )]
    Recovered {
        /// Rate of the other path beside it.
        has: u64,
        /// Rate of the other path while this one was paused.
        without: u64,
        /// How long it is not retried.
        again: Duration,
    },
    /// While this path was paused, the other path carried no more: its loss has another cause.
    #[error("no shared bottleneck: without it the other path stayed at {}", mbit(*.without))]
    Innocent {
        /// Rate of the other path while this one was paused.
        without: u64,
    },
}

fn tried_beside(sharing: usize) -> String {
    match sharing {
        1 => "a path it shares interfaces with, which carries".to_owned(),
        _ => format!("{sharing} paths it shares interfaces with, which carry"),
    }
}
