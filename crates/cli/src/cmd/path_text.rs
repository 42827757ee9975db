//! Paths for people: the listing of `scion showpaths`, with the fingerprints.

mod details;

use hawser_endhost::Path;
use hawser_path::show::{Entry, Status};
use hawser_path::{Explanation, Interface, Verdict};

use self::details::details;
use crate::paint::Paint;

/// Entries of a path up to which they are on one line; further ones are on one line each.
const ON_ONE_LINE: usize = 7;

/// The paths grouped by length, one line or paragraph each; paths with verdicts in the given order,
/// with the verdict below each.
pub fn listing(paths: &[Path], entries: &[Entry], extended: bool, paint: Paint) -> Vec<String> {
    let width = paths.len().saturating_sub(1).to_string().len();
    let mut lines = Vec::new();
    let mut length = None;
    for (index, (path, entry)) in paths.iter().zip(entries).enumerate() {
        let hops = path.info().hops();
        // In the order in which paths are picked, their lengths form no groups.
        if entry.explanation.is_none() && length.replace(hops) != Some(hops) {
            lines.push(paint.header(format_args!("{hops} Hops:")));
        }
        let mut parts = basics(path, paint).to_vec();
        if extended {
            let known = details(path, entry, paint).into_iter();
            let known = known.filter(|(_, value)| !value.is_empty());
            parts.extend(known.map(|(key, value)| pair(paint, key, &value)));
        }
        if let Some(status) = entry.status {
            parts.push(pair(paint, "Status", &word(status, entry, paint)));
            if let Some(ip) = entry.local_ip {
                parts.push(pair(paint, "LocalIP", &ip.to_string()));
            }
        }
        let indent = " ".repeat(width + 3);
        let between = match parts.len() > ON_ONE_LINE {
            true => format!("\n{indent}"),
            false => " ".to_owned(),
        };
        lines.push(format!("[{index:width$}] {}", parts.join(&between)));
        let explained = entry.explanation.iter();
        let explained = explained.flat_map(|one| explanation(one, paint));
        lines.extend(explained.map(|(key, value)| format!("{indent}{key}: {value}")));
    }
    lines
}

fn pair(paint: Paint, key: &str, value: &str) -> String {
    format!("{}: {value}", paint.key(key))
}

fn word(status: Status, entry: &Entry, paint: Paint) -> String {
    let word = match status {
        Status::Alive => return paint.good("alive"),
        Status::Timeout => paint.bad("timeout"),
        Status::Scmp => paint.bad("scmp"),
        _ => paint.bad("unknown"),
    };
    match &entry.status_info {
        Some(info) => format!("{word} ({info})"),
        None => word,
    }
}

/// `[1-ff00:0:111 1>2 1-ff00:0:110 3>1 1-ff00:0:112]`.
pub fn drawing(path: &Path, paint: Paint) -> String {
    hops(&path.info().interfaces, paint)
}

/// The same, of a path's interfaces.
pub fn hops(interfaces: &[Interface], paint: Paint) -> String {
    let Some(first) = interfaces.first() else {
        return "[]".to_owned();
    };
    let mut text = first.isd_as.to_string();
    for link in interfaces.chunks_exact(2) {
        let (out, into) = (paint.interface(link[0].id), paint.interface(link[1].id));
        text += &format!(" {out}{}{into} {}", paint.link('>'), link[1].isd_as);
    }
    format!("[{text}]")
}

/// One line for a path, as `scion ping` prints it.
pub fn line(path: &Path, paint: Paint) -> String {
    basics(path, paint).join(" ")
}

/// The entries that every path has.
fn basics(path: &Path, paint: Paint) -> [String; 4] {
    let next_hop = path.next_hop().map_or_else(String::new, |n| n.to_string());
    [
        pair(paint, "Hops", &drawing(path, paint)),
        pair(paint, "MTU", &path.mtu().to_string()),
        pair(paint, "NextHop", &next_hop),
        pair(paint, "Fingerprint", &path.fingerprint().short()),
    ]
}

