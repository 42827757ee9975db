use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::testing::{try_writable, untouched, writable};
use super::*;
use crate::check::check;
use crate::handles::MAX_OPEN;
use crate::lock::Lock;
use crate::range::testing::Pieces;

fn layout(files: &[(&str, u64)]) -> Layout {
    let files = files.iter();
    Layout::new(files.map(|(path, length)| (PathBuf::from(path), *length, false)))
}

#[test]
fn bytes_cross_file_boundaries_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(&[("t/a", 5), ("t/empty", 0), ("t/sub/b", 7), ("t/c", 3000)]);
    let files = writable(dir.path(), layout);
    let bytes: Vec<u8> = (0..3012u32).map(|i| i as u8).collect();
    files.write_run(0, &[&bytes[..9]]).unwrap();
    files.write_run(9, &[&bytes[9..]]).unwrap();
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
    let layout =
        Layout::new(entries.map(|(path, length, padding)| (PathBuf::from(path), length, padding)));
    let files = writable(dir.path(), layout);
    files.write_run(0, &[b"abcXXXXXde"]).unwrap();
    let mut back = [1; 10];
    files.read_at(0, &mut back).unwrap();
    assert_eq!(&back, b"abc\0\0\0\0\0de");
    assert!(!dir.path().join(".pad").exists());
}

#[test]
fn files_are_sparse_until_written() {
    let dir = tempfile::tempdir().unwrap();
    let files = untouched(dir.path(), layout(&[("big", 1 << 40)])).unwrap();
    assert!(!dir.path().join("big").exists());
    assert!(files.is_hole(0..1024).unwrap());
    files.create_all().unwrap();
    let metadata = fs::metadata(dir.path().join("big")).unwrap();
    assert_eq!(metadata.len(), 1 << 40);
    assert_eq!(metadata.blocks(), 0);
    files.write_run(1 << 39, &[b"x"]).unwrap();
    assert!(files.is_hole(0..1024).unwrap());
    assert!(!files.is_hole(1 << 39..(1 << 39) + 1024).unwrap());
}

#[test]
fn more_files_than_handles_work() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..MAX_OPEN * 3).map(|i| format!("d/{i}")).collect();
    let entries: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 2)).collect();
    let files = writable(dir.path(), layout(&entries));
    let bytes: Vec<u8> = (0..names.len() * 2).map(|i| i as u8).collect();
    files.write_run(0, &[&bytes]).unwrap();
    let mut back = vec![0; bytes.len()];
    files.read_at(0, &mut back).unwrap();
    assert_eq!(back, bytes);
    assert!(files.handles.count() <= MAX_OPEN);
}

#[test]
fn symlinks_that_lead_out_are_refused_before_anything_is_written() {
    let outside = tempfile::tempdir().unwrap();
    let absolute = outside.path().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("downloads");
    fs::create_dir(&root).unwrap();
    fs::create_dir(dir.path().join("sibling")).unwrap();
    for target in [absolute.as_path(), Path::new("../sibling")] {
        let link = root.join("t");
        symlink(target, &link).unwrap();
        let error = try_writable(&root, layout(&[("first", 5), ("t/a", 5)])).unwrap_err();
        assert!(matches!(error, StoreError::LeadsOut { .. }), "{error}");
        fs::remove_file(link).unwrap();
    }
    fs::create_dir(root.join("t")).unwrap();
    symlink(absolute.join("victim"), root.join("t/a")).unwrap();
    let error = try_writable(&root, layout(&[("t/a", 5)])).unwrap_err();
    assert!(matches!(error, StoreError::LeadsOut { .. }), "{error}");
    assert_eq!(fs::read_dir(&absolute).unwrap().count(), 0);
    assert_eq!(fs::read_dir(dir.path().join("sibling")).unwrap().count(), 0);
    assert!(!root.join("first").exists());
}

#[test]
fn a_symlink_created_later_is_refused_too() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("a"), b"keep me").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let files = writable(dir.path(), layout(&[("t/a", 7)]));
    files.close(0);
    fs::remove_dir_all(dir.path().join("t")).unwrap();
    symlink(outside.path(), dir.path().join("t")).unwrap();
    let error = files.write_run(0, &[b"overrun"]).unwrap_err();
    assert!(matches!(error, StoreError::LeadsOut { .. }), "{error}");
    assert_eq!(fs::read(outside.path().join("a")).unwrap(), b"keep me");
}

#[test]
fn symlinks_that_stay_inside_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink("real", dir.path().join("t")).unwrap();
    let files = writable(dir.path(), layout(&[("t/a", 2)]));
    files.write_run(0, &[b"hi"]).unwrap();
    assert_eq!(fs::read(dir.path().join("real/a")).unwrap(), b"hi");
}

