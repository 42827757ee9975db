//! Datagrams over a connection.

use hawser_quic::DatagramError;

use super::*;

fn config() -> Config {
    Config {
        datagrams: Some(64 << 10),
        ..Config::default()
    }
}

#[tokio::test]
async fn datagrams_pass_both_ways() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let pair = connect(&a, &b, config()).await;
    let (client, server) = &pair.connections;
    server.set_known();
    for (from, to) in [(client, server), (server, client)] {
        let sent = pattern(1024);
        from.send_datagram(sent.clone().into()).unwrap();
        assert_eq!(to.read_datagram().await.unwrap(), sent);
    }
    let error = client.send_datagram(pattern(1500).into()).unwrap_err();
    assert!(matches!(error, DatagramError::TooLarge { max } if (1024..1500).contains(&max)));
    client.close(0, "enough");
    assert_eq!(
        client.send_datagram(pattern(1).into()),
        Err(DatagramError::Closed)
    );
    assert!(server.read_datagram().await.is_err());
}

#[tokio::test]
async fn datagrams_of_an_unknown_peer_are_dropped() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let pair = connect(&a, &b, config()).await;
    let (client, server) = &pair.connections;
    client.send_datagram(pattern(100).into()).unwrap();
    // What comes on a stream is later than the datagram.
    let (mut stream, _keep) = client.open_bi().await.unwrap();
    stream.write_all(&pattern(10)).await.unwrap();
    let (_keep, mut stream) = server.accept_bi().await.unwrap();
    assert_eq!(stream.read_chunk(10).await.unwrap().unwrap(), pattern(10));
    server.set_known();
    client.send_datagram(pattern(7).into()).unwrap();
    assert_eq!(server.read_datagram().await.unwrap(), pattern(7));
}

#[tokio::test]
async fn datagrams_are_off_unless_wanted() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let pair = connect(&a, &b, Config::default()).await;
    let sent = pair.connections.0.send_datagram(pattern(1).into());
    assert_eq!(sent, Err(DatagramError::Unsupported));
}
