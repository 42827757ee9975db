//! The known paths, which of them are usable, and when to request them from the source again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_address::IsdAsn;
use hawser_path::Interface;
use tokio::sync::watch;

use crate::clock::unix_now;
use crate::local_as::LocalAs;
use crate::outage::{HOLD_WITHOUT_ANSWERS, Outage, Outages};
use crate::path::Path;
use crate::service::{Freshness, SourceError};

/// Interval of requests for watched paths, and for all paths while an outage lasts.
const WATCHED_INTERVAL: Duration = Duration::from_secs(1);
/// The interval is longer where there are so many that requests would be closer together than this.
const SPACING: Duration = Duration::from_millis(10);
/// Intervals are shorter by up to this part, each by another, so that requests that began together do
/// not stay together.
const JITTER: f64 = 0.125;
/// Interval of requests for other paths in use; also the age up to which a cached answer is
/// returned.
const UNWATCHED_INTERVAL: Duration = Duration::from_secs(60);
/// Time after which paths that are not in use are removed.
const FORGET: Duration = Duration::from_secs(300);
/// New paths are requested this long before the first of the old ones expires, or when half of its
/// lifetime has passed, whichever is later.
const BEFORE_EXPIRY: Duration = Duration::from_secs(120);

/// The paths to all ASes that were requested.
pub(super) struct PathCache {
    local: LocalAs,
    destinations: HashMap<IsdAsn, Destination>,
    outages: Outages,
    /// How often the usable paths to an AS were looked for.
    #[cfg(test)]
    published: usize,
}

/// The paths to one AS.
pub(super) struct Destination {
    /// The paths as the source offered them.
    offered: Vec<Path>,
    /// The usable ones of them.
    pub(super) usable: watch::Sender<Arc<Vec<Path>>>,
    /// When the paths were last requested, whether or not there was an answer.
    asked: Option<Instant>,
    /// Whether there was an answer.
    answered: bool,
    /// Number of requests in flight.
    asking: usize,
    /// When the first path expires, in seconds since the Unix epoch, and when to request new paths
    /// because of that.
    renew: Option<(u64, Instant)>,
    /// When the first hold of its paths ends that began before the last request. They are requested
    /// then: an answer to a request from before is older than the end of the hold.
    held_until: Option<Instant>,
    /// When the paths were last used.
    wanted: Instant,
    /// When the first of the usable paths expires, in seconds since the Unix epoch; 0 if there is
    /// none.
    expires: u64,
    /// The part of an interval by which requests are early.
    early: f64,
}

impl Destination {
    /// Whether the last answer is recent.
    pub(super) fn is_fresh(&self) -> bool {
        let recent = self
            .asked
            .is_some_and(|asked| asked.elapsed() < UNWATCHED_INTERVAL);
        self.answered && recent
    }

    /// Whether its paths are requested often.
    fn is_frequent(&self, down: bool) -> bool {
        self.usable.receiver_count() > 0 || down || !self.answered
    }

    /// When to request the paths next, and how fresh they must be then. `often` is the interval of
    /// frequent requests.
    fn due(&self, down: bool, often: Duration, now: Instant) -> (Instant, Freshness) {
        let Some(asked) = self.asked else {
            return (now, Freshness::Cached);
        };
        let interval = match self.is_frequent(down) {
            true => often,
            false => UNWATCHED_INTERVAL,
        };
        let regular = asked + interval.mul_f64(1.0 - self.early);
        let regular = self.held_until.map_or(regular, |until| until.min(regular));
        match self.renew {
            Some((_, renew)) if renew <= regular => {
                (renew.max(asked + WATCHED_INTERVAL), Freshness::New)
            }
            _ => (regular, Freshness::Cached),
        }
    }
}

impl PathCache {
    pub(super) fn new(local: LocalAs) -> Self {
        Self {
            local,
            destinations: HashMap::new(),
            outages: Outages::default(),
            #[cfg(test)]
            published: 0,
        }
    }

