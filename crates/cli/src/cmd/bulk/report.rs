//! The report on a bulk transfer.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_bulk::{FailedFile, PathProgress, Summary, XdpUse};
use hawser_endhost::Path;
use hawser_experiments::Sample;
use serde::Serialize;

use super::sockets::XdpReport;
use crate::format;
use crate::out::outln;

/// The report on a bulk transfer, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The other side: a server with the path in its folder, or a client.
    pub peer: String,
    /// Bytes of all files, without holes.
    pub bytes: u64,
    /// Bytes that were there before.
    pub existing_bytes: u64,
    /// Bytes that were not sent: of files that failed, or stayed as they were.
    pub skipped_bytes: u64,
    #[serde(flatten)]
    pub files: FileCounts,
    pub seconds: f64,
    /// Bytes sent, over the time, in Mbit/s.
    pub goodput_mbit: f64,
    /// BLAKE3 of the content, all files one after the other.
    pub blake3: String,
    pub cpu_seconds: f64,
    /// Files that were not transferred.
    pub failed: Vec<FailedReport>,
    pub paths: Vec<PathReport>,
    #[serde(flatten)]
    pub limits: Limits,
    /// With `--xdp` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpReport>,
    /// Progress about ten times a second, with `--samples`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

/// Files by what was done with them.
#[derive(Debug, Serialize)]
pub struct FileCounts {
    /// All of them.
    pub files: u64,
    /// Files that stayed as they were at the destination, as wanted.
    #[serde(skip_serializing_if = "is_zero")]
    pub kept_files: u64,
    /// Files without owners, groups, ACLs or extended attributes that were sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub stripped_files: u64,
}

/// Limits of the rate.
#[derive(Debug, Default, Serialize)]
pub struct Limits {
    /// The limit that was given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_mbit: Option<f64>,
    /// The one that the other side asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_limit_mbit: Option<f64>,
}

/// A file that was not transferred.
#[derive(Debug, Serialize)]
pub struct FailedReport {
    pub path: String,
    /// `source` or `destination`.
    pub at: &'static str,
    pub reason: String,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What one path did.
#[derive(Debug, Serialize)]
pub struct PathReport {
    pub fingerprint: String,
    pub interfaces: Vec<String>,
    pub bytes: u64,
    /// At the source alone.
    pub rtt_ms: Option<f64>,
    pub packets: u64,
    pub lost: u64,
    /// Packets received and dropped: forged, changed on the path, received before, or too old.
    pub rejected: u64,
    /// Connections over it that ended while content was missing.
    pub failures: u32,
    /// Largest SCION packet on the path, and the bytes of the data-plane path in its header; null if
    /// this host does not know the path.
    pub mtu: Option<u16>,
    pub path_bytes: Option<usize>,
}

/// The progress at one moment: bytes of content delivered over each path. `elapsed` is the time since
/// the command began.
pub fn sample(elapsed: Duration, paths: &[PathProgress]) -> Sample {
    let mut by_path = BTreeMap::new();
    for path in paths.iter().filter(|path| path.delivered > 0) {
        by_path.insert(path.fingerprint.to_string(), path.delivered);
    }
    Sample {
        seconds: elapsed.as_secs_f64(),
        bytes: by_path.values().sum(),
        paths: by_path,
    }
}

/// A rate of bit/s in Mbit/s.
pub fn mbit(rate: u64) -> f64 {
    rate as f64 / 1e6
}

impl Report {
    pub fn new(summary: &Summary, peer: String, xdp: Option<XdpUse>) -> Self {
        let progress = summary.progress;
        let seconds = summary.elapsed.as_secs_f64();
        let moved = progress.verified - progress.existing;
        Self {
            peer,
            bytes: progress.total,
            existing_bytes: progress.existing,
            skipped_bytes: progress.skipped,
            files: FileCounts {
                files: progress.files,
                kept_files: summary.kept,
                stripped_files: summary.stripped,
            },
            seconds,
            goodput_mbit: moved as f64 * 8e-6 / seconds.max(1e-9),
            blake3: summary
                .root
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            cpu_seconds: hawser_perf::cpu_time().as_secs_f64(),
            failed: summary.failed.iter().map(FailedReport::new).collect(),
            paths: summary.paths.iter().map(PathReport::new).collect(),
            limits: Limits::default(),
            xdp: xdp.as_ref().map(XdpReport::new),
            samples: Vec::new(),
        }
    }

    /// Prints it for people.
    pub fn print(&self, name: &str, done: &str) {
        let there = self.existing_bytes + self.skipped_bytes;
        let moved = format::bytes(self.bytes.saturating_sub(there));
        let there = match self.existing_bytes {
            0 => String::new(),
            bytes => format!(", {} were there already", format::bytes(bytes)),
        };
        outln!(
            "{name}: {moved} {done} in {:.1} s, {}{there}",
            self.seconds,
            format::mbit(self.goodput_mbit)
        );
        if self.files.kept_files > 0 {
            outln!(
                "  {} files stayed as they were there",
                self.files.kept_files
            );
        }
        if self.files.stripped_files > 0 {
            outln!(
                "  {} files or folders without all owners, groups, ACLs and attributes that were sent",
                self.files.stripped_files
            );
        }
        for path in &self.paths {
            let short = path.fingerprint.get(..8).unwrap_or_default();
            let mut line = format!("  {short}  {:>9}", format::bytes(path.bytes));
            if let Some(rtt) = path.rtt_ms {
                let lost = 100.0 * path.lost as f64 / path.packets.max(1) as f64;
                line += &format!("  rtt {rtt:.1} ms  lost {lost:.2} %");
            }
            match path.failures {
                0 => {}
                1 => line += "  failed once",
                times => line += &format!("  failed {times} times"),
            }
            if !path.interfaces.is_empty() {
                line += &format!("  {}", path.interfaces.join(" "));
            }
            outln!("{line}");
        }
        if let Some(xdp) = &self.xdp {
            outln!("{}", xdp.line());
        }
    }
}

impl FailedReport {
    fn new(file: &FailedFile) -> Self {
        Self {
            path: file.path.to_string_lossy().into_owned(),
            at: match file.at_source {
                true => "source",
                false => "destination",
            },
            reason: file.reason.clone(),
        }
    }
}

impl PathReport {
    fn new(path: &PathProgress) -> Self {
        let interfaces = path.path.iter().flat_map(|path| &path.info().interfaces);
        Self {
            fingerprint: path.fingerprint.to_string(),
            interfaces: interfaces.map(ToString::to_string).collect(),
            bytes: path.delivered,
            rtt_ms: path.rtt.map(format::rounded_millis),
            packets: path.packets,
            lost: path.lost,
            rejected: path.rejected,
            failures: path.failures,
            mtu: path.path.as_ref().map(Path::mtu),
            path_bytes: path.path.as_ref().map(|path| path.raw().len()),
        }
    }
}
