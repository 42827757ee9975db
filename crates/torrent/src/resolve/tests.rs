//! Fetching an info dictionary from engines, over pipes.

use std::fs;

use tokio::io::AsyncWriteExt;

use super::*;
use crate::testing::{FAST, Host, Net, addr};
use crate::wire::{Handshake, Message, PeerId, encode};
use crate::{CreateOptions, Seed, SeedOptions, Version, create};

const PATIENCE: Duration = Duration::from_secs(60);

/// Longest wait for an event that must come.
const LONG: Duration = Duration::from_secs(300);

/// A torrent whose info dictionary has several pieces, seeded at hosts.
struct Stage {
    dir: tempfile::TempDir,
    metainfo: Metainfo,
    seeds: Vec<Seed>,
}

impl Stage {
    fn new() -> Self {
        let stage = Self::of(Version::One);
        assert!(stage.metainfo.info().len() > 3 * 16384);
        stage
    }

    fn of(version: Version) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let content = dir.path().join("file.bin");
        fs::write(&content, vec![7; 16384 * 2500]).unwrap();
        let options = CreateOptions {
            piece_length: Some(16384),
            version,
            ..CreateOptions::default()
        };
        let torrent = create(&content, &options, |_, _| {}).unwrap();
        let metainfo = Metainfo::parse(&torrent).unwrap();
        Self {
            dir,
            metainfo,
            seeds: Vec::new(),
        }
    }

    async fn seed(&mut self, host: Host) {
        let content = self.dir.path().join("file.bin");
        let (metainfo, options) = (self.metainfo.clone(), SeedOptions::default());
        let seed = Seed::over(host, metainfo, content, options, |_, _| {}).await;
        self.seeds.push(seed.unwrap());
    }

    fn resolve(&self, host: Host, peers: &[u16], give_up_after: Duration) -> Resolve {
        let hashes = self.metainfo.info_hashes();
        let peers = peers.iter().map(|n| addr(*n)).collect();
        Resolve::over(host, hashes, peers, give_up_after)
    }
}

