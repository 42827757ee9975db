use hawser_address::PeerAddr;
use hawser_dht::Announce;
use tokio::sync::watch;

use super::nodes::Node;
use super::*;
use crate::mapped::MappedPort;

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// Awaits something; the test fails when that takes too long.
async fn within<T>(what: &str, wait: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, wait).await;
    waited.unwrap_or_else(|_| panic!("it did not come: {what}"))
}

/// A short pause between two looks at what nothing reports.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// `count` nodes on loopback addresses, each of which knows the first one.
async fn nodes<A>(
    count: usize,
    host: &str,
    of: fn(SocketAddr) -> Option<A>,
) -> Vec<(A, DhtHandle<A>)>
where
    A: Address + Send + Sync + 'static,
    UdpSocket: DhtSocket<A>,
{
    let mut nodes: Vec<(A, DhtHandle<A>)> = Vec::new();
    for _ in 0..count {
        let socket = UdpSocket::bind((host, 0)).await.unwrap();
        let addr = of(socket.local_addr().unwrap()).unwrap();
        let first = nodes.first().map(|(addr, _)| *addr);
        let known = first.into_iter().collect();
        let stop = CancellationToken::new();
        nodes.push((addr, spawn_dht(socket, Config::default(), known, stop)));
    }
    nodes
}

async fn an_announced_peer_is_found<A>(host: &str, of: fn(SocketAddr) -> Option<A>)
where
    A: Address + Send + Sync + 'static,
    UdpSocket: DhtSocket<A>,
{
    let nodes = nodes(20, host, of).await;
    let (_, announcer) = &nodes[7];
    let mut none = announcer
        .search([9; 20], Some(Announce::Port(77)))
        .await
        .unwrap();
    assert_eq!(none.recv().await, None);
    for (at, (_, node)) in nodes.iter().enumerate() {
        let mut peers = node.search([9; 20], None).await.unwrap();
        assert_eq!(peers.recv().await, Some(nodes[7].0.with_port(77)), "{at}");
        let state = node.state().await.unwrap();
        assert!(state.stats.good >= 1 && state.nodes.len() == state.stats.good);
    }
}

#[tokio::test]
async fn an_announced_peer_is_found_over_ipv4() {
    let of = |addr| match addr {
        SocketAddr::V4(addr) => Some(addr),
        SocketAddr::V6(_) => None,
    };
    an_announced_peer_is_found::<SocketAddrV4>("127.0.0.1", of).await;
}

#[tokio::test]
async fn an_announced_peer_is_found_over_ipv6() {
    if UdpSocket::bind("[::1]:0").await.is_err() {
        println!("skipped: this host has no IPv6");
        return;
    }
    let of = |addr| match addr {
        SocketAddr::V6(addr) => Some(addr),
        SocketAddr::V4(_) => None,
    };
    an_announced_peer_is_found::<SocketAddrV6>("::1", of).await;
}

#[tokio::test]
async fn a_stopped_node_says_so() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let stop = CancellationToken::new();
    let node = spawn_dht::<SocketAddrV4, _>(socket, Config::default(), Vec::new(), stop.clone());
    assert!(node.state().await.is_ok());
    stop.cancel();
    let stopping = async { while node.state().await.is_ok() {} };
    within("the node stops", stopping).await;
    let stopped = node.search([1; 20], None).await;
    assert!(matches!(stopped, Err(DhtError::Stopped)));
}

#[tokio::test]
async fn a_search_whose_peers_nobody_takes_ends() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let SocketAddr::V4(silent) = silent.local_addr().unwrap() else {
        panic!("not IPv4")
    };
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let config = Config {
        max_searches: 1,
        max_waiting: 0,
        ..Config::default()
    };
    let stop = CancellationToken::new();
    let node = spawn_dht::<SocketAddrV4, _>(socket, config, vec![silent], stop);
    let first = node.search([1; 20], None).await.unwrap();
    let full = node.search([2; 20], None).await;
    assert_eq!(full.err(), Some(DhtError::Search(SearchError::TooMany(1))));
    drop(first);
    let ending = async {
        while node.search([2; 20], None).await.is_err() {
            pause().await;
        }
    };
    within("the first search ends", ending).await;
}

