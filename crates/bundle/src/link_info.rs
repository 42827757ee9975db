//! `link_info.json`: the limits of an attachment point's links (004, section 5.2.1).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limited links of an attachment point by a name of their own. A link that is not listed has
/// no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkInfo(pub BTreeMap<String, LimitedLink>);

/// A link and its limits, in kbit/s of 1000 bit/s.
///
/// `AS_ID`, `IsUserAS`, `Bandwidth` and `IP-Address` are as in the thesis; the other keys are
/// optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitedLink {
    /// The number of the neighbour AS, without its ISD.
    #[serde(rename = "AS_ID")]
    pub as_id: u64,
    /// Whether the neighbour is a user AS.
    #[serde(rename = "IsUserAS")]
    pub is_user_as: bool,
    /// The limit of each direction that has no limit of its own.
    #[serde(rename = "Bandwidth", default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// The neighbour's address on the link.
    #[serde(rename = "IP-Address")]
    pub ip: IpAddr,
    /// The neighbour's UDP port on the link; `None` for all packets of the address.
    #[serde(rename = "Port", default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The device of this host that the link goes by; `None` for the one of the route.
    #[serde(rename = "Device", default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The limit of what arrives from the neighbour.
    #[serde(rename = "Ingress", default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<u64>,
    /// The limit of what is sent to the neighbour.
    #[serde(rename = "Egress", default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<u64>,
    /// Longest wait of a packet in the queue of each limit; `None` for the usual one.
    #[serde(rename = "Queue", with = "queue", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Duration>,
}

impl LimitedLink {
    /// A link to a user AS with limits in bit/s, rounded down to whole kbit/s; `None` if neither
    /// direction has one.
    pub fn new(
        as_id: u64,
        ip: IpAddr,
        port: Option<u16>,
        egress: Option<u64>,
        ingress: Option<u64>,
    ) -> Option<Self> {
        let [egress, ingress] = [egress, ingress].map(|rate| rate.map(|rate| rate / 1000));
        let both = egress.filter(|_| egress == ingress);
        (egress.is_some() || ingress.is_some()).then(|| Self {
            as_id,
            is_user_as: true,
            bandwidth: both,
            ip,
            port,
            device: None,
            // As in the thesis where one number says it.
            ingress: ingress.filter(|_| both.is_none()),
            egress: egress.filter(|_| both.is_none()),
            queue: None,
        })
    }
}

/// A time as files of links write it: `30ms`.
mod queue {
    use std::time::Duration;

    use hawser_topology::{format_duration, parse_duration};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(queue: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        queue.map(format_duration).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let queue = text.as_deref().map(parse_duration).transpose();
        queue.map_err(|error| D::Error::custom(format_args!("Queue: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_thesis_is_read() {
        // Listing 5.1.
        let text = r#"{
            "1": {"AS_ID": 1, "IsUserAS": true, "Bandwidth": 500,
                  "IP-Address": "fe80::20c:29ff:fe08:993c"},
            "2": {"AS_ID": 2, "IsUserAS": true, "Bandwidth": 500, "IP-Address": "192.168.17.129"}
        }"#;
        let info: LinkInfo = serde_json::from_str(text).unwrap();
        assert_eq!(info.0["1"].bandwidth, Some(500));
        assert_eq!(info.0["2"].ip.to_string(), "192.168.17.129");
        let again = serde_json::to_value(&info).unwrap();
        assert_eq!(
            again,
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        );
    }

    #[test]
    fn limits_are_rounded_down_and_named_by_direction() {
        let limited = |egress, ingress| {
            let ip = "fd00::7".parse().unwrap();
            LimitedLink::new(7, ip, Some(50001), egress, ingress)
        };
        assert_eq!(limited(None, None), None);
        let same = limited(Some(500_999), Some(500_000)).unwrap();
        let (bandwidth, egress, ingress) = (same.bandwidth, same.egress, same.ingress);
        assert_eq!((bandwidth, egress, ingress), (Some(500), None, None));
        let one = limited(Some(8_000), None).unwrap();
        let (bandwidth, egress, ingress) = (one.bandwidth, one.egress, one.ingress);
        assert_eq!((bandwidth, egress, ingress), (None, Some(8), None));
        assert_eq!(one.port, Some(50001));
        // Archives of before have no queue.
        assert!(!serde_json::to_string(&one).unwrap().contains("Queue"));
        let none = limited(Some(0), Some(0)).unwrap();
        assert_eq!(none.bandwidth, Some(0));
    }
    #[test]
    fn queues_are_written_as_times() {
        let mut link = LimitedLink::new(7, "fd00::7".parse().unwrap(), None, Some(8_000), None);
        for queue in [30_000_000, 1, 7_500_000, 3_600_000_000_000] {
            let queue = Duration::from_nanos(queue);
            link.as_mut().unwrap().queue = Some(queue);
            let text = serde_json::to_string(&link).unwrap();
            let again: Option<LimitedLink> = serde_json::from_str(&text).unwrap();
            assert_eq!(again, link, "{text}");
        }
        let with = |queue: &str| {
            let text =
                format!(r#"{{"AS_ID":7,"IsUserAS":true,"IP-Address":"fd00::7","Queue":{queue}}}"#);
            serde_json::from_str::<LimitedLink>(&text)
        };
        let thirty = Some(Duration::from_millis(30));
        assert_eq!(with("\"30ms\"").unwrap().queue, thirty);
        let wrong = with("\"30\"").unwrap_err().to_string();
        assert!(wrong.starts_with("Queue: "), "{wrong}");
        assert!(with("30").is_err());
    }
}
