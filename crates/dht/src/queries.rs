//! Queries in flight: what is asked of which node, and when it is too late for the answer.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::output::SearchId;
use crate::search::Part;

/// Most queries in flight.
const MAX_IN_FLIGHT: usize = 256;
/// After how long a query counts as stalled, before any answer came.
const FIRST_STALL: Duration = Duration::from_secs(1);
/// Shortest and longest time after which a query counts as stalled.
const STALL: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));
/// Shortest and longest time after which a query is given up: several times the other.
const TIMEOUT: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(10));
const TIMEOUT_FACTOR: u32 = 5;

/// What a query is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The routing table.
    Ping,
    /// A part of a search.
    Search(SearchId, Part),
}

/// A query in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<A> {
    pub to: A,
    pub purpose: Purpose,
    sent: Instant,
    stalled: bool,
    due: Instant,
}

/// What became of a query that was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry<A> {
    /// The answer is late: others are asked in the meantime.
    Stalled(A, Purpose),
    /// The answer is not waited for any longer.
    TimedOut(A, Purpose),
}

/// All queries in flight.
#[derive(Debug)]
pub(crate) struct Queries<A> {
    in_flight: HashMap<u32, Query<A>>,
    due: BTreeSet<(Instant, u32)>,
    rtt: Rtt,
}

/// Round-trip times, smoothed as in RFC 6298, over all nodes.
#[derive(Debug, Default)]
struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
}

impl Rtt {
    fn observe(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
    }

    fn stall(&self) -> Duration {
        let expected = |smoothed| smoothed + 4 * self.variation;
        let stall = self.smoothed.map_or(FIRST_STALL, expected);
        stall.clamp(STALL.0, STALL.1)
    }

    fn timeout(&self) -> Duration {
        (self.stall() * TIMEOUT_FACTOR).clamp(TIMEOUT.0, TIMEOUT.1)
    }
}

impl<A: Address> Queries<A> {
    pub fn new() -> Self {
        Self {
            in_flight: HashMap::new(),
            due: BTreeSet::new(),
            rtt: Rtt::default(),
        }
    }

    /// Whether another query may be sent.
    pub fn has_room(&self) -> bool {
        self.in_flight.len() < MAX_IN_FLIGHT
    }

    /// Number of queries in flight.
    pub fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// Adds a query. Returns whether the transaction id is free, and there is room.
    pub fn add(&mut self, transaction: u32, to: A, purpose: Purpose, now: Instant) -> bool {
        if !self.has_room() || self.in_flight.contains_key(&transaction) {
            return false;
        }
        let due = now + self.rtt.stall();
        let query = Query {
            to,
            purpose,
            sent: now,
            stalled: false,
            due,
        };
        self.in_flight.insert(transaction, query);
        self.due.insert((due, transaction));
        true
    }

    /// Takes the query that is answered by a message with this transaction id from this node.
    pub fn take(&mut self, transaction: &[u8], from: A, now: Instant) -> Option<Query<A>> {
        let transaction = u32::from_be_bytes(transaction.try_into().ok()?);
        let query = *self.in_flight.get(&transaction)?;
        if query.to != from {
            return None;
        }
        self.remove(transaction, query.due);
        self.rtt.observe(now.saturating_duration_since(query.sent));
        Some(query)
    }

    fn remove(&mut self, transaction: u32, due: Instant) {
        self.in_flight.remove(&transaction);
        self.due.remove(&(due, transaction));
    }

    /// When the next query stalls or times out.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The next query that has stalled or timed out by now.
    pub fn next_expiry(&mut self, now: Instant) -> Option<Expiry<A>> {
        let (due, transaction) = *self.due.first()?;
        if due > now {
            return None;
        }
        self.due.remove(&(due, transaction));
        let query = self.in_flight.get_mut(&transaction)?;
        let (to, purpose) = (query.to, query.purpose);
        let timeout = query.sent + self.rtt.timeout();
        if query.stalled || timeout <= now {
            self.in_flight.remove(&transaction);
            return Some(Expiry::TimedOut(to, purpose));
        }
        query.stalled = true;
        query.due = timeout;
        self.due.insert((timeout, transaction));
        Some(Expiry::Stalled(to, purpose))
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn addr(host: u8) -> SocketAddrV4 {
        SocketAddrV4::new([8, 8, 8, host].into(), 1)
    }

    #[test]
    fn only_the_node_asked_answers_and_only_once() {
        let now = Instant::now();
        let mut queries = Queries::new();
        assert!(queries.add(7, addr(1), Purpose::Ping, now));
        assert!(!queries.add(7, addr(2), Purpose::Ping, now));
        let id = 7_u32.to_be_bytes();
        assert!(queries.take(&id, addr(2), now).is_none());
        assert!(queries.take(&id, addr(1).with_port(2), now).is_none());
        assert!(queries.take(&id[1..], addr(1), now).is_none());
        assert!(queries.take(&id, addr(1), now).is_some());
        assert!(queries.take(&id, addr(1), now).is_none());
        assert_eq!((queries.len(), queries.next_due()), (0, None));
    }

    #[test]
    fn a_query_stalls_and_may_be_answered_until_it_times_out() {
        let start = Instant::now();
        let mut queries = Queries::new();
        for transaction in [1, 2] {
            queries.add(transaction, addr(1), Purpose::Ping, start);
        }
        assert_eq!(queries.next_due(), Some(start + FIRST_STALL));
        assert_eq!(queries.next_expiry(start + FIRST_STALL - MS), None);
        let stalled = Some(Expiry::Stalled(addr(1), Purpose::Ping));
        assert_eq!(queries.next_expiry(start + FIRST_STALL), stalled);
        assert_eq!(queries.next_expiry(start + FIRST_STALL), stalled);
        assert_eq!(queries.next_expiry(start + FIRST_STALL), None);
        let late = start + 2 * FIRST_STALL;
        assert!(queries.take(&1_u32.to_be_bytes(), addr(1), late).is_some());
        let due = queries.next_due().unwrap();
        let timed_out = Some(Expiry::TimedOut(addr(1), Purpose::Ping));
        assert_eq!(queries.next_expiry(due), timed_out);
        assert_eq!((queries.len(), queries.next_due()), (0, None));
    }

    #[test]
    fn queries_stall_sooner_where_nodes_answer_fast() {
        let mut now = Instant::now();
        let mut queries = Queries::new();
        for transaction in 0..50_u32 {
            queries.add(transaction, addr(1), Purpose::Ping, now);
            now += 100 * MS;
            queries
                .take(&transaction.to_be_bytes(), addr(1), now)
                .unwrap();
        }
        assert_eq!(queries.rtt.stall(), STALL.0);
        assert_eq!(queries.rtt.timeout(), TIMEOUT.0);
        for transaction in 0..50_u32 {
            queries.add(transaction, addr(1), Purpose::Ping, now);
            now += 1500 * MS;
            queries
                .take(&transaction.to_be_bytes(), addr(1), now)
                .unwrap();
        }
        assert!((1450 * MS..2000 * MS).contains(&queries.rtt.stall()));
    }

    #[test]
    fn the_number_of_queries_is_bounded() {
        let now = Instant::now();
        let mut queries = Queries::new();
        let added = (0..1000).filter(|at| queries.add(*at, addr(1), Purpose::Ping, now));
        assert_eq!(added.count(), MAX_IN_FLIGHT);
    }
}
