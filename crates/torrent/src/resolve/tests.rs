//! Fetching an info dictionary from engines, over pipes.

use std::fs;

use super::*;
use crate::testing::{FAST, Host, Net, addr};
use crate::{CreateOptions, Seed, SeedOptions, Version, create};

const PATIENCE: Duration = Duration::from_secs(60);

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
        let mut host = net.host(n);
        host.dht = Some(dht);
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