    /// The entry of `dst`, now in use; created if it is missing.
    pub(super) fn want(&mut self, dst: IsdAsn) -> &mut Destination {
        let (now, local) = (Instant::now(), self.local);
        let destination = self.destinations.entry(dst).or_insert_with(|| {
            let here = (dst == local.isd_as).then(|| Path::within(dst, local.mtu));
            let offered = Vec::from_iter(here);
            Destination {
                usable: watch::Sender::new(Arc::new(offered.clone())),
                offered,
                asked: None,
                answered: false,
                asking: 0,
                renew: None,
                held_until: None,
                wanted: now,
                expires: 0,
                early: JITTER * (RandomState::new().hash_one(dst) as f64 / u64::MAX as f64),
            }
        });
        destination.wanted = now;
        destination
    }

    /// The usable paths to `dst`, and the number of all known ones.
    pub(super) fn usable(&self, dst: IsdAsn) -> (Vec<Path>, usize) {
        let Some(destination) = self.destinations.get(&dst) else {
            return (Vec::new(), 0);
        };
        let now = unix_now();
        let offered = &destination.offered;
        let unexpired = offered.iter().filter(|path| path.expiry() > now);
        let usable = unexpired.filter(|path| !self.outages.cut(&path.info().interfaces));
        (usable.cloned().collect(), offered.len())
    }

    /// For how many seconds the last of the known paths to `dst` has been expired; `None` if one has
    /// not, or there is none.
    pub(super) fn expired(&self, dst: IsdAsn) -> Option<u64> {
        let offered = &self.destinations.get(&dst)?.offered;
        let last = offered.iter().map(Path::expiry).max()?;
        unix_now().checked_sub(last)
    }

    /// Publishes the usable paths to `dst` to watchers, if they changed.
    fn publish(&mut self, dst: IsdAsn) {
        #[cfg(test)]
        (self.published += 1);
        let (usable, _) = self.usable(dst);
        let Some(destination) = self.destinations.get_mut(&dst) else {
            return;
        };
        destination.expires = usable.iter().map(Path::expiry).min().unwrap_or(0);
        destination.usable.send_if_modified(|current| {
            let changed = **current != usable;
            if changed {
                *current = Arc::new(usable);
            }
            changed
        });
    }

    /// Publishes the usable paths to all ASes, because outages have changed.
    fn publish_all(&mut self) {
        let all: Vec<IsdAsn> = self.destinations.keys().copied().collect();
        all.into_iter().for_each(|dst| self.publish(dst));
    }

    /// Updates the paths to `dst` with the `answer` to a request sent at `asked`.
    pub(super) fn update(
        &mut self,
        dst: IsdAsn,
        asked: Instant,
        freshness: Freshness,
        answer: Result<Vec<Path>, SourceError>,
    ) -> Result<(), SourceError> {
        let Some(destination) = self.destinations.get_mut(&dst) else {
            return answer.map(drop);
        };
        if destination.asked.is_some_and(|latest| asked < latest) {
            // A later request was answered earlier.
            return answer.map(drop);
        }
        destination.asked = Some(asked);
        destination.answered = answer.is_ok();
        // An answer counts from the time of its request; without one, old paths are tried again
        // some time after they were reported down.
        let mut changed = false;
        let (offered_at, answer) = match answer {
            Ok(paths) => {
                let expiry = paths.iter().map(Path::expiry).min();
                let same = destination.renew.map(|(expiry, _)| expiry) == expiry;
                // Paths that are merely offered again are no fresher.
                if !same || freshness == Freshness::New {
                    destination.renew = expiry.and_then(|expiry| renewal(expiry, asked));
                }
                changed = destination.offered != paths;
                if changed {
                    destination.offered = paths;
                }
                (Some(asked), Ok(()))
            }
            Err(error) => (asked.checked_sub(HOLD_WITHOUT_ANSWERS), Err(error)),
        };
        let mut outages_changed = false;
        for path in &destination.offered {
            if let Some(at) = offered_at {
                outages_changed |= self.outages.offered(&path.info().interfaces, at);
            }
        }
        if outages_changed {
            self.publish_all();
        } else if changed {
            self.publish(dst);
        }
        self.follow_holds(dst);
        answer
    }

