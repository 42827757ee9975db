//! Downloads that continue as seeders when they are complete.

use tokio::sync::watch;

use super::*;
use crate::progress::Progress;
use crate::{Phase, SeedEnd, SeedLimits};

/// Waits until `so` holds for the progress.
async fn until(progress: &mut watch::Receiver<Progress>, so: impl FnMut(&Progress) -> bool) {
    let waited = tokio::time::timeout(PATIENCE, progress.wait_for(so)).await;
    waited.expect("it never comes to that").unwrap();
}

impl Stage {
    /// Downloads from `peers` into a separate folder, and then seeds.
    fn get_and_seed(&self, host: &Host, peers: &[u16], limits: SeedLimits) -> Download {
        let options = DownloadOptions {
            seed: Some(limits),
            ..DownloadOptions::default()
        };
        let peers = peers.iter().map(|n| addr(*n)).collect();
        let dir = self.dir.path().join("and-seed");
        Download::over(host.clone(), self.metainfo.clone(), dir, peers, options)
    }

    /// Copies the content that [`Stage::get_and_seed`] would fetch into its folder.
    fn put_all(&self) {
        let dir = self.dir.path().join("and-seed");
        fs::create_dir(&dir).unwrap();
        fs::copy(self.dir.path().join("seed/file.bin"), dir.join("file.bin")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_in_mid_download_keep_their_connection() {
    let net = Net::default();
    let stage = Stage::one_file(2_000_000, 32768);
    let seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(16.0, 2));
    net.path(2, mbit(12.0, 2));
    let mut middle = stage.get_and_seed(&net.host(2), &[1], SeedLimits::default());
    let mut last = stage.download(&net.host(3), &[2]);
    let mut progress = middle.progress();
    until(&mut progress, |p| p.phase == Phase::Seeding).await;
    let summary = middle.completed().await.unwrap();
    assert_eq!(summary.fetched_bytes, 2_000_000);
    assert_eq!(summary.seeded, None);
    // Stop the only other peer that has everything.
    seed.stop().await.unwrap();
    assert!(last.completed().await.is_some());
    finish(last).await.unwrap();
    stage.check();
    let dials = net.dials().into_iter();
    assert_eq!(dials.filter(|(to, _)| *to == addr(2)).count(), 1);

    middle.stop();
    let summary = finish(middle).await.unwrap();
    assert_eq!(summary.seeded.unwrap().end, SeedEnd::Stopped);
    assert!(summary.uploaded_bytes >= 2_000_000, "{summary:?}");
    let last = progress.borrow();
    assert_eq!(last.phase, Phase::Done);
    assert_eq!(last.uploads.uploaded_bytes, summary.uploaded_bytes);
    assert!(last.elapsed == summary.download_time && last.seeding.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ratio_ends_seeding_once_sent_blocks_have_arrived() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 32768);
    stage.put_all();
    // Blocks under way take a while to arrive.
    net.path(2, mbit(16.0, 60));
    let limits = SeedLimits {
        ratio: Some(1.0),
        ..SeedLimits::default()
    };
    let seeding = stage.get_and_seed(&net.host(2), &[9], limits);
    let last = finish(stage.download(&net.host(3), &[2])).await.unwrap();
    assert_eq!(last.fetched_bytes, 1_000_000);
    stage.check();
    let summary = finish(seeding).await.unwrap();
    assert_eq!(summary.resumed_bytes, 1_000_000);
    assert_eq!(summary.seeded.unwrap().end, SeedEnd::Ratio);
}

#[tokio::test(flavor = "multi_thread")]
async fn seeding_ends_despite_a_peer_that_reads_nothing() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 32768);
    stage.put_all();
    let path = net.path(2, mbit(16.0, 2));
    let limits = SeedLimits {
        ratio: Some(0.2),
        ..SeedLimits::default()
    };
    let seeding = stage.get_and_seed(&net.host(2), &[9], limits);
    let download = stage.download(&net.host(3), &[2]);
    until(&mut download.progress(), |p| p.fetched_bytes > 0).await;
    net.set(&path, crate::testing::State::Frozen);
    let summary = finish(seeding).await.unwrap();
    assert_eq!(summary.seeded.unwrap().end, SeedEnd::Ratio);
    drop(download);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_ends_seeding_without_peers() {
    let net = Net::default();
    let stage = Stage::one_file(100_000, 32768);
    stage.put_all();
    let limits = SeedLimits {
        time: Some(Duration::from_millis(1)),
        ..SeedLimits::default()
    };
    let summary = finish(stage.get_and_seed(&net.host(2), &[9], limits)).await;
    let seeded = summary.unwrap().seeded.unwrap();
    assert_eq!(seeded.end, SeedEnd::Time);
    assert!(seeded.time >= Duration::from_millis(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_peers_close_their_connection() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 32768);
    let seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(40.0, 2));
    let middle = stage.get_and_seed(&net.host(2), &[1], SeedLimits::default());
    until(&mut middle.progress(), |p| p.phase == Phase::Seeding).await;
    let mut progress = seed.progress();
    let gone = progress.wait_for(|p| p.connections == 1 && p.peers.is_empty());
    let gone = tokio::time::timeout(PATIENCE, gone).await.unwrap();
    drop(gone.unwrap());
    let paths = |p: &Progress| p.paths.iter().all(|p| p.rtt.is_none());
    until(&mut middle.progress(), paths).await;
    // The complete peer is not dialed again while others are served.
    net.path(2, mbit(40.0, 2));
    finish(stage.download(&net.host(3), &[2])).await.unwrap();
    stage.check();
    let dials = net.dials().into_iter();
    assert_eq!(dials.filter(|(to, _)| *to == addr(1)).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_dials_peers_that_lack_pieces() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 32768);
    stage.put_all();
    net.path(3, mbit(40.0, 2));
    // The only peer it knows does not answer.
    net.path(9, mbit(40.0, 2));
    let download = stage.download(&net.host(3), &[9]);
    let seeding = stage.get_and_seed(&net.host(2), &[3], SeedLimits::default());
    finish(download).await.unwrap();
    stage.check();
    assert_eq!(seeding.progress().borrow().phase, Phase::Seeding);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_is_stopped_before_its_end_has_not_seeded() {
    let net = Net::default();
    let stage = Stage::one_file(2_000_000, 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(4.0, 2));
    let mut download = stage.get_and_seed(&net.host(2), &[1], SeedLimits::default());
    until(&mut download.progress(), |p| p.verified_bytes > 0).await;
    download.stop();
    assert_eq!(download.completed().await, None);
    assert_eq!(download.completed().await, None);
    let error = finish(download).await.unwrap_err();
    assert!(matches!(error, DownloadError::Stopped), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_remaining_pieces_are_offered_if_a_file_shrinks_after_the_download() {
    let net = Net::default();
    let stage = Stage::one_file(60 * 32768, 32768);
    stage.put_all();
    net.path(2, FAST);
    let middle = stage.get_and_seed(&net.host(2), &[9], SeedLimits::default());
    let mut progress = middle.progress();
    until(&mut progress, |p| p.phase == Phase::Seeding).await;
    let file = stage.dir.path().join("and-seed/file.bin");
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_len(50 * 32768).unwrap();
    until(&mut progress, |p| !p.uploads.changed.is_empty()).await;
    let changed = progress.borrow().uploads.changed[0].clone();
    assert_eq!((changed.lost, changed.pieces), (10, 60));

    let last = stage.download(&net.host(3), &[2]);
    let mut fetched = last.progress();
    until(&mut fetched, |p| p.verified_bytes == 50 * 32768).await;
    assert_eq!(fetched.borrow().wasted_bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_that_nobody_wants_anything_of_wakes_to_look_at_its_files_only() {
    let net = Net::default();
    let stage = Stage::one_file(100_000, 32768);
    let seed = stage.seed(&net.host(1)).await;
    let mut progress = seed.progress();
    let mut reports = 0;
    let counted = async {
        while progress.changed().await.is_ok() {
            reports += 1;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_millis(2500), counted)
            .await
            .is_err()
    );
    // The first, the one of the first tick, and one for each look at the files.
    assert!(reports <= 5, "{reports} reports");
    // It serves as soon as somebody comes.
    net.path(1, mbit(16.0, 2));
    finish(stage.download(&net.host(2), &[1])).await.unwrap();
    stage.check();
    let sent = progress.wait_for(|progress| progress.uploaded_bytes == 100_000);
    let sent = tokio::time::timeout(PATIENCE, sent).await;
    assert!(sent.is_ok_and(|sent| sent.is_ok()));
}
