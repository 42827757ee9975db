//! `link_info.json` (004, section 5.2.1): an object with an entry for each link.
//!
//! ```json
//! { "1": { "AS_ID": 1, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "192.168.17.129" } }
//! ```
//!
//! `Bandwidth` is in kbit/s. The optional keys `Ingress` and `Egress` (kbit/s) replace it in one
//! direction; `Port` is the far end's UDP port; `Device` names the device; `Queue` is how long a packet may
//! wait, such as `"30ms"`.

use std::fmt;
use std::net::IpAddr;

use hawser_topology::parse_duration;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::link::{Link, LinkFile, Place, Rates, check_rate};

/// Longest text of a wrong value in a message.
const SHOWN: usize = 40;

/// An entry, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(rename = "AS_ID")]
    _as_id: AsId,
    #[serde(rename = "IsUserAS")]
    is_user_as: bool,
    #[serde(rename = "Bandwidth")]
    bandwidth: Option<Value>,
    #[serde(rename = "IP-Address")]
    address: String,
    #[serde(rename = "Port")]
    port: Option<Value>,
    #[serde(rename = "Device")]
    device: Option<String>,
    #[serde(rename = "Ingress")]
    ingress: Option<Value>,
    #[serde(rename = "Egress")]
    egress: Option<Value>,
    #[serde(rename = "Queue")]
    queue: Option<String>,
}

/// A number, as SCIONLab has it, or an ISD-AS.
#[derive(Deserialize)]
#[serde(untagged)]
enum AsId {
    Number(#[allow(dead_code)] u64),
    Text(#[allow(dead_code)] String),
}

/// The entries in the order of the file. A map would keep only the last of those with equal names.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with an entry for each link")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

pub(crate) fn parse(text: &str) -> Result<LinkFile, String> {
    let Entries(entries) = serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => format!("the file is cut short: {error}"),
        false => format!("it is not valid JSON: {error}"),
    })?;
    let mut links: Vec<Link> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for (name, value) in entries {
        let entry = format!("entry {name:?}");
        if !names.insert(name) {
            return Err(format!("{entry} is there twice"));
        }
        if let Some(link) = link(&entry, value).map_err(|reason| format!("{entry}: {reason}"))? {
            links.push(link);
        }
    }
    Ok(LinkFile {
        links,
        default: None,
    })
}

/// The link of an entry; `None` for one to an AS of the infrastructure, which has no limit.
fn link(name: &str, value: Value) -> Result<Option<Link>, String> {
    let entry: Entry = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let wrong = |text: &str| format!("IP-Address {text:?} is not an IP address");
    let address: IpAddr = entry
        .address
        .parse()
        .map_err(|_| wrong(&shown(&entry.address)))?;
    let port = entry.port.as_ref().map(port).transpose()?;
    let rate = |key: &str, value: &Option<Value>| {
        let rate = value.as_ref().map(kbit);
        let named = |reason| format!("{key} {reason}");
        rate.transpose().map_err(named)
    };
    let both = rate("Bandwidth", &entry.bandwidth)?;
    let rates = Rates {
        egress: rate("Egress", &entry.egress)?.or(both),
        ingress: rate("Ingress", &entry.ingress)?.or(both),
    };
    if rates == Rates::default() {
        return Err("there is no Bandwidth: say it in kbit/s".to_owned());
    }
    let queue = entry.queue.as_deref().map(parse_duration).transpose();
    let queue = queue.map_err(|error| format!("Queue: {error}"))?;
    Ok(entry.is_user_as.then(|| Link {
        entry: name.to_owned(),
        place: Place::Address(address, port),
        device: entry.device,
        rates,
        queue,
    }))
}

fn port(value: &Value) -> Result<u16, String> {
    let number = value.as_u64().and_then(|port| u16::try_from(port).ok());
    let port = number.filter(|&port| port != 0);
    port.ok_or_else(|| format!("Port is {}, not a number from 1 to 65535", short(value)))
}

/// A rate in bit/s from a number of kbit/s.
fn kbit(value: &Value) -> Result<u64, String> {
    let is = format!("is {}", short(value));
    let Value::Number(number) = value else {
        return Err(format!("{is}, not a number of kbit/s"));
    };
    let rate = match number.as_u64() {
        Some(kbit) => kbit.checked_mul(1000),
        // With digits after the point; below 0 and beyond all bounds it is 0 or the largest number.
        None => number
            .as_f64()
            .filter(|kbit| *kbit >= 0.0)
            .map(|kbit| (kbit * 1000.0) as u64),
    };
    let wrong = |reason| format!("{is} kbit/s: {reason}");
    check_rate(rate.unwrap_or(u64::MAX)).map_err(wrong)
}

