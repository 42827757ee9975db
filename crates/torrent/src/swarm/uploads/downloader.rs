//! A peer that leaves the choice of paths to us, and the paths to it.
//!
//! No I/O: the owner says what happened and when.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_path::{Decision, Fingerprint, Path, Reason, Select, select};

use crate::close::{CloseCode, Closed};

/// A path that could not be dialed, or whose connection ended, is not available to its peer for so
/// long, by how often that happened in a row: others need not wait for it, nor it for ever.
const AWAY: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(60),
];

/// A peer that downloads from us.
#[derive(Debug)]
pub(super) struct Downloader<P> {
    /// Where it listens, and speaks from.
    pub addr: ScionAddr,
    /// Most paths it takes.
    pub most: usize,
    /// Which of its paths come first.
    ranking: Select,
    pub ways: BTreeMap<Fingerprint, Way<P>>,
    /// The available paths changed since they were last given out.
    pub changed: bool,
    /// Since when paths are given to it and none of them is connected.
    pub apart_since: Option<Instant>,
}

/// A path to it.
#[derive(Debug)]
pub(super) struct Way<P> {
    pub path: P,
    /// The dial under way.
    pub attempt: Option<u64>,
    /// A connection we dialed over it is, or was when last looked, up.
    pub up: bool,
    /// Why nothing can or may be sent over it, if so.
    unfit: Option<Reason>,
    /// Why it is away.
    trouble: String,
    failures: usize,
    away_until: Option<Instant>,
}

impl<P: AsRef<Path> + Clone> Downloader<P> {
    /// A peer without paths yet, whose paths will rank as `select` says.
    pub fn new(addr: ScionAddr, most: usize, select: &Select) -> Self {
        Self {
            addr,
            most,
            ranking: select.ranking(),
            ways: BTreeMap::new(),
            changed: false,
            apart_since: None,
        }
    }

    /// These paths to it are offered now; `fits` tells why one of them cannot or may not be dialed.
    /// Returns the attempts over paths that are not offered any more.
    pub fn offer(&mut self, offers: &[P], fits: impl Fn(&P) -> Result<(), Reason>) -> Vec<u64> {
        let mut old = std::mem::take(&mut self.ways);
        for path in offers {
            let fingerprint = path.as_ref().fingerprint();
            let unfit = fits(path).err();
            let way = match old.remove(&fingerprint) {
                Some(way) => Way {
                    path: path.clone(),
                    unfit,
                    ..way
                },
                None => Way {
                    path: path.clone(),
                    attempt: None,
                    up: false,
                    unfit,
                    trouble: String::new(),
                    failures: 0,
                    away_until: None,
                },
            };
            self.ways.insert(fingerprint, way);
        }
        self.changed = true;
        old.into_values().filter_map(|way| way.attempt).collect()
    }

    /// The paths that may be given to it, best first.
    pub fn available(&self) -> Vec<Path> {
        let ways = self.ways.values().filter(|way| way.is_available());
        let paths: Vec<&Path> = ways.map(|way| way.path.as_ref()).collect();
        let ranked = select(&paths, &self.ranking, usize::MAX).taken;
        ranked.into_iter().map(|at| paths[at].clone()).collect()
    }

    /// Whether any path may be given to it.
    pub fn has_available(&self) -> bool {
        self.ways.values().any(Way::is_available)
    }

    /// The paths that may not be given to it, and why.
    pub fn unavailable(&self) -> impl Iterator<Item = (Fingerprint, Decision)> {
        self.ways.iter().filter_map(|(path, way)| {
            let away = way.away_until.map(|_| Reason::Unfit {
                why: way.trouble.clone(),
            });
            let reason = way.unfit.clone().or(away)?;
            Some((*path, Decision::left(reason)))
        })
    }

    /// A connection over a path is up.
    pub fn connected(&mut self, fingerprint: Fingerprint) {
        if let Some(way) = self.ways.get_mut(&fingerprint) {
            way.attempt = None;
            way.up = true;
            way.failures = 0;
        }
    }

    /// A path could not be connected, or its connection ended: it is not available for a while.
    pub fn failed(&mut self, fingerprint: Fingerprint, why: &Closed, now: Instant) {
        if let Some(way) = self.ways.get_mut(&fingerprint) {
            way.attempt = None;
            way.up = false;
            if why.code == CloseCode::PathRefused {
                // To try it sooner would take the peer's other paths from it each time.
                way.failures = AWAY.len();
            }
            way.away_until = Some(now + AWAY[way.failures.min(AWAY.len() - 1)]);
            way.failures += 1;
            way.trouble.clone_from(&why.text);
            self.changed = true;
        }
    }

