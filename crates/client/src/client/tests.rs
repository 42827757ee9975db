//! Torrents at work over loopback, with a seeder of the engine's.

use std::fs;

use hawser_discovery::{Client as TrackerClient, ClientOptions, PeerFinder};
use hawser_torrent::{CreateOptions, Listener, Network, PeerAddr, Seed, SeedOptions, create};

use super::*;
use crate::choice::{Choice, SeedChoice};
use crate::record::Outcome;
use crate::settings::{
    AllLimits, Limit, QueueLimits, RateChange, RateChanges, RateLimits, Settings,
};
use crate::torrents::{Merged, Status};

mod files;
mod incomplete;
mod renames;
mod trackers;

const PATIENCE: Duration = Duration::from_secs(300);

/// A torrent of a file with this byte, and its seeder.
struct Seeded {
    bytes: Vec<u8>,
    info_hash: InfoHash,
    peer: PeerAddr,
    content: Vec<u8>,
    name: String,
    _seed: Seed,
}

impl Seeded {
    async fn start(dir: &Path, byte: u8) -> Self {
        let (path, content) = (dir.join(format!("{byte}.bin")), vec![byte; 300_000]);
        fs::write(&path, &content).unwrap();
        Self::of(path, content).await
    }

    /// A torrent of this file or folder, and its seeder.
    async fn of(path: PathBuf, content: Vec<u8>) -> Self {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = create(&path, &CreateOptions::default(), |_, _| {}).unwrap();
        let metainfo = Metainfo::parse(&bytes).unwrap();
        let info_hash = metainfo.info_hash;
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let peer = PeerAddr::Ip(listener.local_addr());
        let network = Network::ip().with_listener(listener);
        let seed = Seed::start(metainfo, path, network, SeedOptions::default(), |_, _| {});
        Self {
            bytes,
            info_hash,
            peer,
            content,
            name,
            _seed: seed.await.unwrap(),
        }
    }

    fn to_add(&self) -> NewTorrent {
        NewTorrent {
            peers: vec![self.peer],
            ..NewTorrent::new(Source::Metainfo(self.bytes.clone()))
        }
    }
}

