//! What a demo found: a table beside the paper's figures, or JSON.

use serde::Serialize;

use super::scene::Scene;
use crate::cmd::get::PathReport;
use crate::failure::{Doing, Failure};
use crate::format;
use crate::out::{outln, outwrapped};

/// What `hawser demo --json` prints.
#[derive(Serialize)]
pub struct Report {
    topology: &'static str,
    bytes: u64,
    /// Whether every download was the seeded file.
    pub sha256_ok: bool,
    runs: Vec<Run>,
    /// Plain TCP over one link of the same network, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iperf3_tcp_mbit: Option<f64>,
}

/// One download.
#[derive(Serialize)]
pub struct Run {
    /// How paths were chosen.
    pub select: String,
    /// Time from the first path lookup to the last verified piece.
    pub seconds: f64,
    /// Bits of the file per second, in Mbit/s.
    pub goodput_mbit: f64,
    /// What headers leave of the limits; none where nothing is limited.
    pub ceiling_mbit: Option<f64>,
    /// The paths that carried the file.
    pub paths: Vec<RunPath>,
    #[serde(skip)]
    pub sha256_ok: bool,
}

/// One path of a download.
#[derive(Serialize)]
pub struct RunPath {
    fingerprint: String,
    hops: usize,
    bytes: u64,
}

impl RunPath {
    /// What the report keeps of a path.
    pub fn of(path: &PathReport) -> Self {
        Self {
            fingerprint: path.fingerprint.clone(),
            hops: path.hops,
            bytes: path.bytes,
        }
    }
}

impl Report {
    /// A report without runs.
    pub fn new(topology: &'static str, bytes: u64) -> Self {
        Self {
            topology,
            bytes,
            sha256_ok: true,
            runs: Vec::new(),
            iperf3_tcp_mbit: None,
        }
    }

    /// Adds a run.
    pub fn add(&mut self, run: Run) {
        self.sha256_ok &= run.sha256_ok;
        self.runs.push(run);
    }

    /// Prints the report on standard output.
    pub fn show(&self, scene: &Scene, json: bool) -> Result<(), Failure> {
        if json {
            outln!("{}", serde_json::to_string(self).doing("writing JSON")?);
            return Ok(());
        }
        outln!("");
        outln!(
            "{:<10} {:>8} {:>14} {:>14} {:>9} {:>14}",
            "paths",
            "time",
            "goodput",
            "ceiling",
            "reached",
            "paper"
        );
        for (run, act) in self.runs.iter().zip(scene.acts) {
            let (ceiling, reached) = match run.ceiling_mbit {
                Some(c) => (
                    format::rate(c * 1e6),
                    format!("{:.1} %", 100.0 * run.goodput_mbit / c),
                ),
                None => ("no limit".to_owned(), String::new()),
            };
            outln!(
                "{:<10} {:>6.1} s {:>14} {:>14} {:>9} {:>14}",
                run.select,
                run.seconds,
                format::rate(run.goodput_mbit * 1e6),
                ceiling,
                reached,
                format::rate(act.paper_mbit * 1e6),
            );
            for path in &run.paths {
                outln!(
                    "  {}  {:<7}  {:>9}",
                    path.fingerprint.get(..8).unwrap_or(&path.fingerprint),
                    format::hops(path.hops),
                    format::bytes(path.bytes)
                );
            }
        }
        if let ([first, second], Some(paper)) = (&self.runs[..], scene.paper_ratio()) {
            outln!(
                "{} / {}: {:.2}  (paper: {paper:.2})",
                second.select,
                first.select,
                second.goodput_mbit / first.goodput_mbit,
            );
        }
        if let Some(tcp) = self.iperf3_tcp_mbit {
            outln!("iperf3 TCP over one link: {}", format::rate(tcp * 1e6));
        }
        outwrapped(&format!("paper: {}", scene.paper), 7);
        outln!(
            "file:  {}",
            match self.sha256_ok {
                true => "identical (SHA-256)",
                false => "DIFFERS",
            },
        );
        Ok(())
    }
}