#[test]
fn obstacles_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let open = |entries: &[(&str, u64)]| try_writable(dir.path(), layout(entries));
    fs::write(dir.path().join("long"), b"0123456789").unwrap();
    let error = open(&[("long", 4)]).unwrap_err();
    assert!(matches!(error, StoreError::TooLong { .. }), "{error}");
    assert_eq!(fs::read(dir.path().join("long")).unwrap(), b"0123456789");
    fs::create_dir(dir.path().join("folder")).unwrap();
    let error = open(&[("folder", 4)]).unwrap_err();
    assert!(matches!(error, StoreError::NotAFile { .. }), "{error}");
    let error = open(&[("long/inner", 4)]).unwrap_err();
    assert!(
        matches!(&error, StoreError::NotAFolder(path) if path.ends_with("long")),
        "{error}"
    );
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    for path in ["dangling", "dangling/inner"] {
        let error = open(&[(path, 4)]).unwrap_err();
        let named = |path: &Path| path.ends_with("dangling");
        assert!(
            matches!(&error, StoreError::DanglingLink { path, .. } if named(path)),
            "{error}"
        );
    }
}

#[test]
fn what_is_in_the_way_of_the_folder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (link, file) = (dir.path().join("link"), dir.path().join("file"));
    symlink("nowhere", &link).unwrap();
    fs::write(&file, b"").unwrap();
    for below in ["", "inner", "inner/deep"] {
        let error = try_writable(&link.join(below), layout(&[("a", 1)])).unwrap_err();
        let text = error.to_string();
        let named = text.contains(link.to_str().unwrap()) && text.contains("nowhere");
        assert!(named && text.contains("does not exist"), "{text}");
        let error = try_writable(&file.join(below), layout(&[("a", 1)])).unwrap_err();
        assert!(
            matches!(&error, StoreError::NotAFolder(path) if *path == file),
            "{error}"
        );
    }
    assert!(!dir.path().join("nowhere").exists());
}

#[test]
fn checking_finds_right_ranges_even_in_holes() {
    let dir = tempfile::tempdir().unwrap();
    let files = writable(dir.path(), layout(&[("f", 10_000)]));
    let mut content = vec![0; 10_000];
    content[2048..3072].fill(7);
    files.write_run(2048, &[[7; 1024]]).unwrap();
    files.write_run(4096, &[[9; 10]]).unwrap();
    let pieces = Pieces::of(&content, 1024);
    let verified = |wanted: fn(u32) -> bool| {
        let mut verified = Vec::new();
        let each = |piece, is_right: bool| {
            verified.extend(is_right.then_some(piece));
            true
        };
        check(&files, &pieces, wanted, each).unwrap();
        verified.sort_unstable();
        verified
    };
    assert_eq!(verified(|_| true), [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    assert_eq!(verified(|piece| piece > 6), [7, 8, 9]);
}

#[test]
fn symlinks_are_created_and_replace_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let links = [(PathBuf::from("set/link"), PathBuf::from("d/file"))];
    let mut layout = layout(&[("set/d/file", 5)]);
    layout.links.extend(links);
    let open = || try_writable(dir.path(), layout.clone());
    let link = dir.path().join("set/link");
    // The second time the link exists already.
    for _ in 0..2 {
        open().unwrap().write_run(0, &[b"hello"]).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("d/file"));
        assert_eq!(fs::read(&link).unwrap(), b"hello");
    }
    fs::remove_file(&link).unwrap();
    fs::write(&link, b"keep me").unwrap();
    let error = open().unwrap_err();
    assert!(matches!(error, StoreError::NotTheLink { .. }), "{error}");
    assert_eq!(fs::read(&link).unwrap(), b"keep me");
}

#[test]
fn a_lock_leaves_nothing_unless_something_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("new/folder");
    let entries = layout(&[("t/sub/a", 5), ("t/b", 5)]);
    let open = || Arc::new(untouched(&root, entries.clone()).unwrap());
    let lock = Lock::acquire(&open(), true).unwrap();
    assert_eq!(fs::metadata(root.join("t/sub/a")).unwrap().len(), 0);
    let error = Lock::acquire(&open(), true).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    drop(lock);
    assert!(!dir.path().join("new").exists());
    // Files that existed before stay, and so do files that were written.
    fs::create_dir_all(root.join("t/sub")).unwrap();
    fs::write(root.join("t/sub/a"), b"").unwrap();
    drop(Lock::acquire(&open(), true).unwrap());
    assert!(root.join("t/sub/a").exists());
    let files = open();
    let lock = Lock::acquire(&files, true).unwrap();
    files.write_run(0, &[b"x"]).unwrap();
    drop(lock);
    assert_eq!(fs::metadata(root.join("t/b")).unwrap().len(), 5);
}
