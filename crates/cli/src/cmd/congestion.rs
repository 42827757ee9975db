//! The flag `--congestion`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hawser_quic::Congestion;

/// The settings by name, with what help says about each.
const SETTINGS: [(&str, Congestion, &str); 3] = [
    (
        "auto",
        Congestion::Auto,
        "bbr on a long path that loses packets without a queue, cubic elsewhere",
    ),
    ("cubic", Congestion::Cubic, "CUBIC (RFC 9438)"),
    ("bbr", Congestion::Bbr, "BBRv3 (draft-ietf-ccwg-bbr)"),
];

/// Reads a congestion control setting.
pub fn congestion() -> impl TypedValueParser<Value = Congestion> {
    let names = SETTINGS.map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).try_map(|name| {
        let mut settings = SETTINGS.iter();
        let found = settings.find(|(known, ..)| *known == name);
        found
            .map(|(_, setting, _)| *setting)
            .ok_or_else(|| format!("there is no congestion control {name}"))
    })
}
