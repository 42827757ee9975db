//! Fetching a torrent.

use std::path::PathBuf;
use std::time::Duration;

use hawser_endhost::{Endhost, ScionAddr};
use hawser_path::Strategy;
use hawser_quic::Endpoint;
use thiserror::Error;
use tokio::sync::watch;

use crate::metainfo::Metainfo;
use crate::progress::{Progress, Summary};

/// How to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DownloadOptions {
    /// Most paths used at once to each peer; at least 1.
    pub paths: usize,
    /// Which of the offered paths are used.
    pub select: Strategy,
    /// Give up after this long without a connection and without progress.
    pub give_up_after: Duration,
}

impl Default for DownloadOptions {
    fn default() -> Self {
        DownloadOptions {
            paths: 4,
            select: Strategy::Disjoint,
            give_up_after: Duration::from_secs(60),
        }
    }
}

impl DownloadOptions {
    /// The defaults: up to 4 disjoint paths to each peer, giving up after 60 s.
    pub fn new() -> Self {
        DownloadOptions::default()
    }

    /// Most paths used at once to each peer; 0 counts as 1.
    pub fn with_paths(mut self, paths: usize) -> Self {
        self.paths = paths.max(1);
        self
    }

    /// Which of the offered paths are used.
    pub fn with_select(mut self, select: Strategy) -> Self {
        self.select = select;
        self
    }

    /// How long to go on without any connection and without progress.
    pub fn with_give_up_after(mut self, timeout: Duration) -> Self {
        self.give_up_after = timeout;
        self
    }
}

/// Why a download ended before its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// [`Download::stop`] was called.
    #[error("the download was stopped")]
    Stopped,
}

/// A download at work. Dropping it stops it; what was verified stays on disk.
pub struct Download {}

impl Download {
    /// Starts to fetch the torrent into `dir` from `peers`. Errors come out of [`Download::wait`].
    /// Must be called inside a tokio runtime.
    pub fn start(
        _metainfo: Metainfo,
        _dir: PathBuf,
        _peers: Vec<ScionAddr>,
        _endpoint: Endpoint,
        _host: Endhost,
        _options: DownloadOptions,
    ) -> Download {
        unimplemented!()
    }

    /// How it is doing, about ten times a second.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        unimplemented!()
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// What kept it from finishing.
    pub async fn wait(self) -> Result<Summary, DownloadError> {
        unimplemented!()
    }

    /// Ends the download; [`Download::wait`] then returns [`DownloadError::Stopped`].
    pub fn stop(&self) {
        unimplemented!()
    }
}
