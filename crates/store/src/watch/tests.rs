use std::fs;
use std::path::Path;

use super::*;
use crate::layout::Layout;
use crate::range::testing::Pieces;

const PIECE: u64 = 16 << 10;

/// A watch on two files of 5 and 3 ranges.
fn watched(dir: &Path) -> Watch<Pieces> {
    let content = dir.join("set");
    fs::create_dir(&content).unwrap();
    let mut whole = Vec::new();
    for (name, pieces, byte) in [("a", 5, 1), ("b", 3, 2)] {
        let bytes = vec![byte; pieces * PIECE as usize];
        fs::write(content.join(name), &bytes).unwrap();
        whole.extend(bytes);
    }
    let layout = [("a", 5 * PIECE), ("b", 3 * PIECE)];
    let layout = layout.map(|(name, length)| (PathBuf::from(name), length, false));
    let files = Arc::new(Files::read_only(content, Layout::new(layout)));
    let stamps = files.complete().unwrap();
    Watch::new(files, Arc::new(Pieces::of(&whole, PIECE)), stamps, |_| true)
}

fn bytes(piece: u64) -> Range<u64> {
    piece * PIECE..(piece + 1) * PIECE
}

fn reads(watch: &Watch<Pieces>, piece: u64) -> bool {
    watch.read(piece * PIECE, &mut vec![0; PIECE as usize])
}

/// Scans as often as a change needs to be reported.
fn settle(watch: &Watch<Pieces>) -> News {
    watch.scan();
    watch.scan();
    watch.take_news().unwrap_or_default()
}

#[test]
fn unchanged_files_are_current_and_no_news() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watched(dir.path());
    assert!(watch.is_current(&[bytes(0), bytes(7)]));
    watch.scan();
    assert!(watch.take_news().is_none());
}

#[test]
fn a_shorter_file_loses_the_pieces_after_its_end_only() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watched(dir.path());
    let file = dir.path().join("set/a");
    let open = fs::File::options().write(true).open(&file).unwrap();
    open.set_len(3 * PIECE - 1).unwrap();
    assert!(!watch.is_current(&[bytes(0)]));
    let news = settle(&watch);
    assert_eq!(news.withdrawn.len() - news.restored.len(), 3);
    let [changed] = &news.changed[..] else {
        panic!("{news:?}")
    };
    assert_eq!((&changed.path, changed.lost, changed.ranges), (&file, 3, 5));
    let error = changed.error.as_ref().unwrap();
    assert!(
        error.contains("has 49151 bytes, but it should have 81920"),
        "{error}"
    );
    let offered: Vec<u32> = (0..8).filter(|piece| watch.is_offered(*piece)).collect();
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
    // Piece 7 is not proven yet, so it is withdrawn too.
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
fn a_missing_or_replaced_file_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watched(dir.path());
    assert!(reads(&watch, 5));
    let file = dir.path().join("set/b");
    fs::rename(&file, dir.path().join("aside")).unwrap();
    let news = settle(&watch);
    assert_eq!((news.changed[0].lost, news.changed[0].ranges), (3, 3));
    let error = news.changed[0].error.as_ref().unwrap();
    assert!(error.contains("cannot open"), "{error}");
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
    assert!(!watch.is_current(&[bytes(0)]) && reads(&watch, 0));
    let news = settle(&watch);
    assert!(news.withdrawn.is_empty() && news.changed.is_empty());
    assert!(watch.is_current(&[bytes(4)]));
}
