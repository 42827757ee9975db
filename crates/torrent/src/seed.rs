//! Serving a torrent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_session::SharedPolicy;
use hawser_store::{Files, Stamps, check};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::bitfield::Bitfield;
use crate::error::{DownloadError, SeedError};
use crate::layout;
use crate::limits::SeedLimits;
use crate::metainfo::Metainfo;
use crate::network::Network;
use crate::options::SeedOptions;
use crate::peer::Shared;
use crate::progress::SeedProgress;
use crate::rate::{RateLimits, Rates};
use crate::source::FoundPeers;
use crate::swarm::{Reporter, Swarm};
use crate::transport::Transport;

/// A seeder at work. Dropping it stops it.
#[derive(Debug)]
pub struct Seed {
    progress: watch::Receiver<SeedProgress>,
    stop: DropGuard,
    policy: SharedPolicy,
    found: FoundPeers,
    rates: Arc<Rates>,
    task: JoinHandle<Result<(), SeedError>>,
}

impl Seed {
    /// Verifies `content` against the torrent, calling `checked` with the bytes hashed so far and
    /// in all. Then serves every peer that connects to `network`, and connects back to peers that
    /// let it choose paths. `content` is the file, or the folder of a torrent of several files,
    /// under any name; or a folder that contains it under the torrent's name.
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
        let rates = Arc::new(Rates::new(options.limits, transport.rates()));
        let everything = Bitfield::full(metainfo.pieces.count());
        let files = Arc::new(files);
        let shared = Shared::new(&metainfo, files, everything, Arc::clone(&rates));
        let shared = Arc::new(shared);
        let reporter = Reporter::Seed(sender);
        let policy = SharedPolicy::new(options.paths.policy.clone());
        let mut swarm = Swarm::new(
            transport,
            metainfo,
            shared,
            Vec::new(),
            options.select_by,
            options.paths,
            reporter,
        )?;
        swarm.follow(&policy);
        swarm.set_slots(options.slots);
        if options.super_seeding {
            swarm.reveal_one_by_one();
        }
        if options.exchanges_peers {
            swarm.exchange_peers();
        }
        let (found, finds) = FoundPeers::channel();
        if options.dials_found {
            swarm.find_peers(finds);
        }
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let ended = swarm.seed(SeedLimits::default(), stamps, &stopped).await;
            swarm.close(ended.is_ok()).await;
            match ended {
                Ok(_) => Ok(()),
                Err(DownloadError::Store(error)) => Err(error.into()),
                // Only downloads end for other reasons.
                Err(_) => Err(SeedError::EndpointClosed),
            }
        });
        Ok(Self {
            progress,
            stop: stop.drop_guard(),
            policy,
            found,
            rates,
            task,
        })
    }

    /// Which paths to and from SCION peers may be used: at first the policy of the options. It can be changed
    /// at any time; connections over paths that are denied then are closed.
    pub fn policy(&self) -> SharedPolicy {
        self.policy.clone()
    }

    /// Gives it peers while it runs. IP peers are dialed, if its options say so: this
    /// side may be behind a router that lets none of them connect. SCION peers connect to it themselves.
    pub fn found_peers(&self) -> FoundPeers {
        self.found.clone()
    }

    /// Sets how fast it sends, from now on: at first as its options say.
    pub fn set_limits(&self, limits: RateLimits) {
        self.rates.set(limits);
    }

    /// The progress, updated about ten times a second, and about once a second while no peer wants
    /// anything.
    pub fn progress(&self) -> watch::Receiver<SeedProgress> {
        self.progress.clone()
    }

    /// Closes all connections and ends the seeder; the endpoint stays open.
    ///
    /// # Errors
    /// The reason if it had ended before.
    pub async fn stop(self) -> Result<(), SeedError> {
        self.stop.token().cancel();
        self.wait().await
    }

    /// Waits until the endpoint closes.
    ///
    /// # Errors
    /// The reason why it ended.
    pub async fn wait(mut self) -> Result<(), SeedError> {
        let result = (&mut self.task).await;
        result.unwrap_or_else(|error| Err(SeedError::Internal(error.to_string())))
    }
}

/// Opens the content and hashes all of it; returns the states of the files before hashing.
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
        done += u64::from(metainfo.pieces.size(piece));
        if !is_right {
            wrong += 1;
            first = first.min(piece);
        }
        checked(done, metainfo.pieces.total);
        true
    };
    check(&files, metainfo, |_| true, each)?;
    if wrong > 0 {
        let file = files.layout().file_at(metainfo.pieces.range(first));
        return Err(SeedError::Differs {
            file: file.unwrap_or(&content).to_owned(),
            content,
            wrong,
            pieces: metainfo.pieces.count(),
        });
    }
    Ok((files, stamps))
}

/// The path of the content: `path`, or the entry with the torrent's name in it if `path` is a
/// download folder.
fn locate(metainfo: &Metainfo, path: &Path) -> PathBuf {
    let names = [
        metainfo.literal_name.as_deref(),
        Some(metainfo.name.as_ref()),
    ];
    let names = names.into_iter().flatten();
    let is_it = |path: &Path| path.is_dir() == metainfo.multi_file;
    let named_so = names.clone().any(|name| path.file_name() == Some(name));
    let mut inside = names.map(|name| path.join(name));
    let inside = inside.find(|inside| inside.exists() && is_it(inside));
    match inside {
        Some(inside) if path.is_dir() && !(named_so && is_it(path)) => inside,
        _ => path.to_owned(),
    }
}
