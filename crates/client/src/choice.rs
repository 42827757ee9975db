//! Limits that a torrent has itself, or by what holds for all.

use serde::{Deserialize, Serialize};

/// What a torrent says of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice<T> {
    /// The one for all torrents holds.
    #[default]
    Default,
    /// There is none.
    Unlimited,
    /// It has its own.
    Own(T),
}

impl<T> Choice<T> {
    /// The limit that holds, where `all` is the one for all torrents.
    pub fn or(self, all: Option<T>) -> Option<T> {
        match self {
            Self::Default => all,
            Self::Unlimited => None,
            Self::Own(own) => Some(own),
        }
    }
}

/// When the seeding of a torrent ends.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedChoice {
    /// At this ratio of bytes sent to bytes of content.
    pub ratio: Choice<f64>,
    /// After this time of seeding, in seconds.
    pub time: Choice<u64>,
    /// After this time without an upload, in seconds.
    #[serde(default)]
    pub idle: Choice<u64>,
}

impl SeedChoice {
    /// Seeding does not end.
    pub const UNLIMITED: Self = Self {
        ratio: Choice::Unlimited,
        time: Choice::Unlimited,
        idle: Choice::Unlimited,
    };
}

/// Numbers of limits of seeding, kept while they do not hold, because programs set the two one by one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedNumbers {
    /// The ratio.
    pub ratio: Option<f64>,
    /// The time without an upload, in seconds.
    pub idle: Option<u64>,
}

impl SeedNumbers {
    /// These numbers, and where one is missing that of the other.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            ratio: self.ratio.or(other.ratio),
            idle: self.idle.or(other.idle),
        }
    }
}

/// What is wrong with a ratio.
pub(crate) fn check_ratio(ratio: Choice<f64>) -> Option<String> {
    match ratio {
        Choice::Own(ratio) if !ratio.is_finite() || ratio < 0.0 => {
            Some(format!("{ratio} is not a ratio: write a number from 0 up"))
        }
        _ => None,
    }
}
