//! What a download did: the object that `hawser get --json` prints, and that experiments read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a download did.
#[derive(Debug, Serialize, Deserialize)]
pub struct TransferReport {
    /// Name of the file or folder in the torrent.
    pub name: String,
    /// The torrent's info-hash, in hex.
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
    /// Time from the first path lookup to the last verified piece, handshakes included.
    pub seconds: f64,
    /// Time of checking what was on disk.
    pub check_seconds: f64,
    /// Fetched bits of the file per second, in Mbit/s.
    pub goodput_mbit: f64,
    /// The paths that carried blocks.
    pub paths: Vec<TransferPath>,
    /// The other paths that were offered at the end.
    pub unused_paths: Vec<TransferPath>,
    /// Progress about ten times a second, with `--samples`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

/// One path of a [`TransferReport`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TransferPath {
    /// The peer at its other end.
    pub peer: String,
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// ASes on the path, both ends included, as `hawser paths` counts them; 0 if unknown.
    pub hops: usize,
    /// Bytes of blocks received over it.
    pub bytes: u64,
    /// Largest SCION packet on the path, in bytes; `None` once the path is gone.
    pub mtu: Option<u16>,
    /// Bytes of the data-plane path in each packet's header; `None` once the path is gone.
    pub path_bytes: Option<usize>,
    /// The interfaces that it crosses.
    pub interfaces: Vec<String>,
    /// The verdict at the end: taken, left or waiting; `None` if unknown.
    pub verdict: Option<String>,
    /// The reason of the verdict.
    pub reason: Option<String>,
}

/// The progress of a download at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the download began, path lookup and handshakes included.
    pub seconds: f64,
    /// Bytes of blocks received until then, without those thrown away.
    pub bytes: u64,
    /// Bytes of blocks received until then over each path, by fingerprint.
    pub paths: BTreeMap<String, u64>,
}