/// Nodes over IPv4 and, if this host has it, IPv6, at loopback addresses.
fn opened(saved: &SavedNodes) -> DhtNodes {
    let mut nodes = DhtNodes::default();
    nodes
        .open_ip("127.0.0.1:0".parse().unwrap(), saved)
        .unwrap();
    if let Err(error) = nodes.open_ip("[::1]:0".parse().unwrap(), saved) {
        println!("without IPv6: {error}");
    }
    nodes
}

async fn peers_at<A: Address>(node: &Option<Node<A>>) -> usize {
    match node {
        Some(node) => node.handle.state().await.unwrap().stats.peers,
        None => 0,
    }
}

#[tokio::test]
async fn a_torrent_is_announced_and_found_at_all_nodes_and_they_are_known_in_the_next_run() {
    let router = opened(&SavedNodes::default());
    let (seeder, leecher) = (router_of(&router).await, router_of(&router).await);
    let ports = PeerPorts {
        v4: Some(44),
        v6: Some(66),
        scion: Some("1-ff00:0:110,10.0.0.1:7".parse().unwrap()),
    };
    let (unread, _) = mpsc::channel(4);
    let mapped = MappedPort::default();
    let _announced = seeder.search([9; 20], ports, &mapped, false, &unread);
    let families = router.local_addrs().len();
    let announcing = async {
        while peers_at(&router.v4).await + peers_at(&router.v6).await < families {
            pause().await;
        }
    };
    within("the router knows the seeder", announcing).await;
    let (sink, mut found) = mpsc::channel(4);
    let searches = leecher.search(
        [9; 20],
        PeerPorts::default(),
        &MappedPort::default(),
        true,
        &sink,
    );
    let mut all = Vec::new();
    while all.len() < families {
        let more = within("a peer is found", found.recv()).await;
        all.extend(more.unwrap());
    }
    all.sort();
    let expected = ["127.0.0.1:44", "[::1]:66"].map(|text| text.parse::<PeerAddr>().unwrap());
    assert_eq!(all, expected[..families]);

    // The router has gone, and nothing but what was saved is known.
    let saving = async {
        loop {
            let saved = leecher.save().await;
            if saved
                .v4
                .as_ref()
                .is_some_and(|saved| saved.nodes.len() == 2)
            {
                return saved;
            }
            pause().await;
        }
    };
    let saved = within("both nodes are saved", saving).await;
    drop((searches, leecher, router));
    let next = opened(&saved);
    let _searches = next.search(
        [9; 20],
        PeerPorts::default(),
        &MappedPort::default(),
        true,
        &sink,
    );
    let state = next.v4.as_ref().unwrap().handle.state().await.unwrap();
    assert_eq!(Some(state.id), saved.v4.map(|saved| saved.id));
    let answering = async {
        while next.save().await.v4.is_none() {
            pause().await;
        }
    };
    within("a saved node answers", answering).await;
}

/// Nodes that know those of `router`.
async fn router_of(router: &DhtNodes) -> DhtNodes {
    let nodes = opened(&SavedNodes::default());
    nodes.add_nodes(&router.local_addrs()).await;
    nodes
}

#[tokio::test]
async fn the_mapped_port_is_announced_over_ipv4_and_followed() {
    let router = opened(&SavedNodes::default());
    let seeder = router_of(&router).await;
    let ports = PeerPorts {
        v4: Some(44),
        v6: Some(66),
        scion: None,
    };
    let (sender, mapped) = watch::channel(None);
    let (unread, _) = mpsc::channel(4);
    let _announced = seeder.search([9; 20], ports, &mapped.into(), false, &unread);
    let v4 = router.v4.as_ref().unwrap().handle.clone();
    within("the local port", until_announced(&v4, 44)).await;
    // A search is repeated after minutes otherwise.
    sender.send_replace(Some(45));
    within("the mapped port", until_announced(&v4, 45)).await;
    if let Some(node) = &router.v6 {
        within("the port of IPv6", until_announced(&node.handle, 66)).await;
        assert!(!announced(&node.handle).await.contains(&45));
    }
}

async fn until_announced<A: Address>(node: &DhtHandle<A>, port: u16) {
    while !announced(node).await.contains(&port) {
        pause().await;
    }
}

/// The ports of the peers that are found from a node.
async fn announced<A: Address>(node: &DhtHandle<A>) -> Vec<u16> {
    let mut search = node.search([9; 20], None).await.unwrap();
    let mut ports = Vec::new();
    while let Some(peer) = search.recv().await {
        ports.extend(peer.to_peer().ip().map(|addr| addr.port()));
    }
    ports
}
