//! Which path delivers first.

use std::collections::BTreeMap;
use std::time::Duration;

use super::estimate::{Estimate, INITIAL_ESTIMATE};
use super::flight::{Flight, NeverSent};
use super::send::BLOCK;
use super::{PathKey, StreamId};

/// By how much later than another path one may deliver a block, with what comes in between waiting
/// for it: a reader notices this as a pause.
const MAX_LATER: Duration = Duration::from_millis(150);
/// Units that arrive before they are reported, unless nothing follows.
const REPORT_UNITS: u64 = 64 << 10;

/// How soon a path delivers what is sent next: the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Whether something is late on it, so that nothing shows that it delivers.
    pub is_late: bool,
    /// How long the next block takes.
    pub delay: Duration,
    /// How long a frame without data takes.
    pub least_delay: Duration,
    key: PathKey,
}

#[derive(Debug)]
struct Path {
    estimate: Estimate,
    /// Whether it has room and nothing to send.
    is_idle: bool,
    /// Whether it is not to be used for now.
    is_suspended: bool,
    /// Bytes of blocks sent over it.
    sent: u64,
    flight: Flight,
    /// What the other side calls it, once that is known.
    name: Option<u64>,
    /// Units that arrived over it, and that were reported.
    received: u64,
    reported: u64,
}

/// The paths of a session.
#[derive(Debug, Default)]
pub(super) struct Paths(BTreeMap<PathKey, Path>);

impl Paths {
    pub(super) fn add(&mut self, key: PathKey) {
        let path = Path {
            estimate: INITIAL_ESTIMATE,
            is_idle: false,
            is_suspended: false,
            sent: 0,
            flight: Flight::default(),
            name: None,
            received: 0,
            reported: 0,
        };
        self.0.insert(key, path);
    }

    pub(super) fn remove(&mut self, key: PathKey) -> bool {
        let was_there = self.0.remove(&key).is_some();
        self.report_again();
        was_there
    }

    /// Uses a path no more, until [`resume`](Self::resume). Returns whether it was used.
    pub(super) fn suspend(&mut self, key: PathKey) -> bool {
        let Some(path) = self.0.get_mut(&key) else {
            return false;
        };
        path.flight.abandon();
        path.is_idle = false;
        let was_used = !std::mem::replace(&mut path.is_suspended, true);
        self.report_again();
        was_used
    }

    pub(super) fn resume(&mut self, key: PathKey) {
        if let Some(path) = self.0.get_mut(&key) {
            path.is_suspended = false;
        }
    }

    /// Reports all arrivals again, as a report may have been lost with its path.
    fn report_again(&mut self) {
        self.0.values_mut().for_each(|path| path.reported = 0);
    }

    pub(super) fn set(&mut self, key: PathKey, estimate: Estimate) {
        if let Some(path) = self.0.get_mut(&key) {
            path.estimate = estimate;
        }
    }

    pub(super) fn set_name(&mut self, key: PathKey, name: u64) {
        if let Some(path) = self.0.get_mut(&key) {
            path.name = Some(name);
        }
    }

    pub(super) fn set_idle(&mut self, key: PathKey, is_idle: bool) {
        if let Some(path) = self.0.get_mut(&key) {
            path.is_idle = is_idle && !path.is_suspended;
        }
    }

    /// Records that a block of `units` is sent over a path. Returns when it is expected to arrive.
    pub(super) fn on_sent(
        &mut self,
        key: PathKey,
        block: (StreamId, u64),
        units: u64,
        now: Duration,
    ) -> Duration {
        let Some(path) = self.0.get_mut(&key) else {
            return now;
        };
        path.sent += units;
        path.flight.send(block, units, path.estimate, now)
    }

    /// The other side reports how much has arrived over a path in all. Returns the blocks that have.
    pub(super) fn on_arrived(
        &mut self,
        key: PathKey,
        units: u64,
        now: Duration,
    ) -> Result<Vec<(StreamId, u64)>, NeverSent> {
        match self.0.get_mut(&key) {
            Some(path) => path.flight.arrive(units, now),
            // It was removed.
            None => Ok(Vec::new()),
        }
    }

    /// Records that `units` have arrived over a path.
    pub(super) fn on_received(&mut self, key: PathKey, units: u64) {
        if let Some(path) = self.0.get_mut(&key) {
            path.received += units;
        }
    }

    /// A path of which arrivals are to be reported: many, unless `any`.
    pub(super) fn unreported(&self, any: bool) -> Option<PathKey> {
        let due = |path: &Path| {
            let new = path.received - path.reported;
            path.name.is_some() && (new >= REPORT_UNITS || any && new > 0)
        };
        let mut paths = self.0.iter();
        paths.find(|(_, path)| due(path)).map(|(key, _)| *key)
    }

