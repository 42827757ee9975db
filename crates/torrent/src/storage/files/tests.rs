use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;
use crate::storage::check::{Found, check, hash_piece};

fn layout(files: &[(&str, u64)]) -> Layout {
    Layout::new(
        1024,
        files
            .iter()
            .map(|(path, length)| (PathBuf::from(path), *length, false)),
    )
}

/// Before anything is written.
fn untouched(root: PathBuf, layout: Layout) -> Files {
    Files::below(root, layout, false, InfoHash([0; 20])).unwrap()
}

#[test]
fn bytes_cross_file_boundaries_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(&[("t/a", 5), ("t/empty", 0), ("t/sub/b", 7), ("t/c", 3000)]);
    let files = Files::writable(dir.path().to_owned(), layout).unwrap();
    let bytes: Vec<u8> = (0..3012u32).map(|i| i as u8).collect();
    files.write_at(0, &bytes[..9]).unwrap();
    files.write_at(9, &bytes[9..]).unwrap();
    let mut back = vec![0; bytes.len()];
    files.read_at(0, &mut back).unwrap();
    assert_eq!(back, bytes);
    assert_eq!(fs::read(dir.path().join("t/sub/b")).unwrap(), &bytes[5..12]);
    assert_eq!(fs::read(dir.path().join("t/empty")).unwrap(), b"");
}

#[test]
fn padding_reads_as_zeros_and_is_never_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let entries = [("a", 3, false), (".pad/5", 5, true), ("b", 2, false)];
    let layout = Layout::new(
        1024,
        entries.map(|(path, length, padding)| (PathBuf::from(path), length, padding)),
    );
    let files = Files::writable(dir.path().to_owned(), layout).unwrap();
    files.write_at(0, b"abcXXXXXde").unwrap();
    let mut back = [1; 10];
    files.read_at(0, &mut back).unwrap();
    assert_eq!(&back, b"abc\0\0\0\0\0de");
    assert!(!dir.path().join(".pad").exists());
}

#[test]
fn files_are_sparse_until_written() {
    let dir = tempfile::tempdir().unwrap();
    let files = untouched(dir.path().to_owned(), layout(&[("big", 1 << 40)]));
    assert!(!dir.path().join("big").exists());
    assert!(files.is_hole(0, 1024).unwrap());
    files.make_room().unwrap();
    let metadata = fs::metadata(dir.path().join("big")).unwrap();
    assert_eq!(metadata.len(), 1 << 40);
    assert_eq!(metadata.blocks(), 0);
    files.write_at(1 << 39, b"x").unwrap();
    assert!(files.is_hole(0, 1024).unwrap());
    assert!(!files.is_hole(1 << 39, 1024).unwrap());
}

#[test]
fn more_files_than_handles_work() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..MAX_OPEN * 3).map(|i| format!("d/{i}")).collect();
    let entries: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 2)).collect();
    let files = Files::writable(dir.path().to_owned(), layout(&entries)).unwrap();
    let bytes: Vec<u8> = (0..names.len() * 2).map(|i| i as u8).collect();
    files.write_at(0, &bytes).unwrap();
    let mut back = vec![0; bytes.len()];
    files.read_at(0, &mut back).unwrap();
    assert_eq!(back, bytes);
    assert!(files.handles.lock().unwrap().open.len() <= MAX_OPEN);
}

#[test]
fn links_that_lead_out_are_refused_before_anything_is_written() {
    let outside = tempfile::tempdir().unwrap();
    let absolute = outside.path().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("downloads");
    fs::create_dir(&root).unwrap();
    fs::create_dir(dir.path().join("sibling")).unwrap();
    for target in [absolute.as_path(), Path::new("../sibling")] {
        let link = root.join("t");
        symlink(target, &link).unwrap();
        let error = Files::writable(root.clone(), layout(&[("first", 5), ("t/a", 5)])).unwrap_err();
        assert!(matches!(error, StorageError::LeadsOut { .. }), "{error}");
        fs::remove_file(link).unwrap();
    }
    fs::create_dir(root.join("t")).unwrap();
    symlink(absolute.join("victim"), root.join("t/a")).unwrap();
    let error = Files::writable(root.clone(), layout(&[("t/a", 5)])).unwrap_err();
    assert!(matches!(error, StorageError::LeadsOut { .. }), "{error}");
    assert_eq!(fs::read_dir(&absolute).unwrap().count(), 0);
    assert_eq!(fs::read_dir(dir.path().join("sibling")).unwrap().count(), 0);
    assert!(!root.join("first").exists());
}

