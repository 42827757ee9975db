//! Trackers of a torrent that are changed while it runs.

use hawser_discovery::{ServeOptions, Server};

use super::*;
use crate::trackers::TrackerChange;

/// A tracker on loopback: its announce URL, and what it counts.
fn tracker(stop: &CancellationToken) -> (String, impl Fn() -> (u64, u64)) {
    let options = ServeOptions {
        http: vec!["127.0.0.1:0".parse().unwrap()],
        ..ServeOptions::default()
    };
    let server = Server::bind(options).unwrap();
    let url = format!("http://{}/announce", server.http_addrs().unwrap()[0]);
    let (monitor, stop) = (server.monitor(), stop.clone());
    tokio::spawn(async move { server.run(&stop).await });
    let count = move || {
        let counters = monitor.counters();
        (counters.peers, counters.announces)
    };
    (url, count)
}

async fn until_true(check: impl Fn() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.expect("the trackers never know that");
}

fn start(dir: &Path) -> Host {
    let trackers = TrackerClient::new(ClientOptions::default()).unwrap();
    // Where a peer would connect.
    let tcp = Some("127.0.0.1:9".parse().unwrap());
    let finder = PeerFinder::new(tcp, None).with_trackers(trackers);
    Host::with(dir, Bounds::default(), finder)
}

#[tokio::test(flavor = "multi_thread")]
async fn other_trackers_are_announced_to_at_once_and_after_a_restart() {
    let (dir, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
    let (one, counts_one) = tracker(&stop);
    let (two, counts_two) = tracker(&stop);
    let content = dir.path().join("downloads/content");
    fs::create_dir(content.parent().unwrap()).unwrap();
    fs::write(&content, [3; 50_000]).unwrap();
    let options = CreateOptions {
        private: true,
        trackers: vec![vec![one.clone()]],
        ..CreateOptions::default()
    };
    let bytes = create(&content, &options, |_, _| {}).unwrap();
    let hash = Metainfo::parse(&bytes).unwrap().info_hash;
    let set = async |host: &Host, tiers: &[&[&String]]| {
        let owned = |tier: &&[&String]| tier.iter().map(|url| (*url).clone()).collect();
        let tiers = tiers.iter().map(owned).collect();
        let change = [TrackerChange::Set(tiers)];
        let changed = host
            .client
            .change(move |all| all.change_trackers(hash, &[], &change));
        changed.await.unwrap();
    };
    let host = start(dir.path());
    let new = NewTorrent::new(Source::Metainfo(bytes));
    host.client.add(new).await.unwrap();
    host.wait(hash, |view| view.status == Status::Seeding).await;
    until_true(|| counts_one().0 == 1).await;
    // Each in its tier is asked.
    set(&host, &[&[&one], &[&two]]).await;
    until_true(|| counts_two().0 == 1).await;
    assert_eq!(counts_one().0, 1);
    set(&host, &[&[&two]]).await;
    until_true(|| counts_one().0 == 0).await;
    let announces = counts_one().1;
    host.end().await;
    assert_eq!(counts_two().0, 0);

    let host = start(dir.path());
    until_true(|| counts_two().0 == 1).await;
    set(&host, &[]).await;
    until_true(|| counts_two().0 == 0).await;
    set(&host, &[&[&two]]).await;
    until_true(|| counts_two().0 == 1).await;
    host.end().await;
    assert_eq!(counts_one().1, announces);
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_that_is_there_gets_the_peers_and_trackers_that_are_new_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let seeded = Seeded::start(dir.path(), 4).await;
    let host = start(dir.path());
    let stop = CancellationToken::new();
    let (url, counts) = tracker(&stop);
    let hash = seeded.info_hash;
    let bare = NewTorrent {
        peers: Vec::new(),
        ..seeded.to_add()
    };
    assert_eq!(host.client.add(bare.clone()).await.unwrap().merged, None);
    host.wait(hash, |view| view.status == Status::Downloading)
        .await;
    // One of another host, and with it a tracker, by a link.
    let link =
        format!("magnet:?xt=urn:btih:{hash}&tr={url}&tr=wss://none.example/&x.pe=127.0.0.1:9");
    let by_link = NewTorrent::new(Source::Magnet(link));
    let both = Merged {
        peers: 1,
        trackers: 1,
    };
    let added = host.client.add(by_link.clone()).await.unwrap();
    assert_eq!(added.merged, Some(both));
    until_true(|| counts().1 > 0).await;
    // It is dialed though the torrent runs already.
    let seeder = Merged {
        peers: 1,
        trackers: 0,
    };
    let added = host.client.add(seeded.to_add()).await.unwrap();
    assert_eq!(added.merged, Some(seeder));
    let view = host.wait(hash, |view| view.status == Status::Seeding).await;
    assert_eq!(view.record.peers.len(), 2);
    // Nothing is new.
    for again in [bare, by_link, seeded.to_add()] {
        let added = host.client.add(again).await.unwrap();
        assert_eq!(added.merged, Some(Merged::default()));
    }
    stop.cancel();
    host.end().await;
}