async fn wait(resolve: Resolve) -> Result<Resolved, ResolveError> {
    let waited = tokio::time::timeout(PATIENCE, resolve.wait());
    waited.await.expect("it hangs")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_magnet_link_leads_to_what_the_torrent_file_says() {
    let (net, mut stage) = (Net::default(), Stage::new());
    for n in [1, 2] {
        stage.seed(net.host(n)).await;
        net.path(n, FAST);
    }
    let resolve = stage.resolve(net.host(0), &[1, 2], PATIENCE);
    let progress = resolve.progress();
    let resolved = wait(resolve).await.unwrap();
    assert_eq!(resolved.metainfo.info(), stage.metainfo.info());
    assert_eq!(resolved.metainfo.info_hash, stage.metainfo.info_hash);
    assert_eq!(resolved.metainfo.files, stage.metainfo.files);
    assert!(!resolved.peers.is_empty());
    assert_eq!(progress.borrow().known, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_version_two_leads_to_the_hashes_of_its_pieces_too() {
    let (net, mut stage) = (Net::default(), Stage::of(Version::Two));
    for n in [1, 2] {
        stage.seed(net.host(n)).await;
        net.path(n, FAST);
    }
    let resolve = stage.resolve(net.host(0), &[1, 2], PATIENCE);
    let progress = resolve.progress();
    let resolved = wait(resolve).await.unwrap();
    assert_eq!(resolved.metainfo.info(), stage.metainfo.info());
    assert_eq!(resolved.metainfo.layers(), stage.metainfo.layers());
    assert_eq!(resolved.metainfo.version(), Version::Two);
    // One piece of the info dictionary, and 512 hashes in an answer.
    let (received, all) = progress.borrow().pieces.unwrap();
    assert!(received <= all && all == 1 + 5, "{received} of {all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_are_found_meanwhile_are_asked() {
    let (net, mut stage) = (Net::default(), Stage::new());
    stage.seed(net.host(1)).await;
    net.path(1, FAST);
    let resolve = stage.resolve(net.host(0), &[7], PATIENCE);
    let found = resolve.found_peers();
    assert!(found.add(vec![addr(1)], PeerSource::Tracker).await);
    let resolved = wait(resolve).await.unwrap();
    assert_eq!(resolved.peers, [addr(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_answer_the_error_names_the_peers() {
    let (net, stage) = (Net::default(), Stage::new());
    // One with another torrent, one that nobody reaches.
    let mut other = Stage::new();
    other.metainfo.info_hash = InfoHash([9; 20]);
    other.seed(net.host(1)).await;
    net.path(1, FAST);
    let resolve = stage.resolve(net.host(0), &[1, 2], Duration::from_secs(1));
    let error = wait(resolve).await.unwrap_err().to_string();
    assert!(error.contains(&addr(1).to_string()), "{error}");
    assert!(error.contains(&addr(2).to_string()), "{error}");
    assert_eq!(error.lines().count(), 1);
}

/// What a peer sends that announces an info dictionary of this length, and answers no question: pieces of
/// zeros, without end.
fn bomb(metainfo: &Metainfo, length: u32) -> (Vec<u8>, Vec<u8>) {
    let handshake = Handshake {
        info_hash: metainfo.info_hash,
        peer_id: PeerId::random(),
        extended: true,
        dht: false,
        version_two: false,
    };
    let extended = |id, payload: Vec<u8>| Message::Extended {
        id,
        payload: payload.into(),
    };
    let introduction = format!("d1:md11:ut_metadatai3ee13:metadata_sizei{length}ee");
    let mut begin = handshake.encode().to_vec();
    encode(&extended(0, introduction.into_bytes()), &mut begin);
    let mut pieces = Vec::new();
    for piece in 0..8 {
        let head = format!("d8:msg_typei1e5:piecei{piece}e10:total_sizei{length}ee");
        let data = [head.as_bytes(), &[0; METADATA_PIECE]].concat();
        encode(&extended(crate::wire::UT_METADATA, data), &mut pieces);
    }
    (begin, pieces)
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_bombs_hold_nothing_up() {
    let (net, mut stage) = (Net::default(), Stage::new());
    let right = stage.metainfo.info().len() as u32;
    let largest = hawser_magnet::MAX_METADATA_BYTES as u32;
    for (n, length) in (2..).zip([u32::MAX, largest + 1, largest, largest - 1, 1, 0, right]) {
        let host = net.host(n);
        net.path(n, FAST);
        let (begin, pieces) = bomb(&stage.metainfo, length);
        tokio::spawn(async move {
            while let Some(connection) = host.accept().await {
                let (begin, pieces) = (begin.clone(), pieces.clone());
                tokio::spawn(async move {
                    let (mut read, mut write) = connection.stream().await.unwrap();
                    let ignored =
                        async { tokio::io::copy(&mut read, &mut tokio::io::sink()).await };
                    let flood = async {
                        write.write_all(&begin).await?;
                        loop {
                            write.write_all(&pieces).await?;
                            tokio::task::yield_now().await;
                        }
                    };
                    // Ends when the other side closes the connection.
                    let _: (_, std::io::Result<()>) = tokio::join!(ignored, flood);
                });
            }
        });
    }
    let resolve = stage.resolve(net.host(0), &[2, 3, 4, 5, 6, 7, 8], Duration::MAX);
    let (found, mut progress) = (resolve.found_peers(), resolve.progress());
    // The floods are there before the honest peer.
    let flooded = progress.wait_for(|progress| progress.connected >= 2);
    let flooded = tokio::time::timeout(LONG, flooded).await;
    drop(
        flooded
            .expect("the hostile peers are not connected")
            .unwrap(),
    );
    stage.seed(net.host(1)).await;
    net.path(1, FAST);
    assert!(found.add(vec![addr(1)], PeerSource::Tracker).await);
    let resolved = tokio::time::timeout(LONG, resolve.wait()).await;
    let resolved = resolved.expect("the floods hold it up").unwrap();
    assert_eq!(resolved.metainfo.info(), stage.metainfo.info());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_stopped() {
    let (net, stage) = (Net::default(), Stage::new());
    let resolve = stage.resolve(net.host(0), &[], Duration::MAX);
    resolve.stop();
    assert!(matches!(wait(resolve).await, Err(ResolveError::Stopped)));
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_have_the_metadata_name_their_nodes_of_the_dht() {
    let net = Net::default();
    let mut stage = Stage::new();
    let [seeder, resolver] = [addr(1), addr(0)].map(|addr| crate::DhtContacts::new(&[addr]));
    let with = |n, (dht, named)| {
        let host = net.host(n);
        host.dht.set(dht).expect("it had none");
        (host, named)
    };
    let (seeder, mut to_seeder) = with(1, seeder);
    let (resolver, mut to_resolver) = with(0, resolver);
    stage.seed(seeder).await;
    net.path(1, FAST);
    wait(stage.resolve(resolver, &[1], PATIENCE)).await.unwrap();
    assert_eq!(to_resolver.recv().await, Some(addr(1)));
    assert_eq!(to_seeder.recv().await, Some(addr(0)));
}