#[test]
fn a_link_swapped_in_later_is_refused_too() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("a"), b"keep me").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let files = Files::writable(dir.path().to_owned(), layout(&[("t/a", 7)])).unwrap();
    files.close(0);
    fs::remove_dir_all(dir.path().join("t")).unwrap();
    symlink(outside.path(), dir.path().join("t")).unwrap();
    let error = files.write_at(0, b"overrun").unwrap_err();
    assert!(matches!(error, StorageError::LeadsOut { .. }), "{error}");
    assert_eq!(fs::read(outside.path().join("a")).unwrap(), b"keep me");
}

#[test]
fn links_that_stay_inside_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink("real", dir.path().join("t")).unwrap();
    let files = Files::writable(dir.path().to_owned(), layout(&[("t/a", 2)])).unwrap();
    files.write_at(0, b"hi").unwrap();
    assert_eq!(fs::read(dir.path().join("real/a")).unwrap(), b"hi");
}

#[test]
fn what_is_in_the_way_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let open = |entries: &[(&str, u64)]| Files::writable(dir.path().to_owned(), layout(entries));
    fs::write(dir.path().join("long"), b"0123456789").unwrap();
    let error = open(&[("long", 4)]).unwrap_err();
    assert!(matches!(error, StorageError::TooLong { .. }), "{error}");
    assert_eq!(fs::read(dir.path().join("long")).unwrap(), b"0123456789");
    fs::create_dir(dir.path().join("folder")).unwrap();
    let error = open(&[("folder", 4)]).unwrap_err();
    assert!(matches!(error, StorageError::NotAFile { .. }), "{error}");
    let error = open(&[("long/inner", 4)]).unwrap_err();
    assert!(
        matches!(&error, StorageError::NotAFolder { path } if path.ends_with("long")),
        "{error}"
    );
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    let error = open(&[("dangling", 4)]).unwrap_err();
    assert!(matches!(error, StorageError::NotAFile { .. }), "{error}");
}

#[test]
fn checking_finds_what_is_right_also_in_holes() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::writable(dir.path().to_owned(), layout(&[("f", 10_000)])).unwrap();
    files.write_at(2048, &[7; 1024]).unwrap();
    let hashes: Vec<_> = (0..10)
        .map(|piece| hash_piece(&files, piece).unwrap())
        .collect();
    files.write_at(4096, &[9; 10]).unwrap();
    let mut verified = Vec::new();
    let hash_of = |piece: u32| hashes.get(piece as usize).copied();
    check(&files, hash_of, |piece, found| {
        if found == Found::Verified {
            verified.push(piece);
        }
        true
    })
    .unwrap();
    verified.sort_unstable();
    assert_eq!(verified, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
}

#[test]
fn links_of_a_torrent_are_made_and_nothing_is_replaced_by_them() {
    let text = "d4:infod5:filesl\
        d6:lengthi5e4:pathl1:d4:fileee\
        d4:attr1:l4:pathl4:linke12:symlink pathl1:d4:fileee\
        d4:attr1:l4:pathl1:d4:evile12:symlink pathl3:etc6:passwdeee\
        4:name3:set12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaaee";
    let metainfo = crate::Metainfo::parse(text.as_bytes()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let open = || Files::writable(dir.path().to_owned(), Layout::of(&metainfo));
    let link = dir.path().join("set/link");
    // Again, too, when it is there.
    for _ in 0..2 {
        open().unwrap().write_at(0, b"hello").unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("d/file"));
        assert_eq!(fs::read(&link).unwrap(), b"hello");
        assert!(dir.path().join("set/d/evil").symlink_metadata().is_err());
    }
    fs::remove_file(&link).unwrap();
    fs::write(&link, b"keep me").unwrap();
    let error = open().unwrap_err();
    assert!(matches!(error, StorageError::NotTheLink { .. }), "{error}");
    assert_eq!(fs::read(&link).unwrap(), b"keep me");
}

#[test]
fn a_lock_leaves_nothing_unless_something_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("new/folder");
    let entries = layout(&[("t/sub/a", 5), ("t/b", 5)]);
    let open = || Arc::new(untouched(root.clone(), entries.clone()));
    let lock = open().lock().unwrap();
    assert_eq!(fs::metadata(root.join("t/sub/a")).unwrap().len(), 0);
    let error = open().lock().unwrap_err();
    assert!(matches!(error, StorageError::InUse { .. }), "{error}");
    drop(lock);
    assert!(!dir.path().join("new").exists());
    // What was there stays, and what was written.
    fs::create_dir_all(root.join("t/sub")).unwrap();
    fs::write(root.join("t/sub/a"), b"").unwrap();
    drop(open().lock().unwrap());
    assert!(root.join("t/sub/a").exists());
    let files = open();
    let lock = files.lock().unwrap();
    files.write_at(0, b"x").unwrap();
    drop(lock);
    assert_eq!(fs::metadata(root.join("t/b")).unwrap().len(), 5);
}
