//! Which path delivers first.

use std::collections::BTreeMap;
use std::time::Duration;

use super::PathKey;

/// What waits in a path that takes no more, in its congestion windows: what is under way, and what
/// QUIC keeps ready. A block that is sent then arrives about as many round trips later.
const QUEUED: f64 = 2.0;
/// The round-trip time and congestion window assumed until they are known.
const FIRST: Estimate = Estimate {
    rtt: Duration::from_millis(100),
    window: 14_720,
};

/// What is known of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window, in bytes.
    pub window: u64,
}

#[derive(Debug)]
struct Path {
    estimate: Estimate,
    /// Whether it has room and nothing to send.
    is_idle: bool,
    /// Bytes of blocks sent over it.
    sent: u64,
}

/// The paths of a session.
#[derive(Debug, Default)]
pub(super) struct Paths(BTreeMap<PathKey, Path>);

impl Paths {
    pub(super) fn add(&mut self, key: PathKey) {
        let path = Path {
            estimate: FIRST,
            is_idle: false,
            sent: 0,
        };
        self.0.insert(key, path);
    }

    pub(super) fn remove(&mut self, key: PathKey) -> bool {
        self.0.remove(&key).is_some()
    }

    pub(super) fn set(&mut self, key: PathKey, estimate: Estimate) {
        if let Some(path) = self.0.get_mut(&key) {
            path.estimate = estimate;
        }
    }

    pub(super) fn set_idle(&mut self, key: PathKey, is_idle: bool) {
        if let Some(path) = self.0.get_mut(&key) {
            path.is_idle = is_idle;
        }
    }

    pub(super) fn on_sent(&mut self, key: PathKey, bytes: u64) {
        if let Some(path) = self.0.get_mut(&key) {
            path.sent += bytes;
        }
    }

    /// Bytes of blocks sent over each path.
    pub(super) fn sent(&self) -> impl Iterator<Item = (PathKey, u64)> {
        self.0.iter().map(|(key, path)| (*key, path.sent))
    }

    /// The paths that deliver sooner than `key`.
    fn faster(&self, key: PathKey) -> Option<impl Iterator<Item = &Path>> {
        let than = (self.0.get(&key)?.estimate.rtt, key);
        let all = self.0.iter();
        let faster = all.filter(move |(key, path)| (path.estimate.rtt, **key) < than);
        Some(faster.map(|(_, path)| path))
    }

    /// Whether no other path that has room delivers sooner than `key`.
    pub(super) fn is_first(&self, key: PathKey) -> bool {
        let faster = self.faster(key);
        faster.is_some_and(|mut faster| faster.all(|path| !path.is_idle))
    }

    /// The path that delivers soonest of those that have room and nothing to send.
    pub(super) fn first_idle(&self) -> Option<PathKey> {
        let idle = self.0.iter().filter(|(_, path)| path.is_idle);
        let first = idle.min_by_key(|(key, path)| (path.estimate.rtt, **key));
        first.map(|(key, _)| *key)
    }

    /// The bytes that must wait for a block to be delivered sooner over `key`, which has room, than by
    /// the faster paths once they have sent these (earliest completion first: Lim et al., *ECF: An
    /// MPTCP Path Scheduler to Manage Heterogeneous Paths*, 2017). `None` if there is no such path.
    pub(super) fn least_backlog(&self, key: PathKey) -> Option<u64> {
        let own = self.0.get(&key)?.estimate.rtt.as_secs_f64();
        let (mut rate, mut soonest) = (0.0, own);
        for other in self.faster(key)? {
            let rtt = other.estimate.rtt.as_secs_f64().max(1e-6);
            rate += other.estimate.window as f64 / rtt;
            soonest = soonest.min(rtt);
        }
        Some((QUEUED * (own - soonest) * rate) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(all: &[(u64, u64)]) -> Paths {
        let mut paths = Paths::default();
        for (key, (rtt, window)) in (0..).zip(all) {
            paths.add(key);
            let estimate = Estimate {
                rtt: Duration::from_millis(*rtt),
                window: *window,
            };
            paths.set(key, estimate);
        }
        paths
    }

    #[test]
    fn a_far_path_is_used_for_a_large_backlog_only() {
        // The slow path delivers 180 ms later; the fast one sends 10 MB/s meanwhile.
        let paths = paths(&[(10, 100_000), (100, 100_000)]);
        assert_eq!(paths.least_backlog(0), Some(0));
        assert_eq!(paths.least_backlog(1), Some(1_800_000));
        assert_eq!(paths.least_backlog(2), None);
    }

    #[test]
    fn equal_paths_are_both_used() {
        let paths = paths(&[(20, 50_000), (20, 50_000)]);
        assert_eq!([0, 1].map(|key| paths.least_backlog(key)), [Some(0); 2]);
    }

    #[test]
    fn the_fastest_path_with_room_comes_first() {
        let mut paths = paths(&[(30, 1), (10, 1), (20, 1)]);
        (0..3).for_each(|key| paths.set_idle(key, true));
        assert_eq!(
            [0, 1, 2].map(|key| paths.is_first(key)),
            [false, true, false]
        );
        paths.set_idle(1, false);
        assert_eq!(
            [0, 1, 2].map(|key| paths.is_first(key)),
            [false, true, true]
        );
        assert!(!paths.is_first(7));
    }
}
