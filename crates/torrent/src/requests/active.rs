//! Which connections are requested from: as many as help.
//!
//! Connections that share a bottleneck deliver no more together than a few of them, but each more
//! makes the others slower and their rates harder to predict, and its batches smaller: a byte costs
//! all processes on its way more. So blocks are requested over few connections first, spread over all
//! paths, then, when the rate of all together grows no more by itself, over twice as many as long as
//! that raises it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_path::Fingerprint;

use super::Source;
use crate::picker::ConnId;

/// Connections that are requested from at first.
const INITIAL_LIMIT: usize = 4;

/// Connections over each path that are requested from whatever the limit, up to [`OVER_PATHS`] times
/// the limit in all: a path may have a bottleneck of its own.
const ON_EACH_PATH: usize = 2;
const OVER_PATHS: usize = 4;

/// It is judged whether more connections helped after this time, or after this many of their round trips if
/// that is longer: a new one may take that time to reach its rate.
const REVIEW: (Duration, u32) = (Duration::from_millis(500), 10);

/// The same, at most, where peers may answer in bursts.
const BURST_REVIEW: Duration = Duration::from_secs(1);

/// More connections helped if the rate of all together grew by this factor. They are not tried while it
/// grows so by itself.
const MIN_GROWTH: f64 = 1.15;

/// Something has changed, so that more may help, if that rate fell below this part.
const FELL: f64 = 0.7;

/// Time after which more connections are tried again when they did not help; doubled each time.
const RETRY_TIMES: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(64));

/// The connections that are requested from.
#[derive(Debug)]
pub(super) struct Active {
    /// Each with its path.
    members: BTreeMap<ConnId, Fingerprint>,
    /// Most members with requested blocks.
    pub(super) limit: usize,
    /// The limit before it was raised to see whether that helps, and the rate then.
    before: Option<(usize, f64)>,
    /// The rate at the last review.
    rate: f64,
    /// When the limit is judged next; `None` until something has arrived.
    due: Option<Instant>,
    pause: Duration,
    /// When each connection last became a member, as a count of all such events.
    joined: BTreeMap<ConnId, u64>,
    joins: u64,
}

