//! What a crash and damage leave.

use hawser_torrent::{CreateOptions, create};

use super::*;
use crate::choice::{Choice, SeedChoice, SeedNumbers};
use crate::files::{FileChange, FileChanges, FileChoice, FilePriority, Files};
use crate::groups::BandwidthPriority;
use crate::record::{Announcement, Dates, Origin, Outcome, Pending, SeedLimit, Totals};
use crate::renames::Rename;
use crate::settings::{RateLimit, RateLimits, Settings};

fn record(number: u8) -> Record {
    Record {
        info_hash: InfoHash([number; 20]),
        name: "a \"name\"\n\u{1f600}".into(),
        origin: Origin::Magnet("magnet:?xt=urn:btih:00".into()),
        size: Some(u64::MAX),
        folder: "/downloads/ä".into(),
        started: true,
        outcome: Some(Outcome::Finished(SeedLimit::Ratio)),
        labels: vec!["one".into()],
        settings: Settings {
            seeding: SeedChoice {
                ratio: Choice::Own(1.25),
                time: Choice::Unlimited,
                idle: Choice::Own(60),
            },
            seed_numbers: SeedNumbers {
                ratio: Some(2.5),
                idle: None,
            },
            rates: RateLimits {
                download: RateLimit {
                    rate: u64::MAX,
                    holds: true,
                },
                upload: RateLimit::default(),
            },
            files: files(),
            trackers: Some(vec![vec!["udp://a.example:1".into()]]),
            group: "slow".into(),
            is_exempt: true,
            priority: BandwidthPriority::Low,
            renames: vec![Rename {
                path: "a/b".into(),
                name: "c".into(),
            }],
            max_peers: Some(4),
            destination: Some("/complete".into()),
        },
        rank: 7,
        peers: vec![
            "1-ff00:0:110,10.0.0.1:6881".parse().unwrap(),
            "[::1]:1".parse().unwrap(),
        ],
        dates: Dates {
            added: 3,
            completed: Some(4),
            active: Some(5),
            started: Some(6),
        },
        totals: Totals {
            uploaded: 1,
            downloaded: 2,
            verified: 3,
            seeded: 4,
            downloading: 5,
        },
        pending: Some(Pending::Move("/elsewhere".into())),
        rechecks: number % 2 == 1,
        announcement: [Announcement::None, Announcement::Awaited, Announcement::Due]
            [usize::from(number) % 3],
    }
}

fn files() -> FileChoice {
    let mut files = FileChoice::default();
    let change = FileChange {
        files: Files::These(vec![3, u32::MAX]),
        is_wanted: Some(false),
        priority: Some(FilePriority::High),
    };
    files.change(&FileChanges {
        each: vec![change],
        is_sequential: Some(true),
    });
    files
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join(FOLDER)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn records_are_read_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let written: Vec<Record> = (1..4).map(record).collect();
    let (state, none, _) = StateFolder::open(dir.path()).unwrap();
    assert!(none.is_empty());
    for record in &written {
        state.save(record).unwrap();
    }
    drop(state);
    let (state, mut read, damaged) = StateFolder::open(dir.path()).unwrap();
    read.sort_by_key(|record| record.info_hash);
    assert_eq!((read, damaged), (written, vec![]));
    state.remove(InfoHash([1; 20])).unwrap();
    drop(state);
    assert_eq!(StateFolder::open(dir.path()).unwrap().1.len(), 2);
}

#[test]
fn a_folder_is_used_by_one_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let first = StateFolder::open(dir.path()).unwrap();
    assert!(matches!(
        StateFolder::open(dir.path()),
        Err(StateError::InUse(_))
    ));
    drop(first);
    StateFolder::open(dir.path()).unwrap();
}

