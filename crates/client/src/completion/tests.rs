//! Programs that are run for torrents.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;

use super::*;
use crate::record::{Announcement, Dates, Totals};
use crate::settings::Settings;

fn record(number: u8) -> Record {
    Record {
        info_hash: InfoHash([number; 20]),
        name: "a name with $(spaces)".into(),
        origin: Origin::Magnet("magnet:?".into()),
        size: None,
        folder: "/downloads".into(),
        started: true,
        outcome: None,
        labels: vec!["one".into(), "two".into()],
        settings: Settings::default(),
        rank: 0,
        peers: Vec::new(),
        dates: Dates::default(),
        totals: Totals {
            downloaded: 7,
            ..Totals::default()
        },
        pending: None,
        rechecks: false,
        announcement: Announcement::Due,
    }
}

/// A program, its torrents, and what it reports.
struct Hooked {
    completions: Completions,
    events: mpsc::Receiver<(InfoHash, Event)>,
    stop: CancellationToken,
}

/// Starts `script` for each torrent that is reported.
fn hooked(dir: &Path, script: &str) -> Hooked {
    let program = dir.join("program");
    let text = format!("#!/bin/sh\n{script}\n");
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o755)
        .open(&program)
        .unwrap();
    io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    drop(file);
    check(&program).unwrap();
    let (state, ..) = StateFolder::open(&dir.join("state")).unwrap();
    let (sender, events) = mpsc::channel(8);
    let stop = CancellationToken::new();
    let completions = start(program.into(), Arc::new(state), sender, stop.clone());
    Hooked {
        completions,
        events,
        stop,
    }
}

impl Hooked {
    fn complete(&self, number: u8) {
        let completed = Completed {
            record: record(number),
            number: number.into(),
        };
        self.completions.send(completed).unwrap();
    }

    async fn announced(&mut self) -> InfoHash {
        match self.events.recv().await {
            Some((hash, Event::Announced)) => hash,
            other => panic!("{other:?}"),
        }
    }
}

/// Makes a FIFO, whose reader waits for the program that writes to it.
fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// What is written to a FIFO until its writers have closed it.
async fn read(path: &Path) -> String {
    tokio::fs::read_to_string(path).await.unwrap()
}

#[tokio::test]
async fn a_program_is_told_which_torrent_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let told = dir.path().join("told");
    fifo(&told);
    let script = format!("env | grep ^TR_ | sort > {}", told.display());
    let mut hooked = hooked(dir.path(), &script);
    hooked.complete(7);
    assert_eq!(hooked.announced().await, InfoHash([7; 20]));
    let hash = InfoHash([7; 20]);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        read(&told).await,
        format!(
            "TR_APP_VERSION={version}\nTR_TORRENT_BYTES_DOWNLOADED=7\nTR_TORRENT_DIR=/downloads\n\
             TR_TORRENT_HASH={hash}\nTR_TORRENT_ID=7\nTR_TORRENT_LABELS=one,two\n\
             TR_TORRENT_NAME=a name with $(spaces)\nTR_TORRENT_PRIORITY=0\nTR_TORRENT_TRACKERS=\n"
        )
    );
}

#[tokio::test]
async fn only_so_many_run_at_once_and_a_failure_frees_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    fifo(&go);
    let script = format!("read line <> {}; exit 1", go.display());
    let mut hooked = hooked(dir.path(), &script);
    let count = MAX_RUNNING as u8 + 2;
    (0..count).for_each(|number| hooked.complete(number));
    for number in 0..MAX_RUNNING as u8 {
        assert_eq!(hooked.announced().await, InfoHash([number; 20]));
    }
    // All of them wait, and so do the others: a turn of the other tasks changes nothing.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(hooked.events.try_recv().is_err());
    // Each line lets one program end, and another one begin.
    let mut options = fs::OpenOptions::new();
    let mut lines = options.read(true).write(true).open(&go).unwrap();
    for number in MAX_RUNNING as u8..count {
        io::Write::write_all(&mut lines, b"\n").unwrap();
        assert_eq!(hooked.announced().await, InfoHash([number; 20]));
    }
    io::Write::write_all(&mut lines, &[b'\n'; MAX_RUNNING]).unwrap();
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_reported_as_begun() {
    let dir = tempfile::tempdir().unwrap();
    let mut hooked = hooked(dir.path(), "exit 0");
    fs::remove_file(dir.path().join("program")).unwrap();
    hooked.complete(1);
    assert_eq!(hooked.announced().await, InfoHash([1; 20]));
    // What comes after the end is not run.
    hooked.stop.cancel();
    hooked.completions.closed().await;
    assert!(hooked.events.recv().await.is_none());
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let ends = dir.path().join("ends");
    fifo(&ends);
    // The child holds the FIFO open, which its reader waits for.
    let script = format!("exec > {}; sleep 1000 & wait", ends.display());
    let child = Command::new("/bin/sh")
        .args(["-c", &script])
        .process_group(0)
        .spawn()
        .unwrap();
    let (text, ()) = tokio::join!(
        read(&ends),
        watch(child, InfoHash([1; 20]), Duration::from_millis(200))
    );
    assert_eq!(text, "");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "").unwrap();
    for wrong in [dir.path().to_owned(), plain, dir.path().join("none")] {
        assert!(check(&wrong).is_err(), "{wrong:?}");
    }
    check(Path::new("/bin/sh")).unwrap();
}
