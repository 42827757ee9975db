//! What a hostile peer can make an endpoint keep.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "../examples/hostile/attack.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod attack;

use std::net::SocketAddr;
use std::time::Duration;

use hawser_endhost::Endhost;
use hawser_quic::{Config, Connection, Endpoint, TOO_FRAGMENTED};

use self::attack::Attacker;

/// Most memory that a connection may keep from which the application expects no data, in bytes.
const MAX_KEPT: u64 = 350 << 10;
/// More than such a connection may keep.
const EACH: u64 = 2000;
/// Most memory that all connections may keep from which the application expects no data, in bytes.
const ALL: u64 = 5 << 20;

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn single_bytes_behind_gaps_cost_little_memory() {
    let host = Endhost::on_plain_ip(None);
    let server = Endpoint::bind(host.clone(), Some(local()), Config::default()).unwrap();
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (peer, alpn) = (server.local_addr(), Config::default().alpn);
    let mut attacker = Attacker::new(&host, local(), peer, &path, &alpn).unwrap();
    let attack = tokio::task::spawn_blocking(move || attacker.fragment(EACH, EACH).unwrap());
    let connection = server.accept().await.unwrap();
    // The application reads nothing, as a server that waits for something else.
    let outcome = attack.await.unwrap();
    assert_eq!((outcome.connections, outcome.closed), (1, 1), "{outcome:?}");
    assert_eq!(outcome.code, Some(TOO_FRAGMENTED.into()), "{outcome:?}");
    let reason = connection.closed().await.to_string();
    assert!(reason.contains("in too many pieces"), "{reason}");
    let stats = connection.stats();
    let most = stats.peak_held;
    assert!(most > 0, "nothing arrived");
    assert!(most <= MAX_KEPT, "{most} bytes were kept");
    assert_eq!(stats.held, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_unknown_peers_share_a_fixed_amount_of_memory() {
    const CONNECTIONS: u64 = 60;
    const FRAGMENTS: u64 = 900;
    let host = Endhost::on_plain_ip(None);
    let server = Endpoint::bind(host.clone(), Some(local()), Config::default()).unwrap();
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (peer, alpn) = (server.local_addr(), Config::default().alpn);
    // Somebody else's connections, of which the application knows one.
    let elsewhere = Some(([127, 0, 0, 2], 0).into());
    let client = Endpoint::bind(host.clone(), elsewhere, Config::default()).unwrap();
    let connect = || async {
        let connecting = client.connect(peer, path.clone());
        let (there, here) = tokio::join!(connecting, server.accept());
        (there.unwrap(), here.unwrap())
    };
    let (patient, known) = (connect().await, connect().await);
    known.1.set_known();
    let mut attacker = Attacker::new(&host, local(), peer, &path, &alpn).unwrap();
    let packets = CONNECTIONS * FRAGMENTS;
    let attack = move || attacker.fragment(packets, FRAGMENTS).unwrap();
    let attack = tokio::task::spawn_blocking(attack);
    // The application keeps every connection, and reads nothing.
    let (mut accepted, mut most) = (Vec::new(), 0);
    for _ in 0..CONNECTIONS {
        accepted.push(server.accept().await.unwrap());
        most = most.max(accepted.iter().map(|one| one.stats().held).sum());
    }
    let outcome = attack.await.unwrap();
    let held = |one: &Connection| one.stats().held;
    most = most.max(accepted.iter().map(held).sum());
    assert_eq!(outcome.connections, CONNECTIONS, "{outcome:?}");
    assert!(most > ALL / 2, "{most} bytes arrived");
    assert!(most <= ALL, "{most} bytes were kept");
    assert!(accepted.iter().any(|one| one.close_reason().is_some()));
    for (there, here) in [&patient, &known] {
        assert_eq!((there.close_reason(), here.close_reason()), (None, None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_only_begun_leave_room_for_others() {
    let host = Endhost::on_plain_ip(None);
    let server = Endpoint::bind(host.clone(), Some(local()), Config::default()).unwrap();
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (peer, alpn) = (server.local_addr(), Config::default().alpn);
    let mut attacker = Attacker::new(&host, local(), peer, &path, &alpn).unwrap();
    let attack = tokio::task::spawn_blocking(move || attacker.begin(600).unwrap());
    attack.await.unwrap();
    let client = Endpoint::bind(host, Some(local()), Config::default()).unwrap();
    let (there, here) = tokio::join!(client.connect(peer, path), server.accept());
    there.unwrap();
    assert!(here.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_holds_all_handshakes_leaves_room_for_others() {
    let waiting = |seconds| Config {
        handshake_timeout: Duration::from_secs(seconds),
        idle_timeout: Duration::from_secs(seconds),
        ..Config::default()
    };
    let host = Endhost::on_plain_ip(None);
    // No handshake times out during the test.
    let server = Endpoint::bind(host.clone(), Some(local()), waiting(300)).unwrap();
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (peer, alpn) = (server.local_addr(), Config::default().alpn);
    let mut attacker = Attacker::new(&host, local(), peer, &path, &alpn).unwrap();
    let attack = tokio::task::spawn_blocking(move || attacker.hold(80).unwrap());
    attack.await.unwrap();
    let elsewhere = Some(([127, 0, 0, 2], 0).into());
    let client = Endpoint::bind(host, elsewhere, waiting(30)).unwrap();
    let _there = client.connect(peer, path).await.unwrap();
    assert!(server.accept().await.is_some());
}
