//! What a download did: the object that `hawser get --json` prints.

use std::collections::BTreeMap;

use hawser_endhost::Path;
use hawser_path::Interface;
use hawser_torrent::{Progress, Summary};
use serde::Serialize;

use super::job::Job;
use super::offered::OfferedPaths;

/// What `hawser get --json` prints.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The torrent's name.
    pub name: String,
    /// Its info-hash, in hex.
    pub info_hash: String,
    /// Bytes of all files.
    pub bytes: u64,
    /// Where SCION peers connect; `None` without a SCION network.
    pub listening: Option<String>,
    /// Where IP peers connect; `None` if they cannot.
    pub listening_tcp: Option<String>,
    /// Bytes fetched and verified.
    pub fetched_bytes: u64,
    /// Bytes that were on disk before.
    pub resumed_bytes: u64,
    /// Bytes received and thrown away.
    pub wasted_bytes: u64,
    /// Bytes of blocks sent to others until the download was done.
    pub uploaded_bytes: u64,
    /// Time of the download, path lookup and handshakes included.
    pub seconds: f64,
    /// Time of checking what was on disk.
    pub check_seconds: f64,
    /// Fetched bits of the file per second, in Mbit/s.
    pub goodput_mbit: f64,
    /// The paths that carried blocks.
    pub paths: Vec<PathReport>,
    /// The other paths that were offered at the end.
    pub unused_paths: Vec<PathReport>,
    /// Progress about ten times a second, with `--samples`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

/// The progress of a download at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Since the download began, path lookup and handshakes included.
    pub seconds: f64,
    /// Bytes of blocks received until then, without those thrown away.
    pub bytes: u64,
    /// Bytes of blocks received until then over each path, by fingerprint.
    pub paths: BTreeMap<String, u64>,
}

impl Sample {
    /// The progress at this moment.
    pub fn of(progress: &Progress) -> Self {
        let mut paths = BTreeMap::new();
        for path in progress.paths.iter().filter(|path| path.bytes > 0) {
            *paths.entry(path.fingerprint.to_string()).or_default() += path.bytes;
        }
        Self {
            seconds: progress.elapsed.as_secs_f64(),
            bytes: progress.fetched_bytes.saturating_sub(progress.wasted_bytes),
            paths,
        }
    }
}

/// One path of a [`Report`].
#[derive(Debug, Serialize)]
pub struct PathReport {
    /// The peer at its other end.
    pub peer: String,
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// ASes on the path, both ends included, as `hawser paths` counts them; 0 if unknown.
    pub hops: usize,
    /// Bytes of blocks received over it.
    pub bytes: u64,
    /// Largest SCION packet on the path, in bytes; `None` if the path is gone.
    pub mtu: Option<u16>,
    /// Bytes of the data-plane path in each packet's header.
    pub path_bytes: Option<usize>,
    /// The interfaces it crosses.
    pub interfaces: Vec<String>,
    /// The verdict at the end: taken, left or waiting; `None` if unknown.
    pub verdict: Option<String>,
    /// The reason of the verdict.
    pub reason: Option<String>,
}

impl Report {
    /// The report on a download that is done: all but the verdicts and the samples.
    pub fn new(job: &Job, summary: &Summary, offered: &OfferedPaths) -> Self {
        let seconds = summary.download_time.as_secs_f64();
        let text = Interface::to_string;
        let paths = summary.paths.iter().map(|path| {
            let known = offered.paths.get(&path.fingerprint);
            PathReport {
                peer: path.peer.to_string(),
                fingerprint: path.fingerprint.to_string(),
                hops: path.hops,
                bytes: path.bytes,
                mtu: known.map(Path::mtu),
                path_bytes: known.map(|p| p.raw().len()),
                // A path that only the peer knows is in its direction.
                interfaces: match known {
                    Some(known) => known.info().interfaces.iter().map(text).collect(),
                    None => path.interfaces.iter().rev().map(text).collect(),
                },
                verdict: None,
                reason: None,
            }
        });
        Self {
            name: job.name.clone(),
            info_hash: job.info_hash.clone(),
            bytes: job.bytes,
            listening: job.addresses.scion.map(|address| address.to_string()),
            listening_tcp: job.addresses.tcp.map(|address| address.to_string()),
            fetched_bytes: summary.fetched_bytes,
            resumed_bytes: summary.resumed_bytes,
            wasted_bytes: summary.wasted_bytes,
            uploaded_bytes: summary.uploaded_bytes,
            seconds,
            check_seconds: summary.check_time.as_secs_f64(),
            goodput_mbit: if seconds > 0.0 {
                summary.fetched_bytes as f64 * 8.0 / seconds / 1e6
            } else {
                0.0
            },
            paths: paths.collect(),
            unused_paths: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Adds the verdict on each path at the end, and the paths that carried nothing.
    pub fn add_verdicts(&mut self, progress: &Progress, offered: &OfferedPaths) {
        for path in &progress.paths {
            let (peer, fingerprint) = (path.peer.to_string(), path.fingerprint.to_string());
            let verdict = path.decision.as_ref().map(|one| one.verdict.to_string());
            let decided = path.decision.as_ref().map(|one| one.reason.to_string());
            let reason = decided.or_else(|| path.last_error.clone());
            let mut used = self.paths.iter_mut();
            match used.find(|one| one.peer == peer && one.fingerprint == fingerprint) {
                Some(used) => {
                    used.verdict = verdict;
                    used.reason = reason;
                }
                None => {
                    let known = offered.paths.get(&path.fingerprint);
                    let interfaces = known.map(|known| &known.info().interfaces);
                    self.unused_paths.push(PathReport {
                        peer,
                        fingerprint,
                        hops: path.hops,
                        bytes: 0,
                        mtu: known.map(Path::mtu),
                        path_bytes: known.map(|known| known.raw().len()),
                        interfaces: interfaces
                            .into_iter()
                            .flatten()
                            .map(Interface::to_string)
                            .collect(),
                        verdict,
                        reason,
                    });
                }
            }
        }
    }
}
