//! Copies of packets over fresher paths, which an attacker on the link sends.

use super::*;

/// How long the paths of a [`ToyNet`] last, in seconds.
const LIFETIME: u32 = 6 * 3600;

#[tokio::test]
async fn only_packets_that_open_change_the_path_of_answers() {
    let net = ToyNet::start().await;
    let now = unix_now() as u32;
    // A path that expires soon: the server takes another one when it can.
    net.offer(now - LIFETIME + 55);
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let pair = connect(&a, &b, Config::default()).await;
    let (client, server) = &pair.connections;
    let old = client.expiry();
    assert_eq!(server.expiry(), old);
    net.conduct.copies.store(now.into(), Ordering::SeqCst);
    let bytes = pattern(10_000);
    for _ in 0..10 {
        assert!(transfer(client, server, &bytes).await == bytes);
        assert!(transfer(server, client, &bytes).await == bytes);
    }
    assert_eq!(server.expiry(), old);
    // The client's own fresh path is taken, amid the copies.
    net.offer(now - 600);
    until("the path is replaced", || client.expiry() != old).await;
    assert!(transfer(client, server, &bytes).await == bytes);
    assert_eq!(client.expiry(), u64::from(now - 600 + LIFETIME));
    assert_eq!(server.expiry(), client.expiry());
    assert!(transfer(server, client, &bytes).await == bytes);
}

#[tokio::test]
async fn a_new_connection_is_answered_over_its_own_path() {
    let net = ToyNet::start().await;
    let now = unix_now() as u32;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let first = connect(&a, &b, Config::default()).await;
    let (client, server) = first.ends;
    drop(first.connections);
    // No connection uses the path of before, which lasts for long.
    net.offer(now + 60);
    let fresh = net.a.client().paths(net.b_as, true).await.unwrap();
    let peer = server.local_addr();
    let connecting = client.connect(peer, fresh[0].clone());
    let (there, here) = tokio::join!(connecting, server.accept());
    let (there, here) = (there.unwrap(), here.unwrap());
    assert_eq!(here.expiry(), there.expiry());
}
