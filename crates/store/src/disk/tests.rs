use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use proptest::prelude::*;
use sha1::Sha1;

use super::*;
use crate::budget::Budget;
use crate::files::testing::writable;
use crate::layout::Layout;
use crate::range::testing::Pieces;

const BLOCK: u64 = 16 << 10;

/// A reservation that is available at once.
fn room() -> Reservation {
    let account = Budget::new(1, 1).join();
    account.try_reserve(1).unwrap()
}

fn one_file(length: u64) -> Layout {
    Layout::new([(PathBuf::from("a"), length, false)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn ranges_hash_right_in_any_order_of_blocks(
        order in Just((0..7u64).collect::<Vec<_>>()).prop_shuffle(),
        length in 6 * BLOCK + 1..=7 * BLOCK,
        wrong: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new([
            (PathBuf::from("a"), 20_000, false),
            (PathBuf::from("b"), length - 20_000, false),
        ]);
        let files = Arc::new(writable(dir.path(), layout));
        let content: Vec<u8> = (0..length).map(|i| (i / 7) as u8).collect();
        let mut pieces = Pieces::of(&content, 7 * BLOCK);
        if wrong {
            pieces.hashes[0][0] ^= 1;
        }
        let (events, reported) = channel();
        let report = move |event| events.send(event).unwrap();
        let disk = Disk::start(&files, &Arc::new(pieces), report).unwrap();
        for block in order {
            let begin = block * BLOCK;
            let end = (begin + BLOCK).min(length);
            let data = Bytes::copy_from_slice(&content[begin as usize..end as usize]);
            disk.write(0, begin, data, room());
        }
        disk.check(0);
        disk.digest(0, BLOCK, u64::MAX);
        disk.finish();
        let Ok(DiskEvent::Checked { range: 0, is_right }) = reported.recv() else { panic!("not hashed") };
        prop_assert_eq!(is_right, !wrong);
        let Ok(DiskEvent::Digests { digests, .. }) = reported.recv() else { panic!("no digests") };
        let expected: Vec<_> = content.chunks(BLOCK as usize).map(Sha1::digest).collect();
        prop_assert_eq!(digests, expected);
        let mut back = vec![0; length as usize];
        files.read_at(0, &mut back).unwrap();
        prop_assert_eq!(back, content);
    }
}

#[test]
fn a_range_that_cannot_be_read_has_no_digests_and_nothing_ends() {
    let dir = tempfile::tempdir().unwrap();
    // There is no such file.
    let files = Arc::new(Files::read_only(dir.path().into(), one_file(BLOCK)));
    let (events, reported) = channel();
    let pieces = Arc::new(Pieces::of(&vec![1; BLOCK as usize], BLOCK));
    let report = move |event| events.send(event).unwrap();
    let disk = Disk::start(&files, &pieces, report).unwrap();
    disk.digest(0, BLOCK, u64::MAX);
    disk.digest(0, BLOCK, u64::MAX);
    disk.finish();
    let reported: Vec<_> = reported.iter().collect();
    assert_eq!(reported.len(), 2);
    for event in reported {
        assert!(matches!(event, DiskEvent::Digests { digests, .. } if digests.is_empty()));
    }
}

#[test]
fn a_range_written_again_is_hashed_again() {
    let dir = tempfile::tempdir().unwrap();
    let files = Arc::new(writable(dir.path(), one_file(3 * BLOCK)));
    let (events, reported) = channel();
    let block = |byte| Bytes::from(vec![byte; BLOCK as usize]);
    let content = [block(1), block(2), block(3)].concat();
    let pieces = Arc::new(Pieces::of(&content, 3 * BLOCK));
    let disk = Disk::start(&files, &pieces, move |event| events.send(event).unwrap()).unwrap();
    for (number, byte) in [(0, 9), (1, 9), (1, 2), (2, 3), (0, 1)] {
        disk.write(0, number * BLOCK, block(byte), room());
    }
    disk.check(0);
    disk.finish();
    let checked = reported.recv();
    let Ok(DiskEvent::Checked { is_right, .. }) = checked else {
        panic!("not hashed")
    };
    assert!(is_right);
}

#[tokio::test]
async fn a_disk_that_hangs_does_not_hold_up_another_job() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let block = Bytes::from(vec![3; BLOCK as usize]);
    let pieces = Arc::new(Pieces::of(&vec![3; 100 * BLOCK as usize], 100 * BLOCK));
    let budget = Budget::new(4 * BLOCK as usize, 1);
    let accounts = [budget.join(), budget.join()];
    let start = |dir: &tempfile::TempDir, report: Box<dyn Fn() + Send + Sync>| {
        let files = Arc::new(writable(dir.path(), one_file(100 * BLOCK)));
        let (events, reported) = channel();
        let report = Arc::new(report);
        let report = move |event| {
            report();
            events.send(event).unwrap();
        };
        (Disk::start(&files, &pieces, report).unwrap(), reported)
    };
    // The thread of the first disk reports, and then waits until it is released.
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let wait = move || {
        // The error is the release.
        let _ = released.lock().unwrap().recv();
    };
    let (hung, reported_late) = start(&dirs[0], Box::new(wait));
    hung.check(0);
    let mut begin = 0;
    while let Some(room) = accounts[0].try_reserve(BLOCK as usize) {
        hung.write(0, begin, block.clone(), room);
        begin += BLOCK;
    }
    let (good, reported) = start(&dirs[1], Box::new(|| ()));
    for begin in (0..100).map(|number| number * BLOCK) {
        let room = accounts[1].reserve(BLOCK as usize).await;
        good.write(0, begin, block.clone(), room);
    }
    good.check(0);
    good.finish();
    let checked = |event| matches!(event, Ok(DiskEvent::Checked { is_right, .. }) if is_right);
    assert!(checked(reported.recv()));
    assert!(accounts[0].try_reserve(BLOCK as usize).is_none());
    drop(release);
    hung.finish();
    assert!(!checked(reported_late.recv()));
    assert!(accounts[0].try_reserve(BLOCK as usize).is_some());
}

/// Ranges that make a disk thread panic.
struct Faulty;

impl Ranges for Faulty {
    type Hasher = Sha1;

    fn count(&self) -> u32 {
        1
    }

    fn range(&self, _: u32) -> std::ops::Range<u64> {
        0..BLOCK
    }

    fn expected(&self, _: u32) -> Option<Hash<Self>> {
        panic!("as this test wants")
    }
}

#[test]
fn a_disk_thread_that_panics_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let files = Arc::new(writable(dir.path(), one_file(BLOCK)));
    let (events, reported) = channel();
    let disk = Disk::start(&files, &Arc::new(Faulty), move |event| {
        events.send(event).unwrap();
    });
    let disk = disk.unwrap();
    disk.write(0, 0, Bytes::from(vec![1; BLOCK as usize]), room());
    disk.check(0);
    let event = reported.recv();
    assert!(matches!(event, Ok(DiskEvent::Failed(_))), "{event:?}");
    disk.finish();
}
