//! Long-lived keys, and secrets of connections.

use hawser_keys::Identity;
use hawser_quic::{Config, Endpoint};

use super::toy::{ToyDaemon, isd_as};
use super::{connect, listen};

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_shows_the_key_that_it_is_given() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let identity = Identity::generate().unwrap();
    let config = Config {
        identity: Some(identity.clone()),
        ..Config::default()
    };
    let pair = connect(&host, &host, config.clone()).await;
    let (client, server) = &pair.connections;
    assert_eq!(client.peer_key(), identity.key());
    assert_eq!(server.peer_key(), identity.key());
    assert_eq!(pair.ends.0.key(), identity.key());
    // Without one, each has its own.
    let fresh = |last| Endpoint::bind(host.clone(), listen(last), Config::default()).unwrap();
    assert_ne!(fresh(3).key(), fresh(3).key());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_of_a_connection_export_the_same_secrets() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let pair = connect(&host, &host, Config::default()).await;
    let (client, server) = &pair.connections;
    let secret = client.export_secret(b"EXPORTER-test", b"").unwrap();
    assert_eq!(server.export_secret(b"EXPORTER-test", b""), Ok(secret));
    assert_eq!(client.export_secret(b"EXPORTER-test", b""), Ok(secret));
    // Another label, another context, another connection: another secret.
    let of_label = client.export_secret(b"EXPORTER-other", b"").unwrap();
    let of_context = client.export_secret(b"EXPORTER-test", b"context").unwrap();
    assert_eq!(server.export_secret(b"EXPORTER-other", b""), Ok(of_label));
    assert_eq!(
        server.export_secret(b"EXPORTER-test", b"context"),
        Ok(of_context)
    );
    let path = host.paths(host.local_as()).await.unwrap().remove(0);
    let (there, here) = tokio::join!(
        pair.ends.0.connect(pair.ends.1.local_addr(), path),
        pair.ends.1.accept()
    );
    let of_connection = there.unwrap().export_secret(b"EXPORTER-test", b"").unwrap();
    let again = here.unwrap().export_secret(b"EXPORTER-test", b"");
    assert_eq!(again, Ok(of_connection));
    let all = [secret, of_label, of_context, of_connection];
    let all = std::collections::HashSet::from(all);
    assert_eq!(all.len(), 4);
}
