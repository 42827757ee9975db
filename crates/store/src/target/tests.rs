mod partial;
mod selecting;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tempfile::TempDir;

use super::*;
use crate::budget::Budget;
use crate::disk::{Disk, DiskEvent};
use crate::range::testing::Pieces;

/// Bytes of a range.
const RANGE: u64 = 16 << 10;

/// The files and their lengths: the second one begins in the middle of a range.
const FILES: [(&str, u64); 3] = [("set/a", 70_000), ("set/empty", 0), ("set/sub/b", 50_000)];

fn content() -> Vec<u8> {
    (0..120_000u32).map(|at| (at / 7) as u8).collect()
}

/// Runs `job` like an ordinary user, whom permissions bind.
fn as_ordinary_user<T: Send>(job: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::DAC_OVERRIDE);
            sets.effective.remove(CapabilitySet::DAC_READ_SEARCH);
            set_capabilities(None, sets).unwrap();
            job()
        });
        thread.join().unwrap()
    })
}

/// A complete copy in which nothing may be written. Its folders are made writable again when it is
/// dropped, so that they can be removed.
struct ReadOnly(TempDir);

impl ReadOnly {
    fn new() -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        let mut bytes = &content()[..];
        for (path, length) in FILES {
            let (own, rest) = bytes.split_at(length as usize);
            bytes = rest;
            let path = copy.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, own).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o444)).unwrap();
        }
        copy.set_folders(0o555);
        copy
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn set_folders(&self, mode: u32) {
        for folder in ["", "set", "set/sub"] {
            let folder = self.root().join(folder);
            fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
        }
    }

    fn resume(&self) -> Result<Resumed, StoreError> {
        let target = Target {
            root: self.root().to_owned(),
            layout: Layout::new(FILES.map(|(path, length)| (path.into(), length, false))),
            mark: vec![1; 20],
            skipped: BTreeSet::new(),
            parts: ".parts".into(),
            options: FileOptions::default(),
            trusted: None,
        };
        let pieces = Pieces::of(&content(), RANGE);
        target
            .resume(&pieces, |_, _| true)
            .map(|resumed| resumed.unwrap())
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        self.set_folders(0o755);
    }
}

#[test]
fn a_complete_copy_needs_no_right_to_write() {
    let copy = ReadOnly::new();
    as_ordinary_user(|| {
        let resumed = copy.resume().unwrap();
        assert_eq!(resumed.verified.len(), 8);
        assert!(resumed.lock.is_some());
        let error = copy.resume().unwrap_err();
        assert!(matches!(error, StoreError::InUse(_)), "{error}");
        resumed.files.complete().unwrap();
        let mut read = vec![0; 120_000];
        resumed.files.read_at(0, &mut read).unwrap();
        assert!(read == content());
        let error = resumed.files.write_run(0, &[b"x"]).unwrap_err();
        assert!(error.to_string().contains("for writing"), "{error}");
    });
}

#[test]
fn only_files_that_are_written_to_must_be_writable() {
    let copy = ReadOnly::new();
    let (whole, damaged) = (copy.root().join("set/a"), copy.root().join("set/sub/b"));
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[49_999] ^= 1;
    fs::remove_file(&damaged).unwrap();
    fs::write(&damaged, bytes).unwrap();
    fs::set_permissions(&damaged, Permissions::from_mode(0o444)).unwrap();
    as_ordinary_user(|| {
        // Before anything is fetched.
        let error = copy.resume().unwrap_err();
        let text = error.to_string();
        let named = damaged.to_str().unwrap();
        assert!(
            text.contains("for writing") && text.contains(named),
            "{text}"
        );

        fs::set_permissions(&damaged, Permissions::from_mode(0o644)).unwrap();
        let resumed = copy.resume().unwrap();
        assert_eq!(resumed.verified, [0, 1, 2, 3, 4, 5, 6]);
        let (files, pieces) = (resumed.files, Arc::new(Pieces::of(&content(), RANGE)));
        let (events, reported) = std::sync::mpsc::channel();
        let disk = Disk::start(&files, &pieces, move |event| events.send(event).unwrap()).unwrap();
        let room = Budget::new(1, 1).join().try_reserve(1).unwrap();
        let last = content().split_off(7 * RANGE as usize);
        disk.write(7, 0, Bytes::from(last), room);
        disk.check(7);
        disk.finish();
        let checked = reported.recv().unwrap();
        assert!(matches!(checked, DiskEvent::Checked { is_right: true, .. }));
        files.complete().unwrap();
    });
    let all = [fs::read(whole).unwrap(), fs::read(damaged).unwrap()].concat();
    assert!(all == content());
}
