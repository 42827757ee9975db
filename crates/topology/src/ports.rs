//! The range of ports that border routers deliver to directly (`dispatched_ports`): first and last
//! port; `(0, 0)` is the empty range.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Reads a range in scionproto's format: `31000-32767`, `all`, or `-` for the empty range.
pub(crate) fn parse(text: &str) -> Result<(u16, u16), String> {
    let range = match text {
        "" | "-" => return Ok((0, 0)),
        "all" | "ALL" => return Ok((1, u16::MAX)),
        text => text.split_once('-'),
    };
    range
        .and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?)))
        .filter(|(first, last)| 0 < *first && first <= last)
        .ok_or_else(|| {
            format!(
                "dispatched_ports {text:?} is not a range of ports: write all, a range such as 31000-32767, or - for no port"
            )
        })
}

/// Writes a range so that [`parse`] reads it back.
pub(crate) fn format(ports: (u16, u16)) -> String {
    match ports {
        (0, 0) => "-".to_owned(),
        (1, u16::MAX) => "all".to_owned(),
        (first, last) => format!("{first}-{last}"),
    }
}

pub(crate) fn serialize<S: Serializer>(ports: &(u16, u16), to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format(*ports))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<(u16, u16), D::Error> {
    parse(&String::deserialize(from)?).map_err(D::Error::custom)
}