#[test]
fn damaged_records_are_set_aside_and_cost_one_torrent_each() {
    let dir = tempfile::tempdir().unwrap();
    let (state, ..) = StateFolder::open(dir.path()).unwrap();
    for number in 1..8 {
        state.save(&record(number)).unwrap();
    }
    let path = |number| state.path(InfoHash([number; 20]), "json");
    let text = fs::read_to_string(path(1)).unwrap();
    fs::write(path(1), &text[..text.len() / 2]).unwrap();
    fs::write(path(2), "").unwrap();
    fs::write(path(3), [0xff; 10]).unwrap();
    fs::write(path(4), &text).unwrap();
    fs::write(path(5), text.replace("\"version\":1", "\"version\":9")).unwrap();
    fs::write(path(6), vec![b' '; MAX_RECORD_BYTES as usize + 1]).unwrap();
    // The metainfo of a damaged record may help its owner.
    state.save_metainfo(InfoHash([1; 20]), b"metainfo").unwrap();
    drop(state);
    for _ in 0..2 {
        let (state, records, damaged) = StateFolder::open(dir.path()).unwrap();
        assert_eq!(records, [record(7)]);
        for one in &damaged {
            assert!(one.set_aside.exists() && !one.path.exists(), "{one:?}");
        }
        let again = names(dir.path());
        assert_eq!(
            again.iter().filter(|name| name.ends_with(DAMAGED)).count(),
            6
        );
        assert!(state.metainfo_path(InfoHash([1; 20])).exists());
    }
}

#[test]
fn what_a_crash_leaves_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (state, ..) = StateFolder::open(dir.path()).unwrap();
    state.save(&record(1)).unwrap();
    for number in [1, 2] {
        let info_hash = InfoHash([number; 20]);
        state.save_metainfo(info_hash, b"metainfo").unwrap();
        fs::write(state.verified_path(info_hash), "verified").unwrap();
    }
    fs::write(dir.path().join(FOLDER).join(".a.json.1-1.new"), "half").unwrap();
    let kept = [
        state.path(InfoHash([1; 20]), "json"),
        state.metainfo_path(InfoHash([1; 20])),
        state.verified_path(InfoHash([1; 20])),
    ];
    drop(state);
    let (state, ..) = StateFolder::open(dir.path()).unwrap();
    assert_eq!(names(dir.path()).len(), 3);
    assert!(kept.iter().all(|path| path.exists()));
    state.remove(InfoHash([1; 20])).unwrap();
    assert!(names(dir.path()).is_empty());
}

#[test]
fn metainfo_is_that_of_its_torrent() {
    let dir = tempfile::tempdir().unwrap();
    let content = dir.path().join("content");
    fs::write(&content, "content").unwrap();
    let bytes = create(&content, &CreateOptions::default(), |_, _| {}).unwrap();
    let metainfo = Metainfo::parse(&bytes).unwrap();
    let (state, ..) = StateFolder::open(&dir.path().join("state")).unwrap();
    state.save_metainfo(metainfo.info_hash, &bytes).unwrap();
    assert_eq!(state.metainfo(metainfo.info_hash).unwrap(), metainfo);
    let other = InfoHash([1; 20]);
    assert!(state.metainfo(other).is_err());
    state.save_metainfo(other, &bytes).unwrap();
    assert!(state.metainfo(other).is_err());
}

mod fuzz {
    use super::*;

    #[test]
    fn records() {
        let (dir, mut valid) = (tempfile::tempdir().unwrap(), Vec::new());
        let (state, ..) = StateFolder::open(dir.path()).unwrap();
        for number in 0..4 {
            let record = record(number);
            state.save(&record).unwrap();
            valid.push(fs::read(state.path(record.info_hash, "json")).unwrap());
        }
        assert!(valid.iter().all(|text| parse(text).is_ok()));
        hawser_fuzz::fuzz(&valid, |input| {
            if let Ok(record) = parse(input) {
                // What is read can be written and read again.
                let kept = Kept {
                    version: VERSION,
                    torrent: &record,
                };
                assert_eq!(parse(&serde_json::to_vec(&kept).unwrap()), Ok(record));
            }
        });
    }
}
