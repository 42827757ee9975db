//! Changes while content is served or fetched, each reported once.

use std::collections::{BTreeMap, BTreeSet};

use hawser_path::Fingerprint;
use hawser_quic::CongestionState;
use hawser_torrent::{ChangedFile, PeerAddr, WebSeedProgress};

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
    /// The URLs of web seeds that have failed.
    web_seeds: BTreeSet<String>,
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

    /// Those of the failing web seeds, each with its error, that were not among those of an earlier call.
    fn new_failures<'a>(
        &mut self,
        failing: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Vec<(&'a str, &'a str)> {
        failing
            .filter(|(url, _)| self.web_seeds.insert((*url).to_owned()))
            .collect()
    }

    /// Reports each web seed that fails, once, as a line on standard error. It may serve later, and is in the report
    /// at the end.
    pub fn report_web_seeds(&mut self, web_seeds: &[WebSeedProgress]) {
        let failing = web_seeds.iter();
        let failing = failing.filter_map(|it| Some((&*it.url, it.last_error.as_deref()?)));
        for (url, error) in self.new_failures(failing) {
            errln!("web seed {}: {}", plain(url), plain(error));
        }
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

    #[test]
    fn each_web_seed_that_fails_is_reported_once() {
        let mut reported = Reported::default();
        let one = [("http://a/", "404")];
        assert_eq!(reported.new_failures(one.into_iter()), one);
        assert_eq!(reported.new_failures(one.into_iter()), []);
        let both = [("http://a/", "500"), ("http://b/", "no answer")];
        assert_eq!(reported.new_failures(both.into_iter()), both[1..]);
    }
}
