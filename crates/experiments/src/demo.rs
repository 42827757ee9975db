//! What a demo measured: the object that `hawser demo --json` prints.

use serde::Serialize;

use crate::experiment::{Experiment, Variant};
use crate::run::Run;
use crate::session::Outcome;

/// What a demo measured.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    /// The ready topology.
    pub topology: &'static str,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether every download was the seeded file.
    pub sha256_ok: bool,
    /// The downloads, in order.
    pub runs: Vec<DemoRun>,
    /// Plain TCP over one link of the same network, in Mbit/s, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iperf3_tcp_mbit: Option<f64>,
}

/// One download.
#[derive(Debug, Serialize)]
pub struct DemoRun {
    /// How paths were chosen.
    pub select: String,
    /// Time from the first path lookup to the last verified piece.
    pub seconds: f64,
    /// Bits of the file per second, in Mbit/s.
    pub goodput_mbit: f64,
    /// What headers leave of the limits, in Mbit/s; `None` where nothing is limited.
    pub ceiling_mbit: Option<f64>,
    /// The paths that carried the file.
    pub paths: Vec<PathUse>,
}

/// What one path carried.
#[derive(Debug, Serialize)]
pub struct PathUse {
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// ASes on the path, both ends included.
    pub hops: usize,
    /// Bytes of blocks received over it.
    pub bytes: u64,
    /// The interfaces that it crosses.
    #[serde(skip)]
    pub interfaces: Vec<String>,
}

impl DemoReport {
    /// Sums up the first run of each variant.
    pub fn new(demo: &Experiment, outcome: &Outcome) -> Self {
        let runs = demo.variants.iter().zip(&outcome.runs);
        let runs = runs.filter_map(|(variant, runs)| Some(DemoRun::new(variant, runs.first()?)));
        Self {
            topology: demo.name,
            bytes: outcome.bytes.first().copied().unwrap_or_default(),
            sha256_ok: outcome.runs.iter().flatten().all(|run| run.identical),
            runs: runs.collect(),
            iperf3_tcp_mbit: outcome.plain_tcp_mbit,
        }
    }
}

impl DemoRun {
    fn new(variant: &Variant, run: &Run) -> Self {
        let paths = run.paths.iter().map(|path| PathUse {
            fingerprint: path.fingerprint.clone(),
            hops: path.hops,
            bytes: path.bytes,
            interfaces: path.interfaces.clone(),
        });
        Self {
            select: variant.name.clone(),
            seconds: run.seconds,
            goodput_mbit: run.goodput_mbit,
            ceiling_mbit: run.ceiling_mbit,
            paths: paths.collect(),
        }
    }
}