/// The verdict on one path: keys and values.
fn explanation(explanation: &Explanation, paint: Paint) -> Vec<(String, String)> {
    let verdict = match explanation.verdict {
        Verdict::Taken => paint.good("Taken"),
        Verdict::Left => paint.bad("Left"),
        Verdict::Waiting => paint.bad("Waiting"),
    };
    let mut pairs = vec![(verdict, explanation.reason.to_string())];
    if let Some(rank) = explanation.rank {
        let values: Vec<&str> = explanation.values.iter().map(|v| &v.text[..]).collect();
        pairs.push((paint.key("Rank"), format!("{rank} ({})", values.join("; "))));
    }
    if let Some(share) = explanation.share {
        pairs.push((paint.key("Share"), format!("{:.1} %", share * 100.0)));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hawser_path::{Discovery, Geo, LinkType, Metadata};

    use super::*;

    fn path(metadata: Metadata) -> Path {
        // One segment of three hops is enough for the bytes: it leads over all four ends.
        let mut raw = (3u32 << 12).to_be_bytes().to_vec();
        raw.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 1]);
        for (ingress, egress) in [(0u16, 1u16), (2, 3), (4, 0)] {
            raw.extend_from_slice(&[0, 63]);
            raw.extend_from_slice(&ingress.to_be_bytes());
            raw.extend_from_slice(&egress.to_be_bytes());
            raw.extend_from_slice(&[0; 6]);
        }
        let ends = [
            "1-ff00:0:1#1",
            "1-ff00:0:2#2",
            "1-ff00:0:2#3",
            "1-ff00:0:3#4",
        ];
        let interfaces: Vec<Interface> = ends.map(|end| end.parse().unwrap()).into();
        let (src, dst) = (interfaces[0].isd_as, interfaces[3].isd_as);
        let info = hawser_path::Path::new(src, dst, interfaces, metadata).unwrap();
        Path::new(info, raw, Some("10.0.1.254:30042".parse().unwrap())).unwrap()
    }

    fn lines(metadata: Metadata, extended: bool, status: Option<Status>) -> Vec<String> {
        let path = path(metadata);
        let mut entry = Entry::new(path.info(), path.next_hop());
        entry.status = status;
        entry.local_ip = status.map(|_| "10.0.1.1".parse().unwrap());
        listing(&[path], &[entry], extended, Paint::none())
    }

    #[test]
    fn a_path_is_a_line() {
        let metadata = Metadata {
            mtu: 1472,
            ..Metadata::default()
        };
        let fingerprint = path(metadata.clone()).fingerprint().short();
        assert_eq!(
            lines(metadata, false, Some(Status::Timeout)),
            [
                "3 Hops:".to_owned(),
                format!(
                    "[0] Hops: [1-ff00:0:1 1>2 1-ff00:0:2 3>4 1-ff00:0:3] MTU: 1472 \
                     NextHop: 10.0.1.254:30042 Fingerprint: {fingerprint} \
                     Status: timeout LocalIP: 10.0.1.1"
                )
            ]
        );
    }

    #[test]
    fn the_verdict_is_below_the_path() {
        let path = path(Metadata::default());
        let select: hawser_path::Select = "latency,spread:40%".parse().unwrap();
        let denied = hawser_path::Policy::new().with_acl("- 1-ff00:0:2#3; +".parse().unwrap());
        for (policy, expected) in [
            (
                None,
                &[
                    "    Taken: carries 100 %: latency not announced; 40 % cannot be kept: \
                     1-ff00:0:2 carries 100 %, least there is",
                    "    Rank: 1 (latency not announced; 3 hops)",
                    "    Share: 100.0 %",
                ][..],
            ),
            (
                Some(denied),
                &["    Left: policy: acl entry \"- 1-ff00:0:2#3\" at 1-ff00:0:2#3"],
            ),
        ] {
            let paths = [path.clone()];
            let explained = hawser_path::explain(&paths, policy.as_slice(), &select, 2);
            let mut entry = Entry::new(path.info(), path.next_hop());
            entry.explanation = Some(explained.explanations[0].clone());
            let lines = listing(&paths, &[entry], false, Paint::none());
            assert!(lines[0].starts_with("[0] Hops: ["), "{lines:?}");
            assert_eq!(lines[1..], *expected);
        }
    }

    #[test]
    fn extended_metadata_is_a_paragraph() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let metadata = Metadata {
            mtu: 1472,
            expiry: 1_787_135_249,
            latency: vec![ms(20), None, ms(5)],
            bandwidth: vec![Some(300_000_000), Some(5_000_000), Some(10_000_000)],
            geo: vec![
                Some(Geo {
                    latitude: 47.5,
                    longitude: 8.5,
                    address: "Zurich\n\"ZRH\"".into(),
                }),
                None,
                None,
                None,
            ],
            link_types: vec![LinkType::Direct, LinkType::Unset],
            internal_hops: vec![3],
            notes: vec!["one".into(), String::new(), "\x1b[31mthree".into()],
            discovery: [(
                "1-ff00:0:2".parse().unwrap(),
                Discovery {
                    control_services: vec!["10.0.2.254:30252".parse().unwrap()],
                    discovery_services: vec![],
                },
            )]
            .into(),
        };
        let lines = lines(metadata, true, None);
        let paragraph: Vec<&str> = lines[1].lines().map(str::trim).collect();
        assert!(paragraph[4].starts_with("Expires: 2026-08-19 10:27:29 +0000 UTC ("));
        assert_eq!(
            paragraph[5..],
            [
                "Latency: >25ms (information incomplete)",
                "Bandwidth: 5000Kbit/s",
                "Geo: [47.5,8.5 (\"Zurich, ZRH\") > N/A > N/A > N/A]",
                "LinkType: [direct, unset]",
                "InternalHops: [1-ff00:0:2: 3]",
                "Notes: [1-ff00:0:1: \"one\", 1-ff00:0:3: \"[31mthree\"]",
                "Discovery: {1-ff00:0:2: {Control: 10.0.2.254:30252, Discovery: }}",
            ]
        );
    }

    #[test]
    fn unknown_metadata_is_left_out() {
        let lines = lines(Metadata::default(), true, None);
        assert_eq!(lines.len(), 2);
        assert!(!lines[1].contains("Latency") && !lines[1].contains("Notes"));
    }
}
