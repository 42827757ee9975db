//! How many torrents of a daemon run at once, how long they seed, and how fast all of them are.

use std::num::NonZeroUsize;
use std::time::Duration;

use hawser_client::{
    AlternativeChanges, Bounds, LimitChange, QueueChanges, RateChange, RateChanges, ScheduleChanges,
};
use hawser_topology::parse_rate;

use crate::cmd::headings;
use crate::cmd::quantity::{RateArg, long_duration, rate_or_none};

#[derive(clap::Args)]
pub struct LimitArgs {
    /// Most torrents that download at once [default: 5]
    ///
    /// Or none. Kept with the torrents until another one is given, here or by Transmission's RPC, as the limits
    /// below.
    #[arg(long, value_name = "N", value_parser = or_none(number))]
    pub downloads: Option<LimitArg<NonZeroUsize>>,
    /// Most torrents that seed at once [default: 50]
    #[arg(long, value_name = "N", value_parser = or_none(number))]
    pub seeds: Option<LimitArg<NonZeroUsize>>,
    /// Seed each torrent until RATIO times its size was sent: 1.5, or none
    #[arg(long, value_name = "RATIO", value_parser = or_none(ratio))]
    pub seed_ratio: Option<LimitArg<f64>>,
    /// Seed each torrent for this time: 30m, or none
    #[arg(long, value_name = "TIME", value_parser = or_none(long_duration))]
    pub seed_time: Option<LimitArg<Duration>>,
    /// Seed each torrent until nothing was sent for this time: 30m, or none
    #[arg(long, value_name = "TIME", value_parser = or_none(long_duration), help_heading = headings::RARE, hide_short_help = true)]
    pub seed_idle: Option<LimitArg<Duration>>,
    /// Most content received per second by all torrents together: 100mbit, or none
    ///
    /// Kept with the torrents until another one is given: here, by the API, or by Transmission's RPC.
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    pub limit_down: Option<RateArg>,
    /// Most content sent per second by all torrents
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    pub limit_up: Option<RateArg>,
    /// Most content received per second by all torrents while the alternative limits hold [default: 400kbit]
    ///
    /// They hold in place of the usual limits, both of them, at the times of --alt-times, and when they are
    /// switched on by the API, the page or Transmission's RPC. Kept with the torrents, as the others.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = headings::RARE, hide_short_help = true)]
    pub alt_limit_down: Option<u64>,
    /// Most content sent per second by all torrents while the alternative limits hold [default: 400kbit]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = headings::RARE, hide_short_help = true)]
    pub alt_limit_up: Option<u64>,
    /// When the alternative limits are switched on and off each day, by the local clock: 22:00-06:00, or none
    #[arg(long, value_name = "TIMES", value_parser = or_none(times), help_heading = headings::RARE, hide_short_help = true)]
    pub alt_times: Option<LimitArg<(u16, u16)>>,
    /// Most torrents whose content is verified at once
    #[arg(long, value_name = "N", default_value = "2", help_heading = headings::RARE, hide_short_help = true)]
    pub checks: NonZeroUsize,
}

impl LimitArgs {
    /// How many torrents are verified at once.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            checks: self.checks.get(),
            ..Bounds::default()
        }
    }

    /// What changes of the queue.
    pub fn queue(&self) -> QueueChanges {
        QueueChanges {
            downloads: limit_change(self.downloads, NonZeroUsize::get),
            seeds: limit_change(self.seeds, NonZeroUsize::get),
            ratio: limit_change(self.seed_ratio, |ratio| ratio),
            time: limit_change(self.seed_time, |time| time.as_secs()),
            idle: limit_change(self.seed_idle, |time| time.as_secs()),
            starts_added: None,
        }
    }

    /// What changes of the rates of all torrents.
    pub fn rates(&self) -> RateChanges {
        RateChanges {
            download: rate_change(self.limit_down),
            upload: rate_change(self.limit_up),
        }
    }

    /// What changes of the limits of rates that hold at times.
    pub fn alternative(&self) -> AlternativeChanges {
        let times = self.alt_times.map(|times| times.0);
        let both = times.flatten();
        AlternativeChanges {
            download: self.alt_limit_down,
            upload: self.alt_limit_up,
            holds: None,
            schedule: ScheduleChanges {
                is_on: times.map(|times| times.is_some()),
                begin: both.map(|(begin, _)| begin),
                end: both.map(|(_, end)| end),
                days: None,
            },
        }
    }
}

/// Reads two times of day, in minutes after midnight.
fn times(text: &str) -> Result<(u16, u16), String> {
    let read = |time: &str| {
        let (hours, minutes) = time.split_once(':')?;
        let number = |text: &str, end: u16| {
            let number: Option<u16> = text.parse().ok().filter(|number| *number < end);
            number.filter(|_| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        Some(number(hours, 24)? * 60 + number(minutes, 60)?)
    };
    let both = text.split_once('-');
    let both = both.and_then(|(begin, end)| Some((read(begin)?, read(end)?)));
    both.ok_or_else(|| format!("{text:?} is not two times of day: write them as 22:00-06:00"))
}

/// Reads a ratio of bytes sent to bytes of content.
pub fn ratio(text: &str) -> Result<f64, String> {
    let ratio: Option<f64> = text.parse().ok();
    let ratio = ratio.filter(|ratio| *ratio >= 0.0 && ratio.is_finite());
    ratio.ok_or_else(|| {
        format!("{text:?} is not a ratio: write a number from 0 up, for example 1.5")
    })
}

/// A limit, or `none`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitArg<T>(Option<T>);

/// Reads a limit by `read`, or `none`.
fn or_none<T>(
    read: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<LimitArg<T>, String> + Clone + Send + Sync {
    move |text| match text {
        "none" => Ok(LimitArg(None)),
        text => read(text).map(|limit| LimitArg(Some(limit))),
    }
}

/// Reads a number of torrents.
fn number(text: &str) -> Result<NonZeroUsize, String> {
    let wrong = |_| format!("{text:?} is not a number of torrents: write one from 1 up, or none");
    text.parse().map_err(wrong)
}

/// The change to a limit, if one is given.
fn limit_change<T, U>(wanted: Option<LimitArg<T>>, value: impl Fn(T) -> U) -> LimitChange<U> {
    match wanted {
        None => LimitChange {
            value: None,
            holds: None,
        },
        Some(limit) => LimitChange::to(limit.0.map(value)),
    }
}

fn rate_change(wanted: Option<RateArg>) -> RateChange {
    wanted.map_or_else(RateChange::default, |rate| RateChange::to(rate.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_set_or_removed_or_stays() {
        let read = or_none(number);
        let change = |text: Option<&str>| {
            let wanted = text.map(|text| read(text).unwrap());
            limit_change(wanted, NonZeroUsize::get)
        };
        assert_eq!(change(Some("7")), LimitChange::to(Some(7)));
        assert_eq!(change(Some("none")), LimitChange::to(None));
        assert_eq!(change(None), LimitChange::default());
        assert!(read("0").is_err() && read("x").is_err());
    }

    #[test]
    fn times_of_day_are_two_of_four_digits() {
        assert_eq!(times("22:00-06:30"), Ok((1320, 390)));
        assert_eq!(times("00:00-23:59"), Ok((0, 1439)));
        for wrong in [
            "",
            "22:00",
            "22-06",
            "24:00-06:00",
            "2:00-06:00",
            "22:60-06:00",
            "+2:00-06:00",
        ] {
            assert!(times(wrong).is_err(), "{wrong}");
        }
    }
}
