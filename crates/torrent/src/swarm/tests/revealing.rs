//! Super-seeding: pieces revealed one at a time.

use super::*;

const SIZE: usize = 1_000_000;

pub(super) async fn super_seed(net: &Net, stage: &Stage) -> Seed {
    let options = SeedOptions {
        super_seeding: true,
        ..SeedOptions::default()
    };
    let content = stage.dir.path().join("seed/file.bin");
    let (host, metainfo) = (net.host(1), stage.metainfo.clone());
    let seed = Seed::over(host, metainfo, content, options, |_, _| {});
    seed.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_leecher_gets_everything_over_two_paths() {
    let net = Net::default();
    let stage = Stage::one_file(SIZE, 65536);
    let seed = super_seed(&net, &stage).await;
    net.path(1, FAST);
    net.path(1, FAST);
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    assert_eq!(summary.fetched_bytes, SIZE as u64);
    seed.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_super_seeder_sends_each_piece_about_once() {
    let net = Net::default();
    let stage = Stage::one_file(SIZE, 16384);
    let seed = super_seed(&net, &stage).await;
    let hosts = [2, 3, 4];
    for n in hosts.into_iter().chain([1]) {
        net.path(n, FAST);
    }
    let mut downloads = hosts.map(|n| {
        let dir = stage.dir.path().join(n.to_string());
        let others = hosts.into_iter().filter(|other| *other != n);
        let peers = others.chain([1]).map(addr).collect();
        let options = DownloadOptions {
            // Others may still need what it has.
            seed: Some(crate::SeedLimits::default()),
            ..DownloadOptions::default()
        };
        let metainfo = stage.metainfo.clone();
        Download::over(net.host(n), metainfo, dir, peers, options)
    });
    for download in &mut downloads {
        let completed = tokio::time::timeout(PATIENCE, download.completed()).await;
        assert!(completed.expect("it hangs").is_some());
    }
    let progress = seed.progress();
    seed.stop().await.unwrap();
    let sent = progress.borrow().uploaded_bytes;
    // Without it, up to three times. A few pieces are requested of both it and another.
    assert!((SIZE as u64..2 * SIZE as u64).contains(&sent), "{sent}");
}
