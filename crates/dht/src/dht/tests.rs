use std::net::SocketAddrV4;
use std::time::Duration;

use super::*;
use crate::message::{ErrorCode, Found, write_answer, write_error};
use crate::simulation::Numbered;
use crate::table::FRESH;

type V4 = SocketAddrV4;
type Datagram = (V4, Vec<u8>);

const HASH: [u8; 20] = [9; 20];

/// A node whose datagrams the test answers.
struct Tester {
    dht: Dht<V4>,
    now: Instant,
}

impl Tester {
    fn new(config: Config<V4>) -> Self {
        let now = Instant::now();
        let dht = Dht::new(config, Rng::with_seed(1), now);
        Self { dht, now }
    }

    /// What the node sends, and reports.
    fn outputs(&mut self) -> (Vec<Datagram>, Vec<Output<V4>>) {
        let (mut sent, mut reports) = (Vec::new(), Vec::new());
        while let Some(output) = self.dht.poll() {
            match output {
                Output::Send { to, bytes } => sent.push((to, bytes)),
                report => reports.push(report),
            }
        }
        (sent, reports)
    }

    fn sent(&mut self) -> Vec<(V4, Message<V4>)> {
        let sent = self.outputs().0.into_iter();
        sent.map(|(to, bytes)| (to, Message::read(&bytes).unwrap()))
            .collect()
    }

    fn receive(&mut self, from: V4, bytes: &[u8]) {
        self.dht.receive(self.now, from, bytes);
    }

    /// The one answer to a query.
    fn ask(&mut self, from: V4, method: &Method) -> Body<V4> {
        let id = secure_id(from, &mut Rng::with_seed(3));
        self.receive(from, &write_query(5, id, method, true));
        let [(to, message)] = &self.sent()[..] else {
            panic!("not one answer")
        };
        assert_eq!(
            (*to, &message.transaction[..]),
            (from, &5_u32.to_be_bytes()[..])
        );
        message.body.clone()
    }

