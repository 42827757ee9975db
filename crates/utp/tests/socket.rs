//! uTP over UDP sockets of this host.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hawser_utp::{Config, UtpSocket, UtpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Longest wait for an expected event: far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn bind(addr: &str) -> UtpSocket {
    UtpSocket::bind(addr.parse().unwrap(), Config::default()).unwrap()
}

async fn connected(one: &UtpSocket, other: &UtpSocket) -> (UtpStream, UtpStream) {
    let both = async { tokio::join!(one.connect(other.local_addr()), other.accept()) };
    let (dialed, accepted) = timeout(PATIENCE, both).await.unwrap();
    (dialed.unwrap(), accepted.unwrap())
}

fn random_bytes(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::new().fill(&mut bytes);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn both_directions_carry_bytes_to_their_ends() {
    for addr in ["127.0.0.1:0", "[::1]:0"] {
        let (here, there) = (bind(addr), bind(addr));
        let (dialed, accepted) = connected(&here, &there).await;
        assert_eq!(dialed.remote_addr(), there.local_addr());
        assert_eq!(accepted.remote_addr(), here.local_addr());
        let exchanges = [dialed, accepted].map(|stream| {
            tokio::spawn(async move {
                let sent = random_bytes(3_000_000);
                let mut received = Vec::new();
                let (mut read, mut write) = tokio::io::split(stream);
                let send = async {
                    write.write_all(&sent).await.unwrap();
                    write.shutdown().await.unwrap();
                };
                tokio::join!(send, async {
                    read.read_to_end(&mut received).await.unwrap()
                });
                assert!(write.write_all(b"more").await.is_err());
                (sent, received)
            })
        });
        let [one, other] = exchanges.map(|it| timeout(PATIENCE, it));
        let (one, other) = (one.await.unwrap().unwrap(), other.await.unwrap().unwrap());
        assert!(one.0 == other.1 && one.1 == other.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_streams_of_two_sockets_do_not_mix() {
    let (here, there) = (Arc::new(bind("127.0.0.1:0")), bind("127.0.0.1:0"));
    let to = there.local_addr();
    let mut dials = tokio::task::JoinSet::new();
    for number in 0..50u8 {
        let here = Arc::clone(&here);
        dials.spawn(async move {
            let mut stream = here.connect(to).await.unwrap();
            stream.write_all(&vec![number; 50_000]).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, [number]);
        });
    }
    let mut served = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut stream = timeout(PATIENCE, there.accept()).await.unwrap().unwrap();
        served.spawn(async move {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            assert_eq!(bytes.len(), 50_000);
            assert!(bytes.iter().all(|it| *it == bytes[0]));
            // It arrives although the stream is dropped.
            stream.write_all(&bytes[..1]).await.unwrap();
        });
    }
    timeout(PATIENCE, dials.join_all()).await.unwrap();
    timeout(PATIENCE, served.join_all()).await.unwrap();
}

#[tokio::test]
async fn why_a_socket_cannot_be_bound_is_told() {
    let here = bind("127.0.0.1:0");
    let bound = |addr: SocketAddr| UtpSocket::bind(addr, Config::default()).unwrap_err().kind();
    assert_eq!(bound(here.local_addr()), ErrorKind::AddrInUse);
    let foreign = "192.0.2.77:0".parse().unwrap();
    assert_eq!(bound(foreign), ErrorKind::AddrNotAvailable);
}

#[tokio::test]
async fn a_peer_without_room_for_connections_refuses() {
    let here = bind("127.0.0.1:0");
    let config = Config::default().with_backlog(0);
    let there = UtpSocket::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let refused = timeout(PATIENCE, here.connect(there.local_addr()))
        .await
        .unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_stream_that_is_closed_wakes_what_waits_for_it_and_the_peer() {
    let (here, there) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let (dialed, mut accepted) = connected(&here, &there).await;
    let dialed = Arc::new(dialed);
    let reader = Arc::clone(&dialed);
    let (waits, begun) = tokio::sync::oneshot::channel();
    let mut waits = Some(waits);
    let waiting = tokio::spawn(std::future::poll_fn(move |cx| {
        let mut room = [0; 10];
        let mut room = tokio::io::ReadBuf::new(&mut room);
        let polled = reader.poll_read(cx, &mut room);
        if let Some(waits) = waits.take() {
            assert!(polled.is_pending());
            waits.send(()).unwrap();
        }
        polled.map_ok(|()| room.filled().len())
    }));
    begun.await.unwrap();
    dialed.close();
    let read = timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert_eq!(read.unwrap(), 0);
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, accepted.read_to_end(&mut rest))
        .await
        .unwrap();
    assert_eq!(read.unwrap(), 0);
}

#[tokio::test]
async fn a_socket_that_is_dropped_ends_its_streams_and_frees_its_port() {
    let (here, there) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let addr = here.local_addr();
    let (mut dialed, mut accepted) = connected(&here, &there).await;
    drop(here);
    let mut room = [0; 10];
    let own = timeout(PATIENCE, dialed.read(&mut room)).await.unwrap();
    assert_eq!(own.unwrap_err().kind(), ErrorKind::ConnectionAborted);
    let peer = timeout(PATIENCE, accepted.read(&mut room)).await.unwrap();
    assert_eq!(peer.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let freed = async {
        while UtpSocket::bind(addr, Config::default()).is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, freed).await.unwrap();
}

#[tokio::test]
async fn a_dial_that_is_given_up_leaves_no_connection_at_the_peer() {
    let (here, there) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    {
        let mut dial = std::pin::pin!(here.connect(there.local_addr()));
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(dial.as_mut().poll(cx)));
        assert!(polled.await.is_pending());
    }
    // The next one that is accepted is another one.
    let (mut dialed, mut accepted) = connected(&here, &there).await;
    dialed.write_all(b"second").await.unwrap();
    let mut room = [0; 6];
    timeout(PATIENCE, accepted.read_exact(&mut room))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&room, b"second");
}
