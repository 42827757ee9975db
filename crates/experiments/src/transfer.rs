//! What a download reports: the fields of `hawser get --json` that experiments read.

use serde::Deserialize;

/// The object that `hawser get --json` prints.
#[derive(Debug, Deserialize)]
pub struct TransferReport {
    /// Name of the file or folder in the torrent.
    pub name: String,
    /// Bytes fetched and verified.
    pub fetched_bytes: u64,
    /// Time from the first path lookup to the last verified piece.
    pub seconds: f64,
    /// The paths that carried blocks.
    pub paths: Vec<TransferPath>,
    /// Progress over time, with `--samples`.
    #[serde(default)]
    pub samples: Vec<TransferSample>,
}

/// One path that carried blocks.
#[derive(Debug, Deserialize)]
pub struct TransferPath {
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// ASes on the path, both ends included.
    pub hops: usize,
    /// Bytes of blocks received over it.
    pub bytes: u64,
    /// Largest SCION packet on the path, in bytes; `None` once the path is gone.
    pub mtu: Option<u16>,
    /// Bytes of the data-plane path in each packet's header; `None` once the path is gone.
    pub path_bytes: Option<usize>,
    /// The interfaces that it crosses.
    pub interfaces: Vec<String>,
}

/// Progress at one moment.
#[derive(Debug, Deserialize)]
pub struct TransferSample {
    /// Since the download began.
    pub seconds: f64,
    /// Bytes of blocks received until then, without those thrown away.
    pub bytes: u64,
}