/// A client with its state in a folder.
struct Host {
    client: Client,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Host {
    fn start(dir: &Path, bounds: Bounds) -> Self {
        let trackers = TrackerClient::new(ClientOptions::default()).unwrap();
        Self::with(dir, bounds, PeerFinder::default().with_trackers(trackers))
    }

    /// The same, with peers that are found so.
    fn with(dir: &Path, bounds: Bounds, finder: PeerFinder) -> Self {
        let (state, records, damaged) = StateFolder::open(&dir.join("state")).unwrap();
        assert_eq!(damaged, []);
        let engine = Engine::new(Network::ip(), finder);
        let stop = CancellationToken::new();
        let downloads = dir.join("downloads");
        let (client, task) =
            Client::start(engine, state, records, bounds, &downloads, stop.clone());
        Self { client, stop, task }
    }

    /// Waits until `wanted` is true of a torrent.
    async fn wait(&self, info_hash: InfoHash, wanted: impl Fn(&View) -> bool) -> View {
        let mut changes = self.client.changes();
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                changes.borrow_and_update();
                let view = self.client.view(info_hash).await.unwrap();
                if wanted(&view) {
                    return view;
                }
                changes.changed().await.unwrap();
            }
        });
        waited.await.expect("it never is as wanted")
    }

    async fn wait_gone(&self, info_hash: InfoHash) {
        let mut changes = self.client.changes();
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.client.view(info_hash).await.is_ok() {
                changes.changed().await.unwrap();
            }
        });
        waited.await.expect("it is not removed");
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_is_downloaded_and_seeds_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 1).await;
    let host = Host::start(dir.path(), Bounds::default());
    let added = host.client.add(seeded.to_add()).await.unwrap();
    assert_eq!((added.info_hash, added.merged), (seeded.info_hash, None));
    let again = host.client.add(seeded.to_add()).await.unwrap();
    assert_eq!(again.merged, Some(Merged::default()));
    let view = host
        .wait(seeded.info_hash, |view| view.status == Status::Seeding)
        .await;
    assert_eq!(
        (view.verified(), view.record.size),
        (300_000, Some(300_000))
    );
    let downloaded = dir.path().join("downloads").join(&seeded.name);
    assert_eq!(fs::read(&downloaded).unwrap(), seeded.content);
    let completed = view.record.dates.completed;
    assert!(completed.is_some());
    // As a request that is not answered yet has it: the next daemon starts all the same.
    let _held = host.client.clone();
    host.end().await;

    let host = Host::start(dir.path(), Bounds::default());
    let view = host
        .wait(seeded.info_hash, |view| view.status == Status::Seeding)
        .await;
    assert_eq!(view.record.totals.downloaded, 300_000);
    assert_eq!(view.record.dates.completed, completed);
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_has_not_changed_is_trusted_until_it_is_to_be_verified() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 5).await;
    let host = Host::start(dir.path(), Bounds::default());
    host.client.add(seeded.to_add()).await.unwrap();
    let seeds = |view: &View| view.status == Status::Seeding;
    host.wait(seeded.info_hash, seeds).await;
    host.end().await;
    // Damage that the file system does not show.
    let path = dir.path().join("downloads").join(&seeded.name);
    let file = fs::File::options().write(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 7).unwrap();
    file.set_modified(modified).unwrap();
    drop(file);
    let host = Host::start(dir.path(), Bounds::default());
    let view = host.wait(seeded.info_hash, seeds).await;
    assert_eq!(view.verified(), 300_000);
    assert_ne!(fs::read(&path).unwrap(), seeded.content);
    // It runs, so it is ended, and all of it is hashed as it runs again.
    let info_hash = seeded.info_hash;
    let verify = host.client.change(move |all| all.verify(info_hash));
    verify.await.unwrap();
    host.wait(info_hash, |view| seeds(view) && !view.record.rechecks)
        .await;
    assert_eq!(fs::read(&path).unwrap(), seeded.content);
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_magnet_link_becomes_a_torrent_that_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 2).await;
    let link = format!(
        "magnet:?xt=urn:btih:{}&x.pe={}",
        seeded.info_hash, seeded.peer
    );
    let host = Host::start(dir.path(), Bounds::default());
    let new = NewTorrent::new(Source::Magnet(link));
    host.client.add(new).await.unwrap();
    let view = host
        .wait(seeded.info_hash, |view| view.status == Status::Seeding)
        .await;
    assert_eq!(
        (view.record.name.as_str(), view.record.origin.clone()),
        (&*seeded.name, Origin::Metainfo)
    );
    let metainfo = host.client.metainfo(&view).await.unwrap().unwrap();
    assert_eq!(metainfo.files.len(), 1);
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_whose_peers_nothing_finds_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 2).await;
    let host = Host::start(dir.path(), Bounds::default());
    let (nowhere, tracker) = (InfoHash([1; 20]), InfoHash([2; 20]));
    for link in [
        format!("magnet:?xt=urn:btih:{nowhere}"),
        format!("magnet:?xt=urn:btih:{tracker}&tr=http://127.0.0.1:9/announce"),
        format!(
            "magnet:?xt=urn:btih:{}&x.pe={}",
            seeded.info_hash, seeded.peer
        ),
    ] {
        let new = NewTorrent::new(Source::Magnet(link));
        host.client.add(new).await.unwrap();
    }
    let view = host.wait(nowhere, |view| view.hint().is_some()).await;
    assert!(view.hint().unwrap().contains("no tracker"));
    host.wait(seeded.info_hash, |view| view.status == Status::Seeding)
        .await;
    let view = host.wait(tracker, |view| view.live.is_some()).await;
    assert_eq!((view.status, view.hint()), (Status::Resolving, None));
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_stays_that_of_one_torrent() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (
        Seeded::start(dir.path(), 3).await,
        Seeded::start(dir.path(), 4).await,
    );
    let host = Host::start(
        dir.path(),
        Bounds {
            all: AllLimits {
                queue: QueueLimits {
                    downloads: Limit::to(1),
                    ..QueueLimits::default()
                },
                ..AllLimits::default()
            },
            ..Bounds::default()
        },
    );
    // A file in place of the folder.
    let blocked = NewTorrent {
        folder: Some(dir.path().join("3.bin")),
        ..first.to_add()
    };
    host.client.add(blocked).await.unwrap();
    host.client.add(second.to_add()).await.unwrap();
    host.wait(second.info_hash, |view| view.status == Status::Seeding)
        .await;
    let view = host
        .wait(first.info_hash, |view| view.status == Status::Failed)
        .await;
    assert!(
        matches!(&view.record.outcome, Some(Outcome::Failed(reason)) if reason.contains("3.bin"))
    );
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn torrents_are_stopped_moved_verified_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 5).await;
    let (hash, host) = (seeded.info_hash, Host::start(dir.path(), Bounds::default()));
    host.client.add(seeded.to_add()).await.unwrap();
    host.wait(hash, |view| view.status == Status::Seeding).await;

    let elsewhere = dir.path().join("elsewhere");
    let to = elsewhere.clone();
    host.client
        .change(move |all| all.relocate(hash, to, true))
        .await
        .unwrap();
    let moved = |view: &View| view.record.folder == elsewhere && view.status == Status::Seeding;
    host.wait(hash, moved).await;
    assert!(!dir.path().join("downloads").join(&seeded.name).exists());

    host.client.change(move |all| all.stop(hash)).await.unwrap();
    host.wait(hash, |view| view.status == Status::Stopped).await;
    // What is damaged is found by verifying, and fetched when it is started.
    let content = elsewhere.join(&seeded.name);
    let mut damaged = seeded.content.clone();
    damaged[0] ^= 1;
    fs::write(&content, damaged).unwrap();
    host.client
        .change(move |all| all.verify(hash))
        .await
        .unwrap();
    let found =
        |view: &View| view.status == Status::Stopped && view.record.dates.completed.is_none();
    host.wait(hash, found).await;
    host.client
        .change(move |all| all.start(hash))
        .await
        .unwrap();
    host.wait(hash, |view| view.status == Status::Seeding).await;
    assert_eq!(fs::read(&content).unwrap(), seeded.content);

    host.client
        .change(move |all| all.remove(hash, true))
        .await
        .unwrap();
    host.wait_gone(hash).await;
    assert!(!content.exists());
    host.end().await;
    assert_eq!(StateFolder::open(&dir.path().join("state")).unwrap().1, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn seeding_ends_at_a_ratio() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 6).await;
    let host = Host::start(dir.path(), Bounds::default());
    let limits = SeedChoice {
        ratio: Choice::Own(0.0),
        ..SeedChoice::default()
    };
    host.client
        .add(NewTorrent {
            settings: Settings {
                seeding: limits,
                ..Settings::default()
            },
            ..seeded.to_add()
        })
        .await
        .unwrap();
    host.wait(seeded.info_hash, |view| view.status == Status::Finished)
        .await;
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_rates_hold_at_once_and_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 7).await;
    let hash = seeded.info_hash;
    // So little that it is never complete while the limit holds.
    let slow = RateChanges {
        download: RateChange::to(Some(8)),
        ..RateChanges::default()
    };
    let fast = RateChanges {
        download: RateChange::to(None),
        ..RateChanges::default()
    };
    let is_slow = |view: &View| view.record.settings.rates.download.in_force() == Some(8);

    let host = Host::start(dir.path(), Bounds::default());
    let mut new = seeded.to_add();
    slow.apply(&mut new.settings.rates);
    host.client.add(new).await.unwrap();
    host.wait(hash, |view| view.status == Status::Downloading)
        .await;
    host.end().await;

    let host = Host::start(dir.path(), Bounds::default());
    let view = host
        .wait(hash, |view| view.status == Status::Downloading)
        .await;
    assert!(is_slow(&view), "{view:?}");
    // The limit of all torrents holds in place of its own.
    let swap = move |all: &mut Torrents| {
        all.change_all_rates(slow);
        all.change_rates(hash, fast)
    };
    host.client.change(swap).await.unwrap();
    host.end().await;

    let (state, ..) = StateFolder::open(&dir.path().join("state")).unwrap();
    let (all, damaged) = state.limits().unwrap();
    assert_eq!((all.rates.download.in_force(), damaged), (Some(8), None));
    drop(state);
    let bounds = Bounds {
        all,
        ..Bounds::default()
    };
    let host = Host::start(dir.path(), bounds);
    let view = host
        .wait(hash, |view| view.status == Status::Downloading)
        .await;
    assert!(!is_slow(&view), "{view:?}");
    let all_fast = move |all: &mut Torrents| {
        all.change_all_rates(fast);
        Ok(())
    };
    host.client.change(all_fast).await.unwrap();
    host.wait(hash, |view| view.status == Status::Seeding).await;
    let (state, kept) = (host.client.bounds().await.unwrap(), RateLimits::default());
    assert_eq!(state.all.rates.upload, kept.upload);
    host.end().await;
}

#[tokio::test]
async fn looking_at_torrents_is_no_change() {
    let dir = tempfile::tempdir().unwrap();
    let host = Host::start(dir.path(), Bounds::default());
    let mut changes = host.client.changes();
    // Not before it has begun.
    host.client.views().await.unwrap();
    changes.borrow_and_update();
    host.client.views().await.unwrap();
    host.client.bounds().await.unwrap();
    let none = host.client.view(InfoHash([1; 20])).await;
    assert!(none.is_err() && !changes.has_changed().unwrap());
    host.client.change(|_| Ok(())).await.unwrap();
    changes.changed().await.unwrap();
    host.end().await;
}

#[tokio::test]
async fn what_is_no_torrent_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let host = Host::start(dir.path(), Bounds::default());
    for source in [
        Source::Metainfo(b"de".to_vec()),
        Source::Magnet("magnet:?dn=a".into()),
    ] {
        let error = host.client.add(NewTorrent::new(source)).await.unwrap_err();
        assert!(matches!(error, ClientError::Invalid(_)), "{error}");
    }
    assert_eq!(host.client.views().await.unwrap().len(), 0);
    host.end().await;
}
