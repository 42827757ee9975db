//! Files that get other names before, while and after they are downloaded.

use super::*;
use crate::renames::Rename;

async fn rename(host: &Host, hash: InfoHash, path: &str, name: &str) {
    let rename = Rename {
        path: path.to_owned(),
        name: name.to_owned(),
    };
    host.client.rename(hash, rename).await.unwrap();
}

/// The download that runs.
fn download(view: &View) -> tokio::sync::watch::Receiver<hawser_torrent::Progress> {
    let live = view.live.as_ref().expect("it runs");
    live.download.clone().expect("it downloads")
}

#[tokio::test(flavor = "multi_thread")]
async fn names_hold_while_content_is_downloaded_and_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (path, content) = (dir.path().join("set"), vec![9; 300_000]);
    fs::create_dir_all(path.join("inner")).unwrap();
    for name in ["a", "inner/b", "inner/c"] {
        fs::write(path.join(name), &content).unwrap();
    }
    let seeded = Seeded::of(path, content).await;
    let (hash, host) = (seeded.info_hash, Host::start(dir.path(), Bounds::default()));
    let rates = |rate| RateChanges {
        download: RateChange::to(rate),
        ..RateChanges::default()
    };
    let mut new = seeded.to_add();
    // So little that it is never complete while the limit holds.
    rates(Some(8)).apply(&mut new.settings.rates);
    new.started = Some(false);
    host.client.add(new).await.unwrap();
    rename(&host, hash, "set/a", "x").await;
    host.client
        .change(move |all| all.start(hash))
        .await
        .unwrap();
    let view = host
        .wait(hash, |view| view.status == Status::Downloading)
        .await;
    let before = download(&view);
    rename(&host, hash, "set/inner", "outer").await;
    rename(&host, hash, "set", "top").await;
    rename(&host, hash, "top/outer/b", "y").await;
    host.client
        .change(move |all| all.change_rates(hash, rates(None)))
        .await
        .unwrap();
    let view = host.wait(hash, |view| view.status == Status::Seeding).await;
    // It went on without a break.
    assert!(download(&view).same_channel(&before));
    assert_eq!(view.record.name, "top");
    rename(&host, hash, "top/outer/c", "z").await;
    let downloads = dir.path().join("downloads");
    let is_right = |names: &[&str]| {
        let all = names.iter().map(|name| fs::read(downloads.join(name)));
        all.into_iter()
            .all(|read| read.is_ok_and(|read| read == seeded.content))
    };
    assert!(is_right(&["top/x", "top/outer/y", "top/outer/z"]));
    assert!(!downloads.join("set").exists() && !downloads.join("top/inner").exists());
    host.end().await;

    let host = Host::start(dir.path(), Bounds::default());
    let view = host.wait(hash, |view| view.status == Status::Seeding).await;
    assert_eq!(view.record.totals.downloaded, 900_000);
    host.client
        .change(move |all| all.verify(hash))
        .await
        .unwrap();
    let seeds = |view: &View| view.status == Status::Seeding && !view.record.rechecks;
    host.wait(hash, seeds).await;
    let elsewhere = dir.path().join("elsewhere");
    let to = elsewhere.clone();
    let moved = host.client.change(move |all| all.relocate(hash, to, true));
    moved.await.unwrap();
    host.wait(hash, |view| view.record.folder == elsewhere && seeds(view))
        .await;
    rename(&host, hash, "top", "set").await;
    assert!(elsewhere.join("set/outer/y").exists());
    host.client.remove(hash, true).await.unwrap();
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_begun_is_given_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 8).await;
    let hash = seeded.info_hash;
    let host = Host::start(dir.path(), Bounds::default());
    host.client.add(seeded.to_add()).await.unwrap();
    host.wait(hash, |view| view.status == Status::Seeding).await;
    host.end().await;
    let (state, mut records, _) = StateFolder::open(&dir.path().join("state")).unwrap();
    records[0].pending = Some(crate::record::Pending::Rename(Rename {
        path: "8.bin".into(),
        name: "other".into(),
    }));
    state.save(&records[0]).unwrap();
    drop(state);
    let host = Host::start(dir.path(), Bounds::default());
    let view = host.wait(hash, |view| view.status == Status::Seeding).await;
    assert_eq!(
        (&*view.record.name, view.record.totals.downloaded),
        ("other", 300_000)
    );
    assert!(dir.path().join("downloads/other").exists());
    host.end().await;
}
