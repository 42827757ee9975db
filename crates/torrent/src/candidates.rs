//! The peers that were found, and which of them is dialed next.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hawser_address::PeerAddr;

use crate::source::PeerSource;

/// Most addresses that are remembered of one torrent.
const MAX_KNOWN: usize = 2000;

/// Time after a failure before the same peer is dialed again, doubled with each further failure in a row.
const BACKOFF: Duration = Duration::from_secs(60);

/// Most doublings of a backoff: with the one above, to about an hour.
const MAX_DOUBLINGS: u32 = 6;

/// Peers that were found, dialed or not.
#[derive(Debug)]
pub(crate) struct Candidates {
    known: HashMap<PeerAddr, Candidate>,
    backoff: Duration,
    /// Number of candidates ever added: earlier ones are dialed first.
    added: u64,
}

#[derive(Debug)]
struct Candidate {
    source: PeerSource,
    number: u64,
    /// Failures in a row.
    failures: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It may be dialed from this time.
    Waiting(Instant),
    /// It is being dialed, or connected.
    Taken,
    /// It is not dialed again.
    Banned,
}

impl Default for Candidates {
    fn default() -> Self {
        Self::with_backoff(BACKOFF)
    }
}

impl Candidates {
    /// No candidates yet; each may be dialed again `backoff` after its first failure.
    pub fn with_backoff(backoff: Duration) -> Self {
        Self {
            known: HashMap::new(),
            backoff,
            added: 0,
        }
    }

    /// Adds a peer; returns whether it is new and there is room. Where there is none, it takes the place
    /// of one that is banned or failed, or that waits and is from a less trusted source.
    pub fn add(&mut self, addr: PeerAddr, source: PeerSource, now: Instant) -> bool {
        if !addr.is_reachable() {
            return false;
        }
        if let Some(known) = self.known.get_mut(&addr) {
            known.source = known.source.min(source);
            return false;
        }
        if self.known.len() >= MAX_KNOWN && !self.evict(source) {
            return false;
        }
        self.added += 1;
        let candidate = Candidate {
            source,
            number: self.added,
            failures: 0,
            state: State::Waiting(now),
        };
        self.known.insert(addr, candidate);
        true
    }

    /// Forgets the candidate that is worth least, if it is worth less than a new one of `source`: one that
    /// is banned, failed, or is from a less trusted source.
    fn evict(&mut self, source: PeerSource) -> bool {
        let idle = self.known.iter().filter(|(_, it)| it.state != State::Taken);
        let rank = |it: &Candidate| (it.state == State::Banned, it.failures, it.source, it.number);
        let worst = idle.max_by_key(|(_, it)| rank(it));
        let worst = worst
            .filter(|(_, it)| it.state == State::Banned || it.failures > 0 || it.source > source);
        let worst = worst.map(|(addr, _)| *addr);
        worst.is_some_and(|addr| self.known.remove(&addr).is_some())
    }

    /// The peer to be dialed next, if one is due: one that failed least, of the most trusted source.
    /// `skip` says which are not to be dialed at present.
    pub fn take(&mut self, now: Instant, skip: impl Fn(PeerAddr) -> bool) -> Option<PeerAddr> {
        let due = self.known.iter_mut().filter(|(addr, it)| {
            matches!(it.state, State::Waiting(from) if from <= now) && !skip(**addr)
        });
        let next = due.min_by_key(|(_, it)| (it.failures, it.source, it.number));
        next.map(|(addr, it)| {
            it.state = State::Taken;
            *addr
        })
    }

    /// A peer that was taken is not dialed any more. It may be dialed again after a backoff, a longer one
    /// if no connection to it `worked`.
    pub fn release(&mut self, addr: PeerAddr, worked: bool, now: Instant) {
        let Some(known) = self.known.get_mut(&addr) else {
            return;
        };
        known.failures = match worked {
            true => 0,
            false => known.failures.saturating_add(1),
        };
        let doublings = known.failures.saturating_sub(1).min(MAX_DOUBLINGS);
        known.state = State::Waiting(now + self.backoff * (1 << doublings));
    }

    /// A peer that was taken is never dialed again.
    pub fn ban(&mut self, addr: PeerAddr) {
        if let Some(known) = self.known.get_mut(&addr) {
            known.state = State::Banned;
        }
    }

    /// When the next one may be dialed.
    pub fn next_due(&self) -> Option<Instant> {
        let due = self.known.values().filter_map(|it| match it.state {
            State::Waiting(from) => Some(from),
            State::Taken | State::Banned => None,
        });
        due.min()
    }

    /// Number of addresses that are remembered.
    pub fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;

    fn ip(n: u16) -> PeerAddr {
        let host = [10, 0, (n >> 8) as u8, n as u8];
        PeerAddr::Ip(SocketAddr::from((host, 6881)))
    }

    #[test]
    fn trusted_sources_come_first_and_failed_peers_last() {
        let now = Instant::now();
        let mut candidates = Candidates::default();
        assert!(candidates.add(ip(1), PeerSource::Exchange, now));
        assert!(candidates.add(ip(2), PeerSource::Tracker, now));
        assert!(candidates.add(ip(3), PeerSource::Tracker, now));
        assert!(!candidates.add(ip(1), PeerSource::Exchange, now));
        let mut take = |at| candidates.take(at, |_| false);
        assert_eq!(
            [take(now), take(now), take(now)],
            [Some(ip(2)), Some(ip(3)), Some(ip(1))]
        );
        assert_eq!(take(now), None);
        candidates.release(ip(2), false, now);
        candidates.release(ip(1), true, now);
        let later = now + BACKOFF;
        assert_eq!(candidates.take(now, |_| false), None);
        assert_eq!(candidates.take(later, |addr| addr == ip(1)), Some(ip(2)));
        candidates.ban(ip(2));
        assert_eq!(candidates.take(later, |_| false), Some(ip(1)));
        assert_eq!(candidates.take(later + BACKOFF * 64, |_| false), None);
    }

    #[test]
    fn where_there_is_no_room_a_tracker_displaces_what_peers_said() {
        let now = Instant::now();
        let mut candidates = Candidates::default();
        for n in 0..MAX_KNOWN as u16 {
            assert!(candidates.add(ip(n), PeerSource::Exchange, now));
        }
        assert!(!candidates.add(ip(5000), PeerSource::Exchange, now));
        assert!(candidates.add(ip(5001), PeerSource::Tracker, now));
        assert_eq!(candidates.len(), MAX_KNOWN);
        assert_eq!(candidates.take(now, |_| false), Some(ip(5001)));
        // One that failed gives way to any.
        candidates.release(ip(5001), false, now);
        assert!(candidates.add(ip(5002), PeerSource::Exchange, now));
        assert!(!candidates.known.contains_key(&ip(5001)));
    }

    proptest! {
        #[test]
        fn backoffs_grow_and_end(failures in 1u32..100) {
            let now = Instant::now();
            let mut candidates = Candidates::default();
            candidates.add(ip(1), PeerSource::Dht, now);
            for _ in 0..failures {
                candidates.release(ip(1), false, now);
            }
            let wait = BACKOFF * (1 << (failures - 1).min(MAX_DOUBLINGS));
            let soon = now + wait - Duration::from_millis(1);
            prop_assert_eq!(candidates.take(soon, |_| false), None);
            prop_assert_eq!(candidates.take(now + wait, |_| false), Some(ip(1)));
        }
    }
}
