//! Paths as JSON, with the field names of `scion showpaths --format json`.
//!
//! Fields that the format does not have (`bandwidth`, `geo`, `link_type`, `internal_hops`, `notes`)
//! are added with the meaning of [`Metadata`].

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use der::DateTime;
use hawser_address::IsdAsn;
use serde::Serialize;

use crate::{Explanation, Interface, Metadata, Path, Select};

/// Number of hex digits of a fingerprint that `scion showpaths` prints.
const DIGITS: usize = 16;

/// All paths from the local AS to another: the whole answer of `hawser paths --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing {
    /// The AS the paths begin in.
    pub local_isd_as: IsdAsn,
    /// The AS they lead to.
    pub destination: IsdAsn,
    /// The paths, in the order in which they are shown; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Entry>,
    /// How they were selected; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<Chosen>,
}

/// How the paths of a [`Listing`] were selected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chosen {
    /// The strategies, as they are written.
    pub select: Select,
    /// Most paths that are taken.
    pub max_paths: usize,
    /// The interfaces ignored in the comparison, because every path has to use them.
    pub ignored: Vec<Interface>,
}

/// One path of a [`Listing`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The first 16 hex digits of the path's [`Fingerprint`](crate::Fingerprint), `local` inside an
    /// AS.
    pub fingerprint: String,
    /// Every interface on the path.
    pub hops: Vec<Hop>,
    /// As [`Path::sequence`].
    pub sequence: String,
    /// The underlay address of the border router that packets on this path are sent to; empty for a
    /// path inside the AS.
    pub next_hop: String,
    /// When the path expires, in UTC (RFC 3339).
    pub expiry: String,
    /// The announcements of the ASes on the path.
    #[serde(flatten)]
    pub metadata: Metadata,
    /// The result of a probe over the path; absent when none was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Details of `status`; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_info: Option<String>,
    /// The local address the probe was sent from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_ip: Option<IpAddr>,
    /// Whether it would be used, and why; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// The path a command used, as `scion ping` and `scion traceroute` describe it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Used {
    /// All 64 hex digits of the path's [`Fingerprint`](crate::Fingerprint).
    pub fingerprint: String,
    /// Every interface on the path.
    pub hops: Vec<Hop>,
    /// As [`Path::sequence`].
    pub sequence: String,
    /// The local address that packets were sent from.
    pub local_ip: IpAddr,
    /// The underlay address of the border router; empty for a path inside the AS.
    pub next_hop: String,
}

/// One interface of an [`Entry`] or of [`Used`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// Its number.
    pub interface: u16,
    /// Its AS.
    pub isd_as: IsdAsn,
}

/// The result of a probe over a path, as `scion showpaths` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// The probe was answered.
    Alive,
    /// The probe was not answered in time.
    Timeout,
    /// A router answered the probe with an SCMP error.
    Scmp,
    /// The result is not known.
    Unknown,
}

impl Entry {
    /// Describes a path whose packets are sent to `next_hop`, not probed.
    pub fn new(path: &Path, next_hop: Option<SocketAddr>) -> Self {
        let fingerprint = match path.interfaces.is_empty() {
            true => "local".to_owned(),
            false => path.fingerprint().to_string()[..DIGITS].to_owned(),
        };
        Self {
            fingerprint,
            hops: hops(path),
            sequence: path.sequence(),
            next_hop: text(next_hop),
            expiry: rfc3339(path.metadata.expiry),
            metadata: path.metadata.clone(),
            status: None,
            status_info: None,
            local_ip: None,
            explanation: None,
        }
    }
}

impl Used {
    /// Describes a path whose packets are sent from `local_ip` to `next_hop`.
    pub fn new(path: &Path, local_ip: IpAddr, next_hop: Option<SocketAddr>) -> Self {
        Self {
            fingerprint: path.fingerprint().to_string(),
            hops: hops(path),
            sequence: path.sequence(),
            local_ip,
            next_hop: text(next_hop),
        }
    }
}

fn hops(path: &Path) -> Vec<Hop> {
    let hop = |interface: &crate::Interface| Hop {
        interface: interface.id,
        isd_as: interface.isd_as,
    };
    path.interfaces.iter().map(hop).collect()
}

fn text(next_hop: Option<SocketAddr>) -> String {
    next_hop.map_or_else(String::new, |address| address.to_string())
}

