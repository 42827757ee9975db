//! A disk that really runs full: a small tmpfs in a mount namespace.

use std::process::Command;

use super::*;
use crate::StoreError;

/// The environment variable that names the small disk.
const DISK: &str = "HAWSER_TEST_SMALL_DISK";

#[test]
fn a_full_disk_is_one_clear_error_and_nothing_verified_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "mount -t tmpfs -o size=3m tmpfs \"$HAWSER_TEST_SMALL_DISK\" && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "swarm::tests::disk::on_a_small_disk",
        ])
        .env(DISK, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{failed}");
    assert!(said.contains("1 passed"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, on its small disk"]
async fn on_a_small_disk() {
    let net = Net::default();
    let stage = Stage::new(&[("set/a", 1_000_000), ("set/b", 5_000_000)], 32768);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(200.0, 1));
    let disk = PathBuf::from(std::env::var(DISK).unwrap());
    let get = || {
        let options = DownloadOptions::default();
        let metainfo = stage.metainfo.clone();
        Download::over(net.host(0), metainfo, disk.clone(), vec![addr(1)], options)
    };
    let error = finish(get()).await.unwrap_err();
    let full = matches!(error, DownloadError::Store(StoreError::Full { .. }));
    assert!(full, "{error}");
    assert_eq!(error.to_string().lines().count(), 1);
    assert!(error.to_string().contains("disk is full"), "{error}");
    let status = Command::new("mount")
        .args(["-o", "remount,size=20m"])
        .arg(&disk)
        .status();
    assert!(status.unwrap().success());
    let summary = finish(get()).await.unwrap();
    assert!(summary.resumed_bytes > 2_000_000, "{summary:?}");
    assert_eq!(summary.resumed_bytes + summary.fetched_bytes, 6_000_000);
    for file in &stage.metainfo.files {
        let seeded = fs::read(stage.dir.path().join("seed").join(&file.path)).unwrap();
        assert!(fs::read(disk.join(&file.path)).unwrap() == seeded);
    }
}
