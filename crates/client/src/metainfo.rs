//! Metainfo: what peers have sent for a magnet link, as a `.torrent` file; metainfo that was read.

use std::collections::HashMap;
use std::sync::Arc;

use hawser_bencode::Value;
use hawser_magnet::Magnet;
use hawser_torrent::{InfoHash, Metainfo};

use crate::renames::Rename;

/// Most bytes of info dictionaries, and of hashes beside them, that are kept. What is made of them takes a few times as much.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// Metainfo that was read lately: programs ask for the same again every few seconds.
#[derive(Debug, Default)]
pub(crate) struct Metainfos {
    /// With the names that their files had.
    all: HashMap<InfoHash, (Arc<Metainfo>, Vec<Rename>)>,
    /// Bytes of the info dictionaries and of the hashes beside them, at most [`MAX_KEPT_BYTES`].
    bytes: usize,
}

impl Metainfos {
    /// That of a torrent whose files have these names.
    pub fn find(&self, info_hash: InfoHash, renames: &[Rename]) -> Option<Arc<Metainfo>> {
        let (metainfo, known) = self.all.get(&info_hash)?;
        (known == renames).then(|| Arc::clone(metainfo))
    }

    /// Keeps it, whose files have these names, if there is room; where others are in the way, they make room.
    pub fn insert(&mut self, metainfo: Arc<Metainfo>, renames: &[Rename]) {
        let length = metainfo.bytes();
        self.remove(metainfo.info_hash);
        if length > MAX_KEPT_BYTES {
            return;
        }
        if self.bytes + length > MAX_KEPT_BYTES {
            *self = Self::default();
        }
        self.bytes += length;
        self.all
            .insert(metainfo.info_hash, (metainfo, renames.to_vec()));
    }

    pub fn remove(&mut self, info_hash: InfoHash) {
        if let Some((removed, _)) = self.all.remove(&info_hash) {
            self.bytes -= removed.bytes();
        }
    }
}

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
    if let Some(layers) = metainfo.piece_layers() {
        add(b"piece layers", &layers);
    }
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
    fn what_is_kept_has_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("content");
        let mut kept = Metainfos::default();
        // Many small pieces make a large info dictionary.
        std::fs::write(&path, vec![0; 1 << 20]).unwrap();
        let options = CreateOptions {
            piece_length: Some(16 << 10),
            ..CreateOptions::default()
        };
        for source in 0..3 {
            let options = CreateOptions {
                source: Some(format!("{source}{}", "x".repeat(MAX_KEPT_BYTES / 5))),
                ..options.clone()
            };
            let bytes = create(&path, &options, |_, _| {}).unwrap();
            let metainfo = Arc::new(Metainfo::parse(&bytes).unwrap());
            let hash = metainfo.info_hash;
            for _ in 0..3 {
                kept.insert(Arc::clone(&metainfo), &[]);
            }
            let renames = [Rename {
                path: "content".into(),
                name: "other".into(),
            }];
            assert!(kept.find(hash, &[]).is_some() && kept.find(hash, &renames).is_none());
            let bytes: usize = kept.all.values().map(|(it, _)| it.bytes()).sum();
            assert!(bytes == kept.bytes && bytes <= MAX_KEPT_BYTES, "{bytes}");
        }
        for hash in kept.all.keys().copied().collect::<Vec<_>>() {
            kept.remove(hash);
        }
        assert_eq!(kept.bytes, 0);
    }

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
            assert_eq!(read.sources.trackers.concat(), magnet.trackers);
            assert_eq!(read.sources.web_seeds, magnet.web_seeds);
        }
    }
}