    /// What is to be reported of a path: the name that the other side has for it, and the units.
    pub(super) fn report(&mut self, key: PathKey) -> Option<(u64, u64)> {
        let path = self.0.get_mut(&key)?;
        path.reported = path.received;
        Some((path.name?, path.received))
    }

    /// Bytes of blocks sent over each path.
    pub(super) fn sent(&self) -> impl Iterator<Item = (PathKey, u64)> {
        self.0.iter().map(|(key, path)| (*key, path.sent))
    }

    /// The longest round trip of the paths in use.
    pub(super) fn longest_rtt(&self) -> Option<Duration> {
        let used = self.0.values().filter(|path| !path.is_suspended);
        used.map(|path| path.estimate.rtt).max()
    }

    /// Whether anything is under way over any path.
    pub(super) fn are_in_use(&self) -> bool {
        self.0.values().any(|path| !path.flight.is_empty())
    }

    fn rank_of(key: PathKey, path: &Path, now: Duration) -> Rank {
        Rank {
            is_late: path.flight.is_late(now),
            delay: path.flight.delay(BLOCK as u64, path.estimate, now),
            least_delay: path.estimate.least_delay(),
            key,
        }
    }

    /// How soon a path delivers; `None` if it is not in use.
    pub(super) fn rank(&self, key: PathKey, now: Duration) -> Option<Rank> {
        let path = self.0.get(&key).filter(|path| !path.is_suspended)?;
        Some(Self::rank_of(key, path, now))
    }

    /// Whether a path has enough to send.
    pub(super) fn is_full(&self, key: PathKey, now: Duration) -> bool {
        let path = self.0.get(&key);
        path.is_none_or(|path| path.flight.is_full(path.estimate, now))
    }

    fn ranks(&self, now: Duration) -> impl Iterator<Item = (Rank, &Path)> {
        let used = self.0.iter().filter(|(_, path)| !path.is_suspended);
        used.map(move |(key, path)| (Self::rank_of(*key, path, now), path))
    }

    /// Whether no other path that has room delivers a frame without data sooner than one of this rank;
    /// that with the key `except` does not count.
    pub(super) fn is_first_for_control(
        &self,
        rank: Rank,
        except: Option<PathKey>,
        now: Duration,
    ) -> bool {
        let order = |rank: Rank| (rank.is_late, rank.least_delay, rank.key);
        let mut ranks = self.ranks(now).filter(|(one, _)| Some(one.key) != except);
        ranks.all(|(other, path)| !path.is_idle || order(other) >= order(rank))
    }

    /// Whether no other path that has room, and takes a block, delivers it sooner than one of this rank.
    pub(super) fn is_first(&self, rank: Rank, now: Duration) -> bool {
        let takes = |path: &Path| path.is_idle && !path.flight.is_full(path.estimate, now);
        let mut ranks = self.ranks(now);
        ranks.all(|(other, path)| other >= rank || !takes(path))
    }

    /// The paths that have room and nothing to send, the soonest first.
    pub(super) fn idle(&self, now: Duration) -> Vec<PathKey> {
        let idle = self.ranks(now).filter(|(_, path)| path.is_idle);
        let mut idle: Vec<Rank> = idle.map(|(rank, _)| rank).collect();
        idle.sort();
        idle.into_iter().map(|rank| rank.key).collect()
    }

    /// The bytes that must wait for a block to be delivered sooner over a path of this rank, which
    /// has room, than by the faster ones once they have sent these (earliest completion first: Lim et
    /// al., *ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths*, 2017). `None` if it is late
    /// and others are not, or much slower.
    pub(super) fn least_backlog(&self, rank: Rank, now: Duration) -> Option<u64> {
        let mut least = 0.0;
        for (other, path) in self.ranks(now).filter(|(other, _)| *other < rank) {
            let sooner = rank.delay.saturating_sub(other.delay);
            if sooner > MAX_LATER || rank.is_late && !other.is_late {
                return None;
            }
            least += sooner.as_secs_f64() * path.flight.rate(path.estimate, now);
        }
        Some(least as u64)
    }

    /// What is late on other paths than one of this rank, the first of each first.
    pub(super) fn late_on_others(
        &self,
        rank: Rank,
        now: Duration,
    ) -> impl Iterator<Item = (PathKey, StreamId, u64)> {
        let others = self.0.iter().filter(move |(key, _)| **key != rank.key);
        others.flat_map(move |(key, path)| {
            let late = path.flight.late(now);
            late.map(move |(id, offset)| (*key, id, offset))
        })
    }

    /// Records that a block which is late on a path is sent again over another one.
    pub(super) fn on_repeated(&mut self, key: PathKey, block: (StreamId, u64)) {
        if let Some(path) = self.0.get_mut(&key) {
            path.flight.on_repeated(block);
        }
    }
}

#[cfg(test)]
mod tests;
