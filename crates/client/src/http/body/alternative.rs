//! The limits of the rates of all torrents that hold in place of the usual ones at times.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alternative::{self, AlternativeChanges, AlternativeLimits, ScheduleChanges};

/// Limits of the rates of all torrents that hold in place of the usual ones, both of them: while they are
/// switched on, by users or by a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlternativeRates {
    /// Whether they hold now.
    pub active: bool,
    /// Most bits of blocks that all torrents together receive a second. Less than 8 count as 8.
    #[schema(minimum = 0)]
    pub download_rate: u64,
    /// Most bits of blocks that all torrents together send a second. Less than 8 count as 8.
    #[schema(minimum = 0)]
    pub upload_rate: u64,
    /// When they are switched on and off.
    pub schedule: Schedule,
}

/// When the alternative limits are switched on and off, by the clock of the host. Between two such times users
/// may switch them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Whether they are switched at all.
    pub enabled: bool,
    /// When they are switched on, in minutes after midnight.
    #[schema(minimum = 0, maximum = 1439)]
    pub begin: u16,
    /// When they are switched off, in minutes after midnight; on the next day if that is not after `begin`.
    #[schema(minimum = 0, maximum = 1439)]
    pub end: u16,
    /// On which days they are switched on.
    pub days: Vec<Day>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Day {
    /// Sunday.
    Sunday,
    /// Monday.
    Monday,
    /// Tuesday.
    Tuesday,
    /// Wednesday.
    Wednesday,
    /// Thursday.
    Thursday,
    /// Friday.
    Friday,
    /// Saturday.
    Saturday,
}

/// The days, each at the place of its bit.
const DAYS: [Day; 7] = [
    Day::Sunday,
    Day::Monday,
    Day::Tuesday,
    Day::Wednesday,
    Day::Thursday,
    Day::Friday,
    Day::Saturday,
];

/// A change to the alternative limits. What is not given stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlternativeChange {
    /// Whether they hold now. A schedule that the same change alters decides in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// Most bits of blocks that all torrents together receive a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub download_rate: Option<u64>,
    /// Most bits of blocks that all torrents together send a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub upload_rate: Option<u64>,
    /// When they are switched on and off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleChange>,
}

/// A change to the schedule of the alternative limits. What is not given stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleChange {
    /// Whether they are switched at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// When they are switched on, in minutes after midnight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1439)]
    pub begin: Option<u16>,
    /// When they are switched off, in minutes after midnight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1439)]
    pub end: Option<u16>,
    /// On which days they are switched on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<Day>>,
}

impl From<AlternativeLimits> for AlternativeRates {
    fn from(limits: AlternativeLimits) -> Self {
        let alternative::Schedule {
            is_on,
            begin,
            end,
            days,
        } = limits.schedule;
        Self {
            active: limits.holds,
            download_rate: limits.download,
            upload_rate: limits.upload,
            schedule: Schedule {
                enabled: is_on,
                begin,
                end,
                days: DAYS
                    .into_iter()
                    .filter(|day| days & bit(*day) != 0)
                    .collect(),
            },
        }
    }
}

impl From<AlternativeChange> for AlternativeChanges {
    fn from(change: AlternativeChange) -> Self {
        let schedule = change.schedule.unwrap_or_default();
        let bits = |days: Vec<Day>| days.into_iter().fold(0, |bits, day| bits | bit(day));
        Self {
            download: change.download_rate,
            upload: change.upload_rate,
            holds: change.active,
            schedule: ScheduleChanges {
                is_on: schedule.enabled,
                begin: schedule.begin,
                end: schedule.end,
                days: schedule.days.map(bits),
            },
        }
    }
}

fn bit(day: Day) -> u8 {
    1 << day as u8
}
