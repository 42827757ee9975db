//! A download from its beginning to its end: verifying what is on disk, fetching, seeding.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_manager::PathOptions;
use hawser_store::Target;
use tokio::sync::{oneshot, watch};

use super::options::DownloadOptions;
use super::prepare::prepare;
use crate::address::PeerAddr;
use crate::bitfield::Bitfield;
use crate::error::DownloadError;
use crate::layout;
use crate::limits::Seeded;
use crate::metainfo::Metainfo;
use crate::peer::Shared;
use crate::progress::{Progress, Summary};
use crate::swarm::{Goal, Reporter, Swarm, Tally};
use crate::transport::Transport;

/// What is downloaded, and how.
pub(super) struct Job<T> {
    pub transport: T,
    pub metainfo: Metainfo,
    pub dir: PathBuf,
    pub peers: Vec<PeerAddr>,
    pub options: DownloadOptions,
    pub progress: watch::Sender<Progress>,
    /// Is sent the summary once everything is verified.
    pub completed: oneshot::Sender<Summary>,
}

impl<T: Transport> Job<T> {
    /// Downloads, and seeds if the options say so, until the end or until `stop` is done.
    ///
    /// # Errors
    /// Why it ended before its end.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Summary, DownloadError> {
        let Self {
            transport,
            metainfo,
            dir,
            peers,
            options,
            progress,
            completed,
        } = self;
        if peers.is_empty() {
            return Err(DownloadError::NoPeers);
        }
        let metainfo = Arc::new(metainfo);
        let mut stop = std::pin::pin!(stop);
        let begun = Instant::now();
        let target = Target {
            root: dir,
            layout: layout::in_folder(&metainfo),
            mark: metainfo.info_hash().0.to_vec(),
            overwrite: options.overwrite,
        };
        let resumed = prepare(&metainfo, target, &progress, &mut stop).await?;
        let check_time = begun.elapsed();
        let (files, _lock) = (resumed.files, resumed.lock);
        let mut verified = Bitfield::empty(metainfo.piece_count());
        for piece in resumed.verified {
            verified.set(piece);
        }

        let shared = Arc::new(Shared::new(&metainfo, Arc::clone(&files), verified));
        let goal = Goal {
            until_complete: true,
            give_up_after: options.give_up_after,
            select_by: options.select_by,
            paths: PathOptions {
                select: options.select,
                subflows: options.paths.max(1),
                policy: options.policy,
                slots: options.slots,
                sensing: options.sensing,
                ..PathOptions::default()
            },
        };
        // A clone: when the last sender is dropped, at the end of this function, the files are
        // unlocked.
        let reporter = Reporter::Download(progress.clone());
        let mut swarm = Swarm::new(transport, metainfo, shared, peers, goal, reporter)?;
        let stamps = match swarm.complete(&mut stop).await {
            // Empty files may not exist yet, and others may have been removed meanwhile.
            Ok(()) => match tokio::task::spawn_blocking(move || files.complete()).await {
                Ok(stamps) => stamps.map_err(DownloadError::from),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error),
        };
        let stamps = match stamps {
            Ok(stamps) => stamps,
            Err(error) => {
                swarm.close(false).await;
                return Err(error);
            }
        };
        let summary = summary(swarm.tally(), check_time);
        // It fails if no task waits for it.
        let _ = completed.send(summary.clone());
        let ended = match options.seed {
            None => Ok(None),
            Some(limits) => swarm.seed(limits, stamps, stop).await.map(Some),
        };
        let time = swarm.seeded_for();
        let uploaded_bytes = swarm.close(ended.is_ok()).await.uploaded_bytes;
        Ok(Summary {
            uploaded_bytes,
            seeded: ended?.zip(time).map(|(end, time)| Seeded { time, end }),
            ..summary
        })
    }
}

fn summary(tally: Tally, check_time: Duration) -> Summary {
    Summary {
        fetched_bytes: tally.verified_bytes - tally.resumed_bytes,
        resumed_bytes: tally.resumed_bytes,
        wasted_bytes: tally.wasted_bytes,
        download_time: tally.elapsed(Instant::now()),
        check_time,
        uploaded_bytes: tally.uploaded_bytes,
        paths: tally.paths,
        seeded: None,
    }
}
