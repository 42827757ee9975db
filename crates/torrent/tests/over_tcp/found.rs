//! Peers that a seeder finds.

use hawser_torrent::PeerSource;

use super::*;

/// A leecher that knows no peer, and its address.
async fn leecher(content: &Content) -> (Download, PeerAddr) {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let addr = listener.local_addr().into();
    let options = DownloadOptions {
        awaits_peers: true,
        ..DownloadOptions::default()
    };
    let network = Network::ip().with_listener(listener);
    (content.get_with(&[], network, options), addr)
}

/// A seeder that no peer can connect to.
async fn unreachable_seeder(content: &Content) -> Seed {
    let (metainfo, file) = (content.metainfo.clone(), content.file());
    let options = SeedOptions {
        dials_found: true,
        ..SeedOptions::default()
    };
    let seed = Seed::start(metainfo, file, Network::ip(), options, |_, _| {});
    seed.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_that_cannot_be_reached_dials_the_peers_that_it_finds() {
    let content = content(500_000);
    let (download, addr) = leecher(&content).await;
    let seed = unreachable_seeder(&content).await;
    seed.found_peers()
        .add(vec![addr], PeerSource::Tracker)
        .await;
    finish(download).await.unwrap();
    content.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn seeders_that_find_each_other_part_and_go_on_to_others() {
    let content = content(500_000);
    let dials = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&dials);
    // More of them than are dialed at once.
    let greeting = content.greeting();
    let complete = rogue_at("0.0.0.0:0", move |mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        let greeting = greeting.clone();
        async move {
            stream.write_all(&greeting).await?;
            stream.read_to_end(&mut Vec::new()).await.map(drop)
        }
    })
    .await;
    let (download, addr) = leecher(&content).await;
    let seed = unreachable_seeder(&content).await;
    let others = (1..=70).map(|host| {
        let other = SocketAddr::from(([127, 0, 0, host], complete.port()));
        PeerAddr::Ip(other)
    });
    let found = seed.found_peers();
    found.add(others.collect(), PeerSource::Tracker).await;
    found.add(vec![addr], PeerSource::Tracker).await;
    finish(download).await.unwrap();
    content.check();
    assert!(dials.load(Ordering::SeqCst) > 0);
}
