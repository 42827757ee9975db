//! The result of a download: the object that `hawser get --json` prints, and that experiments read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The result of a download.
#[derive(Debug, Serialize, Deserialize)]
pub struct TransferReport {
    /// Name of the file or folder in the torrent.
    pub name: String,
    /// The torrent's info-hash, in hex.
    pub info_hash: String,
    /// Bytes of all files.
    pub bytes: u64,
    /// The address for SCION peers; `None` without a SCION network.
    pub listening: Option<String>,
    /// The address for IP peers; `None` if IP peers cannot connect.
    pub listening_tcp: Option<String>,
    /// Where they came from, and what went to others.
    #[serde(flatten)]
    pub transferred: TransferBytes,
    /// Time from the first path lookup to the last verified piece, handshakes included.
    pub seconds: f64,
    /// What the process used for it.
    #[serde(flatten)]
    pub cost: TransferCost,
    /// Fetched file bits per second, in Mbit/s.
    pub goodput_mbit: f64,
    /// The paths that carried blocks.
    pub paths: Vec<TransferPath>,
    /// The other paths that were offered at the end.
    pub unused_paths: Vec<TransferPath>,
    /// The web seeds of the torrent; left out if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web_seeds: Vec<TransferWebSeed>,
    /// Progress about ten times a second, with `--samples`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

/// The bytes of a download by what became of them: fields of a [`TransferReport`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TransferBytes {
    /// Bytes fetched and verified.
    pub fetched_bytes: u64,
    /// Bytes that were already on disk.
    pub resumed_bytes: u64,
    /// Bytes received and discarded.
    pub wasted_bytes: u64,
    /// Bytes of blocks sent to other peers until the download was complete.
    pub uploaded_bytes: u64,
}

/// What a download cost: fields of a [`TransferReport`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TransferCost {
    /// Time for checking the files on disk.
    pub check_seconds: f64,
    /// Processor time of this process so far, in seconds.
    #[serde(default)]
    pub cpu_seconds: f64,
    /// The most memory that this process used, in bytes.
    #[serde(default)]
    pub peak_memory: u64,
}

/// One web seed of a [`TransferReport`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TransferWebSeed {
    /// Its URL, as the torrent has it.
    pub url: String,
    /// Bytes of blocks received from it.
    pub bytes: u64,
    /// `active`, `idle`, `waiting` after a failure, or `dropped`.
    pub state: String,
    /// Why the last request failed, or it was dropped.
    pub error: Option<String>,
}

/// One path of a [`TransferReport`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TransferPath {
    /// The peer at the other end.
    pub peer: String,
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// Number of ASes on the path, both ends included, as `hawser paths` counts them; 0 if unknown.
    pub hops: usize,
    /// Bytes of blocks received over the path.
    pub bytes: u64,
    /// Largest SCION packet on the path, in bytes; `None` if this host does not know the path.
    pub mtu: Option<u16>,
    /// Bytes of the data-plane path in each packet's header; `None` if this host does not know the
    /// path.
    pub path_bytes: Option<usize>,
    /// The interfaces that the path crosses.
    pub interfaces: Vec<String>,
    /// The verdict at the end: taken, left or waiting; `None` if unknown.
    pub verdict: Option<String>,
    /// The reason of the verdict.
    pub reason: Option<String>,
}

/// What experiments read of the report of a bulk transfer: the object that `hawser send --json
/// --samples` prints.
#[derive(Debug, Deserialize)]
pub struct BulkReport {
    /// Bytes of content.
    pub bytes: u64,
    /// Time from the first path lookup to the last byte.
    pub seconds: f64,
    /// Processor time of the sending process, in seconds.
    pub cpu_seconds: f64,
    /// The paths that were used.
    pub paths: Vec<BulkPath>,
    /// Progress about ten times a second.
    pub samples: Vec<Sample>,
}

/// One path of a [`BulkReport`].
#[derive(Debug, Deserialize)]
pub struct BulkPath {
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// The interfaces that the path crosses.
    pub interfaces: Vec<String>,
    /// Largest SCION packet on the path, in bytes; `None` if the path has ended.
    pub mtu: Option<u16>,
    /// Bytes of the data-plane path in each packet's header; `None` if the path has ended.
    pub path_bytes: Option<usize>,
}

/// The progress of a transfer at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the transfer began, path lookup and handshakes included.
    pub seconds: f64,
    /// Bytes of blocks or content received until then, without discarded ones.
    pub bytes: u64,
    /// The same over each path, by fingerprint.
    pub paths: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_numbers_of_a_report_are_in_one_object() {
        let written = json!({
            "name": "data", "info_hash": "ab", "bytes": 7, "listening": null, "listening_tcp": null,
            "fetched_bytes": 1, "resumed_bytes": 2, "wasted_bytes": 3, "uploaded_bytes": 4,
            "seconds": 0.5, "check_seconds": 1.5, "cpu_seconds": 2.5, "peak_memory": 5,
            "goodput_mbit": 3.5, "paths": [], "unused_paths": [],
        });
        let report: TransferReport = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(report.transferred.uploaded_bytes, 4);
        assert_eq!(report.cost.peak_memory, 5);
        assert_eq!(serde_json::to_value(&report).unwrap(), written);
    }
}
