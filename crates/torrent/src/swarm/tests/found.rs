//! Peers that are found while a download runs.

use super::*;
use crate::PeerSource;
use crate::testing::scion_addr;

fn finding() -> DownloadOptions {
    DownloadOptions {
        finds_peers: true,
        ..DownloadOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_without_listed_peers_dials_those_that_are_found() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let download = stage.download_with(&net.host(0), &[], finding());
    let found = download.found_peers();
    // Its own address is not dialed, nor one twice.
    let peers = vec![addr(0), addr(1), addr(1)];
    assert!(found.add(peers, PeerSource::Tracker).await);
    finish(download).await.unwrap();
    stage.check();
    assert_eq!(net.dials().len(), 1);
    assert!(!found.add(vec![addr(1)], PeerSource::Tracker).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_cannot_be_reached_give_way_to_others() {
    let net = Net::default();
    let stage = Stage::one_file(100_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    let download = stage.download_with(&net.host(0), &[], finding());
    let found = download.found_peers();
    // More than are dialed at once, and no path to any.
    let peers = (300..400).map(addr).collect();
    found.add(peers, PeerSource::Tracker).await;
    found.add(vec![addr(1)], PeerSource::Exchange).await;
    net.path(1, FAST);
    finish(download).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_finding_nothing_that_is_found_is_dialed() {
    let net = Net::default();
    let stage = Stage::one_file(100_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let options = DownloadOptions {
        awaits_peers: true,
        ..giving_up_after(Duration::from_secs(2))
    };
    let download = stage.download_with(&net.host(0), &[], options);
    download
        .found_peers()
        .add(vec![addr(1)], PeerSource::Dht)
        .await;
    let error = finish(download).await.unwrap_err();
    assert!(matches!(error, DownloadError::NoPeer(..)), "{error}");
    assert_eq!(net.dials(), []);
}

/// Two leechers that know the seeder alone. Returns whether either dialed the other.
async fn leechers_meet(private: bool) -> bool {
    let net = Net::default();
    let mut stage = Stage::one_file(2_000_000, 65536);
    stage.metainfo.private = private;
    let content = stage.dir.path().join("seed/file.bin");
    let options = SeedOptions {
        exchanges_peers: true,
        ..SeedOptions::default()
    };
    let metainfo = stage.metainfo.clone();
    let _seed = Seed::over(net.host(1), metainfo, content, options, |_, _| {})
        .await
        .unwrap();
    net.path(1, mbit(4.0, 1));
    net.path(2, FAST);
    net.path(3, FAST);
    let start = |n: u16| {
        let dir = stage.dir.path().join(format!("get{n}"));
        let (host, peers) = (net.host(n), vec![addr(1)]);
        Download::over(host, stage.metainfo.clone(), dir, peers, finding())
    };
    let (one, two) = tokio::join!(finish(start(2)), finish(start(3)));
    one.unwrap();
    two.unwrap();
    let dials = net.dials();
    let others = [2, 3].map(|n| scion_addr(n).into());
    dials.iter().any(|(peer, _)| others.contains(peer))
}

#[tokio::test(flavor = "multi_thread")]
async fn leechers_of_one_seeder_find_each_other() {
    assert!(leechers_meet(false).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn leechers_of_a_private_torrent_do_not() {
    assert!(!leechers_meet(true).await);
}
