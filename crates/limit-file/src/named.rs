//! TOML and YAML, with named rates and times.
//!
//! ```toml
//! default = "1gbit"
//!
//! [[link]]
//! address = "192.0.2.7"
//! port = 50000
//! rate = "10mbit"
//!
//! [[link]]
//! interface = 3
//! egress = "20mbit"
//! ingress = "5mbit"
//! queue = "30ms"
//! ```

use std::net::IpAddr;

use hawser_topology::{parse_duration, parse_rate};
use serde::Deserialize;

use crate::link::{Link, LinkFile, Place, Rates, check_rate};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    default: Option<String>,
    #[serde(default, rename = "link")]
    links: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    address: Option<String>,
    port: Option<u16>,
    interface: Option<u16>,
    device: Option<String>,
    rate: Option<String>,
    egress: Option<String>,
    ingress: Option<String>,
    queue: Option<String>,
    /// For readers.
    #[serde(default, rename = "comment")]
    _comment: Option<String>,
}

pub(crate) fn parse_toml(text: &str) -> Result<LinkFile, String> {
    // The message shows the place over several lines; its first says the line, its last what is wrong.
    let file = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        format!("{line}{}", one_line(error.message()))
    })?;
    links(file)
}

pub(crate) fn parse_yaml(text: &str) -> Result<LinkFile, String> {
    let file = serde_saphyr::from_str(text).map_err(|error| one_line(&error.to_string()))?;
    links(file)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn links(file: File) -> Result<LinkFile, String> {
    let default = rate("default", file.default.as_deref())?;
    let links = file.links.into_iter().enumerate().map(|(i, entry)| {
        let name = format!("link {}", i + 1);
        link(name.clone(), entry).map_err(|reason| format!("{name}: {reason}"))
    });
    Ok(LinkFile {
        links: links.collect::<Result<_, _>>()?,
        default,
    })
}

fn link(name: String, entry: Entry) -> Result<Link, String> {
    if entry.port == Some(0) {
        return Err("port is 0, not a number from 1 to 65535".to_owned());
    }
    let place = match (entry.address.as_deref(), entry.interface) {
        (Some(address), None) => {
            let parsed: Result<IpAddr, _> = address.parse();
            let address =
                parsed.map_err(|_| format!("address {address:?} is not an IP address"))?;
            Place::Address(address, entry.port)
        }
        (None, Some(interface)) if entry.port.is_none() => Place::Interface(interface),
        _ => return Err("name it by address, or address and port, or by interface".to_owned()),
    };
    let both = rate("rate", entry.rate.as_deref())?;
    let rates = Rates {
        egress: rate("egress", entry.egress.as_deref())?.or(both),
        ingress: rate("ingress", entry.ingress.as_deref())?.or(both),
    };
    if rates == Rates::default() {
        return Err("there is no rate: write for example rate = \"10mbit\"".to_owned());
    }
    let queue = entry.queue.as_deref().map(parse_duration).transpose();
    Ok(Link {
        entry: name,
        place,
        device: entry.device,
        rates,
        queue: queue.map_err(|error| format!("queue: {error}"))?,
    })
}

fn rate(key: &str, text: Option<&str>) -> Result<Option<u64>, String> {
    let Some(text) = text else { return Ok(None) };
    let rate = match text {
        "0" => Ok(0),
        text => parse_rate(text).map_err(|error| error.to_string()),
    };
    let rate = rate.and_then(|rate| check_rate(rate).map_err(|error| format!("{text}: {error}")));
    rate.map(Some).map_err(|error| format!("{key}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const TOML: &str = r#"
        default = "1gbit"

        [[link]]
        address = "192.0.2.7"
        port = 50000
        rate = "10mbit"
        comment = "the lab of a university"

        [[link]]
        interface = 3
        device = "eth1"
        egress = "20mbit"
        ingress = "0"
        queue = "30ms"
    "#;

    const YAML: &str = r"
default: 1gbit
link:
  - address: 192.0.2.7
    port: 50000
    rate: 10mbit
  - interface: 3
    device: eth1
    egress: 20mbit
    ingress: '0'
    queue: 30ms
";

    #[test]
    fn both_forms_say_the_same() {
        let file = parse_toml(TOML).unwrap();
        assert_eq!(parse_yaml(YAML).unwrap(), file);
        assert_eq!(file.default, Some(1_000_000_000));
        let place = Place::Address("192.0.2.7".parse().unwrap(), Some(50_000));
        assert_eq!(file.links[0].place, place);
        assert_eq!(file.links[0].rates, Rates::both(10_000_000));
        assert_eq!(file.links[1].place, Place::Interface(3));
        assert_eq!(file.links[1].queue, Some(Duration::from_millis(30)));
        let rates = Rates {
            egress: Some(20_000_000),
            ingress: Some(0),
        };
        assert_eq!(file.links[1].rates, rates);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, expected) in [
            (
                "\"10mbit\"",
                "\"fast\"",
                "link 1: rate: \"fast\" is not a rate",
            ),
            (
                "\"10mbit\"",
                "\"1kbit\"",
                "link 1: rate: 1kbit: choose 8 kbit/s to 100 Gbit/s, or 0 to let nothing pass",
            ),
            (
                "192.0.2.7",
                "192.0.2",
                "link 1: address \"192.0.2\" is not an IP address",
            ),
            (
                "interface = 3",
                "",
                "link 2: name it by address, or address and port, or by interface",
            ),
            ("port = 50000", "port = 0", "link 1: port is 0"),
            ("rate = \"10mbit\"", "", "link 1: there is no rate"),
            (
                "interface",
                "interfaces",
                "line 11: unknown field `interfaces`",
            ),
            ("\"30ms\"", "\"30\"", "link 2: queue: "),
        ] {
            let error = parse_toml(&TOML.replacen(from, to, 1)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains('\n'));
        }
        let error = parse_yaml(&YAML.replacen("interface", "interfaces", 1)).unwrap_err();
        assert!(error.contains("unknown field"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,100}", at in 0..400_usize) {
            for whole in [TOML, YAML] {
                let at = at.min(whole.len());
                let near = format!("{}{text}{}", &whole[..at], &whole[at..]);
                let _ = (parse_toml(&near), parse_yaml(&near));
            }
        }
    }
}
