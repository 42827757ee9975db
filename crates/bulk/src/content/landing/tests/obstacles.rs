//! What is in the way, or hostile.

use std::process::Command;

use super::*;
use crate::content::manifest::{Entry, Extent, Manifest, Modified};

fn store(error: LandingError) -> StoreError {
    match error {
        LandingError::Store(error) => error,
        error => panic!("{error}"),
    }
}

/// A source with one file, and the folder that it is in.
fn one_file(path: &str) -> (Source, Hosts) {
    let hosts = Hosts::new();
    let path = hosts.from(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "x").unwrap();
    (hosts.source(), hosts)
}

#[test]
fn links_at_the_destination_are_not_followed() {
    let hosts = Hosts::new();
    let outside = hosts.0.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(hosts.to("")).unwrap();
    fs::write(outside.join("f"), "precious").unwrap();
    // In place of a directory: refused.
    symlink(&outside, hosts.to("d")).unwrap();
    let error = store(hosts.try_landing(&one_file("d/f").0).unwrap_err());
    assert!(matches!(error, StoreError::Link(_)), "{error}");
    // In place of a file: the link is replaced, as by rename(2), and not what it leads to.
    symlink(outside.join("f"), hosts.to("f")).unwrap();
    let (source, _folder) = one_file("f");
    let landing = hosts.landing(&source);
    send(&source, &landing, keep(&source, &landing));
    landing.complete().unwrap();
    assert_eq!(fs::read_to_string(hosts.to("f")).unwrap(), "x");
    // In place of a part file: refused.
    symlink(outside.join("f"), hosts.to(".g.hawser-part")).unwrap();
    let (source, _folder) = one_file("g");
    let landing = hosts.landing(&source);
    let error = store(landing.write_range(0, b"x").unwrap_err());
    assert!(matches!(error, StoreError::Link(_)), "{error}");
    // As the path in the destination: refused.
    let options = LandingOptions {
        path: "d/x".into(),
        strict: true,
        ..LandingOptions::default()
    };
    let manifest = Arc::clone(source.manifest());
    let error = store(Landing::prepare(manifest, &hosts.to(""), options).unwrap_err());
    assert!(matches!(error, StoreError::Link(_)), "{error}");
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "precious");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

/// A directory that is replaced by a link while the transfer runs.
#[test]
fn links_that_appear_later_are_not_followed() {
    let hosts = Hosts::new();
    let outside = hosts.0.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    let (source, _folder) = one_file("d/f");
    let landing = hosts.landing(&source);
    fs::remove_dir(hosts.to("d")).unwrap();
    symlink(&outside, hosts.to("d")).unwrap();
    let error = store(landing.write_range(0, b"x").unwrap_err());
    assert!(matches!(error, StoreError::Link(_)), "{error}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn what_is_not_a_file_is_not_replaced() {
    let hosts = Hosts::new();
    fs::create_dir_all(hosts.to("f")).unwrap();
    let error = store(hosts.try_landing(&one_file("f").0).unwrap_err());
    assert!(matches!(error, StoreError::NotAFile(_)), "{error}");
    fs::write(hosts.to("d"), "file").unwrap();
    let error = store(hosts.try_landing(&one_file("d/f").0).unwrap_err());
    assert!(matches!(error, StoreError::NotAFolder(_)), "{error}");
    assert_eq!(fs::read_to_string(hosts.to("d")).unwrap(), "file");
    symlink("x", hosts.from("f")).unwrap();
    let error = store(hosts.try_landing(&hosts.source()).unwrap_err());
    assert!(matches!(error, StoreError::NotTheLink { .. }), "{error}");
}

#[test]
fn a_file_is_written_by_one_transfer_at_a_time() {
    let hosts = Hosts::new();
    fs::write(hosts.from("large"), bytes(3 * RANGE, 1)).unwrap();
    let source = hosts.source();
    let first = hosts.landing(&source);
    let second = hosts.landing(&source);
    send(&source, &first, vec![0]);
    let error = store(second.write_range(0, &range_of(&source, 0)).unwrap_err());
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    // Already before anything is sent, once the first one has begun the file.
    let error = store(hosts.try_landing(&source).unwrap_err());
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    // Files of other names are free.
    let (other, _folder) = one_file("other");
    let third = hosts.landing(&other);
    send(&other, &third, vec![0]);
    third.complete().unwrap();
    drop(first);
    send(&source, &second, vec![1]);
    drop(second);
    let landing = hosts.landing(&source);
    assert_eq!(keep(&source, &landing), [2]);
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_anything_is_sent() {
    let hosts = Hosts::new();
    let extent = Extent {
        offset: 0,
        length: 1 << 60,
    };
    let entry = Entry {
        path: "huge".into(),
        mode: 0o644,
        modified: Modified::default(),
        attributes: None,
        kind: EntryKind::File {
            size: 1 << 60,
            extents: vec![extent],
        },
    };
    let manifest = Arc::new(Manifest::new([entry]).unwrap());
    let error = Landing::prepare(manifest, &hosts.to(""), LandingOptions::default()).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(
        error.to_string().contains("more bytes are needed"),
        "{error}"
    );
    assert_eq!(fs::read_dir(hosts.to("")).unwrap().count(), 0);
}

/// A small file system in memory, until it is dropped.
struct Small(TempDir);

impl Small {
    /// `None` if this user may not mount.
    fn of(bytes: u64) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(dir.path());
        mount
            .output()
            .is_ok_and(|output| output.status.success())
            .then(|| Self(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.unwrap().success());
    }
}

/// Also when another program fills the disk meanwhile: what was written stays, and the transfer can
/// continue.
#[test]
fn a_disk_that_fills_up_loses_nothing() {
    let Some(small) = Small::of(8 * RANGE) else {
        eprintln!("skipped: a file system in memory needs root");
        return;
    };
    let hosts = Hosts::new();
    fs::write(hosts.from("a"), bytes(5 * RANGE, 1)).unwrap();
    fs::write(hosts.from("b"), bytes(1000, 2)).unwrap();
    let source = hosts.source();
    let prepare = || {
        let options = LandingOptions::default();
        Landing::prepare(
            Arc::clone(source.manifest()),
            &small.0.path().join("to"),
            options,
        )
    };
    let landing = prepare().unwrap();
    send(&source, &landing, vec![0, 1]);
    let other = small.0.path().join("other");
    fs::write(&other, bytes(5 * RANGE, 3)).unwrap();
    let mut written = vec![0, 1];
    let error = loop {
        let range = written.len() as u64;
        match landing.write_range(range, &range_of(&source, range)) {
            Ok(()) => written.push(range),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, LandingError::Full { missing, .. } if missing > RANGE),
        "{error}"
    );
    drop(landing);
    // A new transfer is refused at once, by what is still missing.
    let error = prepare().unwrap_err();
    assert!(error.is_full(), "{error}");
    fs::remove_file(other).unwrap();
    let landing = prepare().unwrap();
    let missing = keep(&source, &landing);
    assert!(
        missing.iter().all(|range| !written.contains(range)),
        "{missing:?}"
    );
    send(&source, &landing, missing);
    landing.complete().unwrap();
    assert_eq!(list(&hosts.from("")), list(&small.0.path().join("to")));
}
