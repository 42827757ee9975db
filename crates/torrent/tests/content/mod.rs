//! Content for downloads in tests, and the folders they go to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_torrent::{CreateOptions, Download, DownloadError, Metainfo, Summary, create};
use tempfile::TempDir;

/// Longest wait for an expected event: far longer than it takes.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A file of random bytes, its torrent, and room for the download.
pub struct Content {
    pub dir: TempDir,
    pub metainfo: Metainfo,
}

impl Content {
    pub fn new(length: usize, options: &CreateOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file.bin");
        let mut bytes = vec![0u8; length];
        fastrand::Rng::new().fill(&mut bytes[..]);
        std::fs::write(&file, bytes).unwrap();
        let torrent = create(&file, options, |_, _| {}).unwrap();
        let metainfo = Metainfo::parse(&torrent).unwrap();
        Self { dir, metainfo }
    }

    pub fn file(&self) -> PathBuf {
        self.dir.path().join("file.bin")
    }

    #[allow(dead_code, reason = "not every test needs it")]
    pub fn target(&self) -> PathBuf {
        self.dir.path().join("get")
    }

    /// A folder that holds a complete copy.
    #[allow(dead_code, reason = "not every test needs one")]
    pub fn complete(&self) -> PathBuf {
        let folder = self.dir.path().join("complete");
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(self.file(), folder.join("file.bin")).unwrap();
        folder
    }

    #[allow(dead_code, reason = "not every test needs it")]
    pub fn check(&self) {
        let read = |path: &Path| std::fs::read(path).unwrap();
        assert!(read(&self.file()) == read(&self.target().join("file.bin")));
    }
}

pub async fn finish(download: Download) -> Result<Summary, DownloadError> {
    let waited = tokio::time::timeout(PATIENCE, download.wait()).await;
    waited.expect("the download hangs")
}

/// Follows a download to its end, and checks at each report that no more has arrived than `limit`
/// bytes per second allow, whatever time it takes.
#[allow(dead_code, reason = "not every test needs it")]
pub async fn finish_within(limit: u64, download: Download) -> Summary {
    let began = std::time::Instant::now();
    let mut progress = download.progress();
    let followed = async {
        while progress.changed().await.is_ok() {
            // What passes late, and what is read at once.
            let time = began.elapsed().as_secs_f64() + 0.05;
            let allowed = limit as f64 * time + 16384.0 * 2.0;
            let fetched = progress.borrow_and_update().fetched_bytes;
            assert!(fetched as f64 <= allowed, "{fetched} of {allowed}");
        }
    };
    let followed = tokio::time::timeout(PATIENCE, followed).await;
    followed.expect("the download hangs");
    finish(download).await.unwrap()
}
