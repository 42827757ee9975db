//! Metainfo of magnet links: what peers have sent, as a `.torrent` file.

use hawser_bencode::Value;
use hawser_magnet::Magnet;
use hawser_torrent::Metainfo;

/// A `.torrent` file (BEP 3) with the info dictionary that peers have sent, and the trackers and web seeds
/// of its link, each tracker in a tier of its own (BEP 12).
pub(crate) fn from_link(metainfo: &Metainfo, magnet: &Magnet) -> Vec<u8> {
    let mut bytes = b"d".to_vec();
    let mut add = |key: &[u8], value: &[u8]| {
        bytes.extend(Value::Bytes(key).encode());
        bytes.extend_from_slice(value);
    };
    // In the order of the keys, as bencode has it.
    if !magnet.trackers.is_empty() {
        let tiers = magnet
            .trackers
            .iter()
            .map(|url| Value::texts([url.as_str()]));
        add(b"announce-list", &Value::List(tiers.collect()).encode());
    }
    add(b"info", metainfo.info());
    if !magnet.web_seeds.is_empty() {
        add(
            b"url-list",
            &Value::texts(magnet.web_seeds.iter().map(String::as_str)).encode(),
        );
    }
    bytes.push(b'e');
    bytes
}

#[cfg(test)]
mod tests {
    use hawser_torrent::{CreateOptions, create};

    use super::*;

    #[test]
    fn it_is_the_same_torrent_with_the_trackers_of_the_link() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("content");
        std::fs::write(&path, "content").unwrap();
        let bytes = create(&path, &CreateOptions::default(), |_, _| {}).unwrap();
        let resolved = Metainfo::parse(&bytes).unwrap();
        let hash = resolved.info_hash;
        for more in [
            "",
            "&tr=http://a.example/&tr=udp://b.example:1&ws=http://c.example/",
        ] {
            let magnet: Magnet = format!("magnet:?xt=urn:btih:{hash}{more}").parse().unwrap();
            let read = Metainfo::parse(&from_link(&resolved, &magnet)).unwrap();
            assert_eq!((read.info_hash, &read.files), (hash, &resolved.files));
            assert_eq!(read.trackers.concat(), magnet.trackers);
            assert_eq!(read.web_seeds, magnet.web_seeds);
        }
    }
}