impl Active {
    pub fn new() -> Self {
        Self {
            members: BTreeMap::new(),
            limit: INITIAL_LIMIT,
            before: None,
            rate: 0.0,
            due: None,
            pause: RETRY_TIMES.0,
            joined: BTreeMap::new(),
            joins: 0,
        }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn contains(&self, id: ConnId) -> bool {
        self.members.contains_key(&id)
    }

    /// Whether a connection is requested from; one that is new becomes a member while there is
    /// room. Half of the room is kept for connections over other paths.
    pub fn admit(&mut self, id: ConnId, path: Fingerprint) -> bool {
        if self.contains(id) {
            return true;
        }
        let is_new = !self.joined.contains_key(&id);
        let (members, over) = (self.members.len(), self.over(path));
        let has_room = members < self.limit && over < self.limit.div_ceil(2)
            || members < OVER_PATHS * self.limit && over < ON_EACH_PATH;
        let admitted = is_new && has_room;
        if admitted {
            self.join(id, path);
        }
        admitted
    }

    /// Number of members over a path.
    fn over(&self, path: Fingerprint) -> usize {
        self.members.values().filter(|it| **it == path).count()
    }

    fn join(&mut self, id: ConnId, path: Fingerprint) {
        self.members.insert(id, path);
        self.joined.insert(id, self.joins);
        self.joins += 1;
    }

    /// Brings the members up to date with the usable connections; `rate` is that of all together in
    /// bytes per second. With `all`, each is a member.
    pub fn review(
        &mut self,
        sources: &BTreeMap<ConnId, Source>,
        all: bool,
        rate: f64,
        now: Instant,
    ) {
        self.members.retain(|id, _| sources.contains_key(id));
        self.joined.retain(|id, _| sources.contains_key(id));
        let next = now + self.interval(sources);
        if rate > 0.0 && self.due.is_none() {
            self.due = Some(next);
        }
        if self.due.is_some_and(|due| now >= due) {
            self.due = Some(next);
            self.judge(sources, rate, now);
        }
        // A member without requests, as others fetch all that it has, leaves room for another, and so
        // does one that does not answer.
        let is_busy = |id: &&ConnId| {
            let subflow = sources[*id].subflow;
            subflow.asked > 0 && subflow.rate != Some(0.0)
        };
        let busy = self.members.keys().filter(is_busy).count();
        let more = match all {
            true => sources.len(),
            false => self.limit.saturating_sub(busy),
        };
        self.add(sources, more);
    }

    /// How long the members are observed before they are judged.
    fn interval(&self, sources: &BTreeMap<ConnId, Source>) -> Duration {
        let members = self.members.keys().filter_map(|id| sources.get(id));
        let times = members.map(|source| {
            let bursts = source.time.min(BURST_REVIEW);
            (source.subflow.rtt * REVIEW.1).max(bursts)
        });
        times.fold(REVIEW.0, Duration::max)
    }

    /// Adds up to `more` of the other connections, and those over paths with few members. First
    /// come those over the path with the fewest members, of these the ones that never were members,
    /// then the ones that were longest ago.
    fn add(&mut self, sources: &BTreeMap<ConnId, Source>, more: usize) {
        let mut members: BTreeMap<Fingerprint, usize> = BTreeMap::new();
        for path in self.members.values() {
            *members.entry(*path).or_default() += 1;
        }
        let others = sources.iter().filter(|(id, _)| !self.contains(**id));
        let mut others: Vec<_> = others.map(|(id, source)| (*id, source.path)).collect();
        others.sort_by_key(|(id, _)| self.joined.get(id).copied());
        // Each with the number of members over its path before it.
        let mut placed: Vec<(usize, ConnId, Fingerprint)> = Vec::new();
        for (id, path) in others {
            let place = members.entry(path).or_default();
            placed.push((*place, id, path));
            *place += 1;
        }
        placed.sort_by_key(|(place, ..)| *place);
        let room = (OVER_PATHS * self.limit).saturating_sub(self.members.len());
        for (at, (place, id, path)) in placed.into_iter().enumerate() {
            if at < more || place < ON_EACH_PATH && at < room {
                self.join(id, path);
            }
        }
    }

    /// Judges whether the last change of the limit helped, and changes it.
    fn judge(&mut self, sources: &BTreeMap<ConnId, Source>, rate: f64, now: Instant) {
        let before = std::mem::replace(&mut self.rate, rate);
        match self.before.take() {
            Some((limit, old)) if rate < old * MIN_GROWTH => {
                self.limit = limit;
                self.keep_fastest(sources);
                self.due = Some(now + self.pause);
                self.pause = (self.pause * 2).min(RETRY_TIMES.1);
                return;
            }
            Some(_) => self.pause = RETRY_TIMES.0,
            // What more connections would add could not be told from it.
            None if rate > before * MIN_GROWTH => return,
            None if rate < before * FELL => self.pause = RETRY_TIMES.0,
            None => {}
        }
        if sources.len() > self.limit.max(self.members.len()) {
            self.before = Some((self.limit, rate));
            self.limit *= 2;
        }
    }

    /// Keeps as many members as the limit allows, those with the highest rates.
    fn keep_fastest(&mut self, sources: &BTreeMap<ConnId, Source>) {
        let rate = |id: &ConnId| sources[id].subflow.rate.unwrap_or(0.0);
        let mut members: Vec<_> = self.members.iter().map(|(id, it)| (*id, *it)).collect();
        members.sort_by(|(a, _), (b, _)| rate(b).total_cmp(&rate(a)));
        members.truncate(self.limit);
        self.members = members.into_iter().collect();
    }
}