/// A second of Unix time as `2026-08-19T10:27:29Z`; the last second of the year 9999 for any later
/// one, which RFC 3339 cannot express.
fn rfc3339(unix: u64) -> String {
    let time = DateTime::from_unix_duration(Duration::from_secs(unix));
    time.unwrap_or(DateTime::INFINITY).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Discovery, Geo, LinkType};

    #[test]
    fn field_names_are_those_of_showpaths() {
        let interface = |text: &str| text.parse::<Interface>().unwrap();
        let path = Path {
            src: "1-ff00:0:111".parse().unwrap(),
            dst: "1-ff00:0:110".parse().unwrap(),
            interfaces: vec![interface("1-ff00:0:111#1"), interface("1-ff00:0:110#2")],
            metadata: Metadata {
                mtu: 1472,
                expiry: 1_787_135_249,
                latency: vec![Some(Duration::from_millis(20))],
                bandwidth: vec![None],
                geo: vec![
                    Some(Geo {
                        latitude: 47.5,
                        longitude: 8.5,
                        address: "Zurich".into(),
                    }),
                    None,
                ],
                link_types: vec![LinkType::MultiHop],
                internal_hops: vec![],
                notes: vec!["one".into(), String::new()],
                discovery: [(
                    "1-ff00:0:110".parse().unwrap(),
                    Discovery {
                        control_services: vec!["10.0.2.254:30252".parse().unwrap()],
                        discovery_services: vec![],
                    },
                )]
                .into(),
            },
        };
        let entry = Entry::new(&path, Some("10.0.1.254:30042".parse().unwrap()));
        let listing = Listing {
            local_isd_as: path.src,
            destination: path.dst,
            paths: vec![
                entry.clone(),
                Entry {
                    status: Some(Status::Timeout),
                    local_ip: Some("10.0.1.1".parse().unwrap()),
                    ..entry
                },
            ],
            selection: None,
        };
        let mut expected = json!({
            "fingerprint": path.fingerprint().to_string()[..16],
            "hops": [
                {"interface": 1, "isd_as": "1-ff00:0:111"},
                {"interface": 2, "isd_as": "1-ff00:0:110"},
            ],
            "sequence": "1-ff00:0:111#0,1 1-ff00:0:110#2,0",
            "next_hop": "10.0.1.254:30042",
            "expiry": "2026-08-19T10:27:29Z",
            "mtu": 1472,
            "latency": [20_000_000],
            "bandwidth": [null],
            "geo": [{"latitude": 47.5, "longitude": 8.5, "address": "Zurich"}, null],
            "link_type": ["multihop"],
            "internal_hops": [],
            "notes": ["one", ""],
            "discovery": {"1-ff00:0:110": {"control_services": ["10.0.2.254:30252"]}},
        });
        let json = serde_json::to_value(&listing).unwrap();
        assert_eq!(json["local_isd_as"], "1-ff00:0:111");
        assert_eq!(json["destination"], "1-ff00:0:110");
        assert_eq!(json["paths"][0], expected);
        expected["status"] = "timeout".into();
        expected["local_ip"] = "10.0.1.1".into();
        assert_eq!(json["paths"][1], expected);
    }

    #[test]
    fn a_latency_that_is_not_announced_is_minus_one() {
        let path = Path {
            src: "1-ff00:0:111".parse().unwrap(),
            dst: "1-ff00:0:111".parse().unwrap(),
            interfaces: vec![],
            metadata: Metadata {
                latency: vec![None],
                ..Metadata::default()
            },
        };
        let entry = Entry::new(&path, None);
        assert_eq!(
            serde_json::to_value(&entry).unwrap()["latency"],
            json!([-1])
        );
        assert_eq!(entry.next_hop, "");
        assert_eq!(entry.fingerprint, "local");
        let listing = Listing {
            local_isd_as: path.src,
            destination: path.dst,
            paths: vec![],
            selection: None,
        };
        let json = serde_json::to_value(&listing).unwrap();
        assert_eq!(json.get("paths"), None);
    }

    #[test]
    fn the_path_used_has_its_whole_fingerprint() {
        let interfaces = ["1-ff00:0:111#1", "1-ff00:0:110#2"].map(|one| one.parse().unwrap());
        let (src, dst) = ("1-ff00:0:111".parse(), "1-ff00:0:110".parse());
        let metadata = Metadata::default();
        let path = Path::new(src.unwrap(), dst.unwrap(), interfaces.into(), metadata).unwrap();
        let next_hop = "10.0.1.254:30042".parse().unwrap();
        let used = Used::new(&path, "10.0.1.1".parse().unwrap(), Some(next_hop));
        assert_eq!(
            serde_json::to_value(&used).unwrap(),
            json!({
                "fingerprint": path.fingerprint().to_string(),
                "hops": [
                    {"interface": 1, "isd_as": "1-ff00:0:111"},
                    {"interface": 2, "isd_as": "1-ff00:0:110"},
                ],
                "sequence": "1-ff00:0:111#0,1 1-ff00:0:110#2,0",
                "local_ip": "10.0.1.1",
                "next_hop": "10.0.1.254:30042",
            })
        );
    }

    #[test]
    fn dates() {
        // Each as `date -u -d @N +%FT%TZ` prints it.
        for (unix, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(unix), text);
        }
    }
}
