//! What is on disk before a download: opened, locked and verified.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hawser_store::{Resumed, StoreError, Target};
use tokio::sync::watch;

use crate::error::DownloadError;
use crate::metainfo::Metainfo;
use crate::progress::{Phase, Progress};

/// Time between reports of how far verifying is.
const EVERY: Duration = Duration::from_millis(100);

/// Opens the target and verifies what is in it, on a thread that may wait for the disk, until
/// `stop` is done.
///
/// # Errors
/// [`DownloadError::Stopped`], or why the target cannot be used.
pub(super) async fn prepare(
    metainfo: &Arc<Metainfo>,
    target: Target,
    progress: &watch::Sender<Progress>,
    stop: impl Future<Output = ()>,
) -> Result<Resumed, DownloadError> {
    let halt = Arc::new(AtomicBool::new(false));
    let mut work = {
        let (metainfo, progress) = (Arc::clone(metainfo), progress.clone());
        let halt = Arc::clone(&halt);
        tokio::task::spawn_blocking(move || verify(&metainfo, target, &progress, &halt))
    };
    let prepared = tokio::select! {
        prepared = &mut work => prepared,
        () = stop => {
            halt.store(true, Ordering::Relaxed);
            // Nothing may touch the files after the end. It may have been faster, too.
            let _ = work.await;
            Ok(Ok(None))
        }
    };
    // `None` only if it was halted.
    let prepared = match prepared? {
        Ok(resumed) => resumed.ok_or(DownloadError::Stopped),
        Err(error) => Err(error.into()),
    };
    prepared.inspect_err(|_| progress.send_modify(|progress| progress.phase = Phase::Stopped))
}

fn verify(
    metainfo: &Metainfo,
    target: Target,
    progress: &watch::Sender<Progress>,
    halt: &AtomicBool,
) -> Result<Option<Resumed>, StoreError> {
    let (mut checked, mut verified, mut reported) = (0, 0, Instant::now());
    target.resume(metainfo, |piece, is_right| {
        let size = u64::from(metainfo.piece_size(piece));
        checked += size;
        if is_right {
            verified += size;
        }
        if reported.elapsed() >= EVERY {
            reported = Instant::now();
            progress.send_modify(|progress| {
                progress.checked_bytes = checked;
                progress.verified_bytes = verified;
                progress.resumed_bytes = verified;
            });
        }
        !halt.load(Ordering::Relaxed)
    })
}