    /// Answers everything that the node asks, as `found` says, with an id that follows from the
    /// address. Returns the queries and the reports.
    fn serve(
        &mut self,
        found: impl Fn(V4, &Method) -> Found<V4>,
        seen: V4,
    ) -> (Vec<(V4, Method)>, Vec<Output<V4>>) {
        let (mut asked, mut reports) = (Vec::new(), Vec::new());
        loop {
            let (sent, reported) = self.outputs();
            reports.extend(reported);
            if sent.is_empty() {
                return (asked, reports);
            }
            for (to, bytes) in sent {
                let message = Message::<V4>::read(&bytes).unwrap();
                let Body::Query { method, .. } = message.body else {
                    continue;
                };
                let id = secure_id(to, &mut Rng::with_seed(3));
                let answer = write_answer(&message.transaction, id, seen, &found(to, &method));
                asked.push((to, method));
                self.receive(to, &answer);
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.dht.advance(self.now);
    }
}

fn addr(number: u32) -> V4 {
    V4::numbered(number)
}

fn nothing(_: V4, _: &Method) -> Found<V4> {
    Found {
        nodes: Some(Vec::new()),
        token: Some([7; 8]),
        ..Found::default()
    }
}

#[test]
fn peers_are_stored_for_those_that_asked_before() {
    let mut node = Tester::new(Config::default());
    let hash = Id(HASH);
    let announce = |token: &[u8]| Method::Announce {
        info_hash: hash,
        port: Some(77),
        token: token.to_vec(),
    };
    assert_eq!(node.ask(addr(1), &announce(b"12345678")), Body::Error);
    let Body::Answer(answer) = node.ask(addr(1), &Method::GetPeers(hash)) else {
        panic!("not an answer")
    };
    assert!(answer.values.is_empty());
    let token = answer.token.unwrap();
    assert_eq!(node.ask(addr(2), &announce(&token)), Body::Error);
    assert!(matches!(
        node.ask(addr(1), &announce(&token)),
        Body::Answer(_)
    ));
    let Body::Answer(answer) = node.ask(addr(2), &Method::GetPeers(hash)) else {
        panic!("not an answer")
    };
    assert_eq!(answer.values, [addr(1).with_port(77)]);
    assert_eq!(node.dht.stats(node.now).peers, 1);
    for _ in 0..40 {
        node.wait(Duration::from_secs(60));
        node.outputs();
    }
    assert_eq!(node.dht.stats(node.now).peers, 0);
}

#[test]
fn a_search_announces_with_the_tokens_it_got() {
    let mut node = Tester::new(Config::default());
    node.dht.bootstrap(node.now, [addr(1), addr(2)]);
    let id = node
        .dht
        .search(node.now, HASH, Some(Announce::Port(77)))
        .unwrap();
    let peers = [
        addr(50),
        addr(51),
        "127.0.0.1:1".parse().unwrap(),
        addr(50).with_port(0),
    ];
    let found = |of, method: &Method| match method {
        Method::GetPeers(_) if of == addr(1) => Found {
            values: peers.to_vec(),
            ..nothing(of, method)
        },
        _ => nothing(of, method),
    };
    let (asked, reports) = node.serve(found, addr(99));
    let announce = Method::Announce {
        info_hash: Id(HASH),
        port: Some(77),
        token: vec![7; 8],
    };
    for to in [addr(1), addr(2)] {
        assert!(asked.contains(&(to, Method::GetPeers(Id(HASH)))));
        assert!(asked.contains(&(to, announce.clone())));
    }
    let [
        Output::Peers { search, peers },
        Output::Finished {
            search: finished,
            summary,
        },
    ] = &reports[..]
    else {
        panic!("{reports:?}")
    };
    assert_eq!((*search, *finished), (id, id));
    assert_eq!(peers[..], [addr(50), addr(51)]);
    assert_eq!(
        (
            summary.asked,
            summary.answered,
            summary.announced,
            summary.peers
        ),
        (2, 2, 2, 2)
    );
    assert_eq!(node.dht.nodes(node.now).len(), 2);
}

#[test]
fn only_the_asked_node_answers() {
    let mut node = Tester::new(Config::default());
    node.dht.bootstrap(node.now, [addr(1)]);
    let sent = node.sent();
    let (to, message) = &sent[0];
    assert_eq!((*to, sent.len()), (addr(1), 1));
    let answer = |transaction: &[u8]| {
        write_answer(
            transaction,
            Id([1; 20]),
            addr(9),
            &nothing(addr(1), &Method::Ping),
        )
    };
    node.receive(addr(2), &answer(&message.transaction));
    node.receive(addr(1), &answer(&[0; 4]));
    assert_eq!(node.dht.stats(node.now).counters.answers_unexpected, 2);
    assert_eq!(node.dht.stats(node.now).good, 0);
    node.receive(addr(1), &answer(&message.transaction));
    assert_eq!(node.dht.stats(node.now).good, 1);
    // Repeated, it is counted, and nothing else.
    node.receive(addr(1), &answer(&message.transaction));
    let stats = node.dht.stats(node.now);
    assert_eq!(
        (
            stats.good,
            stats.counters.answers,
            stats.counters.answers_unexpected
        ),
        (1, 1, 3)
    );
}

#[test]
fn a_node_that_asks_enters_the_table_once_it_answers() {
    let mut node = Tester::new(Config::default());
    let id = secure_id(addr(1), &mut Rng::with_seed(3));
    // A read-only node is not asked.
    node.receive(addr(2), &write_query(5, id, &Method::Ping, true));
    assert_eq!(node.sent().len(), 1);
    node.receive(addr(1), &write_query(5, id, &Method::Ping, false));
    assert_eq!(node.dht.stats(node.now).good, 0);
    node.serve(nothing, addr(99));
    assert_eq!(node.dht.nodes(node.now), [addr(1)]);
}

#[test]
fn a_read_only_node_asks_and_does_not_answer() {
    let mut node = Tester::new(Config {
        read_only: true,
        ..Config::default()
    });
    node.receive(addr(1), &write_query(5, Id([1; 20]), &Method::Ping, false));
    assert!(node.sent().is_empty());
    node.dht.bootstrap(node.now, [addr(1)]);
    assert!(node.sent().iter().all(|(_, message)| message.read_only));
}

#[test]
fn errors_end_queries_and_faults_are_answered() {
    let mut node = Tester::new(Config::default());
    node.dht.bootstrap(node.now, [addr(1)]);
    let transaction = node.sent()[0].1.transaction.clone();
    node.receive(addr(1), &write_error(&transaction, ErrorCode::Server, "no"));
    assert_eq!(node.dht.stats(node.now).in_flight, 0);
    node.receive(addr(1), b"d1:t2:aa1:y1:qe");
    let sent = node.outputs().0;
    assert!(sent[0].1.starts_with(b"d1:eli203e"));
    node.receive(
        addr(1),
        b"d1:ad2:id20:abcdefghij0123456789e1:q4:vote1:t2:aa1:y1:qe",
    );
    let sent = node.outputs().0;
    assert!(sent[0].1.starts_with(b"d1:eli204e"));
    node.receive(addr(1), b"rubbish");
    assert_eq!(node.dht.stats(node.now).counters.malformed, 1);
}

#[test]
fn the_id_follows_from_the_address_that_others_see() {
    let own = addr(500);
    let node = |at| (secure_id(addr(at), &mut Rng::with_seed(3)), addr(at));
    let others = |_: V4, method: &Method| {
        let first = match method {
            Method::FindNode(target) | Method::GetPeers(target) => u32::from(target.0[0]),
            Method::Ping | Method::Announce { .. } => 0,
        };
        let nodes = (first..first + 8).map(|at| node(at % 19 + 1));
        Found {
            nodes: Some(nodes.collect()),
            ..nothing(own, method)
        }
    };
    let mut node = Tester::new(Config::default());
    assert_eq!(standing(own, node.dht.id()), Standing::Unverified);
    node.dht.bootstrap(node.now, (1..20).map(addr));
    node.serve(others, own);
    // Eight nodes are too few to be believed.
    assert_eq!(standing(own, node.dht.id()), Standing::Unverified);
    for at in 0..10 {
        node.dht.search(node.now, [20 * at; 20], None).unwrap();
        node.serve(others, own);
    }
    assert_eq!(standing(own, node.dht.id()), Standing::Verified);
    let id = node.dht.id();
    let good = node.dht.stats(node.now).good;
    assert!(good >= 8, "{good}");
    // The id is kept for the next run, unless it does not fit the address.
    let next = |external| {
        Tester::new(Config {
            id: Some(id),
            external,
            ..Config::default()
        })
        .dht
        .id()
    };
    assert_eq!((next(None), next(Some(own))), (id, id));
    let moved = next(Some(addr(501)));
    assert_eq!(standing(addr(501), moved), Standing::Verified);
}

#[test]
fn searches_wait_for_nodes_and_their_turn() {
    let config = Config {
        max_searches: 2,
        max_waiting: 1,
        ..Config::default()
    };
    let mut node = Tester::new(config);
    node.dht.bootstrap(node.now, [addr(1)]);
    let first = node.dht.search(node.now, HASH, None).unwrap();
    let second = node.dht.search(node.now, [8; 20], None).unwrap();
    node.dht.search(node.now, [7; 20], None).unwrap();
    let full = node.dht.search(node.now, [6; 20], None);
    assert_eq!(full, Err(SearchError::TooMany(3)));
    // The own id comes first.
    let own = node.dht.id();
    let sent = node.outputs().0;
    assert_eq!(sent.len(), 1);
    let message = Message::<V4>::read(&sent[0].1).unwrap();
    assert!(matches!(message.body, Body::Query { method: Method::FindNode(id), .. } if id == own));
    node.dht.cancel(node.now, second);
    node.receive(
        addr(1),
        &write_answer(
            &message.transaction,
            Id([1; 20]),
            addr(9),
            &nothing(addr(1), &Method::Ping),
        ),
    );
    assert_eq!(
        (
            node.dht.stats(node.now).searches,
            node.dht.stats(node.now).waiting
        ),
        (2, 0)
    );
    let (asked, reports) = node.serve(nothing, addr(99));
    assert_eq!((asked.len(), reports.len()), (2, 2));
    assert!(matches!(reports[0], Output::Finished { search, .. } if search == first));
}

#[test]
fn silent_nodes_end_a_search_and_are_asked_again_later() {
    let mut node = Tester::new(Config::default());
    node.dht.bootstrap(node.now, [addr(1)]);
    node.dht.search(node.now, HASH, None).unwrap();
    let mut bootstraps = node.sent().len();
    let mut finished = 0;
    for _ in 0..100 {
        node.wait(Duration::from_secs(1));
        let (sent, reports) = node.outputs();
        bootstraps += sent.len();
        finished += reports.len();
    }
    assert_eq!(finished, 1);
    // At 0, 10, 30 and 70 seconds, and the query of the search.
    assert!((4..=5).contains(&bootstraps), "{bootstraps}");
    assert_eq!(node.dht.stats(node.now).in_flight, 0);
}

#[test]
fn the_table_is_kept_fresh() {
    let nodes = || (1..30).map(|at| (secure_id(addr(at), &mut Rng::with_seed(3)), addr(at)));
    let others = |_: V4, _: &Method| Found {
        nodes: Some(nodes().collect()),
        ..Found::default()
    };
    let mut node = Tester::new(Config::default());
    node.dht.bootstrap(node.now, (1..9).map(addr));
    node.serve(others, addr(99));
    let good = node.dht.stats(node.now).good;
    let start = node.now;
    let mut asked = 0;
    while node.now < start + 3 * FRESH {
        node.wait(Duration::from_secs(5));
        asked += node.serve(others, addr(99)).0.len();
    }
    let stats = node.dht.stats(node.now);
    assert!(stats.good >= good && stats.questionable == 0, "{stats:?}");
    assert!((good..20 * good).contains(&asked), "{asked}");
}

#[test]
fn floods_are_not_answered() {
    let mut node = Tester::new(Config::default());
    let query = write_query(5, Id([1; 20]), &Method::GetPeers(Id(HASH)), true);
    for _ in 0..1000 {
        node.receive(addr(1), &query);
    }
    assert_eq!(node.sent().len(), 40);
    assert_eq!(node.dht.stats(node.now).counters.queries_limited, 960);
    assert!(matches!(node.ask(addr(2), &Method::Ping), Body::Answer(_)));
}

#[test]
fn a_flood_from_many_networks_is_bounded_and_peers_are_found_meanwhile() {
    let mut node = Tester::new(Config::default());
    let mut rng = Rng::with_seed(7);
    node.dht.bootstrap(node.now, [addr(1), addr(2)]);
    node.serve(nothing, addr(99));
    assert_eq!(node.dht.nodes(node.now).len(), 2);
    let honest = |to: &V4| [addr(1), addr(2)].contains(to);
    // Queries of all kinds, and announcements with the tokens that it gave, for ten seconds.
    let mut tokens = std::collections::HashMap::new();
    let (mut answered, mut stored, mut most, mut found) = (0, 0, 0, 0);
    for number in 0..60_000_u32 {
        if number % 60 == 0 {
            node.wait(Duration::from_millis(10));
        }
        if number % 6000 == 0 {
            node.dht.search(node.now, HASH, None).unwrap();
        }
        let hash = Id([(number % 30) as u8; 20]);
        let from = addr(1000 + number % 5000);
        let method = match (tokens.get(&(from, hash)), rng.u8(..4)) {
            (Some(token), _) => Method::Announce {
                info_hash: hash,
                port: Some(rng.u16(1..)),
                token: Vec::clone(token),
            },
            (None, 0) => Method::Ping,
            (None, 1) => Method::FindNode(Id(HASH)),
            (None, _) => Method::GetPeers(hash),
        };
        node.receive(
            from,
            &write_query(number, Id([rng.u8(..); 20]), &method, true),
        );
        loop {
            let (sent, reports) = node.outputs();
            let peers = |report: &Output<V4>| match report {
                Output::Peers { peers, .. } => peers.contains(&addr(50)),
                _ => false,
            };
            found += reports.iter().filter(|report| peers(report)).count();
            if sent.is_empty() {
                break;
            }
            for (to, bytes) in sent {
                let message = Message::<V4>::read(&bytes).unwrap();
                match message.body {
                    Body::Answer(answer) => {
                        answered += 1;
                        stored += usize::from(matches!(method, Method::Announce { .. }));
                        tokens.extend(answer.token.map(|token| ((to, hash), token)));
                    }
                    Body::Error => answered += 1,
                    Body::Query { method, .. } if honest(&to) => {
                        let mut answer = nothing(to, &method);
                        if matches!(method, Method::GetPeers(_)) {
                            answer.values = vec![addr(50)];
                        }
                        let id = secure_id(to, &mut Rng::with_seed(3));
                        let answer = write_answer(&message.transaction, id, addr(99), &answer);
                        node.receive(to, &answer);
                    }
                    // Those of the flood answer nothing.
                    Body::Query { .. } => {}
                }
            }
        }
        most = most.max(node.dht.stats(node.now).in_flight);
    }
    // 200 a second, and those of two seconds at once.
    assert!((1000..=200 * 12).contains(&answered), "{answered}");
    let stats = node.dht.stats(node.now);
    assert!(stored > 0 && stats.peers > 0, "{stats:?}");
    assert!(stats.torrents <= 30 && stats.peers <= stored, "{stats:?}");
    assert!(most <= 256, "{most} queries wait");
    // Each search has found the peer, and the honest nodes are still known.
    assert_eq!((found, stats.searches), (10, 0), "{stats:?}");
    assert_eq!(
        node.dht
            .nodes(node.now)
            .iter()
            .filter(|to| honest(to))
            .count(),
        2
    );
}
