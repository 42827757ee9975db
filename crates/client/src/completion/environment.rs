//! The variables of Transmission's that tell a program which torrent is complete.

use std::ffi::OsString;

use hawser_torrent::Metainfo;

use crate::record::Record;

/// Most bytes of the list of trackers: the system bounds a variable to 128 KiB, and Transmission separates
/// trackers by commas in one.
const MAX_TRACKERS_BYTES: usize = 32 << 10;

/// The variables of a torrent, of which `number` is that of Transmission's RPC. `TR_TIME_LOCALTIME` is not
/// set: the daemon knows no time zone. `TR_TORRENT_PRIORITY` is that of a torrent without one.
pub(super) fn environment(
    record: &Record,
    number: u64,
    metainfo: Option<&Metainfo>,
) -> Vec<(&'static str, OsString)> {
    let text = |text: String| without_nul(text).into();
    let folder = record.folder.clone().into_os_string();
    vec![
        ("TR_APP_VERSION", text(env!("CARGO_PKG_VERSION").to_owned())),
        (
            "TR_TORRENT_BYTES_DOWNLOADED",
            text(record.totals.downloaded.to_string()),
        ),
        ("TR_TORRENT_DIR", folder),
        ("TR_TORRENT_HASH", text(record.info_hash.to_string())),
        ("TR_TORRENT_ID", text(number.to_string())),
        ("TR_TORRENT_LABELS", text(record.labels.join(","))),
        ("TR_TORRENT_NAME", text(record.name.clone())),
        ("TR_TORRENT_PRIORITY", text("0".to_owned())),
        (
            "TR_TORRENT_TRACKERS",
            text(hosts(&record.trackers(metainfo).unwrap_or_default())),
        ),
    ]
}

/// Hosts of trackers, separated by commas.
fn hosts(trackers: &[Vec<String>]) -> String {
    let mut hosts = String::new();
    for url in trackers.iter().flatten() {
        let host = host(url);
        if host.is_empty() || hosts.split(',').any(|known| known == host) {
            continue;
        }
        if hosts.len() + 1 + host.len() > MAX_TRACKERS_BYTES {
            break;
        }
        if !hosts.is_empty() {
            hosts.push(',');
        }
        hosts.push_str(host);
    }
    hosts
}

/// The host of a URL, without its port, and without what lets one in.
fn host(url: &str) -> &str {
    let after = url.split_once("://").map_or("", |(_, after)| after);
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// A text that the environment takes.
fn without_nul(mut text: String) -> String {
    text.retain(|char| char != '\0');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_taken_from_urls_without_what_lets_one_in() {
        for (url, wanted) in [
            ("http://a.example:80/announce?key=1", "a.example"),
            ("udp://b.example:1", "b.example"),
            ("https://user:word@c.example/x", "c.example"),
            ("udp://[::1]:6969/announce", "::1"),
            ("nonsense", ""),
            ("http://", ""),
        ] {
            assert_eq!(host(url), wanted, "{url}");
        }
    }

    #[test]
    fn a_text_with_nul_bytes_can_be_passed() {
        assert_eq!(without_nul("a\0b\0".to_owned()), "ab");
    }
}
