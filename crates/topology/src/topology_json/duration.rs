//! Durations as scionproto writes them: one whole number and one unit.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

const UNITS: [(&str, u64); 10] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("y", 365 * DAY),
    ("w", 7 * DAY),
    ("d", DAY),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
];
const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as \"200ms\"");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let (_, nanos) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    let nanos = number.checked_mul(*nanos).ok_or_else(wrong)?;
    Ok(Duration::from_nanos(nanos))
}

/// Writes a duration in the largest unit up to seconds that gives a whole number. Longer durations
/// than 584 years are written as 584 years.
pub(super) fn format(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let (unit, size) = [("s", SECOND), ("ms", 1_000_000), ("us", 1_000)]
        .into_iter()
        .find(|(_, size)| nanos % size == 0)
        .unwrap_or(("ns", 1));
    format!("{}{unit}", nanos / size)
}

pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format(*duration))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(from)?).map_err(D::Error::custom)
}
