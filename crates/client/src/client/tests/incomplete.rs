//! Content that is in another folder until it is complete.

use super::*;
use crate::settings::{IncompleteChange, IncompleteFolder};

/// Bounds with a folder for unfinished content.
fn bounds(dir: &Path) -> Bounds {
    let mut bounds = Bounds::default();
    bounds.all.incomplete = IncompleteFolder {
        folder: Some(dir.join("incomplete")),
        is_on: true,
    };
    bounds
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_moved_to_its_folder_once_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (
        Seeded::start(dir.path(), 1).await,
        Seeded::start(dir.path(), 2).await,
    );
    let (incomplete, downloads) = (dir.path().join("incomplete"), dir.path().join("downloads"));
    let host = Host::start(dir.path(), bounds(dir.path()));
    let hash = one.info_hash;
    let mut new = one.to_add();
    // Nothing is fetched yet.
    new.peers.clear();
    host.client.add(new).await.unwrap();
    let view = host
        .wait(hash, |view| view.status == Status::Downloading)
        .await;
    assert_eq!(view.record.folder, incomplete);
    assert_eq!(view.record.final_folder(), downloads);
    assert!(incomplete.join(&one.name).exists() && !downloads.exists());
    host.end().await;

    // After a restart it is where it was. A magnet link begins there, too.
    let mut limits = bounds(dir.path());
    limits.all.incomplete = IncompleteFolder::default();
    let host = Host::start(dir.path(), limits);
    let view = host.client.view(hash).await.unwrap();
    assert_eq!(view.record.folder, incomplete);
    let again = IncompleteChange::to(Some(incomplete.clone()));
    let change = host.client.change(|all| all.change_incomplete(again));
    change.await.unwrap();
    let link = format!("magnet:?xt=urn:btih:{}&x.pe={}", two.info_hash, two.peer);
    let new = NewTorrent::new(Source::Magnet(link));
    let added = host.client.add(new).await.unwrap();
    let seeds = |view: &View| view.is_settled() && view.status == Status::Seeding;
    let view = host.wait(added.info_hash, seeds).await;
    assert_eq!(
        (&view.record.folder, view.record.final_folder()),
        (&downloads, &*downloads)
    );
    let there = fs::read(downloads.join(&two.name)).unwrap();
    assert_eq!(there, two.content);
    let names = fs::read_dir(&incomplete).unwrap().count();
    assert_eq!(names, 1, "that of the first torrent");
    // Removed with its content, from where it is.
    host.client.remove(hash, true).await.unwrap();
    assert!(!incomplete.join(&one.name).exists());
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_in_its_folder_already_is_used_there() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (
        Seeded::start(dir.path(), 3).await,
        Seeded::start(dir.path(), 4).await,
    );
    let downloads = dir.path().join("downloads");
    fs::create_dir(&downloads).unwrap();
    let host = Host::start(dir.path(), bounds(dir.path()));
    // Half of one there is of each.
    for seeded in [&one, &two] {
        let half = &seeded.content[..150_000];
        fs::write(downloads.join(&seeded.name), half).unwrap();
    }
    host.client.add(one.to_add()).await.unwrap();
    let link = format!("magnet:?xt=urn:btih:{}&x.pe={}", two.info_hash, two.peer);
    let new = NewTorrent::new(Source::Magnet(link));
    host.client.add(new).await.unwrap();
    for seeded in [&one, &two] {
        let seeds = |view: &View| view.status == Status::Seeding;
        let view = host.wait(seeded.info_hash, seeds).await;
        assert_eq!(view.record.folder, downloads);
        let there = fs::read(downloads.join(&seeded.name)).unwrap();
        assert_eq!(there, seeded.content);
    }
    assert!(!dir.path().join("incomplete").exists());
    host.end().await;
}
