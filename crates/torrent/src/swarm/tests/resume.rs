//! Content on disk is not fetched again, and files in its place are left alone.

use super::*;
use crate::testing::State;
use crate::{FileOptions, Phase, StoreError};

/// Downloads until about `part` of the content is verified, then drops the download, like a kill.
async fn break_off(stage: &Stage, host: &Host, part: f64) -> u64 {
    let download = stage.download(host, &[1]);
    let mut progress = download.progress();
    let enough = (stage.metainfo.pieces.total as f64 * part) as u64;
    let waiting = progress.wait_for(|progress| progress.verified_bytes >= enough);
    let verified = tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap()
        .unwrap()
        .verified_bytes;
    drop(download);
    // The engine may still be writing: wait until it has ended.
    let gone = async { while progress.changed().await.is_ok() {} };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
    verified
}

#[tokio::test(flavor = "multi_thread")]
async fn verified_pieces_are_not_fetched_again() {
    let net = Net::default();
    let stage = Stage::new(&[("set/a", 1_000_000), ("set/b", 2_000_001)], 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(40.0, 1));
    let verified = break_off(&stage, &net.host(0), 0.4).await;
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    assert!(summary.resumed_bytes >= verified, "{summary:?}");
    assert_eq!(summary.resumed_bytes + summary.fetched_bytes, 3_000_001);
    // The second time there is nothing to fetch, and no peer is needed.
    let again = finish(stage.download(&net.host(0), &[7])).await.unwrap();
    assert_eq!((again.resumed_bytes, again.fetched_bytes), (3_000_001, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_pieces_are_fetched_again() {
    let net = Net::default();
    let stage = Stage::one_file(1_000_000, 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    let file = stage.target().join("file.bin");
    let mut bytes = fs::read(&file).unwrap();
    bytes[500_000] ^= 1;
    bytes.truncate(900_000);
    fs::write(&file, bytes).unwrap();
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    // The damaged piece, and those that were cut off.
    let cut = 1_000_000 - 900_000 / 32768 * 32768;
    assert_eq!(summary.fetched_bytes, 32768 + cut);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_obstacle_is_an_error_and_is_left_alone() {
    let net = Net::default();
    let stage = Stage::one_file(100_000, 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    fs::create_dir_all(stage.target().join("file.bin")).unwrap();
    let error = finish(stage.download(&net.host(0), &[1]))
        .await
        .unwrap_err();
    assert!(
        matches!(error, DownloadError::Store(StoreError::NotAFile { .. })),
        "{error}"
    );
    fs::remove_dir(stage.target().join("file.bin")).unwrap();
    fs::write(stage.target().join("file.bin"), vec![5; 200_000]).unwrap();
    let error = finish(stage.download(&net.host(0), &[1]))
        .await
        .unwrap_err();
    assert!(
        matches!(error, DownloadError::Store(StoreError::TooLong { .. })),
        "{error}"
    );
    assert_eq!(
        fs::read(stage.target().join("file.bin")).unwrap(),
        vec![5; 200_000]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_symlink_that_leads_out_is_refused() {
    let net = Net::default();
    let stage = Stage::new(&[("set/sub/a", 50_000)], 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir_all(stage.target().join("set")).unwrap();
    std::os::unix::fs::symlink(outside.path(), stage.target().join("set/sub")).unwrap();
    let error = finish(stage.download(&net.host(0), &[1]))
        .await
        .unwrap_err();
    assert!(
        matches!(error, DownloadError::Store(StoreError::LeadsOut { .. })),
        "{error}"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_is_reported_and_keeps_verified_pieces() {
    let net = Net::default();
    let stage = Stage::one_file(3_000_000, 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(16.0, 1));
    let download = stage.download(&net.host(0), &[1]);
    let mut progress = download.progress();
    progress
        .wait_for(|p| p.verified_bytes > 500_000)
        .await
        .unwrap();
    download.stop();
    let error = finish(download).await.unwrap_err();
    assert!(matches!(error, DownloadError::Stopped), "{error}");
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    assert!(summary.resumed_bytes >= 500_000);
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_fails_verification_is_not_seeded() {
    let net = Net::default();
    let stage = Stage::new(&[("set/a", 50_000), ("set/b", 50_000)], 16384);
    let content = stage.dir.path().join("seed/set");
    let start = |content: PathBuf| {
        let (host, metainfo) = (net.host(1), stage.metainfo.clone());
        async move { Seed::over(host, metainfo, content, SeedOptions::default(), |_, _| {}).await }
    };
    // Renamed content is accepted, and so is the folder that holds the content.
    start(content.parent().unwrap().to_owned()).await.unwrap();
    let renamed = content.with_file_name("other");
    fs::rename(&content, &renamed).unwrap();
    start(renamed.clone()).await.unwrap();
    let mut bytes = fs::read(renamed.join("b")).unwrap();
    bytes[49_999] ^= 1;
    fs::write(renamed.join("b"), &bytes).unwrap();
    let error = start(renamed.clone()).await.unwrap_err().to_string();
    assert!(
        error.contains("1 of 7 pieces") && error.ends_with(" b"),
        "{error}"
    );
    fs::write(renamed.join("b"), &bytes[1..]).unwrap();
    let error = start(renamed.clone()).await.unwrap_err().to_string();
    assert!(error.contains("49999 bytes"), "{error}");
    fs::remove_file(renamed.join("a")).unwrap();
    let error = start(renamed).await.unwrap_err().to_string();
    assert!(error.contains("cannot find"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_files_cannot_be_downloaded_twice_at_once() {
    let net = Net::default();
    let stage = Stage::new(&[("set/a", 1_000), ("set/b", 1_000_000)], 32768);
    let _seed = stage.seed(&net.host(1)).await;
    let path = net.path(1, mbit(40.0, 1));
    let host = net.host(0);
    let first = stage.download(&host, &[1]);
    let mut progress = first.progress();
    let begun = progress.wait_for(|progress| progress.phase == Phase::Downloading);
    begun.await.unwrap();
    net.set(&path, State::Frozen);
    let error = finish(stage.download(&host, &[1])).await.unwrap_err();
    let file = stage.target().join("set/a");
    assert!(
        matches!(&error, DownloadError::Store(StoreError::InUse(path)) if *path == file),
        "{error}"
    );
    net.set(&path, State::Up);
    finish(first).await.unwrap();
    stage.check();
    // Afterwards another download may start.
    finish(stage.download(&host, &[1])).await.unwrap();
}

/// All files and folders below a folder.
fn entries(folder: &Path) -> std::collections::BTreeSet<PathBuf> {
    let mut found = std::collections::BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(entries(&path));
        }
        found.insert(path);
    }
    found
}

/// Downloads to a folder that holds these files, and expects them to be refused and left alone.
async fn refused(stage: &Stage, host: &Host, there: &[(&str, Vec<u8>)]) {
    for (name, bytes) in there {
        let path = stage.target().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let before = entries(&stage.target());
    let error = finish(stage.download(host, &[1])).await.unwrap_err();
    assert!(
        matches!(error, DownloadError::Store(StoreError::Foreign { .. })),
        "{error}"
    );
    assert_eq!(entries(&stage.target()), before, "something was created");
    for (name, bytes) in there {
        assert!(
            fs::read(stage.target().join(name)).unwrap() == *bytes,
            "{name} has changed"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_file_is_not_overwritten() {
    let net = Net::default();
    let stage = Stage::one_file(200_000, 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let host = net.host(0);
    // Shorter files, and one of the same length.
    for length in [1, 50_000, 200_000] {
        refused(&stage, &host, &[("file.bin", vec![5; length])]).await;
    }
    // Of the same length and sparse, as disk images are; zeros prove nothing.
    let file = stage.target().join("file.bin");
    fs::write(&file, vec![5; 100_000]).unwrap();
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(200_000)
        .unwrap();
    let sparse = fs::read(&file).unwrap();
    let error = finish(stage.download(&host, &[1])).await.unwrap_err();
    assert!(
        matches!(error, DownloadError::Store(StoreError::Foreign { .. })),
        "{error}"
    );
    assert!(fs::read(&file).unwrap() == sparse);
    // With `overwrite`, even a file that is too long is replaced.
    for length in [50_000, 300_000] {
        fs::write(&file, vec![5; length]).unwrap();
        let options = DownloadOptions {
            storage: FileOptions {
                overwrite: true,
                ..FileOptions::default()
            },
            ..DownloadOptions::default()
        };
        finish(stage.download_with(&host, &[1], options))
            .await
            .unwrap();
        stage.check();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_foreign_file_beside_torrent_files_is_not_overwritten() {
    let net = Net::default();
    let stage = Stage::new(
        &[("set/big", 200_000), ("set/readme", 100), ("set/z", 10)],
        32768,
    );
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let host = net.host(0);
    refused(&stage, &host, &[("set/readme", b"mine".to_vec())]).await;
    // Also beside a file fetched before.
    let big = fs::read(stage.dir.path().join("seed/set/big")).unwrap();
    refused(
        &stage,
        &host,
        &[("set/readme", b"mine".to_vec()), ("set/big", big)],
    )
    .await;
    // An empty file may be overwritten.
    fs::write(stage.target().join("set/readme"), b"").unwrap();
    finish(stage.download(&host, &[1])).await.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_resumes_before_its_first_piece_is_complete() {
    let net = Net::default();
    // One piece, and small files, some of which are written in full before the piece is complete.
    let stage = Stage::new(&[("set/a", 500), ("set/b", 3_000_000)], 4 << 20);
    let _seed = stage.seed(&net.host(1)).await;
    let path = net.path(1, mbit(8.0, 1));
    let host = net.host(0);
    let download = stage.download(&host, &[1]);
    let mut progress = download.progress();
    let begun = progress.wait_for(|progress| progress.fetched_bytes > 100_000);
    tokio::time::timeout(PATIENCE, begun)
        .await
        .unwrap()
        .unwrap();
    drop(download);
    let gone = async { while progress.changed().await.is_ok() {} };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
    let small = fs::read(stage.target().join("set/a")).unwrap();
    assert!(small.iter().any(|byte| *byte != 0), "nothing was written");
    net.set(&path, State::Up);
    finish(stage.download(&host, &[1])).await.unwrap();
    stage.check();
    // The mark is removed when the download is complete.
    for file in &stage.metainfo.files {
        let path = stage.target().join(&file.path);
        let mark = rustix::fs::getxattr(path, "user.hawser.download", &mut [0; 20][..]);
        assert!(mark.is_err(), "{}", file.path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_content_of_zeros_is_accepted() {
    let net = Net::default();
    let stage = Stage::zeros(100_000, 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let host = net.host(0);
    finish(stage.download(&host, &[1])).await.unwrap();
    let again = finish(stage.download(&host, &[1])).await.unwrap();
    assert_eq!(again.fetched_bytes, 0);
    stage.check();
}

/// Options with a record of what is verified.
fn recorded(stage: &Stage) -> DownloadOptions {
    DownloadOptions {
        record: Some(stage.dir.path().join("verified")),
        ..DownloadOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_is_not_hashed_again_unless_that_is_wanted() {
    let net = Net::default();
    let stage = Stage::new(&[("set/a", 1_000_000), ("set/b", 500_000)], 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let fetch = |options| finish(stage.download_with(&net.host(0), &[1], options));
    let first = fetch(recorded(&stage)).await.unwrap();
    assert_eq!((first.trusted_pieces, first.resumed_bytes), (0, 0));
    let all = stage.metainfo.pieces.count();
    assert_eq!(fetch(recorded(&stage)).await.unwrap().trusted_pieces, all);
    assert_eq!(
        fetch(DownloadOptions::default())
            .await
            .unwrap()
            .trusted_pieces,
        0
    );
    // Damage that the file system does not show: only hashing finds it.
    let path = stage.target().join("set/a");
    let file = fs::File::options().write(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 9], 100).unwrap();
    file.set_modified(modified).unwrap();
    drop(file);
    assert_eq!(fetch(recorded(&stage)).await.unwrap().trusted_pieces, all);
    let rechecked = DownloadOptions {
        rechecks: true,
        ..recorded(&stage)
    };
    let mended = fetch(rechecked).await.unwrap();
    assert_eq!((mended.trusted_pieces, mended.fetched_bytes), (0, 32768));
    stage.check();
    assert_eq!(fetch(recorded(&stage)).await.unwrap().trusted_pieces, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_verified_when_a_download_is_stopped_is_recorded() {
    let net = Net::default();
    let stage = Stage::one_file(3_000_000, 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(16.0, 1));
    let download = stage.download_with(&net.host(0), &[1], recorded(&stage));
    let mut progress = download.progress();
    let enough = progress.wait_for(|progress| progress.verified_bytes > 500_000);
    let waited = tokio::time::timeout(PATIENCE, enough).await;
    waited.unwrap().unwrap();
    download.stop();
    finish(download).await.unwrap_err();
    let resumed = finish(stage.download_with(&net.host(0), &[1], recorded(&stage)));
    let resumed = resumed.await.unwrap();
    stage.check();
    let trusted = u64::from(resumed.trusted_pieces) * 32768;
    // The last piece is shorter, and may be one of them.
    let shorter = trusted - resumed.resumed_bytes;
    assert!(
        resumed.resumed_bytes > 500_000 && [0, 32768 - 3_000_000 % 32768].contains(&shorter),
        "{resumed:?}"
    );
}
