//! Whole transfers between engines, over pipes.

use std::fs;
use std::path::{Path, PathBuf};

use rand::RngExt;
use tempfile::TempDir;

use super::*;
use crate::testing::{FAST, Host, Net, State, addr, mbit};
use crate::{
    CreateOptions, Download, DownloadError, DownloadOptions, PathState, Seed, Summary, create,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Content of a seeder, and a folder to download to.
struct Stage {
    dir: TempDir,
    metainfo: Metainfo,
}

impl Stage {
    fn new(files: &[(&str, usize)], piece_length: u32) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        for (path, length) in files {
            let path = dir.path().join("seed").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut bytes = vec![0u8; *length];
            rand::rng().fill(&mut bytes[..]);
            fs::write(path, bytes).unwrap();
        }
        let top = Path::new(files[0].0).components().next().unwrap();
        let content = dir.path().join("seed").join(top);
        let options = CreateOptions::new().with_piece_length(piece_length);
        let torrent = create(&content, &options, |_, _| {}).unwrap();
        Stage {
            metainfo: Metainfo::parse(&torrent).unwrap(),
            dir,
        }
    }

    fn one_file(length: usize, piece_length: u32) -> Stage {
        Stage::new(&[("file.bin", length)], piece_length)
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join("get")
    }

    async fn seed(&self, host: &Host) -> Seed {
        let content = self.metainfo.content_path(&self.dir.path().join("seed"));
        Seed::over(host.clone(), self.metainfo.clone(), content, |_, _| {})
            .await
            .unwrap()
    }

    fn download(&self, host: &Host, peers: &[u16]) -> Download {
        self.download_with(host, peers, DownloadOptions::new())
    }

    fn download_with(&self, host: &Host, peers: &[u16], options: DownloadOptions) -> Download {
        let peers = peers.iter().map(|n| addr(*n)).collect();
        Download::over(
            host.clone(),
            self.metainfo.clone(),
            self.target(),
            peers,
            options,
        )
    }

    /// Every file is there and the same.
    fn check(&self) {
        for file in self.metainfo.files() {
            let read = |dir: &str| fs::read(self.dir.path().join(dir).join(&file.path)).unwrap();
            assert!(
                read("seed") == read("get"),
                "{} differs",
                file.path.display()
            );
        }
    }
}

async fn finish(download: Download) -> Result<Summary, DownloadError> {
    tokio::time::timeout(PATIENCE, download.wait())
        .await
        .expect("the download hangs")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_crosses_two_paths() {
    let net = Net::default();
    let stage = Stage::one_file(5_000_000, 65536);
    let seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    net.path(1, FAST);
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    assert_eq!(summary.fetched_bytes, 5_000_000);
    assert_eq!(summary.resumed_bytes, 0);
    let carried: u64 = summary.paths.iter().map(|path| path.bytes).sum();
    assert_eq!(carried, 5_000_000 + summary.wasted_bytes);
    seed.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_folder_come_across_piece_boundaries() {
    let net = Net::default();
    let stage = Stage::new(
        &[
            ("set/a", 100_000),
            ("set/empty", 0),
            ("set/sub/b", 1),
            ("set/sub/c", 70_000),
            ("set/z", 16384),
        ],
        32768,
    );
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
}
