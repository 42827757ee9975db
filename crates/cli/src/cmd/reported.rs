//! Changes while content is served or fetched, each reported once.

use std::collections::BTreeMap;

use hawser_path::Fingerprint;
use hawser_quic::CongestionState;
use hawser_torrent::{ChangedFile, PeerAddr};

use crate::out::{errln, outln, plain};

/// The last reports.
#[derive(Debug, Default)]
pub struct Reported {
    /// The decision on each path to each peer.
    paths: BTreeMap<(String, Fingerprint), String>,
    /// The congestion control of each path to each peer.
    congestion: BTreeMap<(String, Fingerprint), CongestionState>,
    /// Files that changed.
    changed: Vec<ChangedFile>,
}

impl Reported {
    /// Whether this decision on a path was not yet reported, or differs from the last report.
    pub fn is_new_decision(&mut self, peer: PeerAddr, path: Fingerprint, why: &str) -> bool {
        let key = (peer.to_string(), path);
        let before = self.paths.insert(key, why.to_owned());
        before.as_deref() != Some(why)
    }

    /// Whether this congestion control of a path differs from the last report, or else from the
    /// one that every path begins with.
    pub fn is_new_congestion(
        &mut self,
        peer: PeerAddr,
        path: Fingerprint,
        state: CongestionState,
    ) -> bool {
        let key = (peer.to_string(), path);
        let before = self.congestion.insert(key, state);
        before.unwrap_or_default() != state
    }

    /// Reports the files of `changed` whose change was not yet reported: as JSON objects on
    /// standard output, or as lines on standard error.
    pub fn report(&mut self, changed: &[ChangedFile], json: bool) {
        for file in changed.iter().filter(|file| !self.changed.contains(file)) {
            if json {
                let object = serde_json::json!({
                    "file": file.path.to_string_lossy(),
                    "pieces": file.pieces,
                    "lost_pieces": file.lost,
                    "error": file.error,
                });
                outln!("{object}");
            } else {
                errln!("hawser: {}", plain(&file.to_string()));
            }
        }
        self.changed = changed.to_vec();
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_decision_is_reported_once() {
        let peer = |text: &str| text.parse::<PeerAddr>().unwrap();
        let one = peer("1-ff00:0:1,10.0.1.1:31000");
        let other = peer("1-ff00:0:2,10.0.2.1:31000");
        let path = Fingerprint::of(&[]);
        let mut reported = Reported::default();
        assert!(reported.is_new_decision(one, path, "taken"));
        assert!(!reported.is_new_decision(one, path, "taken"));
        assert!(reported.is_new_decision(other, path, "taken"));
        assert!(reported.is_new_decision(one, path, "left"));
        assert!(reported.is_new_decision(one, path, "taken"));
    }
}