fn short(value: &Value) -> String {
    shown(&value.to_string())
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of 004, listing 5.1.
    const THESIS: &str = r#"{
        "1": {
            "AS_ID": 1,
            "IsUserAS": true,
            "Bandwidth": 500,
            "IP-Address": "fe80::20c:29ff:fe08:993c"
        },
        "2": {
            "AS_ID": 2,
            "IsUserAS": true,
            "Bandwidth": 500,
            "IP-Address": "192.168.17.129"
        }
    }"#;

    #[test]
    fn the_example_of_the_thesis_is_read() {
        let link = |entry: &str, address: &str| Link {
            entry: entry.to_owned(),
            place: Place::Address(address.parse().unwrap(), None),
            device: None,
            rates: Rates::both(500_000),
            queue: None,
        };
        assert_eq!(
            parse(THESIS).unwrap().links,
            [
                link("entry \"1\"", "fe80::20c:29ff:fe08:993c"),
                link("entry \"2\"", "192.168.17.129"),
            ]
        );
    }

    fn with(fields: &str) -> Result<LinkFile, String> {
        parse(&format!(
            r#"{{"a": {{"AS_ID": 1, "IsUserAS": true, "IP-Address": "10.0.0.1", {fields}}}}}"#
        ))
    }

    #[test]
    fn optional_keys_are_read() {
        let file = with(
            r#""Bandwidth": 1500.5, "Port": 50000, "Device": "eth1", "Ingress": 0, "Queue": "7ms""#,
        );
        let link = &file.unwrap().links[0];
        assert_eq!(
            link.place,
            Place::Address("10.0.0.1".parse().unwrap(), Some(50_000))
        );
        assert_eq!(link.device.as_deref(), Some("eth1"));
        assert_eq!(link.queue, Some(std::time::Duration::from_millis(7)));
        let rates = Rates {
            egress: Some(1_500_500),
            ingress: Some(0),
        };
        assert_eq!(link.rates, rates);
        let one = with(r#""Egress": 8"#).unwrap().links[0].rates;
        assert_eq!((one.egress, one.ingress), (Some(8000), None));
    }

    #[test]
    fn links_to_infrastructure_have_no_limit() {
        let text = THESIS.replacen("true", "false", 1);
        assert_eq!(parse(&text).unwrap().links.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_named() {
        const BOUNDS: &str = "choose 8 kbit/s to 100 Gbit/s, or 0 to let nothing pass";
        for (fields, expected) in [
            (
                r#""Bandwidth": -5"#,
                format!("entry \"a\": Bandwidth is -5 kbit/s: {BOUNDS}"),
            ),
            (
                r#""Bandwidth": 1e300"#,
                format!("entry \"a\": Bandwidth is 1e+300 kbit/s: {BOUNDS}"),
            ),
            (
                r#""Bandwidth": 18446744073709551615"#,
                format!("entry \"a\": Bandwidth is 18446744073709551615 kbit/s: {BOUNDS}"),
            ),
            (
                r#""Bandwidth": "fast""#,
                "entry \"a\": Bandwidth is \"fast\", not a number of kbit/s".to_owned(),
            ),
            (
                r#""Bandwidth": 500, "Port": 0"#,
                "entry \"a\": Port is 0, not a number from 1 to 65535".to_owned(),
            ),
            (
                r#""Bandwidth": 500, "Queue": "7""#,
                "entry \"a\": Queue: \"7\" is not a time: write for example 20ms, 500us or 1s"
                    .to_owned(),
            ),
            (
                r#""Port": 1"#,
                "entry \"a\": there is no Bandwidth: say it in kbit/s".to_owned(),
            ),
        ] {
            assert_eq!(with(fields).unwrap_err(), expected, "{fields}");
        }
        let unknown = with(r#""Bandwidth": 500, "Speed": 1"#).unwrap_err();
        assert!(
            unknown.starts_with("entry \"a\": unknown field `Speed`"),
            "{unknown}"
        );
        let address = THESIS.replace("192.168.17.129", "192.168.17.1290");
        assert_eq!(
            parse(&address).unwrap_err(),
            "entry \"2\": IP-Address \"192.168.17.1290\" is not an IP address"
        );
        let twice = THESIS.replace("\"2\":", "\"1\":");
        assert_eq!(parse(&twice).unwrap_err(), "entry \"1\" is there twice");
        for end in [1, 50, THESIS.len() - 1] {
            let error = parse(&THESIS[..end]).unwrap_err();
            assert!(error.starts_with("the file is cut short: "), "{error}");
        }
        assert!(
            parse("[]")
                .unwrap_err()
                .starts_with("it is not valid JSON: ")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}", at in 0..300_usize) {
            let _ = parse(&text);
            let mut near = THESIS.to_owned();
            if near.is_char_boundary(at.min(near.len())) {
                near.insert_str(at.min(near.len()), &text);
            }
            let _ = parse(&near);
        }
    }
}
