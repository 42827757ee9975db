//! Random bytes for `.torrent` files.

use std::fs;

use hawser_fuzz::fuzz;

use super::{CreateOptions, Metainfo, Version, create};

#[test]
fn any_torrent_is_read_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    fs::create_dir(&path).unwrap();
    for (name, length) in [("a", 40_000), ("b", 5), ("c", 16384)] {
        fs::write(path.join(name), vec![1; length]).unwrap();
    }
    let valid = [Version::One, Version::Two, Version::Hybrid].map(|version| {
        let options = CreateOptions {
            version,
            piece_length: Some(16384),
            ..CreateOptions::default()
        };
        create(&path, &options, |_, _| {}).unwrap()
    });
    let mut read = 0;
    fuzz(&valid, |input| {
        let Ok(metainfo) = Metainfo::parse(input) else {
            return;
        };
        read += 1;
        let pieces = metainfo.pieces.count();
        let total: u64 = metainfo.files.iter().map(|file| file.length).sum();
        assert_eq!(total, metainfo.pieces.total);
        for piece in 0..pieces {
            assert!(hawser_store::Ranges::expected(&metainfo, piece).is_some());
        }
        assert!(hawser_store::Ranges::expected(&metainfo, pieces).is_none());
        let _ = Metainfo::missing_layers(metainfo.info());
    });
    assert!(read > 0);
}
