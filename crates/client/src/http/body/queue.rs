//! How many torrents run at once, and when seeding ends of those that do not say.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Limit, LimitWord};
use crate::choice::Choice;
use crate::settings::{self, LimitChange, QueueChanges, QueueLimits};

/// How many torrents run at once, and when seeding ends of those that do not say. Each limit is a number or
/// `"unlimited"`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Most torrents that download at once; the others wait.
    pub downloads: Limit,
    /// Most torrents that seed at once; the others wait.
    pub seeds: Limit,
    /// The ratio of bytes sent to bytes of content at which seeding ends.
    pub ratio: Limit,
    /// The time of seeding, in seconds, after which it ends.
    pub seconds: Limit,
    /// The time without an upload, in seconds, after which seeding ends.
    pub idle_seconds: Limit,
    /// Whether torrents that are added are started, where that is not said of them.
    #[serde(default)]
    pub starts_added: bool,
}

impl From<QueueLimits> for Queue {
    fn from(limits: QueueLimits) -> Self {
        fn of<T: Copy>(limit: settings::Limit<T>, number: impl Fn(T) -> f64) -> Limit {
            let unlimited = Limit::Word(LimitWord::Unlimited);
            limit
                .in_force()
                .map_or(unlimited, |value| Limit::Number(number(value)))
        }
        let count = |count: usize| count as f64;
        let seconds = |seconds: u64| seconds as f64;
        Self {
            downloads: of(limits.downloads, count),
            seeds: of(limits.seeds, count),
            ratio: of(limits.ratio, |ratio| ratio),
            seconds: of(limits.time, seconds),
            idle_seconds: of(limits.idle, seconds),
            starts_added: limits.starts_added,
        }
    }
}

/// A change of how many torrents run at once, and when seeding ends. What is not given stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueChange {
    /// Most torrents that download at once, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downloads: Option<Limit>,
    /// Most torrents that seed at once, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Limit>,
    /// The ratio of bytes sent to bytes of content at which seeding ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Limit>,
    /// The time of seeding, in seconds, after which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Limit>,
    /// The time without an upload, in seconds, after which seeding ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<Limit>,
    /// Whether torrents that are added are started, where that is not said of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_added: Option<bool>,
}

impl QueueChange {
    /// Reads the change.
    ///
    /// # Errors
    /// What is wrong with a value.
    pub(crate) fn read(self) -> Result<QueueChanges, String> {
        let seconds = |name: &str, limit: Option<Limit>| {
            let seconds = limit.map(Limit::seconds).transpose();
            change(name, seconds.map_err(|fault| format!("{name}: {fault}"))?)
        };
        Ok(QueueChanges {
            downloads: count("downloads", self.downloads)?,
            seeds: count("seeds", self.seeds)?,
            ratio: change("ratio", self.ratio.map(Limit::choice))?,
            time: seconds("seconds", self.seconds)?,
            idle: seconds("idle_seconds", self.idle_seconds)?,
            starts_added: self.starts_added,
        })
    }
}

/// The change to this limit, for which there is no other one.
fn change<T: Default>(name: &str, limit: Option<Choice<T>>) -> Result<LimitChange<T>, String> {
    match limit {
        None => Ok(LimitChange::default()),
        Some(Choice::Own(value)) => Ok(LimitChange::to(Some(value))),
        Some(Choice::Unlimited) => Ok(LimitChange::to(None)),
        Some(Choice::Default) => Err(format!("{name}: write a number or \"unlimited\"")),
    }
}

/// The same for a number of torrents, of which fractions are cut off.
fn count(name: &str, limit: Option<Limit>) -> Result<LimitChange<usize>, String> {
    let limit = change(name, limit.map(Limit::choice))?;
    Ok(LimitChange {
        value: limit.value.map(|count| count as usize),
        holds: limit.holds,
    })
}
