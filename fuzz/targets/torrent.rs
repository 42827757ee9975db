//! `.torrent` files of every version, with the piece layers of version 2: what is read is consistent.

#![no_main]

use std::collections::BTreeSet;

use hawser_metainfo::{Metainfo, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = Metainfo::missing_layers(input);
    let metainfo = match Metainfo::parse(input) {
        Ok(metainfo) => metainfo,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1),
    };
    let total: u64 = metainfo.files.iter().map(|file| file.length).sum();
    assert_eq!(total, metainfo.pieces.total);
    let count = metainfo.pieces.count();
    for file in &metainfo.files {
        let mut parts = file.path.components();
        assert!(parts.all(|part| matches!(part, std::path::Component::Normal(_))));
    }
    let paths = metainfo.files.iter().filter(|file| !file.padding);
    let paths: Vec<_> = paths.map(|file| &file.path).collect();
    assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), paths.len());
    let is_one = metainfo.version() != Version::Two;
    assert!((0..count).all(|piece| metainfo.piece_hash(piece).is_some() == is_one));
    assert!(metainfo.piece_hash(count).is_none());
    if let Some(layers) = metainfo.layers() {
        if metainfo.version() == Version::Two {
            assert!((0..count).all(|piece| layers.piece_hash(piece).is_some()));
        }
        // The layers of a magnet link are those of the file.
        let found = layers.by_root().into_iter();
        let found = found.map(|(root, nodes)| (root, nodes.to_vec())).collect();
        let again =
            Metainfo::from_parts(metainfo.info(), &found).expect("the parts are of a torrent");
        assert_eq!(again.pieces, metainfo.pieces);
        assert_eq!(again.info_hash_v2, metainfo.info_hash_v2);
    }
});
