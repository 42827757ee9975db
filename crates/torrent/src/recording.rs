//! Keeping what is verified of a download on disk while it runs, so that the next run need not hash it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hawser_store::{Recorder, Resumed, VerifiedFile};
use tokio::task::JoinSet;

use crate::bitfield::Bitfield;
use crate::files::{FileTally, FilesProgress};
use crate::metainfo::{Metainfo, layout};
use crate::peer::Shared;
use crate::selection::Selection;

/// Time between two records of a download: after a crash the files that were written to since are hashed.
const RECORD_INTERVAL: Duration = Duration::from_secs(60);

/// What of the files of a torrent was verified when [`crate::DownloadOptions::record`] was last written, without a
/// look at the files; `None` if there is no such record. Reads a small file.
pub fn recorded_files(metainfo: &Metainfo, record: &Path) -> Option<FilesProgress> {
    let file = VerifiedFile::new(record.to_owned(), metainfo.info_hash.0.to_vec());
    let recorded = file.look(&layout::in_folder(metainfo), metainfo)?;
    let mut verified = Bitfield::empty(metainfo.pieces.count());
    for piece in (0..metainfo.pieces.count()).filter(|piece| recorded.has(*piece)) {
        verified.set(piece);
    }
    let (mut tally, all) = (FileTally::new(metainfo), Selection::all());
    tally.select(&all, &all.wanted(metainfo), &verified);
    Some(tally.progress().clone())
}

/// The record of a download that runs.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Arc<Mutex<Recorder<Metainfo>>>,
    shared: Arc<Shared>,
    /// Ends with it: the record made from time to time.
    tasks: JoinSet<()>,
}

impl Recording {
    /// Records to `file` what is verified, now and from time to time.
    pub fn begin(
        file: VerifiedFile,
        metainfo: &Arc<Metainfo>,
        resumed: &Resumed,
        verified: &Bitfield,
        shared: &Arc<Shared>,
    ) -> Self {
        // All that is there was trusted, so that is in the file.
        let is_written = resumed.trusted > 0 && resumed.trusted == verified.count();
        let recorder = Recorder::new(
            file,
            Arc::clone(&resumed.files),
            Arc::clone(metainfo),
            resumed.stamps.clone(),
            |piece| verified.has(piece),
            is_written,
        );
        let recorder = Arc::new(Mutex::new(recorder));
        let mut tasks = JoinSet::new();
        let again = (Arc::clone(&recorder), Arc::clone(shared));
        tasks.spawn(async move {
            loop {
                record(&again.0, &again.1).await;
                tokio::time::sleep(RECORD_INTERVAL).await;
            }
        });
        Self {
            recorder,
            shared: Arc::clone(shared),
            tasks,
        }
    }

    /// Records what is verified now.
    pub async fn record(&self) {
        record(&self.recorder, &self.shared).await;
    }

    /// Records what is verified at the end.
    pub async fn end(mut self) {
        self.tasks.abort_all();
        self.record().await;
    }
}

/// Records what peers may request, on a thread that may wait for the disk. A failure costs time at the next
/// start alone.
async fn record(recorder: &Arc<Mutex<Recorder<Metainfo>>>, shared: &Arc<Shared>) {
    let (recorder, shared) = (Arc::clone(recorder), Arc::clone(shared));
    let job = move || {
        let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
        // Not before: a later record must not have fewer pieces.
        let verified = shared.offered();
        recorder.record(|piece| verified.has(piece))
    };
    if let Ok(Err(error)) = tokio::task::spawn_blocking(job).await {
        tracing::warn!("what is verified is not recorded: {error}");
    }
}