    /// Plans a request for the end of the next hold of the paths to `dst`.
    fn follow_holds(&mut self, dst: IsdAsn) {
        let Some(destination) = self.destinations.get_mut(&dst) else {
            return;
        };
        let asked = destination.asked.unwrap_or_else(Instant::now);
        let paths = destination.offered.iter();
        let ends = paths.filter_map(|path| self.outages.next_end(&path.info().interfaces, asked));
        destination.held_until = ends.min();
    }

    /// Records `outage`. Returns whether it is new and cuts a known path.
    pub(super) fn report(&mut self, outage: Outage) -> bool {
        let cuts_known = self
            .destinations
            .values()
            .flat_map(|destination| &destination.offered)
            .any(|path| outage.cuts(&path.info().interfaces));
        // Only outages that cut a known path are kept, so that reports cost no memory.
        let new = cuts_known && self.outages.report(outage, Instant::now());
        if new {
            self.publish_all();
            let all: Vec<IsdAsn> = self.destinations.keys().copied().collect();
            all.into_iter().for_each(|dst| self.follow_holds(dst));
        }
        new
    }

    /// Takes back reports about a path over `interfaces`, because a packet sent at `sent` was
    /// acknowledged.
    pub(super) fn clear(&mut self, interfaces: &[Interface], sent: Instant) {
        if self.outages.clear(interfaces, sent) {
            self.publish_all();
        }
    }

    /// The requests that are due now, and when to plan again. [`PathCache::done`] must be called
    /// when one of them ends.
    pub(super) fn plan(&mut self) -> (Vec<(IsdAsn, Freshness)>, Option<Instant>) {
        let now = Instant::now();
        // Paths expire also while the source does not answer.
        let second = unix_now();
        let expired = |(dst, one): (&IsdAsn, &Destination)| {
            (one.expires != 0 && one.expires <= second).then_some(*dst)
        };
        let expired: Vec<_> = self.destinations.iter().filter_map(expired).collect();
        expired.into_iter().for_each(|dst| self.publish(dst));
        self.destinations.retain(|_, destination| {
            destination.asking > 0
                || destination.usable.receiver_count() > 0
                || now < destination.wanted + FORGET
        });
        let down = self.outages.any(now);
        let often = self.often(down);
        let (mut due_now, mut next) = (Vec::new(), None);
        for (dst, destination) in &mut self.destinations {
            if *dst == self.local.isd_as {
                continue;
            }
            // An answer in time makes the next request due no sooner than this.
            let soonest = now + WATCHED_INTERVAL.mul_f64(1.0 - JITTER);
            let due = match destination.asking {
                0 => match destination.due(down, often, now) {
                    (due, freshness) if due <= now => {
                        destination.asking += 1;
                        due_now.push((*dst, freshness));
                        soonest
                    }
                    (due, _) => due,
                },
                // The end of a hold may be sooner: `done` says so.
                _ => soonest,
            };
            next = Some(next.map_or(due, |next: Instant| next.min(due)));
        }
        (due_now, next)
    }

    /// The interval of frequent requests.
    fn often(&self, down: bool) -> Duration {
        let all = self.destinations.values();
        let frequent = all.filter(|one| one.is_frequent(down)).count();
        let frequent = u32::try_from(frequent).unwrap_or(u32::MAX);
        WATCHED_INTERVAL.max(SPACING.saturating_mul(frequent))
    }

    /// Counts a request for `dst` that begins.
    pub(super) fn begin(&mut self, dst: IsdAsn) {
        self.want(dst).asking += 1;
    }

    /// Counts a request for `dst` that ends, answered or not. Returns whether another one may be due
    /// sooner than planned, because its paths are held.
    pub(super) fn done(&mut self, dst: IsdAsn) -> bool {
        let Some(destination) = self.destinations.get_mut(&dst) else {
            return false;
        };
        destination.asking = destination.asking.saturating_sub(1);
        destination.held_until.is_some()
    }
}

/// When to request replacements of the paths offered at `offered`, the first of which expires at
/// `expiry`.
fn renewal(expiry: u64, offered: Instant) -> Option<(u64, Instant)> {
    let left = Duration::from_secs(expiry.saturating_sub(unix_now()));
    let renew = offered.checked_add(left.saturating_sub(BEFORE_EXPIRY.min(left / 2)))?;
    Some((expiry, renew))
}

#[cfg(test)]
mod tests;
