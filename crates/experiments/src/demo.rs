//! The measurements of a demo: the object that `hawser demo --json` prints.

use serde::Serialize;

use crate::downloads::Downloads;
use crate::experiment::{DownloadExperiment, Means};
use crate::shape::Results;
use crate::transfer::TransferPath;

/// The measurements of a demo.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    /// The ready topology.
    pub topology: &'static str,
    /// Bytes of the file.
    pub bytes: u64,
    /// That every download was the seeded file: otherwise the demo fails.
    pub sha256_ok: bool,
    /// The downloads, in order.
    pub runs: Vec<DemoRun>,
    /// Goodput of plain TCP over one link of the same network, in Mbit/s, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iperf3_tcp_mbit: Option<f64>,
}

/// One download.
#[derive(Debug, Serialize)]
pub struct DemoRun {
    /// The path selection strategy.
    pub select: String,
    /// Time from the first path lookup to the last verified piece.
    pub seconds: f64,
    /// File bits per second, in Mbit/s.
    pub goodput_mbit: f64,
    /// The limits less headers, in Mbit/s; `None` without limits.
    pub ceiling_mbit: Option<f64>,
    /// The paths that carried the file.
    pub paths: Vec<PathUse>,
}

/// The use of one path.
#[derive(Debug, Serialize)]
pub struct PathUse {
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// Number of ASes on the path, both ends included.
    pub hops: usize,
    /// Bytes of blocks received over the path.
    pub bytes: u64,
    /// The interfaces that the path crosses.
    #[serde(skip)]
    pub interfaces: Vec<String>,
}

impl DemoReport {
    /// Sums up the first run of each variant.
    pub fn new(demo: &DownloadExperiment, results: &Results<Downloads>) -> Self {
        let path = |path: &TransferPath| PathUse {
            fingerprint: path.fingerprint.clone(),
            hops: path.hops,
            bytes: path.bytes,
            interfaces: path.interfaces.clone(),
        };
        let all = results.places.iter().flat_map(|(_, all)| all);
        let all = all.filter_map(|series| Some((&series.case, series.runs.first()?)));
        let (tcp, downloads): (Vec<_>, Vec<_>) =
            all.partition(|(variant, _)| variant.means == Means::PlainTcp);
        let runs = downloads.iter().map(|(variant, run)| DemoRun {
            select: variant.name.clone(),
            seconds: run.seconds,
            goodput_mbit: run.goodput_mbit,
            ceiling_mbit: run.ceiling_mbit,
            paths: run.paths.iter().map(path).collect(),
        });
        Self {
            topology: demo.name,
            bytes: downloads.first().map_or(0, |(_, run)| run.bytes),
            sha256_ok: true,
            runs: runs.collect(),
            iperf3_tcp_mbit: tcp.first().map(|(_, run)| run.goodput_mbit),
        }
    }
}
