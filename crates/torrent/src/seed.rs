//! Serving a torrent.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hawser_manager::{PathOptions, SelectBy};
use hawser_path::{Policy, Select};
use hawser_store::{Files, Stamps, StoreError, check};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::bitfield::Bitfield;
use crate::error::DownloadError;
use crate::layout;
use crate::limits::SeedLimits;
use crate::metainfo::Metainfo;
use crate::network::Network;
use crate::peer::Shared;
use crate::progress::SeedProgress;
use crate::swarm::{Goal, Reporter, Swarm};
use crate::transport::Transport;

/// How to seed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeedOptions {
    /// Whether this side chooses paths to peers that let the uploader choose.
    pub select_by: SelectBy,
    /// Which of the paths to such a peer come first. Only its ranking counts: taken are paths that
    /// share nothing with those assigned to other peers.
    pub select: Select,
    /// Which paths may be used at all, also by peers that connect.
    pub policy: Option<Policy>,
    /// Whether paths that share interfaces with assigned ones are tried, and kept if those lose
    /// nothing (001, section VIII).
    pub sensing: bool,
}

impl Default for SeedOptions {
    fn default() -> Self {
        Self {
            select_by: SelectBy::Uploader,
            select: Select::shortest(),
            policy: None,
            sensing: true,
        }
    }
}

impl SeedOptions {
    /// The defaults: paths are chosen here for peers that let the uploader choose.
    pub fn new() -> Self {
        Self::default()
    }

    /// The side that chooses: with [`SelectBy::Downloader`] no peer is connected back to.
    pub fn with_select_by(mut self, select_by: SelectBy) -> Self {
        self.select_by = select_by;
        self
    }

    /// Which paths may be used at all.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Which of the paths to a peer come first.
    pub fn with_select(mut self, select: Select) -> Self {
        self.select = select;
        self
    }

    /// Whether to try paths that share interfaces with assigned ones; by default yes.
    pub fn with_sensing(mut self, sensing: bool) -> Self {
        self.sensing = sensing;
        self
    }
}

/// A seeder at work. Dropping it stops it.
#[derive(Debug)]
pub struct Seed {
    progress: watch::Receiver<SeedProgress>,
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), SeedError>>,
}

/// Why content cannot be seeded, in one line each.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SeedError {
    /// A file is missing, has another length, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The content is not that of the torrent.
    #[error(
        "{content} is not what the torrent describes: {wrong} of {pieces} pieces differ, the first in {file}"
    )]
    Differs {
        /// The content.
        content: PathBuf,
        /// Pieces that differ.
        wrong: u32,
        /// Pieces in all.
        pieces: u32,
        /// The file of the first that differs.
        file: PathBuf,
    },
    /// The endpoint was closed.
    #[error("the endpoint was closed while seeding")]
    EndpointClosed,
    /// A defect in this program.
    #[error("the seeder broke off: {0}")]
    Internal(String),
}

impl Seed {
    /// Verifies `content` against the torrent, calling `checked` with the bytes hashed so far and
    /// in all. Then serves every peer that connects to `network`, and connects back to those that
    /// let it choose paths. `content` is the file, or the folder of a torrent of several files,
    /// under any name; or the folder that has it in it under the torrent's name.
    ///
    /// # Errors
    /// If the content does not exist or does not match the torrent.
    pub async fn start(
        metainfo: Metainfo,
        content: PathBuf,
        network: Network,
        options: SeedOptions,
        checked: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<Self, SeedError> {
        Self::over(network, metainfo, content, options, checked).await
    }

    pub(crate) async fn over<T: Transport>(
        transport: T,
        metainfo: Metainfo,
        content: PathBuf,
        options: SeedOptions,
        checked: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<Self, SeedError> {
        let metainfo = Arc::new(metainfo);
        let described = Arc::clone(&metainfo);
        let (files, stamps) =
            tokio::task::spawn_blocking(move || verify(&described, &content, checked))
                .await
                .map_err(|error| SeedError::Internal(error.to_string()))??;
        let (sender, progress) = watch::channel(SeedProgress::default());
        let goal = Goal {
            until_complete: false,
            give_up_after: Duration::MAX,
            select_by: options.select_by,
            paths: PathOptions {
                select: options.select,
                policy: options.policy,
                sensing: options.sensing,
                ..PathOptions::default()
            },
        };
        let everything = Bitfield::full(metainfo.piece_count());
        let files = Arc::new(files);
        let shared = Arc::new(Shared::new(&metainfo, files, everything));
        let reporter = Reporter::Seed(sender);
        let mut swarm = Swarm::new(transport, metainfo, shared, Vec::new(), goal, reporter)?;
        let (stop, mut stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let stop = async move {
                // An error means that the seeder was dropped.
                let _ = stopped.wait_for(|stop| *stop).await;
            };
            let ended = swarm.seed(SeedLimits::default(), stamps, stop).await;
            swarm.close(ended.is_ok()).await;
            match ended {
                Ok(_) => Ok(()),
                Err(DownloadError::Store(error)) => Err(SeedError::Store(error)),
                // Only downloads end for other reasons.
                Err(_) => Err(SeedError::EndpointClosed),
            }
        });
        Ok(Self {
            progress,
            stop,
            task,
        })
    }

    /// Its state, about ten times a second.
    pub fn progress(&self) -> watch::Receiver<SeedProgress> {
        self.progress.clone()
    }

    /// Closes all connections and ends; the endpoint stays open.
    ///
    /// # Errors
    /// Why it had ended before.
    pub async fn stop(self) -> Result<(), SeedError> {
        self.stop.send_replace(true);
        self.wait().await
    }

    /// Waits until the endpoint closes.
    ///
    /// # Errors
    /// Why it ended.
    pub async fn wait(self) -> Result<(), SeedError> {
        let Self { stop, task, .. } = self;
        let result = task.await;
        drop(stop);
        result.unwrap_or_else(|error| Err(SeedError::Internal(error.to_string())))
    }
}

/// Opens the content and hashes all of it; returns the states of the files before that.
fn verify(
    metainfo: &Metainfo,
    content: &Path,
    mut checked: impl FnMut(u64, u64),
) -> Result<(Files, Stamps), SeedError> {
    let content = locate(metainfo, content);
    let (root, layout) = layout::at_content(metainfo, &content);
    let files = Files::read_only(root, layout);
    // Taken before hashing: files that change meanwhile are hashed again.
    let stamps = files.complete()?;
    let (mut done, mut wrong, mut first) = (0, 0, u32::MAX);
    let each = |piece, is_right: bool| {
        done += u64::from(metainfo.piece_size(piece));
        if !is_right {
            wrong += 1;
            first = first.min(piece);
        }
        checked(done, metainfo.total_length());
        true
    };
    check(&files, metainfo, |_| true, each)?;
    if wrong > 0 {
        let file = files.layout().file_at(metainfo.pieces().range(first));
        return Err(SeedError::Differs {
            file: file.unwrap_or(&content).to_owned(),
            content,
            wrong,
            pieces: metainfo.piece_count(),
        });
    }
    Ok((files, stamps))
}

/// The path of the content: `path`, or what in it has the torrent's name if `path` is a download
/// folder.
fn locate(metainfo: &Metainfo, path: &Path) -> PathBuf {
    let inside = metainfo.content_path(path);
    let is_it = |path: &Path| path.is_dir() == metainfo.is_multi_file();
    let named_so = path.file_name() == Some(metainfo.name().as_ref());
    if path.is_dir() && inside.exists() && is_it(&inside) && !(named_so && is_it(path)) {
        return inside;
    }
    path.to_owned()
}
