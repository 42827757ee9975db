//! Forged SCMP errors, and genuine ones among them.

use std::time::Instant;

use hawser_endhost::{Headers, Outage, ScmpError};
use hawser_path::Interface;
use tokio::net::UdpSocket;

use super::*;

/// Longest wait for an event that must happen, far longer than it takes.
const LONGEST: Duration = Duration::from_secs(60);

/// SCMP errors of an attacker outside `path`, who knows what is public. They quote packets from one
/// end of `path` to the other.
fn forged(from: ScionAddr, to: ScionAddr, path: &Path) -> Vec<Vec<u8>> {
    let there = Headers::new(from, to, path).unwrap();
    let mut quoted = Vec::new();
    there.write(&[0; 1200], 0, &mut quoted);
    let near = path.info().interfaces[0];
    let whole = u16::try_from(quoted.len()).unwrap();
    let down = {
        let (isd_as, id) = (near.isd_as.to_be_bytes(), u64::from(near.id).to_be_bytes());
        [&[5, 0, 0, 0], &isd_as[..], &id].concat()
    };
    let inside = {
        let isd_as = near.isd_as.to_be_bytes();
        let ids = [0, u64::from(near.id)].map(u64::to_be_bytes).concat();
        [&[6, 0, 0, 0], &isd_as[..], &ids].concat()
    };
    let too_big = |mtu: u16| [&[2, 0, 0, 0, 0, 0], &mtu.to_be_bytes()[..]].concat();
    let messages = [
        down,
        inside,
        vec![1, 0, 0, 0, 0, 0, 0, 0],
        vec![1, 4, 0, 0, 0, 0, 0, 0],
        vec![4, 52, 0, 0, 0, 0, 0, 0],
        too_big(0),
        too_big(whole - 1),
    ];
    // The attacker is a host of the same AS, so that it can name the AS's interfaces.
    let inside_as = Path::within(from.isd_as, toy::MTU);
    let to_victim = Headers::new(ScionAddr::new(from.isd_as, from.host), from, &inside_as).unwrap();
    let errors = messages.map(|message| to_victim.scmp(&[message, quoted.clone()].concat()));
    errors.into()
}

#[tokio::test]
async fn forged_errors_end_no_connection() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let pair = connect(&a, &b, Config::default()).await;
    let (client, server) = &pair.connections;
    let (from, to) = (pair.ends.0.local_addr(), pair.ends.1.local_addr());
    let mut outages = a.outages();
    let flood = forged(from, to, &client.path().unwrap());
    let attacker = UdpSocket::bind((own_ip(90), 0)).await.unwrap();
    let bytes = pattern(200_000);
    for _ in 0..20 {
        for packet in &flood {
            attacker.send_to(packet, from.host).await.unwrap();
        }
        assert!(transfer(client, server, &bytes).await == bytes);
    }
    let all = 20 * flood.len() as u64;
    let read = async {
        while pair.ends.0.drops().unmatched < all {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONGEST, read).await.unwrap();
    assert_eq!((client.close_reason(), server.close_reason()), (None, None));
    assert!(outages.try_recv().is_err());
    assert_eq!(a.paths(net.b_as).await.unwrap().len(), 1);
    // A genuine error among them counts.
    net.conduct.down.store(true, Ordering::SeqCst);
    let flooding = async {
        loop {
            for packet in &flood {
                attacker.send_to(packet, from.host).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let reason = tokio::select! {
        reason = tokio::time::timeout(PATIENCE, client.closed()) => reason.unwrap(),
        () = flooding => unreachable!("it has no end"),
    };
    assert!(
        matches!(reason, CloseReason::Lane(LaneEnd::PathDown(_))),
        "{reason}"
    );
}

#[tokio::test]
async fn an_error_ends_no_connection_that_still_works() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let pair = connect(&a, &b, Config::default()).await;
    let (client, server) = &pair.connections;
    let mut outages = a.outages();
    // The errors quote packets that do arrive.
    net.conduct.lies.store(true, Ordering::SeqCst);
    let (bytes, began) = (pattern(200_000), Instant::now());
    while began.elapsed() < Duration::from_secs(2) {
        assert!(transfer(client, server, &bytes).await == bytes);
        assert!(transfer(server, client, &bytes).await == bytes);
    }
    assert_eq!((client.close_reason(), server.close_reason()), (None, None));
    assert_eq!(
        pair.ends.0.drops().unmatched,
        0,
        "they do quote what was sent"
    );
    assert!(outages.try_recv().is_err());
    net.conduct.down.store(true, Ordering::SeqCst);
    net.conduct.lies.store(false, Ordering::SeqCst);
    let reason = tokio::time::timeout(LONGEST, client.closed()).await;
    let reason = reason.unwrap();
    assert!(
        matches!(reason, CloseReason::Lane(LaneEnd::PathDown(_))),
        "{reason}"
    );
    assert_eq!(outages.recv().await.unwrap().to_string(), "1-ff00:0:110#1");
}

#[tokio::test]
async fn an_acknowledgement_ends_a_hold() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let pair = connect(&a, &b, Config::default()).await;
    let mut paths = a.watch(net.b_as);
    let (isd_as, id) = (net.a_as, 1);
    let reported_down = async {
        // The hold of a relapsing link doubles each time: together two minutes, if nothing ended
        // them.
        for _ in 0..8 {
            paths.wait_for(|paths| paths.len() == 1).await.unwrap();
            a.report(Outage::Interface(Interface { isd_as, id }));
            assert!(paths.borrow().is_empty());
        }
        paths.wait_for(|paths| paths.len() == 1).await.unwrap();
    };
    tokio::time::timeout(LONGEST, reported_down).await.unwrap();
    assert_eq!(pair.connections.0.close_reason(), None);
}

#[tokio::test]
async fn a_path_too_narrow_for_its_packets_ends_the_connection() {
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let pair = connect(&a, &b, Config::default()).await;
    let (client, _server) = &pair.connections;
    // Enough for QUIC's smallest packets, not for those of a path that announces more.
    net.conduct.narrow.store(1300, Ordering::SeqCst);
    let (mut stream, _keep) = client.open_bi().await.unwrap();
    let send = stream.write_all(&[7; 10_000]);
    let (_, reason) = tokio::join!(send, tokio::time::timeout(LONGEST, client.closed()));
    assert_eq!(
        reason.unwrap(),
        CloseReason::Lane(LaneEnd::Unreachable(ScmpError::PacketTooBig { mtu: 1300 }))
    );
}
