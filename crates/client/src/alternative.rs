//! Limits of the rates of all torrents that hold in place of the usual ones: while they are switched on, or at
//! certain times of the week. The numbers and days are those of Transmission.

use serde::{Deserialize, Serialize};

use crate::rates::{RateLimit, RateLimits};

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// Minutes of a week.
const WEEK: u16 = 7 * DAY;
/// The bits of all days of a week.
const ALL_DAYS: u8 = 0x7f;

/// Limits of the rates of all torrents that hold in place of the usual ones, both of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlternativeLimits {
    /// Most bits of blocks that are received per second.
    pub download: u64,
    /// Most bits of blocks that are sent per second.
    pub upload: u64,
    /// Whether they hold now.
    pub holds: bool,
    /// When they are switched on and off.
    pub schedule: Schedule,
}

/// When alternative limits are switched on and off, by the clock of the host. Between two such times users may
/// switch them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Whether they are switched at all.
    pub is_on: bool,
    /// On, in minutes after midnight.
    pub begin: u16,
    /// Off, in minutes after midnight; on the next day if that is not after `begin`.
    pub end: u16,
    /// On which days they are switched on: bits from Sunday (1) to Saturday (64).
    pub days: u8,
}

impl Default for AlternativeLimits {
    /// 50 kB/s, which do not hold, and from 9 to 17 o'clock if that is switched on: as of Transmission.
    fn default() -> Self {
        Self {
            download: 400_000,
            upload: 400_000,
            holds: false,
            schedule: Schedule {
                is_on: false,
                begin: 9 * 60,
                end: 17 * 60,
                days: ALL_DAYS,
            },
        }
    }
}

impl AlternativeLimits {
    /// They, as limits that hold.
    pub(crate) fn rates(&self) -> RateLimits {
        let limit = |rate| RateLimit { rate, holds: true };
        RateLimits {
            download: limit(self.download),
            upload: limit(self.upload),
        }
    }
}

impl Schedule {
    /// What is wrong with values that no daemon can have; `None` if nothing is.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.begin >= DAY || self.end >= DAY {
            let text = "a time of day is out of range: write minutes after midnight, below 1440";
            return Some(text.to_owned());
        }
        let text =
            "days are out of range: write a sum of 1 for Sunday to 64 for Saturday, up to 127";
        (self.days > ALL_DAYS).then(|| text.to_owned())
    }

    /// Whether alternative limits hold by this schedule at this minute of a week, counted from the midnight at
    /// which a Sunday begins.
    pub(crate) fn includes(&self, minute: u16) -> bool {
        let length = match self.end > self.begin {
            true => self.end - self.begin,
            false => DAY - self.begin + self.end,
        };
        let days = (0..7_u16).filter(|day| self.days & (1 << day) != 0);
        days.map(|day| day * DAY + self.begin)
            .any(|begin| (minute % WEEK + WEEK - begin) % WEEK < length)
    }
}

/// A change of alternative limits. What is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AlternativeChanges {
    /// Most bits of blocks that are received per second.
    pub download: Option<u64>,
    /// Most bits of blocks that are sent per second.
    pub upload: Option<u64>,
    /// Whether they hold now.
    pub holds: Option<bool>,
    /// When they are switched on and off.
    pub schedule: ScheduleChanges,
}

/// A change of a schedule. What is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScheduleChanges {
    /// Whether limits are switched at all.
    pub is_on: Option<bool>,
    /// On, in minutes after midnight.
    pub begin: Option<u16>,
    /// Off, in minutes after midnight.
    pub end: Option<u16>,
    /// On which days they are switched on.
    pub days: Option<u8>,
}

impl AlternativeChanges {
    /// Makes the change.
    pub fn apply(self, limits: &mut AlternativeLimits) {
        limits.download = self.download.unwrap_or(limits.download);
        limits.upload = self.upload.unwrap_or(limits.upload);
        limits.holds = self.holds.unwrap_or(limits.holds);
        let schedule = &mut limits.schedule;
        schedule.is_on = self.schedule.is_on.unwrap_or(schedule.is_on);
        schedule.begin = self.schedule.begin.unwrap_or(schedule.begin);
        schedule.end = self.schedule.end.unwrap_or(schedule.end);
        schedule.days = self.schedule.days.unwrap_or(schedule.days);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(begin: u16, end: u16, days: u8) -> Schedule {
        Schedule {
            is_on: true,
            begin,
            end,
            days,
        }
    }

    /// The minutes of a week that a schedule includes, as ranges.
    fn ranges(schedule: Schedule) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for minute in (0..WEEK).filter(|minute| schedule.includes(*minute)) {
            match ranges.last_mut() {
                Some((_, end)) if *end == minute => *end += 1,
                _ => ranges.push((minute, minute + 1)),
            }
        }
        ranges
    }

    #[test]
    fn a_schedule_holds_on_its_days_and_into_the_next_one() {
        // Monday and Saturday.
        let days = 0b100_0010;
        let (monday, saturday) = (DAY, 6 * DAY);
        assert_eq!(
            ranges(schedule(60, 120, days)),
            [(monday + 60, monday + 120), (saturday + 60, saturday + 120)]
        );
        assert_eq!(
            ranges(schedule(120, 60, days)),
            [
                (0, 60),
                (monday + 120, monday + DAY + 60),
                (saturday + 120, WEEK)
            ]
        );
        // A whole day from a time on.
        assert_eq!(
            ranges(schedule(60, 60, 0b10)),
            [(monday + 60, monday + DAY + 60)]
        );
        assert_eq!(ranges(schedule(60, 120, 0)), []);
        assert_eq!(ranges(schedule(0, 0, ALL_DAYS)), [(0, WEEK)]);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert_eq!(AlternativeLimits::default().schedule.fault(), None);
        assert!(schedule(DAY, 0, 1).fault().is_some());
        assert!(schedule(0, DAY, 1).fault().is_some());
        assert!(schedule(0, 0, 0x80).fault().is_some());
    }
}
