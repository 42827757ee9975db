use std::fs;

use super::*;
use crate::storage::Layout;
use crate::{CreateOptions, create};

const PIECE: u32 = 16 << 10;

/// Two files of 5 and 3 pieces, and what watches over them.
fn watched(dir: &std::path::Path) -> ContentWatch {
    let content = dir.join("set");
    fs::create_dir(&content).unwrap();
    for (name, pieces, byte) in [("a", 5, 1), ("b", 3, 2)] {
        fs::write(content.join(name), vec![byte; pieces * PIECE as usize]).unwrap();
    }
    let options = CreateOptions::new().with_piece_length(PIECE);
    let torrent = create(&content, &options, |_, _| {}).unwrap();
    let metainfo = Arc::new(Metainfo::parse(&torrent).unwrap());
    let (root, layout) = Layout::at_content(&metainfo, &content);
    let files = Arc::new(Files::read_only(root, layout));
    let (stamps, all) = (files.stamps(), Bitfield::full(metainfo.piece_count()));
    ContentWatch::new(files, metainfo, stamps, Arc::new(RwLock::new(all)))
}

fn block(piece: u32) -> Request {
    Request {
        piece,
        begin: 0,
        length: PIECE,
    }
}

fn reads(watch: &ContentWatch, piece: u32) -> bool {
    watch.read(block(piece), &mut vec![0; PIECE as usize])
}

/// As many scans as a change takes to be reported.
fn settle(watch: &ContentWatch) -> News {
    watch.scan();
    watch.scan();
    watch.take_news().unwrap_or_default()
}

#[test]
fn what_did_not_change_is_current_and_no_news() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watched(dir.path());
    assert!(watch.is_current(&[block(0), block(7)]));
    watch.scan();
    assert!(watch.take_news().is_none());
}

#[test]
fn a_shorter_file_loses_the_pieces_after_its_end_only() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watched(dir.path());
    let file = dir.path().join("set/a");
    let open = fs::File::options().write(true).open(&file).unwrap();
    open.set_len(3 * u64::from(PIECE) - 1).unwrap();
    assert!(!watch.is_current(&[block(0)]));
    let news = settle(&watch);
    assert_eq!(news.withdrawn.len() - news.restored.len(), 3);
    let [changed] = &news.changed[..] else {
        panic!("{news:?}")
    };
    assert_eq!((&changed.path, changed.lost, changed.pieces), (&file, 3, 5));
    let line = changed.to_string();
    assert!(
        line.contains("has 49151 bytes, but the torrent says 81920: 3 of its 5 pieces"),
        "{line}"
    );
    let offered: Vec<u32> = watch.offered.read().unwrap().iter().collect();
    assert_eq!(offered, [0, 1, 5, 6, 7]);
    assert!(reads(&watch, 1) && reads(&watch, 5));
    assert!(!reads(&watch, 2) && !reads(&watch, 4));
    assert!(watch.take_news().is_none());
}

#[test]
fn a_changed_piece_is_not_read_and_the_others_are_proven() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watched(dir.path());
    let file = dir.path().join("set/b");
    let right = fs::read(&file).unwrap();
    let mut wrong = right.clone();
    wrong[PIECE as usize] ^= 1;
    fs::write(&file, &wrong).unwrap();
    assert!(reads(&watch, 5));
    assert!(!reads(&watch, 6));
    // Not proven yet, so withdrawn with it.
    let news = watch.take_news().unwrap();
    assert_eq!(news.withdrawn, [7, 6]);
    let news = settle(&watch);
    assert_eq!((news.restored, news.changed[0].lost), (vec![7], 1));
    fs::write(&file, &right).unwrap();
    let news = settle(&watch);
    assert_eq!((news.restored, news.changed[0].lost), (vec![6], 0));
    assert!(reads(&watch, 6));
}

#[test]
fn a_file_that_is_gone_or_replaced_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watched(dir.path());
    assert!(reads(&watch, 5));
    let file = dir.path().join("set/b");
    fs::rename(&file, dir.path().join("aside")).unwrap();
    let news = settle(&watch);
    assert_eq!(news.changed[0].lost, 3);
    let line = news.changed[0].to_string();
    assert!(
        line.contains("cannot open") && line.contains("3 of its 3"),
        "{line}"
    );
    fs::rename(dir.path().join("aside"), &file).unwrap();
    let news = settle(&watch);
    assert_eq!((news.restored.len(), news.changed[0].lost), (3, 0));
}

#[test]
fn touching_a_file_is_no_news() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watched(dir.path());
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
    let file = fs::File::options()
        .write(true)
        .open(dir.path().join("set/a"));
    file.unwrap().set_modified(later).unwrap();
    assert!(!watch.is_current(&[block(0)]) && reads(&watch, 0));
    let news = settle(&watch);
    assert!(news.withdrawn.is_empty() && news.changed.is_empty());
    assert!(watch.is_current(&[block(4)]));
}
