mod obstacles;
mod ordinary;
mod resume;
mod unfinished;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::content::manifest::{EntryKind, PART_SUFFIX};
use crate::content::tree::RANGE;
use crate::content::{ScanOptions, Source, scan};

/// `length` bytes that no other seed has anywhere.
fn bytes(length: u64, seed: u64) -> Vec<u8> {
    let mut output = blake3::Hasher::new()
        .update(&seed.to_be_bytes())
        .finalize_xof();
    let mut bytes = vec![0; length as usize];
    output.fill(&mut bytes);
    bytes
}

/// A source folder `from/data` and a destination folder `to`.
struct Hosts(TempDir);

impl Hosts {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("from/data")).unwrap();
        Self(dir)
    }

    fn from(&self, name: &str) -> PathBuf {
        self.0.path().join("from/data").join(name)
    }

    fn to(&self, name: &str) -> PathBuf {
        self.0.path().join("to").join(name)
    }

    fn source(&self) -> Source {
        let scan = scan(&[self.from("")], ScanOptions::default()).unwrap();
        assert!(scan.warnings.is_empty());
        Source::open(scan)
    }

    fn landing(&self, source: &Source) -> Landing {
        self.try_landing(source).unwrap()
    }

    fn try_landing(&self, source: &Source) -> Result<Landing, LandingError> {
        let options = LandingOptions {
            sync: false,
            strict: true,
            ..LandingOptions::default()
        };
        Landing::prepare(Arc::clone(source.manifest()), &self.to(""), options)
    }

    /// Transfers all; returns the ranges that were sent.
    fn transfer(&self) -> Vec<u64> {
        let source = self.source();
        let landing = self.landing(&source);
        let sent = send(&source, &landing, keep(&source, &landing));
        landing.complete().unwrap();
        self.compare();
        sent
    }

    /// Panics if something differs, or a part file is left.
    fn compare(&self) {
        assert_eq!(list(&self.from("")), list(&self.to("")));
    }
}

/// Keeps what is there and right, as a sink does; returns the ranges that are not.
fn keep(source: &Source, landing: &Landing) -> Vec<u64> {
    let total = source.manifest().length();
    let mut missing = Vec::new();
    let mut kept = Vec::new();
    let mut found = std::collections::BTreeMap::new();
    let mut last = None;
    landing
        .existing(|range, value| {
            assert!(last < Some(range), "{range} comes after {last:?}");
            last = Some(range);
            found.insert(range, value);
            true
        })
        .unwrap();
    for range in 0..tree::count(total) {
        let expected = tree::chaining_value(range, &range_of(source, range), total);
        match found.get(&range) == Some(&expected) {
            true => kept.push(range),
            false => missing.push(range),
        }
    }
    kept.into_iter()
        .for_each(|range| landing.keep(range).unwrap());
    missing
}

fn range_of(source: &Source, range: u64) -> Vec<u8> {
    let positions = tree::range(range, source.manifest().length());
    let mut bytes = vec![0; (positions.end - positions.start) as usize];
    source.read_at(positions.start, &mut bytes).unwrap();
    bytes
}

fn send(source: &Source, landing: &Landing, ranges: Vec<u64>) -> Vec<u64> {
    for range in &ranges {
        landing
            .write_range(*range, &range_of(source, *range))
            .unwrap();
    }
    ranges
}

/// Path, mode, time, and content or target.
type Listed = (PathBuf, u32, (i64, i64), Vec<u8>);

/// Everything below a folder.
fn list(folder: &Path) -> Vec<Listed> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = match () {
                () if metadata.is_dir() => {
                    folders.push(path.clone());
                    b"directory".to_vec()
                }
                () if metadata.is_symlink() => {
                    path.read_link().unwrap().as_os_str().as_bytes().to_vec()
                }
                () => fs::read(&path).unwrap(),
            };
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            let path = path.strip_prefix(folder).unwrap().to_owned();
            found.push((path, metadata.mode(), modified, content));
        }
    }
    found.sort();
    found
}

