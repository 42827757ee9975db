use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::dht::{DhtNodes, SavedNodes};
use crate::local::{LocalDiscovery, LocalOptions};

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);
const HASH: [u8; 20] = [0xe1; 20];

fn sought(is_private: Option<bool>, downloads: bool) -> Sought {
    Sought {
        info_hash: HASH,
        peer_id: [1; 20],
        trackers: Vec::new(),
        is_private,
        downloads,
    }
}

fn tcp(port: u16) -> Option<SocketAddr> {
    Some(([127, 0, 0, 1], port).into())
}

fn peer(port: u16) -> PeerAddr {
    PeerAddr::Ip(([127, 0, 0, 1], port).into())
}

/// A node on the loopback, and its address.
fn node() -> (DhtNodes, PeerAddr) {
    let mut nodes = DhtNodes::default();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    nodes.open_ip(any, &SavedNodes::default()).unwrap();
    let addr = nodes.local_addrs()[0];
    (nodes, addr)
}

/// A program whose node knows another one, and whose peers connect at a port.
async fn program(port: u16, known: PeerAddr) -> PeerFinder {
    let (nodes, _) = node();
    nodes.add_nodes(&[known]).await;
    PeerFinder::new(tcp(port), None).with_dht(nodes)
}

fn begin(finder: &PeerFinder, sought: Sought) -> PeerSearch {
    finder.search(sought, watch::channel(Stats::default()).1)
}

#[tokio::test]
async fn a_torrent_is_found_in_the_dht_and_one_that_is_private_is_not_announced() {
    let (router, at) = node();
    let announcer = program(7001, at).await;
    let _open = begin(&announcer, sought(Some(false), false));
    let seeker = program(7002, at).await;
    let mut search = begin(&seeker, sought(None, true));
    assert_eq!(search.found().await, (vec![peer(7001)], PeerSource::Dht));
    assert!(search.is_untracked(peer(7001)));
    // It becomes known that it is private: what was found counts no longer, and nothing is announced.
    search.learn(true);
    assert!(search.kept().is_empty() && search.dht.is_none());
    let handle = router.v4.as_ref().unwrap().handle.clone();
    let mut peers = handle.search(HASH, None).await.unwrap();
    let mut announced = Vec::new();
    while let Some(peer) = peers.recv().await {
        announced.push(peer.port());
    }
    assert!(!announced.contains(&7002), "{announced:?}");
    let private = begin(&seeker, sought(Some(true), true));
    assert!(private.dht.is_none() && private.local.is_none());
}

/// Waits until a peer at this port is announced in the DHT.
async fn is_announced(router: &DhtNodes, port: u16) {
    let handle = router.v4.as_ref().unwrap().handle.clone();
    let announced = async {
        loop {
            let mut peers = handle.search(HASH, None).await.unwrap();
            let mut is_announced = false;
            while let Some(peer) = peers.recv().await {
                is_announced |= peer.port() == port;
            }
            if is_announced {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, announced).await;
    waited.expect("it is announced");
}

#[tokio::test]
async fn a_torrent_that_is_complete_is_announced_and_its_peers_are_given() {
    let (router, at) = node();
    let leecher = program(7002, at).await;
    let _open = begin(&leecher, sought(Some(false), true));
    is_announced(&router, 7002).await;
    let finder = program(7003, at).await;
    let mut search = begin(&finder, sought(Some(false), true));
    search.end_downloading();
    is_announced(&router, 7003).await;
    let finding = async { while search.found().await != (vec![peer(7002)], PeerSource::Dht) {} };
    let found = tokio::time::timeout(PATIENCE, finding).await;
    found.expect("the leecher is found");
}

#[tokio::test]
async fn peers_of_the_own_network_are_given_also_to_a_seeder() {
    let local = |port| {
        let options = LocalOptions {
            port: Some(port),
            ip: Some([127, 0, 0, 1].into()),
        };
        let local = LocalDiscovery::open(options).unwrap();
        PeerFinder::new(tcp(port), None).with_local(local)
    };
    let seeder = local(7004);
    let mut seeds = begin(&seeder, sought(Some(false), false));
    let leecher = local(7005);
    let mut link = begin(&leecher, sought(None, true));
    link.learn(false);
    assert_eq!(seeds.found().await, (vec![peer(7005)], PeerSource::Local));
    link.learn(true);
    assert!(link.local.is_none());
}

#[tokio::test]
async fn a_search_follows_which_ways_are_on() {
    let (router, at) = node();
    let announcer = program(7011, at).await;
    let off = AllowedWays {
        dht: false,
        local: false,
    };
    announcer.allow(off);
    let mut announces = begin(&announcer, sought(Some(false), false));
    assert!(announces.dht.is_none());
    let seeker = program(7012, at).await;
    let mut search = begin(&seeker, sought(None, true));
    announcer.allow(AllowedWays::default());
    // It follows while it is asked for peers.
    let found = async {
        tokio::select! {
            found = search.found() => found,
            () = async { loop { announces.found().await; } } => unreachable!(),
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await.unwrap();
    assert_eq!(found, (vec![peer(7011)], PeerSource::Dht));
    assert!(announces.goes_beyond_trackers());
    announcer.allow(off);
    let follow = async {
        loop {
            announces.found().await;
        }
    };
    // It follows at once.
    let _ = tokio::time::timeout(Duration::from_millis(1), follow).await;
    assert!(announces.dht.is_none());
    drop(router);
}

#[tokio::test]
async fn a_search_that_runs_uses_ways_that_are_added() {
    // Of the other torrent, peers of other tests are found on the own network.
    let of_its_own = |downloads| Sought {
        info_hash: [7; 20],
        ..sought(Some(false), downloads)
    };
    let (router, at) = node();
    let announcer = program(7013, at).await;
    let mut announces = begin(&announcer, of_its_own(false));
    let seeker = PeerFinder::new(tcp(7014), None);
    let mut search = begin(&seeker, of_its_own(true));
    assert!(!search.goes_beyond_trackers());
    let (nodes, _) = node();
    nodes.add_nodes(&[at]).await;
    seeker.add_dht(nodes);
    let options = LocalOptions {
        port: None,
        ip: Some([127, 0, 0, 1].into()),
    };
    seeker.add_local(LocalDiscovery::open(options).unwrap());
    // Its own announcement may be found first.
    let found = async {
        loop {
            tokio::select! {
                (peers, source) = search.found() => if peers.contains(&peer(7013)) {
                    break source;
                },
                _ = announces.found() => {}
            }
        }
    };
    let source = tokio::time::timeout(PATIENCE, found).await.unwrap();
    assert_eq!(source, PeerSource::Dht);
    assert!(search.local.is_some());
    drop(router);
}
