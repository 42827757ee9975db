//! Files with `.part` at the end of their names, and their space.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bytes::Bytes;
use proptest::prelude::*;

use super::super::*;
use crate::budget::Budget;
use crate::disk::{Disk, DiskEvent};
use crate::range::testing::Pieces;

/// Bytes of a range.
const RANGE: u64 = 1000;

/// A download of files of these lengths, `0`, `1` and so on.
struct Download {
    dir: tempfile::TempDir,
    layout: Layout,
    content: Vec<u8>,
    pieces: Arc<Pieces>,
    options: FileOptions,
}

impl Download {
    fn new(files: &[(&str, u64)], options: FileOptions) -> Self {
        let files = files.iter();
        let layout = Layout::new(files.map(|(path, length)| (path.into(), *length, false)));
        let total: u64 = layout.entries.iter().map(|entry| entry.length).sum();
        let content: Vec<u8> = (0..total).map(|at| (at / 3 + 1) as u8).collect();
        Self {
            dir: tempfile::tempdir().unwrap(),
            layout,
            pieces: Arc::new(Pieces::of(&content, RANGE)),
            content,
            options,
        }
    }

    fn open_some(&self, skipped: BTreeSet<usize>) -> Result<Resumed, StoreError> {
        let target = Target {
            root: self.dir.path().to_owned(),
            layout: self.layout.clone(),
            mark: vec![1; 20],
            skipped,
            parts: ".parts".into(),
            options: self.options,
            trusted: None,
        };
        target
            .resume(&*self.pieces, |_, _| true)
            .map(Option::unwrap)
    }

    fn open(&self) -> Result<Resumed, StoreError> {
        self.open_some(BTreeSet::new())
    }

