//! Who can join a session, by greetings made by hand.

use hawser_endhost::ScionAddr;
use hawser_quic::{Config, Connection as Quic, Endpoint, RecvStream, SendStream};

use super::*;

const ID: [u8; 16] = [7; 16];
const SECRET: [u8; 32] = [9; 32];

/// A client of the protocol.
struct Client {
    endpoint: Endpoint,
    host: hawser_endhost::Endhost,
    server: ScionAddr,
}

/// A path whose greeting was answered.
struct Path {
    quic: Quic,
    _streams: (SendStream, RecvStream),
    status: u8,
}

impl Client {
    async fn new(pair: &Pair) -> Self {
        let host = pair.net.a.endhost().await;
        let config = Config {
            alpn: b"hawser-session/1".to_vec(),
            ..Config::default()
        };
        Self {
            endpoint: Endpoint::bind(host.clone(), None, config).unwrap(),
            host,
            server: pair.listener.local_addr().to_string().parse().unwrap(),
        }
    }

    async fn greet(&self, known: bool, secret: [u8; 32]) -> Path {
        let path = self.host.paths(self.server.isd_as).await.unwrap().remove(0);
        let quic = self.endpoint.connect(self.server, path).await.unwrap();
        let (mut send, mut receive) = quic.open_bi().await.unwrap();
        let greeting = [&[1, known.into()][..], &ID, &secret, &[0; 8]].concat();
        send.write_all(&greeting).await.unwrap();
        let mut answer = [0; 10];
        receive.read_exact(&mut answer).await.unwrap();
        Path {
            quic,
            _streams: (send, receive),
            status: answer[1],
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_host_joins_a_session() {
    let net = ToyNet::with_links(2).await;
    let (client, server) = (host(&net.a).await, host(&net.b).await);
    let listen = (own_ip(3), 0).into();
    let listener = server.bind().listen(listen).allow_any().await.unwrap();
    let pair = Pair {
        net,
        client,
        listener,
    };
    let (owner, other) = (Client::new(&pair).await, Client::new(&pair).await);
    assert_eq!(owner.greet(true, SECRET).await.status, 1, "unknown");
    let first = owner.greet(false, SECRET).await;
    assert_eq!(first.status, 0);
    for (known, secret) in [(false, SECRET), (true, SECRET), (true, [1; 32])] {
        assert_eq!(
            other.greet(known, secret).await.status,
            2,
            "of another host"
        );
    }
    assert_eq!(
        owner.greet(true, [1; 32]).await.status,
        2,
        "with another secret"
    );
    let second = owner.greet(true, SECRET).await;
    assert_eq!(second.status, 0);
    assert_eq!(first.quic.close_reason(), None);
    // Both paths are the session's: an offence over one ends it.
    first.quic.close(19, "an offence");
    second.quic.closed().await;
    until_ended(&owner).await;
}

/// Waits until the session has ended at the server.
async fn until_ended(owner: &Client) {
    let wait = async {
        while owner.greet(false, SECRET).await.status != 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONGEST, wait).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_greeting_end_the_connection() {
    let pair = Pair::new(1).await;
    let server = host(&pair.net.b).await;
    let listen = (own_ip(4), 0).into();
    let listener = server.bind().listen(listen).allow_any().await.unwrap();
    let pair = Pair { listener, ..pair };
    let client = Client::new(&pair).await;
    let path = client
        .host
        .paths(client.server.isd_as)
        .await
        .unwrap()
        .remove(0);
    let quic = client.endpoint.connect(client.server, path).await.unwrap();
    let (mut send, _receive) = quic.open_bi().await.unwrap();
    send.write_all(&[9; 58]).await.unwrap();
    let reason = quic.closed().await.to_string();
    assert!(reason.contains("version 9"), "{reason}");
}
