//! Hosts in two ASes, which are linked several times, in one process.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "network/joining.rs"]
mod joining;
#[path = "network/losses.rs"]
mod losses;
#[path = "network/paths.rs"]
mod paths;
#[path = "../../endhost/tests/hosts/toy.rs"]
mod toy;

use std::sync::atomic::Ordering;
use std::time::Duration;

use hawser::{Connect, ConnectError, Connection, Host, HostOptions, Listener, SendError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::toy::{ToyDaemon, ToyNet, own_ip};

/// Longest wait for what must happen, far longer than it takes.
const LONGEST: Duration = Duration::from_secs(60);

/// A client in one AS, and a server in the other.
struct Pair {
    net: ToyNet,
    client: Host,
    listener: Listener,
}

async fn host(daemon: &ToyDaemon) -> Host {
    let options = HostOptions::default().with_daemon(&daemon.address);
    Host::bootstrap_with(options).await.unwrap()
}

impl Pair {
    /// ASes with as many links, whose server allows the client.
    async fn new(links: u16) -> Self {
        let net = ToyNet::with_links(links).await;
        let (client, server) = (host(&net.a).await, host(&net.b).await);
        let listen = (own_ip(2), 0).into();
        let listener = server.bind().listen(listen).allow(client.key()).await;
        Self {
            net,
            client,
            listener: listener.unwrap(),
        }
    }

    fn connect(&self) -> Connect {
        let connect = self.client.connect(self.listener.local_addr());
        connect.server_key(self.listener.key())
    }

    /// A connection, the client's end first.
    async fn connected(&mut self, paths: usize) -> (Connection, Connection) {
        let connect = self.connect().paths(paths);
        let (there, here) = tokio::join!(connect, self.listener.accept());
        (there.unwrap(), here.unwrap())
    }

    /// How many packets have crossed each link so far.
    fn passed(&self) -> Vec<u64> {
        let links = self.net.links.iter();
        links
            .map(|link| link.conduct.passed.load(Ordering::SeqCst))
            .collect()
    }

    /// Sets the rate of each link in bytes per second.
    fn limit(&self, rate: u64) {
        for link in &self.net.links {
            link.conduct.queue.store(100_000, Ordering::SeqCst);
            link.conduct.rate.store(rate, Ordering::SeqCst);
        }
    }
}

/// Bytes that do not repeat.
fn pattern(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    bytes
}

/// Waits until `holds` does.
async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONGEST, wait).await.unwrap();
}

/// Sends `bytes` and ends the direction; reads everything, which must be the same.
async fn echoed(connection: Connection, bytes: &[u8]) {
    let (mut read, mut write) = connection.split();
    let send = async {
        write.write_all(bytes).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let receive = async {
        let mut received = Vec::new();
        read.read_to_end(&mut received).await.unwrap();
        received
    };
    let echo = async { tokio::join!(send, receive).1 };
    let received = tokio::time::timeout(LONGEST, echo).await.unwrap();
    assert!(received == bytes, "{} of {}", received.len(), bytes.len());
}

/// Sends back what arrives, and closes behind the end.
async fn echo(connection: Connection) {
    let (mut read, mut write) = connection.clone().split();
    tokio::io::copy(&mut read, &mut write).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_write_and_close_delivers_it() {
    let mut pair = Pair::new(2).await;
    // The server writes first.
    let (mut there, mut here) = pair.connected(2).await;
    assert_eq!(there.peer_addr(), pair.listener.local_addr());
    assert_eq!(here.peer_addr(), pair.client.local_addr());
    assert_eq!(here.peer_key(), pair.client.key());
    let bytes = pattern(1 << 20);
    let server = tokio::spawn({
        let bytes = bytes.clone();
        async move {
            here.write_all(&bytes).await.unwrap();
            here.close().await
        }
    });
    let mut received = Vec::new();
    there.read_to_end(&mut received).await.unwrap();
    assert!(received == bytes);
    assert_eq!(server.await.unwrap(), Ok(()));
    assert_eq!(
        there.close().await.map_err(drop),
        Err(()),
        "the server never read the end"
    );
    assert!(there.write_all(b"more").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_connection_is_reset_at_the_peer() {
    let mut pair = Pair::new(1).await;
    let (there, mut here) = pair.connected(1).await;
    drop(there);
    let error = here.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    assert_eq!(here.datagrams().send(b"x"), Err(SendError::Ended));
    assert!(here.datagrams().receive().await.is_err());
    let mut events = here.events();
    assert_eq!(events.next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_pass_both_ways() {
    let mut pair = Pair::new(2).await;
    let (there, here) = pair.connected(2).await;
    for (from, to) in [(&there, &here), (&here, &there)] {
        let (from, to) = (from.datagrams(), to.datagrams());
        for size in [0, 1, hawser::MAX_DATAGRAM] {
            let sent = pattern(size);
            from.send(&sent).unwrap();
            let received = tokio::time::timeout(LONGEST, to.receive()).await.unwrap();
            assert_eq!(received.unwrap(), sent);
        }
        let size = hawser::MAX_DATAGRAM + 1;
        let refused = from.send(&pattern(size));
        assert_eq!(refused, Err(SendError::TooLarge { size }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_another_key_is_refused() {
    let mut pair = Pair::new(2).await;
    let other = hawser::Identity::generate().unwrap().key();
    let addr = pair.listener.local_addr();
    let refused = pair
        .client
        .connect(addr)
        .server_key(other)
        .await
        .unwrap_err();
    let key = pair.listener.key();
    assert_eq!(refused, ConnectError::WrongServerKey { addr, key });
    // Any key, and that one, are trusted.
    let connect = pair.client.connect(addr).any_server_key();
    let (there, here) = tokio::join!(connect, pair.listener.accept());
    assert_eq!(there.unwrap().peer_key(), key);
    drop(here);
    assert!(pair.connect().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_not_allowed_is_refused() {
    let pair = Pair::new(2).await;
    let stranger = host(&pair.net.a).await;
    let addr = pair.listener.local_addr();
    let refused = stranger.connect(addr).any_server_key().await.unwrap_err();
    let key = stranger.key();
    assert_eq!(refused, ConnectError::KeyRefused { addr, key });
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_listens_connecting_fails() {
    let pair = Pair::new(1).await;
    let addr = hawser::Addr::new(pair.listener.local_addr().isd_as, (own_ip(9), 31999).into());
    let failed = pair
        .client
        .connect(addr)
        .any_server_key()
        .await
        .unwrap_err();
    assert!(
        matches!(failed, ConnectError::Unreachable { .. }),
        "{failed}"
    );
    let nowhere = hawser::Addr::new("1-ff00:0:999".parse().unwrap(), addr.host);
    let failed = pair
        .client
        .connect(nowhere)
        .any_server_key()
        .await
        .unwrap_err();
    assert!(
        matches!(failed, ConnectError::Paths(hawser::PathsError::None(_))),
        "{failed}"
    );
}
