//! Decisions on paths, reported when they change.

use std::collections::BTreeMap;

use hawser_path::Fingerprint;
use hawser_torrent::PeerAddr;

/// What was last reported of each path to each peer.
#[derive(Debug, Default)]
pub struct News(BTreeMap<(String, Fingerprint), String>);

impl News {
    /// Whether this was not reported yet, or differs from the last report.
    pub fn is_news(&mut self, peer: PeerAddr, path: Fingerprint, why: &str) -> bool {
        let before = self.0.insert((peer.to_string(), path), why.to_owned());
        before.as_deref() != Some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_reported_once() {
        let peer = |text: &str| text.parse::<PeerAddr>().unwrap();
        let one = peer("1-ff00:0:1,10.0.1.1:31000");
        let other = peer("1-ff00:0:2,10.0.2.1:31000");
        let path = Fingerprint::of(&[]);
        let mut news = News::default();
        assert!(news.is_news(one, path, "taken"));
        assert!(!news.is_news(one, path, "taken"));
        assert!(news.is_news(other, path, "taken"));
        assert!(news.is_news(one, path, "left"));
        assert!(news.is_news(one, path, "taken"));
    }
}