    /// Writes these ranges by disk threads, and waits until they are verified.
    fn write(&self, files: &Arc<Files>, ranges: impl IntoIterator<Item = u32>) {
        let (events, reported) = std::sync::mpsc::channel();
        let report = move |event| events.send(event).unwrap();
        let disk = Disk::start(files, &self.pieces, report).unwrap();
        for range in ranges {
            let bytes = self.pieces.range(range);
            let data = &self.content[bytes.start as usize..bytes.end as usize];
            let room = Budget::new(1, 1).join().try_reserve(1).unwrap();
            disk.write(range, 0, Bytes::copy_from_slice(data), room);
            disk.check(range);
        }
        disk.finish();
        for event in reported {
            assert!(
                matches!(event, DiskEvent::Checked { is_right: true, .. }),
                "{event:?}"
            );
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Whether each file is there as it should be, and nothing else.
    fn check_complete(&self) {
        for entry in &self.layout.entries {
            let bytes = entry.bytes();
            let expected = &self.content[bytes.start as usize..bytes.end as usize];
            assert!(std::fs::read(self.dir.path().join(&entry.path)).unwrap() == expected);
        }
        let count = walk(self.dir.path());
        assert_eq!(count, self.layout.entries.len());
    }
}

/// How many files there are in a folder.
fn walk(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let count = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => walk(&entry.path()),
        false => 1,
    };
    entries.map(count).sum()
}

const SUFFIX: FileOptions = FileOptions {
    overwrite: false,
    part_suffix: true,
    allocation: Allocation::Auto,
};

#[test]
fn each_file_loses_its_suffix_when_it_is_complete() {
    let download = Download::new(
        &[("set/a", 2500), ("set/empty", 0), ("set/b", 2500)],
        SUFFIX,
    );
    let resumed = download.open().unwrap();
    download.write(&resumed.files, [0, 1]);
    assert!(download.has("set/a.part") && !download.has("set/a"));
    assert!(download.has("set/b.part") && download.has("set/empty"));
    // The third range has bytes of both files.
    download.write(&resumed.files, [2]);
    assert!(download.has("set/a") && !download.has("set/a.part"));
    assert!(download.has("set/b.part") && !download.has("set/b"));
    let mut read = vec![0; 2500];
    resumed.files.read_at(0, &mut read).unwrap();
    assert!(read == download.content[..2500]);
    download.write(&resumed.files, [3, 4]);
    resumed.files.complete().unwrap();
    download.check_complete();
}

#[test]
fn a_file_that_was_complete_before_a_kill_is_renamed_at_the_next_start() {
    let download = Download::new(&[("a", 2000), ("b", 2000)], SUFFIX);
    let resumed = download.open().unwrap();
    download.write(&resumed.files, [0, 1, 2]);
    drop(resumed);
    std::fs::rename(download.path("a"), download.path("a.part")).unwrap();
    let resumed = download.open().unwrap();
    assert_eq!(resumed.verified, [0, 1, 2]);
    assert!(download.has("a") && !download.has("a.part"));
    download.write(&resumed.files, [3]);
    resumed.files.complete().unwrap();
    download.check_complete();
}

#[test]
fn a_file_that_takes_the_name_meanwhile_is_not_replaced() {
    let download = Download::new(&[("a", 1500), ("b", 1500)], SUFFIX);
    let resumed = download.open().unwrap();
    std::fs::write(download.path("a"), "other").unwrap();
    download.write(&resumed.files, 0..3);
    let error = resumed.files.complete().unwrap_err();
    assert!(error.to_string().contains("rename"), "{error}");
    assert_eq!(std::fs::read(download.path("a")).unwrap(), b"other");
    assert!(std::fs::read(download.path("a.part")).unwrap() == download.content[..1500]);
    // Out of the way, it is completed.
    std::fs::remove_file(download.path("a")).unwrap();
    resumed.files.complete().unwrap();
    download.check_complete();
}

#[test]
fn names_of_others_are_not_taken() {
    let files = [("a", 1500), ("a.part", 1500), ("b", 1500)];
    let download = Download::new(&files, SUFFIX);
    let resumed = download.open().unwrap();
    download.write(&resumed.files, [0]);
    // The first one has its own name from the beginning.
    assert!(download.has("a") && download.has("a.part.part") && download.has("b.part"));
    download.write(&resumed.files, 1..5);
    resumed.files.complete().unwrap();
    download.check_complete();
}

#[test]
fn a_foreign_file_with_the_suffix_is_refused() {
    let download = Download::new(&[("a", 1500)], SUFFIX);
    std::fs::write(download.path("a.part"), [9; 700]).unwrap();
    let error = download.open().unwrap_err();
    assert!(
        matches!(&error, StoreError::Foreign(path) if path.ends_with("a.part")),
        "{error}"
    );
    std::fs::write(download.path("a.part"), [9; 1501]).unwrap();
    assert!(matches!(
        download.open().unwrap_err(),
        StoreError::TooLong { .. }
    ));
}

#[test]
fn what_is_selected_later_gets_the_suffix_then() {
    let download = Download::new(&[("a", 1500), ("b", 2500)], SUFFIX);
    let resumed = download.open_some([1].into()).unwrap();
    download.write(&resumed.files, [0, 1]);
    assert!(download.has("a") && download.has(".parts") && !download.has("b.part"));
    resumed.files.select(|_| true).unwrap();
    assert!(download.has("b.part"));
    download.write(&resumed.files, [2, 3]);
    resumed.files.complete().unwrap();
    drop(resumed);
    download.check_complete();
}

#[derive(Debug, Clone)]
enum Step {
    Write(u32),
    /// Opens the files again, with the suffix or without.
    Restart(bool),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In whatever order ranges come, and however often it is begun again, each file has one name, and that
    /// without the suffix if all of it is verified.
    #[test]
    fn each_file_has_one_name(
        lengths in prop::collection::vec(0..2500_u64, 1..5),
        begins_with_suffix: bool,
        steps in prop::collection::vec(
            prop_oneof![5 => (0..10_u32).prop_map(Step::Write), 1 => any::<bool>().prop_map(Step::Restart)],
            0..24,
        ),
    ) {
        let names: Vec<String> = (0..lengths.len()).map(|entry| entry.to_string()).collect();
        let files: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(lengths).collect();
        prop_assume!(files.iter().any(|(_, length)| *length > 0));
        let part_suffix = begins_with_suffix;
        let mut download = Download::new(&files, FileOptions { part_suffix, ..SUFFIX });
        let mut written = BTreeSet::new();
        let mut resumed = download.open().unwrap();
        for step in steps {
            match step {
                Step::Write(range) if range < download.pieces.count() => {
                    download.write(&resumed.files, [range]);
                    written.insert(range);
                }
                Step::Write(_) => {}
                Step::Restart(part_suffix) => {
                    drop(resumed);
                    download.options.part_suffix = part_suffix;
                    resumed = download.open().unwrap();
                    prop_assert_eq!(&resumed.verified, &written.iter().copied().collect::<Vec<_>>());
                }
            }
            for entry in download.layout.entries.iter().filter(|entry| entry.length > 0) {
                let name = entry.path.to_str().unwrap();
                let (own, partial) = (download.has(name), download.has(&format!("{name}.part")));
                prop_assert!(!(own && partial), "{} has two names", name);
                let mut ranges = crate::range::overlapping(&*download.pieces, &entry.bytes());
                let is_complete = ranges.all(|range| written.contains(&range));
                prop_assert!(!is_complete || own, "{} is complete", name);
            }
        }
        let rest = (0..download.pieces.count()).filter(|range| !written.contains(range));
        download.write(&resumed.files, rest.collect::<Vec<_>>());
        resumed.files.complete().unwrap();
        drop(resumed);
        download.check_complete();
    }
}

/// A file of 4 MiB.
fn large(allocation: Allocation) -> Download {
    let options = FileOptions {
        allocation,
        ..FileOptions::default()
    };
    Download::new(&[("a", 4 << 20)], options)
}

fn blocks(download: &Download) -> u64 {
    std::fs::metadata(download.path("a")).unwrap().blocks() * 512
}

#[test]
fn space_is_allocated_at_the_beginning_or_as_it_is_written() {
    let sparse = large(Allocation::Sparse);
    let resumed = sparse.open().unwrap();
    sparse.write(&resumed.files, [0]);
    assert!(blocks(&sparse) < 1 << 20, "{}", blocks(&sparse));
    drop(resumed);

    // All of it, also of a file that was begun without.
    let full = Download {
        options: FileOptions {
            allocation: Allocation::Full,
            ..FileOptions::default()
        },
        ..sparse
    };
    let resumed = full.open().unwrap();
    assert_eq!(resumed.verified, [0]);
    assert!(blocks(&full) >= 4 << 20, "{}", blocks(&full));
    drop(resumed);
    let resumed = full.open().unwrap();
    assert_eq!(
        resumed.verified,
        [0],
        "what is not written is not taken for content"
    );

    let begun = large(Allocation::Full);
    let _resumed = begun.open().unwrap();
    assert!(blocks(&begun) >= 4 << 20);
}

#[test]
fn a_download_that_the_disk_has_no_space_for_is_refused_before_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new([("a".into(), 1 << 60, false)]);
    let parts = crate::files::testing::everything(&layout);
    let options = FileOptions {
        allocation: Allocation::Full,
        ..FileOptions::default()
    };
    let mark = Mark::new(vec![1; 20]);
    let files = Files::writable(dir.path().to_owned(), layout, mark, options, parts).unwrap();
    let error = files.create_all().unwrap_err();
    assert!(
        matches!(error, StoreError::NoSpace { needed, .. } if needed == 1 << 60),
        "{error}"
    );
    assert!(!dir.path().join("a").exists());
}
