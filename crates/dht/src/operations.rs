//! Random operations on a node, with invariants checked after each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hawser_address::ScionAddr;
use proptest::prelude::*;

use crate::message::{Body, Found, Message, Method, write_answer, write_query};
use crate::output::{Output, SearchId};
use crate::secure::secure_id;
use crate::simulation::Numbered;
use crate::{Announce, Config, Dht, Id};

/// An event of a node. Numbers of datagrams and searches are taken modulo how many there are.
#[derive(Debug, Clone)]
enum Operation {
    /// The addresses of these numbers are given.
    Bootstrap(Vec<u32>),
    Search(u8, bool),
    Cancel(usize),
    /// A query under way is answered; the seed decides with what.
    Answer(usize, u64),
    /// The same from another address, or with another transaction id.
    Forge(usize, u64),
    /// A query of a node comes.
    Query(u32, u64),
    /// This many ms pass.
    Wait(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let numbers = prop::collection::vec(1..60_u32, 0..10);
    prop_oneof![
        1 => numbers.prop_map(Operation::Bootstrap),
        3 => any::<(u8, bool)>().prop_map(|(at, announce)| Operation::Search(at % 10, announce)),
        1 => any::<usize>().prop_map(Operation::Cancel),
        20 => any::<(usize, u64)>().prop_map(|(at, seed)| Operation::Answer(at, seed)),
        2 => any::<(usize, u64)>().prop_map(|(at, seed)| Operation::Forge(at, seed)),
        5 => (1..60_u32, any::<u64>()).prop_map(|(at, seed)| Operation::Query(at, seed)),
        5 => (0..3000_u64).prop_map(Operation::Wait),
    ]
}

const MAX_SEARCHES: usize = 3;
const MAX_WAITING: usize = 4;

struct World<A> {
    dht: Dht<A>,
    now: Instant,
    /// Queries of the node that are not answered.
    asked: Vec<(A, Vec<u8>)>,
    /// Searches that have not ended, and the peers that they reported.
    searches: BTreeMap<SearchId, BTreeSet<A>>,
}

impl<A: Numbered> World<A> {
    fn new() -> Self {
        let config = Config {
            max_searches: MAX_SEARCHES,
            max_waiting: MAX_WAITING,
            max_torrents: 5,
            ..Config::default()
        };
        let now = Instant::now();
        Self {
            dht: Dht::new(config, Rng::with_seed(1), now),
            now,
            asked: Vec::new(),
            searches: BTreeMap::new(),
        }
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Bootstrap(numbers) => {
                let addrs = numbers.into_iter().map(A::numbered);
                self.dht.bootstrap(self.now, addrs);
            }
            Operation::Search(at, announce) => {
                let announce = announce.then_some(Announce::SamePort);
                let stats = self.dht.stats(self.now);
                let full = stats.searches + stats.waiting >= MAX_SEARCHES + MAX_WAITING;
                match self.dht.search(self.now, [at; 20], announce) {
                    Ok(id) => assert!(self.searches.insert(id, BTreeSet::new()).is_none()),
                    Err(_) => assert!(full),
                }
            }
            Operation::Cancel(at) => {
                let ids: Vec<_> = self.searches.keys().copied().collect();
                if let Some(id) = at.checked_rem(ids.len()).map(|at| ids[at]) {
                    self.searches.remove(&id);
                    self.dht.cancel(self.now, id);
                }
            }
            Operation::Answer(at, seed) => {
                if let Some(at) = at.checked_rem(self.asked.len()) {
                    let (from, query) = self.asked.swap_remove(at);
                    let answer = answer(from, &query, &mut Rng::with_seed(seed));
                    let before = self.dht.stats(self.now).counters;
                    self.dht.receive(self.now, from, &answer);
                    let after = self.dht.stats(self.now).counters;
                    let unexpected = after.answers_unexpected - before.answers_unexpected;
                    assert_eq!(after.answers - before.answers + unexpected, 1);
                }
            }
            Operation::Forge(at, seed) => {
                if let Some(at) = at.checked_rem(self.asked.len()) {
                    let (from, query) = &self.asked[at];
                    let answer = answer(*from, query, &mut Rng::with_seed(seed));
                    let before = self.dht.stats(self.now);
                    self.dht.receive(self.now, from.with_port(7), &answer);
                    let after = self.dht.stats(self.now);
                    assert_eq!(before.counters.answers, after.counters.answers);
                    assert_eq!(before.in_flight, after.in_flight);
                }
            }
            Operation::Query(number, seed) => {
                let mut rng = Rng::with_seed(seed);
                let (from, target) = (A::numbered(number), Id([rng.u8(..10); 20]));
                let announce = Method::Announce {
                    info_hash: target,
                    port: None,
                    token: vec![1; 8],
                };
                let methods = [
                    Method::Ping,
                    Method::FindNode(target),
                    Method::GetPeers(target),
                    announce,
                ];
                let id = if rng.bool() {
                    secure_id(from, &mut rng)
                } else {
                    Id::random(&mut rng)
                };
                let query = write_query(seed as u32, id, &methods[rng.usize(..4)], rng.bool());
                self.dht.receive(self.now, from, &query);
            }
            Operation::Wait(ms) => self.wait(Duration::from_millis(ms)),
        }
        self.settle();
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while self.dht.next_due() <= end {
            self.now = self.dht.next_due().max(self.now);
            self.dht.advance(self.now);
            self.settle();
            assert!(self.dht.next_due() > self.now, "it is due again at once");
        }
        self.now = end;
    }

