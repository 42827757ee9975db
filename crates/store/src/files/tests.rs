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

#[test]
fn files_and_folders_get_other_names_while_they_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    let rename = |files: &Files, from: &str, to: &str| files.rename(from.as_ref(), to.as_ref());
    let layout = layout(&[("t/a", 5), ("t/sub/b", 7), ("t/sub/c", 8)]);
    let files = writable(dir.path(), layout);
    files.write_run(0, &[&[1; 12]]).unwrap();
    rename(&files, "t/a", "t/x").unwrap();
    rename(&files, "t/sub", "t/other").unwrap();
    rename(&files, "t", "top").unwrap();
    rename(&files, "top/other/b", "top/other/y").unwrap();
    assert_eq!(fs::read(at("top/x")).unwrap(), [1; 5]);
    // What is open stays open, and the rest is found, under every name that it has had.
    files.close(1);
    files.write_run(5, &[&[2; 15]]).unwrap();
    let mut back = [0; 20];
    files.read_at(0, &mut back).unwrap();
    assert_eq!((back[4], back[5], back[19]), (1, 2, 2));
    assert_eq!(fs::read(at("top/other/y")).unwrap(), [2; 7]);
    assert_eq!(fs::read(at("top/other/c")).unwrap(), [2; 8]);
    files.check_lengths().unwrap();
    assert!(!at("t").exists());
    // Nothing is replaced.
    fs::write(at("top/mine"), "mine").unwrap();
    let error = rename(&files, "top/x", "top/mine").unwrap_err().to_string();
    assert!(error.contains("top/mine"), "{error}");
    assert_eq!(fs::read(at("top/mine")).unwrap(), b"mine");
    files.close_all();
    files.read_at(0, &mut back).unwrap();
    // No entry has this path.
    rename(&files, "top/mine", "top/yours").unwrap();
}

#[test]
fn files_that_are_not_there_yet_are_created_under_their_other_names() {
    let dir = tempfile::tempdir().unwrap();
    let files = untouched(dir.path(), layout(&[("t/a", 5), ("t/b", 5)])).unwrap();
    files.rename("t/a".as_ref(), "t/x".as_ref()).unwrap();
    files.rename("t".as_ref(), "u".as_ref()).unwrap();
    files.write_run(0, &[&[1; 10]]).unwrap();
    assert_eq!(fs::read(dir.path().join("u/x")).unwrap(), [1; 5]);
    assert!(!dir.path().join("t").exists());
}

#[test]
fn looks_find_files_while_they_get_other_names() {
    let dir = tempfile::tempdir().unwrap();
    let files = writable(dir.path(), layout(&[("t/a", 5)]));
    files.write_run(0, &[&[1; 5]]).unwrap();
    let stamp = files.stamp_on_disk(0);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut looks = 0;
            while !is_done.load(std::sync::atomic::Ordering::Acquire) {
                assert_eq!(files.stamp_on_disk(0), stamp);
                looks += 1;
            }
            looks
        });
        for _ in 0..10 {
            files.rename("t/a".as_ref(), "t/b".as_ref()).unwrap();
            files.rename("t/b".as_ref(), "t/a".as_ref()).unwrap();
        }
        is_done.store(true, std::sync::atomic::Ordering::Release);
        assert!(looks.join().unwrap() > 0);
    });
}

#[test]
fn files_that_are_not_complete_keep_their_suffix_as_far_as_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    let layout = layout(&[("t/a", 5), ("t/b", 5)]);
    let options = FileOptions {
        part_suffix: true,
        ..FileOptions::default()
    };
    let (mark, parts) = (Mark::new(vec![0; 20]), super::testing::everything(&layout));
    let files = Files::writable(dir.path().to_owned(), layout, mark, options, parts).unwrap();
    files.write_run(0, &[&[1; 10]]).unwrap();
    assert!(at("t/a.part").exists() && at("t/b.part").exists());
    let long = format!("t/{}", "x".repeat(255));
    files.rename("t/a".as_ref(), "t/y".as_ref()).unwrap();
    files.rename("t/b".as_ref(), long.as_ref()).unwrap();
    assert!(at("t/y.part").exists() && at(&long).exists());
    files.close_all();
    let mut back = [0; 10];
    files.read_at(0, &mut back).unwrap();
    files.finish_names().unwrap();
    assert!(at("t/y").exists() && !at("t/y.part").exists());
    files.check_lengths().unwrap();
    assert_eq!(back, [1; 10]);
}
