//! Times, rates, sizes and shares as arguments.

use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use hawser_control::{MAX_LIFETIME, MIN_LIFETIME};
use hawser_limit::Limit;
use hawser_topology::{QuantityError, parse_long_duration, parse_rate};

/// A rate, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateArg(pub Option<u64>);

/// Reads a rate, or `none`.
pub fn rate_or_none(text: &str) -> Result<RateArg, QuantityError> {
    if text == "none" {
        return Ok(RateArg(None));
    }
    parse_rate(text).map(|rate| RateArg(Some(rate)))
}

/// Reads the limit of a link: a rate that can be set, 0, or `none`.
pub fn limit_or_none(text: &str) -> Result<RateArg, String> {
    let rate = match text {
        "0" => RateArg(Some(0)),
        text => rate_or_none(text).map_err(|error| error.to_string())?,
    };
    let is_possible = |rate: &u64| *rate == 0 || (Limit::MIN_RATE..=Limit::MAX_RATE).contains(rate);
    match rate.0.is_none_or(|rate| is_possible(&rate)) {
        true => Ok(rate),
        false => Err(format!(
            "{text} is out of bounds: choose 8kbit to 100gbit, or 0 to let nothing pass"
        )),
    }
}

/// Most slots that can be asked for: more connections are not kept either.
const MAX_SLOTS: u64 = 1000;

/// Reads a number of slots.
pub fn slots() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MAX_SLOTS)
}

/// The bytes per second of a rate in bit/s, 1 at least.
pub fn bytes(rate: u64) -> u64 {
    (rate / 8).max(1)
}

/// Reads a time that may be long: `30m`, `1.5h`, `7d`, `90s` or `500ms`.
pub fn long_duration(text: &str) -> Result<Duration, String> {
    parse_long_duration(text).map_err(|error| error.to_string())
}

/// Reads the lifetime of path segments.
pub fn lifetime(text: &str) -> Result<Duration, String> {
    Some(long_duration(text)?)
        .filter(|time| (MIN_LIFETIME..=MAX_LIFETIME).contains(time))
        .ok_or_else(|| format!("segments cannot live for {text:?}: give 2s to 24h"))
}

/// Reads a number of bytes: `32MiB`, `32MB`, `32M` (MiB, as in `dd`) or without a unit.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: write for example 64KiB, 32MiB or 5GB");
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..end].parse().map_err(|_| wrong())?;
    let scale: u64 = match text[end..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(scale)
        .filter(|&n| n > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_have_a_unit() {
        let seconds = |text| long_duration(text).map(|time| time.as_secs_f64());
        for (text, time) in [("30m", 1800.0), ("1.5h", 5400.0), ("7d", 604_800.0)] {
            assert_eq!(seconds(text), Ok(time));
        }
        assert_eq!(seconds("7200s"), Ok(7200.0));
        assert_eq!(seconds("20ms"), Ok(0.02));
        for wrong in [
            "",
            "m",
            "30",
            "-1m",
            "1e9h",
            "30 m",
            "1h30m",
            "1.2.3s",
            "9999999999999999999d",
        ] {
            assert!(seconds(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn sizes_are_bytes() {
        assert_eq!(size("32MiB"), Ok(32 << 20));
        assert_eq!(size("5GB"), Ok(5_000_000_000));
        assert_eq!(size("1234"), Ok(1234));
        for wrong in ["", "0", "MiB", "-1", "3 apples", "99999999999999GB"] {
            assert!(size(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
