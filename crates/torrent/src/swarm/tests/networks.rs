//! Peers on both networks: one peer over SCION and over plain IP.

use super::choking::Talker;
use super::*;
use crate::wire::{BLOCK, PeerId, Request};

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_on_both_networks_is_one_of_those_that_may_be_connected() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 16384);
    let path = net.path(1, FAST);
    let ip = path.over_plain_ip();
    let options = DownloadOptions {
        seed: Some(crate::SeedLimits::default()),
        awaits_peers: true,
        ..giving_up_after(Duration::MAX)
    };
    let content = stage.dir.path().join("seed");
    let (host, metainfo) = (net.host(1), stage.metainfo.clone());
    let mut download = Download::over(host, metainfo, content, Vec::new(), options);
    download.set_max_peers(1);
    download.completed().await.expect("its content is there");
    let id = PeerId::random();
    let mut scion = Talker::with_id(&net, &stage, 2, path, id).await;
    scion.say(Message::Interested).await;
    assert!(scion.choked_or_not().await);
    // Another peer at its host has another id.
    let mut neighbor = Talker::new(&net, &stage, 2, ip.clone()).await;
    neighbor.is_hung_up_on().await;
    let mut both = Talker::with_id(&net, &stage, 2, ip, id).await;
    both.say(Message::Interested).await;
    assert!(both.choked_or_not().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_super_seeder_reveals_the_same_to_a_peer_over_both_networks() {
    let net = Net::default();
    // All pieces have one whole block.
    let stage = Stage::one_file(30 * 16384, 16384);
    let path = net.path(1, FAST);
    let _seed = revealing::super_seed(&net, &stage).await;
    let id = PeerId::random();
    let mut scion = Talker::with_id(&net, &stage, 2, path.clone(), id).await;
    let first = scion.is_told_of().await;
    let mut both = Talker::with_id(&net, &stage, 2, path.over_plain_ip(), id).await;
    assert_eq!(both.is_told_of().await, first);
    scion.say(Message::Interested).await;
    assert!(scion.choked_or_not().await);
    let request = Request {
        piece: first,
        begin: 0,
        length: BLOCK,
    };
    scion.say(Message::Request(request)).await;
    let heard = scion.hears().await;
    assert!(matches!(heard, Message::Piece { .. }), "{heard:?}");
    // It has that piece, and nobody else lacks it.
    let second = scion.is_told_of().await;
    assert_ne!(second, first);
    assert_eq!(both.is_told_of().await, second);
}
