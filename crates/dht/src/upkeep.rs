//! When the routing table is tended.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::address::Address;
use crate::output::SearchId;

/// Time between two rounds, in each of which at most one node is pinged and one bucket refreshed.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time between two rounds in which old peers are forgotten.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);
/// Most addresses remembered for when no node of the routing table answers.
pub(crate) const MAX_SEEDS: usize = 64;
/// First and longest time between two attempts to find nodes, which doubles with each.
const RETRY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));

/// When the routing table is tended, and the searches that do it.
#[derive(Debug)]
pub(crate) struct Upkeep<A> {
    next: Instant,
    next_expiry: Instant,
    /// Given addresses, the last given at the end.
    seeds: VecDeque<A>,
    /// The search for the own id, while it is under way.
    bootstrap: Option<SearchId>,
    /// The search for an id of a bucket, while it is under way.
    refresh: Option<SearchId>,
    next_retry: Instant,
    retry: Duration,
    /// Whether a search for the own id has found nodes.
    settled: bool,
}

impl<A: Address> Upkeep<A> {
    /// Begins within the first interval.
    pub fn new(rng: &mut Rng, now: Instant) -> Self {
        let next = now + INTERVAL.mul_f64(rng.f64());
        Self {
            next,
            next_expiry: now + EXPIRY_INTERVAL,
            seeds: VecDeque::new(),
            bootstrap: None,
            refresh: None,
            next_retry: now,
            retry: RETRY.0,
            settled: false,
        }
    }

    /// When the next round is due.
    pub fn next_due(&self) -> Instant {
        self.next
    }

    /// Whether a round is due. It counts as begun.
    pub fn begin_round(&mut self, now: Instant) -> bool {
        let due = self.next <= now;
        if due {
            self.next = now + INTERVAL;
        }
        due
    }

    /// Whether old peers are to be forgotten in this round.
    pub fn expiry_due(&mut self, now: Instant) -> bool {
        let due = self.next_expiry <= now;
        if due {
            self.next_expiry = now + EXPIRY_INTERVAL;
        }
        due
    }

    /// Remembers an address. Returns whether it is new.
    pub fn add_seed(&mut self, addr: A) -> bool {
        if self.seeds.contains(&addr) {
            return false;
        }
        if self.seeds.len() == MAX_SEEDS {
            self.seeds.pop_front();
        }
        self.seeds.push_back(addr);
        true
    }

    /// The addresses remembered.
    pub fn seeds(&self) -> impl Iterator<Item = A> {
        self.seeds.iter().copied()
    }

    /// Whether the search for the own id may be begun again, since nodes are missing.
    pub fn may_retry(&self, now: Instant) -> bool {
        self.bootstrap.is_none() && self.next_retry <= now
    }

    /// A search for the own id has begun.
    pub fn begin_bootstrap(&mut self, search: SearchId, now: Instant) {
        self.bootstrap = Some(search);
        self.next_retry = now + self.retry;
        self.retry = (self.retry * 2).min(RETRY.1);
    }

    /// The search for the own id, while it is under way.
    pub fn bootstrap(&self) -> Option<SearchId> {
        self.bootstrap
    }

    /// Whether no bucket is being refreshed.
    pub fn may_refresh(&self) -> bool {
        self.refresh.is_none() && self.bootstrap.is_none()
    }

    /// A search for an id of a bucket has begun.
    pub fn begin_refresh(&mut self, search: SearchId) {
        self.refresh = Some(search);
    }

    /// A search has ended; `answered` nodes answered in it.
    pub fn finished(&mut self, search: SearchId, answered: usize) {
        self.refresh.take_if(|refresh| *refresh == search);
        if self.bootstrap.take_if(|own| *own == search).is_some() && answered > 0 {
            self.settled = true;
        }
    }

    /// The routing table has enough nodes: when they are missing again, that is seen to soon.
    pub fn reset_retry(&mut self) {
        self.retry = RETRY.0;
    }

    /// Whether the routing table shows how large the DHT is.
    pub fn is_settled(&self) -> bool {
        self.settled
    }
}