    fn settle(&mut self) {
        while let Some(output) = self.dht.poll() {
            match output {
                Output::Send { to, bytes } => {
                    assert!(to.is_reachable() && bytes.len() <= 1200);
                    let message = Message::<A>::read(&bytes).unwrap();
                    if matches!(message.body, Body::Query { .. }) {
                        self.asked.push((to, bytes));
                    }
                }
                Output::Peers { search, peers } => {
                    let seen = self.searches.get_mut(&search).unwrap();
                    for peer in peers {
                        assert!(peer.is_reachable() && seen.insert(peer));
                    }
                }
                Output::Finished { search, summary } => {
                    let seen = self.searches.remove(&search).unwrap();
                    assert_eq!(seen.len(), summary.peers);
                    assert!(summary.asked >= summary.answered && summary.announced <= 12);
                }
            }
        }
        let excess = self.asked.len().saturating_sub(300);
        self.asked.drain(..excess);
        let stats = self.dht.stats(self.now);
        assert!(stats.searches <= MAX_SEARCHES && stats.in_flight <= 256);
        assert!(stats.searches + stats.waiting <= MAX_SEARCHES + MAX_WAITING);
        assert_eq!(stats.searches + stats.waiting, self.searches.len());
        assert!(stats.torrents <= 5);
    }
}

/// An answer with true and false nodes and peers.
fn answer<A: Numbered>(from: A, query: &[u8], rng: &mut Rng) -> Vec<u8> {
    let message = Message::<A>::read(query).unwrap();
    let Body::Query { method, .. } = &message.body else {
        panic!("not a query")
    };
    let target = match method {
        Method::FindNode(target) | Method::GetPeers(target) => *target,
        Method::Ping | Method::Announce { .. } => Id::MAX,
    };
    let node = |rng: &mut Rng| {
        let addr = A::numbered(rng.u32(1..60));
        match rng.bool() {
            true => (secure_id(addr, rng), addr),
            false => (
                target.random_beside(rng.u32(..160), rng),
                addr.with_port(rng.u16(..3)),
            ),
        }
    };
    let found = Found {
        nodes: Some((0..rng.usize(..10)).map(|_| node(rng)).collect()),
        values: (0..rng.usize(..20)).map(|_| node(rng).1).collect(),
        token: rng.bool().then_some([1; 8]),
    };
    let id = if rng.bool() {
        secure_id(from, rng)
    } else {
        Id::random(rng)
    };
    let seen = A::numbered(if rng.u8(..4) == 0 { 100 } else { 101 });
    write_answer(&message.transaction, id, seen, &found)
}

fn check<A: Numbered>(operations: Vec<Operation>) {
    let mut world = World::<A>::new();
    for operation in operations {
        world.run(operation);
    }
    // Each search ends, even if nobody answers.
    world.wait(Duration::from_secs(3600));
    assert!(world.searches.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn limits_hold_and_searches_end(operations in prop::collection::vec(operation(), 0..300)) {
        check::<SocketAddrV4>(operations.clone());
        check::<SocketAddrV6>(operations.clone());
        check::<ScionAddr>(operations);
    }
}
