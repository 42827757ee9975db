use hawser_dht::Announce;

use super::*;

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
    while node.state().await.is_ok() {}
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
    loop {
        match node.search([2; 20], None).await {
            Ok(_) => break,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}