#[test]
fn files_directories_and_links_arrive_with_modes_and_times() {
    let hosts = Hosts::new();
    fs::create_dir_all(hosts.from("a/b")).unwrap();
    fs::write(hosts.from("a/large"), bytes(7 * RANGE / 2, 1)).unwrap();
    fs::write(hosts.from("a/b/small"), bytes(777, 2)).unwrap();
    fs::write(hosts.from("empty"), "").unwrap();
    fs::write(hosts.from("n".repeat(255).as_str()), "long name").unwrap();
    symlink("b/small", hosts.from("a/link")).unwrap();
    symlink("nowhere", hosts.from("dangling")).unwrap();
    let old =
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    for (name, mode) in [
        ("a/large", 0o640),
        ("a/b/small", 0o400),
        ("empty", 0o777),
        ("a/b", 0o555),
    ] {
        let file = fs::File::open(hosts.from(name)).unwrap();
        file.set_permissions(fs::Permissions::from_mode(mode))
            .unwrap();
        file.set_modified(old).unwrap();
    }
    assert_eq!(hosts.transfer().len(), 4);
    // Nothing is sent again, also below the folder that is now read-only.
    assert!(hosts.transfer().is_empty());
    // So that everything can be removed.
    for path in [hosts.from("a/b"), hosts.to("a/b")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn set_uid_and_set_gid_are_cleared() {
    let hosts = Hosts::new();
    fs::write(hosts.from("program"), "x").unwrap();
    fs::set_permissions(hosts.from("program"), fs::Permissions::from_mode(0o6755)).unwrap();
    let source = Source::open(scan(&[hosts.from("")], ScanOptions::default()).unwrap());
    let landing = hosts.landing(&source);
    send(&source, &landing, vec![0]);
    landing.complete().unwrap();
    assert_eq!(
        hosts.to("program").metadata().unwrap().mode() & 0o7777,
        0o755
    );
    // It counts as equal.
    let landing = hosts.landing(&source);
    assert!(keep(&source, &landing).is_empty());
}

#[test]
fn holes_stay_holes() {
    let hosts = Hosts::new();
    let sparse = |path: &Path, runs: &[(u64, u64)]| {
        let file = fs::File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .open(path)
            .unwrap();
        file.set_len(40 * RANGE).unwrap();
        for (offset, length) in runs {
            file.write_all_at(&bytes(*length, *offset), *offset)
                .unwrap();
        }
    };
    sparse(
        &hosts.from("a"),
        &[(3 * RANGE, 70_000), (9 * RANGE + 8192, 2 * RANGE)],
    );
    sparse(&hosts.from("all hole"), &[]);
    sparse(&hosts.from("small"), &[(20 * RANGE, 4096)]);
    assert_eq!(hosts.transfer().len(), 3);
    for name in ["a", "all hole", "small"] {
        let allocated = hosts.to(name).metadata().unwrap().blocks() * 512;
        assert!(allocated < 4 * RANGE, "{name}: {allocated} bytes");
    }
    assert!(hosts.transfer().is_empty());

    // Content where the source has a hole: the same ranges, but another file.
    for name in ["a", "all hole", "small"] {
        let file = fs::File::options()
            .write(true)
            .open(hosts.to(name))
            .unwrap();
        file.write_all_at(b"x", 30 * RANGE).unwrap();
    }
    let sent = hosts.transfer();
    assert!(sent.len() < 3, "{sent:?}");
}

/// A part file of an earlier version, with content where there is a hole now.
#[test]
fn holes_are_cleared_in_resumed_files() {
    let hosts = Hosts::new();
    fs::write(hosts.from("a"), bytes(6 * RANGE, 1)).unwrap();
    let source = hosts.source();
    let landing = hosts.landing(&source);
    send(&source, &landing, vec![0, 1, 2, 3]);
    drop(landing);
    let file = fs::File::create(hosts.from("a")).unwrap();
    file.set_len(6 * RANGE).unwrap();
    file.write_all_at(&bytes(6 * RANGE, 1)[..RANGE as usize + 5], 0)
        .unwrap();
    file.write_all_at(b"end", 6 * RANGE - 3).unwrap();
    let sent = hosts.transfer();
    assert_eq!(sent, [1]);
}

#[test]
fn ten_thousand_small_files_arrive() {
    let hosts = Hosts::new();
    for folder in 0..10 {
        fs::create_dir(hosts.from(&format!("{folder}"))).unwrap();
        for file in 0..1000u64 {
            fs::write(
                hosts.from(&format!("{folder}/{file}")),
                bytes(file % 700, file),
            )
            .unwrap();
        }
    }
    hosts.transfer();
    // One is changed: only its range is sent, and no other file is written.
    let inode = |name: &str| hosts.to(name).metadata().unwrap().ino();
    let before: Vec<u64> = (0..1000).map(|file| inode(&format!("5/{file}"))).collect();
    fs::write(hosts.from("5/500"), bytes(500, 1_000_000)).unwrap();
    assert_eq!(hosts.transfer().len(), 1);
    let after: Vec<u64> = (0..1000).map(|file| inode(&format!("5/{file}"))).collect();
    let changed: Vec<usize> = (0..1000)
        .filter(|file| before[*file] != after[*file])
        .collect();
    assert_eq!(changed, [500]);
}

#[test]
fn only_what_differs_is_sent() {
    let hosts = Hosts::new();
    let content = bytes(5 * RANGE + 100, 1);
    let write = |path: PathBuf, content: &[u8]| fs::write(path, content).unwrap();
    write(hosts.from("large"), &content);
    hosts.transfer();
    let inode = || hosts.to("large").metadata().unwrap().ino();
    let before = inode();

    // Only mode and time: the file stays.
    fs::set_permissions(hosts.to("large"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(hosts.transfer().is_empty());
    assert_eq!(inode(), before);

    // One byte; and a file that reads it meanwhile sees the old content to the end.
    let mut other = content.clone();
    other[2 * RANGE as usize + 7] ^= 1;
    write(hosts.to("large"), &other);
    let reader = fs::File::open(hosts.to("large")).unwrap();
    assert_eq!(hosts.transfer(), [2]);
    assert_ne!(inode(), before);
    let mut seen = vec![0; other.len()];
    reader.read_exact_at(&mut seen, 0).unwrap();
    assert!(seen == other);

    // Longer and shorter files: what they share is not sent.
    write(hosts.to("large"), &[&content[..], b"more"].concat());
    assert!(hosts.transfer().is_empty());
    write(hosts.to("large"), &content[..2 * RANGE as usize + 5]);
    assert_eq!(hosts.transfer(), [2, 3, 4, 5]);
    write(hosts.to("large"), b"");
    assert_eq!(hosts.transfer().len(), 6);
}

/// What differs may be in another file of the same range.
#[test]
fn files_that_share_a_range_with_one_that_differs_stay() {
    let hosts = Hosts::new();
    fs::write(hosts.from("1 large"), bytes(2 * RANGE + 1000, 1)).unwrap();
    fs::write(hosts.from("2 small"), bytes(1000, 2)).unwrap();
    fs::write(hosts.from("3 large"), bytes(2 * RANGE, 3)).unwrap();
    hosts.transfer();
    let inode = |name| hosts.to(name).metadata().unwrap().ino();
    let before = [inode("1 large"), inode("3 large")];
    fs::write(hosts.from("2 small"), bytes(1000, 4)).unwrap();
    assert_eq!(hosts.transfer(), [2]);
    assert_eq!([inode("1 large"), inode("3 large")], before);
}

#[test]
fn entries_land_by_the_rule_of_scp() {
    let hosts = Hosts::new();
    fs::create_dir(hosts.from("d")).unwrap();
    fs::write(hosts.from("d/f"), "x").unwrap();
    fs::write(hosts.from("g"), "y").unwrap();
    let land = |names: &[&str], path: &str| -> Result<(), LandingError> {
        let names: Vec<PathBuf> = names.iter().map(|name| hosts.from(name)).collect();
        let source = Source::open(scan(&names, ScanOptions::default()).unwrap());
        let options = LandingOptions {
            path: path.into(),
            strict: true,
            ..LandingOptions::default()
        };
        let landing = Landing::prepare(Arc::clone(source.manifest()), &hosts.to(""), options)?;
        send(&source, &landing, keep(&source, &landing));
        landing.complete()?;
        landing.settle();
        Ok(())
    };
    let is = |path: &str| fs::read_to_string(hosts.to(path)).unwrap_or_default();
    land(&["g"], "").unwrap();
    assert_eq!(is("g"), "y");
    land(&["g"], "renamed").unwrap();
    assert_eq!(is("renamed"), "y");
    land(&["d"], "new").unwrap();
    assert_eq!(is("new/f"), "x");
    // It exists now.
    land(&["d"], "new").unwrap();
    assert_eq!(is("new/d/f"), "x");
    land(&["g"], "new").unwrap();
    assert_eq!(is("new/g"), "y");
    land(&["g"], "p/q/r").unwrap();
    assert_eq!(is("p/q/r"), "y");
    land(&["g"], "folder/").unwrap();
    assert_eq!(is("folder/g"), "y");
    land(&["d", "g"], "both").unwrap();
    assert_eq!((is("both/d/f"), is("both/g")), ("x".into(), "y".into()));
    land(&["d/"], "./contents/").unwrap();
    assert_eq!(is("contents/f"), "x");
    for path in ["/etc", "..", "a/../..", "a\0b"] {
        let refused = land(&["g"], path).unwrap_err();
        assert!(
            matches!(refused, LandingError::Path(_)),
            "{path}: {refused}"
        );
    }
    for names in [&["d"][..], &["d", "g"]] {
        let refused = land(names, "renamed").unwrap_err();
        let is_file = matches!(refused, LandingError::Store(StoreError::NotAFolder(_)));
        assert!(is_file, "{refused}");
    }
    assert_eq!(is("renamed"), "y");
}

#[test]
fn nothing_is_written_when_discarding() {
    let source = Source::zeros(5 * RANGE + 1).unwrap();
    let landing = Landing::discard(Arc::clone(source.manifest()));
    assert!(matches!(
        landing.complete(),
        Err(LandingError::Incomplete(_))
    ));
    assert_eq!(keep(&source, &landing).len(), 6);
    send(&source, &landing, (0..6).collect());
    assert_eq!(landing.missing(), 0);
    landing.complete().unwrap();
}
