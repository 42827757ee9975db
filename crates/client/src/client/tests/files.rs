//! Files of a torrent that are chosen before and while it runs.

use super::*;
use crate::files::{FileChange, FileChanges, Files};

/// A torrent of a folder with the files `a`, `b` and `c`, and its seeder.
async fn seeded(dir: &Path) -> Seeded {
    let (path, content) = (dir.join("set"), vec![9; 300_000]);
    fs::create_dir(&path).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(path.join(name), &content).unwrap();
    }
    Seeded::of(path, content).await
}

/// Whether these files are downloaded, and no others.
fn only(files: &[u32]) -> FileChanges {
    let change = |files, is_wanted| FileChange {
        files,
        is_wanted: Some(is_wanted),
        priority: None,
    };
    FileChanges {
        each: vec![
            change(Files::All, false),
            change(Files::These(files.to_vec()), true),
        ],
        is_sequential: None,
    }
}

/// The files on disk, which must be right.
fn on_disk(dir: &Path, content: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir.join("downloads/set")).unwrap() {
        let entry = entry.unwrap();
        let is_right = fs::read(entry.path()).unwrap() == content;
        assert!(is_right, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    names
}

fn seeds(view: &View) -> bool {
    view.status == Status::Seeding && view.record.dates.completed.is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn chosen_files_are_downloaded_and_more_later() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = seeded(dir.path()).await;
    let (hash, host) = (seeded.info_hash, Host::start(dir.path(), Bounds::default()));
    let mut new = seeded.to_add();
    new.settings.files.change(&only(&[1]));
    host.client.add(new).await.unwrap();
    let view = host.wait(hash, seeds).await;
    assert!(view.verified() < 900_000, "{}", view.verified());
    assert_eq!(view.done(), Some(1.0));
    assert_eq!(on_disk(dir.path(), &seeded.content), ["b"]);
    host.end().await;

    // What is chosen is kept, and what is there is enough.
    let host = Host::start(dir.path(), Bounds::default());
    let view = host.wait(hash, seeds).await;
    let downloaded = view.record.totals.downloaded;
    let metainfo = host.client.metainfo(&view).await.unwrap().unwrap();
    let known = host.client.files(&view, &metainfo).await.unwrap().each;
    assert_eq!((known[1].verified_bytes, known.len()), (300_000, 3));
    // More is wanted of one that is complete.
    let more = only(&[0, 1]);
    host.client
        .change(move |all| all.change_files(hash, &more))
        .await
        .unwrap();
    let view = host.wait(hash, seeds).await;
    assert_eq!(on_disk(dir.path(), &seeded.content), ["a", "b"]);
    assert!(view.record.totals.downloaded > downloaded);
    // Its content is deleted with the bytes of other files.
    host.client.remove(hash, true).await.unwrap();
    let left = fs::read_dir(dir.path().join("downloads")).unwrap();
    assert_eq!(left.count(), 0);
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_chosen_while_they_are_downloaded() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = seeded(dir.path()).await;
    let (hash, host) = (seeded.info_hash, Host::start(dir.path(), Bounds::default()));
    let rates = |rate| RateChanges {
        download: RateChange::to(rate),
        ..RateChanges::default()
    };
    let mut new = seeded.to_add();
    // So little that it is never complete while the limit holds.
    rates(Some(8)).apply(&mut new.settings.rates);
    new.settings.files.change(&only(&[0]));
    host.client.add(new).await.unwrap();
    host.wait(hash, |view| view.status == Status::Downloading)
        .await;
    let changes = only(&[2]);
    host.client
        .change(move |all| {
            all.change_files(hash, &changes)?;
            all.change_rates(hash, rates(None))
        })
        .await
        .unwrap();
    host.wait(hash, seeds).await;
    // Those that are not wanted any more stay as they are.
    let downloaded = fs::read(dir.path().join("downloads/set/c")).unwrap();
    assert!(downloaded == seeded.content);
    host.end().await;
}

#[tokio::test]
async fn files_that_a_torrent_does_not_have_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = seeded(dir.path()).await;
    let host = Host::start(dir.path(), Bounds::default());
    let mut new = seeded.to_add();
    new.settings.files.change(&only(&[3]));
    let error = host.client.add(new).await.unwrap_err().to_string();
    assert!(error.contains("no file with index 3"), "{error}");
    host.end().await;
}