    /// Paths whose time away is over are available again.
    pub fn come_back(&mut self, now: Instant) {
        for way in self.ways.values_mut() {
            if way.away_until.is_some_and(|until| until <= now) {
                way.away_until = None;
                self.changed = true;
            }
        }
    }
}

impl<P> Way<P> {
    fn is_available(&self) -> bool {
        self.unfit.is_none() && self.away_until.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hawser_path::{Interface, Metadata};

    use super::*;

    /// A path of so many links.
    fn path(id: u16, links: u16) -> Arc<Path> {
        let isd_as = |n: u16| format!("1-ff00:0:{n}").parse().unwrap();
        let ends = (1..=links).flat_map(|n| [n, n + 1]);
        let interfaces = ends.map(|n| Interface {
            isd_as: isd_as(n),
            id,
        });
        let path = Path::new(
            isd_as(1),
            isd_as(links + 1),
            interfaces.collect(),
            Metadata::default(),
        );
        Arc::new(path.unwrap())
    }

    fn downloader() -> Downloader<Arc<Path>> {
        Downloader::new(
            "1-ff00:0:9,10.0.0.1:1".parse().unwrap(),
            4,
            &Select::disjoint(),
        )
    }

    fn available(downloader: &Downloader<Arc<Path>>) -> Vec<Fingerprint> {
        let paths = downloader.available();
        paths.iter().map(Path::fingerprint).collect()
    }

    #[test]
    fn paths_are_ranked_and_unfit_ones_left() {
        let (long, short, narrow) = (path(1, 3), path(2, 2), path(3, 1));
        let mut downloader = downloader();
        let fits = |path: &Arc<Path>| match path.links() {
            1 => Err(Reason::Unfit {
                why: "too narrow".into(),
            }),
            _ => Ok(()),
        };
        downloader.offer(&[long.clone(), short.clone(), narrow], fits);
        let ranked = [short.fingerprint(), long.fingerprint()];
        assert_eq!(available(&downloader), ranked);
    }

    #[test]
    fn a_path_that_fails_is_away_for_longer_and_longer_and_comes_back() {
        let (one, two) = (path(1, 1), path(2, 2));
        let (name, both) = (one.fingerprint(), [one.clone(), two.clone()]);
        let mut downloader = downloader();
        downloader.offer(&both, |_| Ok(()));
        let mut now = Instant::now();
        for away in AWAY {
            downloader.failed(name, &Closed::plain("lost"), now);
            // To hear of it again does not make it better.
            downloader.offer(&both, |_| Ok(()));
            downloader.come_back(now + away - Duration::from_millis(1));
            assert_eq!(available(&downloader), [two.fingerprint()]);
            now += away;
            downloader.changed = false;
            downloader.come_back(now);
            assert!(downloader.changed);
            assert_eq!(available(&downloader), [name, two.fingerprint()]);
        }
        downloader.connected(name);
        downloader.failed(name, &Closed::plain("lost"), now);
        downloader.come_back(now + AWAY[0]);
        assert_eq!(available(&downloader).len(), 2);
    }

    #[test]
    fn a_path_that_the_peer_refuses_is_away_longest_at_once() {
        let one = path(1, 1);
        let mut downloader = downloader();
        downloader.offer(std::slice::from_ref(&one), |_| Ok(()));
        let now = Instant::now();
        let refused = Closed {
            code: CloseCode::PathRefused,
            text: "closed: whatever it says".into(),
        };
        downloader.failed(one.fingerprint(), &refused, now);
        let longest = AWAY[AWAY.len() - 1];
        downloader.come_back(now + longest - Duration::from_millis(1));
        assert_eq!(available(&downloader), []);
        let left: Vec<_> = downloader.unavailable().collect();
        assert_eq!(left[0].1.to_string(), "left: closed: whatever it says");
        downloader.come_back(now + longest);
        assert_eq!(available(&downloader), [one.fingerprint()]);
        assert_eq!(downloader.unavailable().count(), 0);
    }

    #[test]
    fn a_path_no_longer_offered_is_gone_with_its_attempt() {
        let one = path(1, 1);
        let mut downloader = downloader();
        downloader.offer(std::slice::from_ref(&one), |_| Ok(()));
        let way = downloader.ways.get_mut(&one.fingerprint()).unwrap();
        way.attempt = Some(7);
        assert!(downloader.has_available());
        assert_eq!(downloader.offer(&[], |_| Ok(())), [7]);
        assert_eq!(available(&downloader), []);
        assert!(!downloader.has_available());
    }
}
