//! Limits of the rate: what is sent and received in a time, whatever the time is.

use super::*;
use crate::RateLimits;

const SIZE: usize = 600_000;

/// Bytes per second.
const LIMIT: u64 = 400_000;

/// What may pass beyond the limit: 50 ms late, and a turn.
const SLACK: u64 = LIMIT / 20 + 2 * 16384;

fn up(rate: u64) -> RateLimits {
    RateLimits {
        upload: Some(rate),
        download: None,
    }
}

fn down(rate: u64) -> RateLimits {
    RateLimits {
        upload: None,
        download: Some(rate),
    }
}

async fn seed_with(net: &Net, stage: &Stage, limits: RateLimits) -> Seed {
    let options = SeedOptions {
        limits,
        ..SeedOptions::default()
    };
    let content = stage.dir.path().join("seed/file.bin");
    let (host, metainfo) = (net.host(1), stage.metainfo.clone());
    let seed = Seed::over(host, metainfo, content, options, |_, _| {});
    seed.await.unwrap()
}

fn limited(limits: RateLimits) -> DownloadOptions {
    DownloadOptions {
        limits,
        ..DownloadOptions::default()
    }
}

/// Checks that no more passed than the limit allows.
fn keeps_to_limit(bytes: u64, began: Instant) {
    let allowed = LIMIT as f64 * began.elapsed().as_secs_f64() + SLACK as f64;
    assert!(bytes as f64 <= allowed, "{bytes} of {allowed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_sends_no_faster_than_its_limit_to_all_together() {
    let net = Net::default();
    let stage = Stage::one_file(SIZE, 16384);
    let _seed = seed_with(&net, &stage, up(LIMIT)).await;
    let began = Instant::now();
    net.path(1, FAST);
    net.path(1, FAST);
    let downloads = [2, 3].map(|n| {
        let dir = stage.dir.path().join(n.to_string());
        let (metainfo, peers) = (stage.metainfo.clone(), vec![addr(1)]);
        Download::over(
            net.host(n),
            metainfo,
            dir,
            peers,
            DownloadOptions::default(),
        )
    });
    let mut fetched = 0;
    for download in downloads {
        let summary = finish(download).await.unwrap();
        fetched += summary.fetched_bytes + summary.wasted_bytes;
        keeps_to_limit(fetched, began);
    }
    assert!(fetched >= 2 * SIZE as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_receives_no_faster_than_its_limit_over_all_paths() {
    let net = Net::default();
    let stage = Stage::one_file(SIZE, 16384);
    let _seed = stage.seed(&net.host(1)).await;
    let began = Instant::now();
    net.path(1, FAST);
    net.path(1, mbit(50.0, 5));
    let download = stage.download_with(&net.host(0), &[1], limited(down(LIMIT)));
    let mut progress = download.progress();
    while progress.changed().await.is_ok() {
        keeps_to_limit(progress.borrow().fetched_bytes, began);
    }
    let summary = finish(download).await.unwrap();
    stage.check();
    assert_eq!(summary.fetched_bytes, SIZE as u64);
    // Nothing was dropped, and hardly anything requested twice.
    assert!(summary.wasted_bytes <= SIZE as u64 / 4, "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_lifted_while_it_runs() {
    let net = Net::default();
    let stage = Stage::one_file(4_000_000, 16384);
    // At these it would take ten minutes.
    let seed = seed_with(&net, &stage, up(6_000)).await;
    net.path(1, FAST);
    let download = stage.download_with(&net.host(0), &[1], limited(down(6_000)));
    let mut progress = download.progress();
    let begun = progress.wait_for(|progress| progress.fetched_bytes > 0);
    let begun = tokio::time::timeout(PATIENCE, begun).await;
    assert!(begun.unwrap().unwrap().fetched_bytes < 1_000_000);
    seed.set_limits(RateLimits::default());
    download.set_limits(RateLimits::default());
    finish(download).await.unwrap();
    stage.check();
}
