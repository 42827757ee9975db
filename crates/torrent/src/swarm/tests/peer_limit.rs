//! How many peers may be connected.

use super::*;
use crate::{PeerSource, RateLimits, SeedPeer};

/// Longer than anything takes on a loaded machine.
const LONG: Duration = Duration::from_secs(300);

fn finding() -> DownloadOptions {
    DownloadOptions {
        finds_peers: true,
        ..DownloadOptions::default()
    }
}

/// The peers that a download is connected to, once `is_it` holds for them.
async fn connected(download: &Download, is_it: impl Fn(&[PeerAddr]) -> bool) -> Vec<PeerAddr> {
    let mut progress = download.progress();
    let peers = |progress: &Progress| -> Vec<PeerAddr> {
        progress
            .uploads
            .peers
            .iter()
            .map(|peer| peer.peer)
            .collect()
    };
    let mut seen = Vec::new();
    let awaited = progress.wait_for(|progress| {
        seen = peers(progress);
        is_it(&seen)
    });
    let awaited = tokio::time::timeout(LONG, awaited)
        .await
        .map(|it| it.is_ok());
    assert_eq!(awaited, Ok(true), "{seen:?}");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_peers_are_dialed_than_may_be_connected() {
    let net = Net::default();
    let stage = Stage::one_file(2_000_000, 65536);
    let mut seeds = Vec::new();
    for host in 1..=4 {
        net.path(host, mbit(8.0, 5));
        seeds.push(stage.seed(&net.host(host)).await);
    }
    let download = stage.download_with(&net.host(0), &[], finding());
    download.set_max_peers(2);
    let peers = (1..=4).map(addr).collect();
    download.found_peers().add(peers, PeerSource::Tracker).await;
    connected(&download, |peers| peers.len() == 2).await;
    let mut progress = download.progress();
    let most = async {
        let mut most = 0;
        while progress.changed().await.is_ok() {
            most = most.max(progress.borrow_and_update().uploads.peers.len());
        }
        most
    };
    let (done, most) = tokio::join!(finish(download), most);
    done.unwrap();
    assert_eq!(most, 2);
    assert_eq!(net.dials().len(), 2);
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_lower_limit_the_least_useful_peers_are_closed() {
    let net = Net::default();
    let stage = Stage::zeros(20_000_000, 65536);
    let mut seeds = Vec::new();
    for host in 1..=2 {
        net.path(host, mbit(4.0, 5));
        seeds.push(stage.seed(&net.host(host)).await);
    }
    // These have nothing, and take hardly anything.
    let mut idle = Vec::new();
    for host in 3..=6 {
        net.path(host, FAST);
        let options = DownloadOptions {
            give_up_after: Duration::MAX,
            limits: RateLimits {
                download: Some(1),
                upload: None,
            },
            ..finding()
        };
        let target = stage.dir.path().join(host.to_string());
        let (host, metainfo) = (net.host(host), stage.metainfo.clone());
        idle.push(Download::over(host, metainfo, target, Vec::new(), options));
    }
    let download = stage.download_with(&net.host(0), &[1, 2, 3, 4, 5, 6], finding());
    connected(&download, |peers| peers.len() == 6).await;
    let mut progress = download.progress();
    let is_steady = |progress: &Progress| {
        let useful = progress.paths.iter().filter(|path| path.bytes > 1_000_000);
        let is_idle = |served: &SeedPeer| served.rate == 0;
        useful.count() == 2 && progress.uploads.peers.iter().all(is_idle)
    };
    let steady = tokio::time::timeout(LONG, progress.wait_for(is_steady)).await;
    steady.expect("both seeders send").unwrap();
    download.set_max_peers(2);
    let mut left = connected(&download, |peers| peers.len() <= 2).await;
    left.sort_unstable();
    assert_eq!(left, [addr(1), addr(2)]);
}
