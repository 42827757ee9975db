//! Content that changes on the seeder's disk, and files that a download leaves behind.

use std::os::unix::fs::FileExt;

use super::*;
use crate::testing::State;

/// A seeder of 60 pieces and its file.
async fn seeded(net: &Net) -> (Stage, Seed, PathBuf) {
    let stage = Stage::one_file(60 * 32768, 32768);
    let seed = stage.seed(&net.host(1)).await;
    let file = stage.dir.path().join("seed/file.bin");
    (stage, seed, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_remaining_pieces_of_a_shrunken_file_are_offered() {
    let net = Net::default();
    let (stage, seed, file) = seeded(&net).await;
    let path = net.path(1, mbit(16.0, 1));
    // It would be patient for as long as this test is.
    let download = stage.download(&net.host(0), &[1]);
    let mut progress = download.progress();
    let some = progress.wait_for(|p| p.verified_bytes > 0);
    drop(tokio::time::timeout(PATIENCE, some).await.unwrap().unwrap());
    net.set(&path, State::Frozen);
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_len(50 * 32768 + 5).unwrap();
    net.set(&path, State::Up);
    let mut seeding = seed.progress();
    let seen = seeding.wait_for(|p| !p.changed.is_empty());
    let seen = tokio::time::timeout(PATIENCE, seen).await.unwrap().unwrap();
    assert_eq!((seen.changed[0].lost, seen.changed[0].pieces), (10, 60));
    let text = seen.changed[0].to_string();
    let end = ": 10 of its 60 pieces are not offered any more";
    assert!(text.ends_with(end), "{text}");
    drop(seen);
    let error = finish(download).await.unwrap_err();
    assert!(matches!(error, DownloadError::Incomplete { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains(&addr(1).to_string()), "{error}");
    assert!(error.contains("none of the missing pieces"), "{error}");
    // Everything that was offered has been fetched.
    let got = progress.borrow().verified_bytes;
    assert!(got >= 50 * 32768, "{got} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_piece_is_withdrawn_and_offered_again_once_restored() {
    let net = Net::default();
    let (stage, seed, path) = seeded(&net).await;
    net.path(1, FAST);
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mut right = [0; 3];
    file.read_exact_at(&mut right, 20 * 32768).unwrap();
    let wrong = right.map(|byte| byte ^ 0xff);
    file.write_all_at(&wrong, 20 * 32768).unwrap();
    let options = DownloadOptions {
        awaits_peers: true,
        ..DownloadOptions::default()
    };
    let download = stage.download_with(&net.host(0), &[1], options);
    let mut progress = download.progress();
    let rest = progress.wait_for(|p| p.verified_bytes == 59 * 32768);
    drop(tokio::time::timeout(PATIENCE, rest).await.unwrap().unwrap());
    assert_eq!(progress.borrow().wasted_bytes, 0);
    let mut seeding = seed.progress();
    let mut says = async |text: &str| {
        let text = format!("{} {text}", path.display());
        let says = seeding.wait_for(|p| p.changed.iter().any(|file| file.to_string() == text));
        let said = tokio::time::timeout(PATIENCE, says).await;
        assert!(said.is_ok(), "it never says: {text}");
    };
    says("has changed: 1 of its 60 pieces are not offered any more").await;
    file.write_all_at(&right, 20 * 32768).unwrap();
    finish(download).await.unwrap();
    says("is right again: all its pieces are offered").await;
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_touched_file_is_offered_as_before() {
    let net = Net::default();
    let (stage, seed, file) = seeded(&net).await;
    net.path(1, FAST);
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_modified(std::time::SystemTime::now() + Duration::from_secs(5))
        .unwrap();
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    let mut progress = seed.progress();
    let served = progress.wait_for(|p| p.uploaded_bytes == 60 * 32768);
    let served = tokio::time::timeout(PATIENCE, served).await;
    assert_eq!(served.unwrap().unwrap().connections, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_reached_no_peer_leaves_no_file() {
    let net = Net::default();
    let stage = Stage::new(&[("set/a", 1_000_000), ("set/sub/b", 5)], 32768);
    net.path(1, FAST);
    let options = giving_up_after(Duration::from_millis(300));
    let result = finish(stage.download_with(&net.host(0), &[1], options)).await;
    result.unwrap_err();
    assert!(!stage.target().exists());
    // Meanwhile there is at most an empty file, which would remain after a kill.
    let (net, file) = (Net::default(), stage.target().join("set/a"));
    let path = net.path(1, mbit(40.0, 1));
    let _seed = stage.seed(&net.host(1)).await;
    net.set(&path, State::Frozen);
    let download = stage.download(&net.host(0), &[1]);
    let mut progress = download.progress();
    let begun = progress.wait_for(|p| p.phase == crate::Phase::Downloading);
    drop(
        tokio::time::timeout(PATIENCE, begun)
            .await
            .unwrap()
            .unwrap(),
    );
    assert_eq!(fs::metadata(file).unwrap().len(), 0);
    download.stop();
    finish(download).await.unwrap_err();
    assert!(!stage.target().exists());
}
