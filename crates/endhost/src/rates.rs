//! What paths have carried, for the next sender over them: as long as the process runs, an hour at most.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hawser_address::{IsdAsn, ScionAddr};
use hawser_congestion::Carried;
use hawser_path::Fingerprint;

use crate::sync::lock;

/// How long a rate is kept. A path that is refreshed meanwhile crosses the same links.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// Most rates that are kept; the oldest gives way.
const MAX_RATES: usize = 4096;
/// How often a sender stores what its path carries.
const STORE_INTERVAL: Duration = Duration::from_secs(2);

/// A path to a host. Another host over the same path may be slower, and many that begin at once would all
/// send at the rate of the first.
type Key = (Fingerprint, IsdAsn, IpAddr);

/// What the paths from a host have carried. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct PathRates(Arc<Mutex<Rates>>);

/// What each path has carried last, and when.
#[derive(Debug, Default)]
struct Rates(HashMap<Key, (Carried, Instant)>);

impl PathRates {
    /// The record of a sender to the host of `remote` over a path.
    pub fn record(&self, path: Fingerprint, remote: ScionAddr) -> RateRecord {
        RateRecord {
            rates: self.clone(),
            key: (path, remote.isd_as, remote.host.ip().to_canonical()),
            seen: None,
            stored: None,
        }
    }
}

impl Rates {
    fn get(&self, key: &Key, now: Instant) -> Option<Carried> {
        let (carried, stored) = self.0.get(key)?;
        is_kept(*stored, now).then_some(*carried)
    }

    /// Stores what a path carried at `at`, unless something newer is known.
    fn store(&mut self, key: Key, carried: Carried, at: Instant) {
        if let Some(known) = self.0.get_mut(&key) {
            if known.1 <= at {
                *known = (carried, at);
            }
            return;
        }
        if self.0.len() >= MAX_RATES {
            self.0.retain(|_, (_, stored)| is_kept(*stored, at));
        }
        if self.0.len() >= MAX_RATES {
            let oldest = self.0.iter().min_by_key(|(_, (_, stored))| *stored);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(key, (carried, at));
    }
}

fn is_kept(stored: Instant, now: Instant) -> bool {
    now.saturating_duration_since(stored) < MAX_AGE
}

/// What the path of one sender has carried.
#[derive(Debug, Clone)]
pub struct RateRecord {
    rates: PathRates,
    key: Key,
    /// When the path was last observed.
    seen: Option<Instant>,
    /// When a rate was last stored, or when the sender began.
    stored: Option<Instant>,
}

impl RateRecord {
    /// What the path has carried before.
    pub fn last(&self, now: Instant) -> Option<Carried> {
        lock(&self.rates.0).get(&self.key, now)
    }

    /// The path carries packets: stores every other second what it `carried`, if that is known.
    pub fn observe(&mut self, now: Instant, carried: impl FnOnce() -> Option<Carried>) {
        self.seen = Some(now);
        let stored = *self.stored.get_or_insert(now);
        if now.saturating_duration_since(stored) >= STORE_INTERVAL {
            self.stored = Some(now);
            self.store(carried(), now);
        }
    }

    /// The sender ends: stores what the path `carried` when it was last observed, if that is known.
    pub fn end(&self, carried: Option<Carried>) {
        if let Some(seen) = self.seen {
            self.store(carried, seen);
        }
    }

    fn store(&self, carried: Option<Carried>, at: Instant) {
        if let Some(carried) = carried {
            tracing::debug!(?carried, key = ?self.key, "a path's rate is kept");
            lock(&self.rates.0).store(self.key, carried, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn path() -> Fingerprint {
        Fingerprint::local(IsdAsn::WILDCARD)
    }

    fn remote(ip: impl Into<IpAddr>, port: u16) -> ScionAddr {
        ScionAddr::new(IsdAsn::WILDCARD, SocketAddr::new(ip.into(), port))
    }

    fn carried(rate: u32) -> Carried {
        Carried {
            rate: rate.into(),
            rtt: SECOND,
        }
    }

    #[test]
    fn the_newest_rate_of_a_path_to_a_host_counts_for_an_hour() {
        let (rates, now) = (PathRates::default(), Instant::now());
        let ip = Ipv4Addr::new(10, 0, 0, 1);
        let mut one = rates.record(path(), remote(ip, 1));
        let mut two = rates.record(path(), remote(ip.to_ipv6_mapped(), 2));
        let other = rates.record(path(), remote(Ipv6Addr::LOCALHOST, 1));
        one.observe(now + SECOND, || panic!("it is not due"));
        two.observe(now, || panic!("it is not due"));
        assert_eq!(one.last(now), None);
        one.end(Some(carried(1)));
        two.end(Some(carried(2)));
        // What was seen later counts, also if it is stored earlier.
        for record in [&one, &two] {
            assert_eq!(record.last(now + SECOND), Some(carried(1)));
        }
        two.observe(now + 5 * SECOND, || Some(carried(3)));
        two.observe(now + 6 * SECOND, || panic!("it is not due"));
        assert_eq!(one.last(now + 6 * SECOND), Some(carried(3)));
        // A sender that knows nothing takes nothing away.
        two.end(None);
        let until = now + 5 * SECOND + MAX_AGE;
        let before = until.checked_sub(SECOND).unwrap();
        assert_eq!(one.last(before), Some(carried(3)));
        assert_eq!(one.last(until), None);
        assert_eq!(other.last(now + 6 * SECOND), None);
    }

    #[test]
    fn the_oldest_of_too_many_rates_gives_way_and_all_that_are_too_old() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        let key = |host: usize| {
            let ip = IpAddr::from(Ipv4Addr::from_bits(u32::try_from(host).unwrap()));
            (path(), IsdAsn::WILDCARD, ip)
        };
        let at = |host: usize| now + SECOND * u32::try_from(host).unwrap() / 4096;
        for host in 0..MAX_RATES + 2 {
            rates.store(key(host), carried(1), at(host));
        }
        assert_eq!(rates.0.len(), MAX_RATES);
        let is_known = |rates: &Rates, host| rates.get(&key(host), at(MAX_RATES)).is_some();
        assert!(!is_known(&rates, 0) && !is_known(&rates, 1));
        assert!(is_known(&rates, 2) && is_known(&rates, MAX_RATES + 1));
        // One that is known takes no place.
        rates.store(key(2), carried(2), now + 2 * SECOND);
        assert!(is_known(&rates, 3));
        rates.store(key(0), carried(1), now + SECOND + MAX_AGE);
        assert_eq!(rates.0.len(), 3, "the last one, 2 and 0");
    }
}
