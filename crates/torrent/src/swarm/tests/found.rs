//! Peers that are found while a download runs.

use super::*;
use tokio::sync::mpsc;

use crate::testing::{Host, scion_addr};
use crate::{DhtContacts, PeerSource};

fn finding() -> DownloadOptions {
    DownloadOptions {
        finds_peers: true,
        exchanges_peers: true,
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

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_lets_scion_peers_connect_themselves() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 65536);
    let content = stage.dir.path().join("seed/file.bin");
    let options = SeedOptions {
        dials_found: true,
        ..SeedOptions::default()
    };
    let metainfo = stage.metainfo.clone();
    let seed = Seed::over(net.host(1), metainfo, content, options, |_, _| {})
        .await
        .unwrap();
    net.path(0, FAST);
    net.path(1, FAST);
    net.path(7, FAST);
    let found = seed.found_peers();
    found.add(vec![addr(7), addr(0)], PeerSource::Tracker).await;
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    let dialed = net.dials();
    assert!(
        dialed.iter().all(|(peer, _)| *peer == addr(1)),
        "{dialed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_exchange_leechers_of_one_seeder_do_not_find_each_other() {
    let options = DownloadOptions {
        exchanges_peers: false,
        ..finding()
    };
    assert!(!leechers_meet_with(false, options).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn leechers_of_one_seeder_do_not_find_each_other_while_exchange_is_off() {
    assert!(!leechers_meet_over(false, finding(), false).await);
}

/// Two leechers that know the seeder alone. Returns whether either dialed the other.
async fn leechers_meet(private: bool) -> bool {
    leechers_meet_with(private, finding()).await
}

async fn leechers_meet_with(private: bool, leechers: DownloadOptions) -> bool {
    leechers_meet_over(private, leechers, true).await
}

/// The same over a network of the leechers that exchanges peers or not.
async fn leechers_meet_over(private: bool, leechers: DownloadOptions, exchanges: bool) -> bool {
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
        let (mut host, peers) = (net.host(n), vec![addr(1)]);
        host.exchanges_peers = exchanges;
        Download::over(host, stage.metainfo.clone(), dir, peers, leechers.clone())
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

/// Host `n`, whose node of the DHT is at this port; and the nodes that peers name to it.
fn with_node(net: &Net, n: u16, port: u16) -> (Host, mpsc::Receiver<PeerAddr>) {
    let host = net.host(n);
    let named = open_node(&host, n, port);
    (host, named)
}

/// Host `n` has a node at this port from now on. Returns the nodes that peers name to it.
fn open_node(host: &Host, n: u16, port: u16) -> mpsc::Receiver<PeerAddr> {
    let (contacts, named) = DhtContacts::new(&[node(n, port)]);
    host.dht.set(contacts).expect("it had none");
    named
}

/// The node at this port of host `n`.
fn node(n: u16, port: u16) -> PeerAddr {
    let mut node = scion_addr(n);
    node.host.set_port(port);
    node.into()
}

/// All nodes that peers have named.
fn all(mut named: mpsc::Receiver<PeerAddr>) -> Vec<PeerAddr> {
    std::iter::from_fn(|| named.try_recv().ok()).collect()
}

/// The nodes that a seeder and a leecher, both with a node, name to each other.
async fn named_to_each_other(private: bool) -> [Vec<PeerAddr>; 2] {
    let net = Net::default();
    let mut stage = Stage::one_file(1_000_000, 65536);
    stage.metainfo.private = private;
    let (seeder, to_seeder) = with_node(&net, 1, 71);
    let (leecher, to_leecher) = with_node(&net, 0, 70);
    let _seed = stage.seed(&seeder).await;
    net.path(1, FAST);
    finish(stage.download(&leecher, &[1])).await.unwrap();
    [all(to_seeder), all(to_leecher)]
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_name_their_nodes_of_the_dht_to_each_other() {
    let named = named_to_each_other(false).await;
    assert_eq!(named, [vec![node(0, 70)], vec![node(1, 71)]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_that_runs_names_a_node_that_is_opened_meanwhile() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 65536);
    let seeder = net.host(1);
    let _seed = stage.seed(&seeder).await;
    let to_seeder = open_node(&seeder, 1, 71);
    net.path(1, FAST);
    let (leecher, to_leecher) = with_node(&net, 0, 70);
    finish(stage.download(&leecher, &[1])).await.unwrap();
    let named = [all(to_seeder), all(to_leecher)];
    assert_eq!(named, [vec![node(0, 70)], vec![node(1, 71)]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_of_a_private_torrent_name_no_nodes() {
    assert_eq!(named_to_each_other(true).await, [vec![], vec![]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_without_a_node_is_told_of_none() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let (leecher, named) = with_node(&net, 0, 70);
    finish(stage.download(&leecher, &[1])).await.unwrap();
    assert_eq!(all(named), []);
}
