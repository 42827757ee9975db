//! Seeding after a download.

use hawser_torrent::{Progress, SeedEnd, Summary};
use serde::Serialize;

use super::job::Job;
use crate::format;
use crate::out::{errln, outln, plain};

/// What `hawser get --seed --json` prints when seeding has ended.
#[derive(Debug, Serialize)]
pub struct SeedReport {
    /// The torrent's name.
    name: String,
    /// Its info-hash, in hex.
    info_hash: String,
    /// Bytes of blocks sent to others, during the download too.
    uploaded_bytes: u64,
    /// Those by the bytes of all files.
    ratio: f64,
    /// Time of seeding.
    seed_seconds: f64,
    /// What ended it: `ratio`, `time` or `interrupt`.
    ended_by: &'static str,
}

impl SeedReport {
    /// The report on a download; `None` where nothing was to be seeded.
    pub fn new(job: &Job, summary: &Summary) -> Option<Self> {
        let seeded = summary.seeded?;
        Some(Self {
            name: job.name.clone(),
            info_hash: job.info_hash.clone(),
            uploaded_bytes: summary.uploaded_bytes,
            ratio: ratio(summary.uploaded_bytes, job.bytes),
            seed_seconds: seeded.time.as_secs_f64(),
            ended_by: match seeded.end {
                SeedEnd::Ratio => "ratio",
                SeedEnd::Time => "time",
                _ => "interrupt",
            },
        })
    }

    /// Prints it for people.
    pub fn print(&self) {
        let why = match self.ended_by {
            "ratio" => ", up to --seed-ratio",
            "time" => ", up to --seed-time",
            _ => "",
        };
        outln!(
            "{}: {} sent, ratio {:.2}, seeded for {:.1} s{why}",
            plain(&self.name),
            format::bytes(self.uploaded_bytes),
            self.ratio,
            self.seed_seconds,
        );
    }
}

/// Bytes sent by bytes of the torrent; 0 for an empty one.
fn ratio(uploaded: u64, total: u64) -> f64 {
    match total {
        0 => 0.0,
        _ => uploaded as f64 / total as f64,
    }
}

/// The state in a few words.
pub fn state(progress: &Progress) -> String {
    format!(
        "seeding, ratio {:.2}, {}",
        ratio(progress.uploads.uploaded_bytes, progress.total_bytes),
        format::rate(progress.uploads.rate as f64),
    )
}

/// The same in a line on standard error, where there is no terminal.
pub fn show_line(progress: &Progress) {
    let peers = progress.uploads.peers.len();
    errln!("{} to {peers} path-level peers", state(progress));
}
