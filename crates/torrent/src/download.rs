//! Fetching a torrent.

mod options;
mod prepare;
mod run;

use std::path::PathBuf;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub use self::options::DownloadOptions;
use self::run::Job;
use crate::address::PeerAddr;
use crate::error::DownloadError;
use crate::metainfo::Metainfo;
use crate::network::Network;
use crate::progress::{Progress, Summary};
use crate::transport::Transport;

/// A download at work. Dropping it stops it; what was verified stays on disk.
#[derive(Debug)]
pub struct Download {
    progress: watch::Receiver<Progress>,
    /// `true` asks it to stop; so does dropping this.
    stop: watch::Sender<bool>,
    completed: oneshot::Receiver<Summary>,
    task: JoinHandle<Result<Summary, DownloadError>>,
}

impl Download {
    /// Starts to fetch the torrent into `dir`, which is created if it does not exist, from `peers`
    /// and from peers that connect to `network`. What is already on disk is verified first and not
    /// fetched again. [`Download::wait`] returns errors.
    ///
    /// `network` is for this torrent alone: the download accepts all its connections.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        metainfo: Metainfo,
        dir: PathBuf,
        peers: Vec<PeerAddr>,
        network: Network,
        options: DownloadOptions,
    ) -> Self {
        Self::over(network, metainfo, dir, peers, options)
    }

    pub(crate) fn over<T: Transport>(
        transport: T,
        metainfo: Metainfo,
        dir: PathBuf,
        peers: Vec<PeerAddr>,
        options: DownloadOptions,
    ) -> Self {
        let (sender, progress) = watch::channel(Progress::of(metainfo.total_length()));
        let (stop, mut stopped) = watch::channel(false);
        let (sends_completed, completed) = oneshot::channel();
        let job = Job {
            transport,
            metainfo,
            dir,
            peers,
            options,
            progress: sender,
            completed: sends_completed,
        };
        let task = tokio::spawn(job.run(async move {
            // An error means that the download was dropped.
            let _ = stopped.wait_for(|stop| *stop).await;
        }));
        Self {
            progress,
            stop,
            completed,
            task,
        }
    }

    /// Its state, about ten times a second.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Waits until everything is verified, and returns what it took; `None` if the download ends
    /// before that ([`Download::wait`] returns why), and when called again.
    pub async fn completed(&mut self) -> Option<Summary> {
        if self.completed.is_terminated() {
            return None;
        }
        (&mut self.completed).await.ok()
    }

    /// Waits for the end, that of seeding afterwards included.
    ///
    /// # Errors
    /// Why it did not finish.
    pub async fn wait(self) -> Result<Summary, DownloadError> {
        let Self { stop, task, .. } = self;
        let result = task.await;
        drop(stop);
        result?
    }

    /// Ends the download; [`Download::wait`] then returns [`DownloadError::Stopped`], unless
    /// everything is verified.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}
