//! Values of a configuration or a job that are written as text.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use hawser_topology::{parse_rate, parse_retry};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes a value as text.
pub(crate) fn serialize<T: Display, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Reads a value.
pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    parse(&String::deserialize(deserializer)?)
}

/// Reads a value that may be missing.
pub(crate) fn optional<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    deserialize(deserializer).map(Some)
}

/// Reads a rate that may be missing, in bit/s.
pub(crate) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_rate(&text).map(Some).map_err(D::Error::custom)
}

/// Reads a time for which something is tried again.
pub(crate) fn retry<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_retry(&text).map_err(D::Error::custom)
}

/// Reads several values.
pub(crate) fn list<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| parse(text)).collect()
}

fn parse<T: FromStr<Err: Display>, E: Error>(text: &str) -> Result<T, E> {
    let parsed = text.parse();
    parsed.map_err(|error| E::custom(format_args!("{text:?}: {error}")))
}
