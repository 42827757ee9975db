use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use fastrand::Rng;
use proptest::prelude::*;

use super::node::MAX_FAILURES;
use super::*;
use crate::secure::secure_id;

const MIN: Duration = Duration::from_secs(60);

/// A local host, which may have any id.
fn addr(number: u32) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(0x0a00_0001 + (number << 8)), 6881)
}

/// A host in a network of its own, whose id must follow from its address.
fn public(number: u32) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(0x0b00_0001 + (number << 8)), 6881)
}

/// An id that shares `bits` bits with the zero id.
fn sharing(bits: u32, rng: &mut Rng) -> Id {
    Id([0; 20]).random_beside(bits, rng)
}

fn full_bucket(now: Instant) -> (Table<SocketAddrV4>, Rng) {
    let mut rng = Rng::with_seed(1);
    let mut table = Table::new(Id([0; 20]), now);
    // The second bucket keeps the first from being the last one.
    for number in 0..10 {
        let bits = if number < 8 { 0 } else { 1 };
        table.answered(sharing(bits, &mut rng), addr(number), now);
    }
    assert_eq!(table.buckets.len(), 2);
    (table, rng)
}

#[test]
fn a_bad_node_is_replaced_by_the_last_replacement() {
    let now = Instant::now();
    let (mut table, mut rng) = full_bucket(now);
    for number in 20..22 {
        table.answered(sharing(0, &mut rng), addr(number), now);
    }
    assert_eq!(table.counts(now), (10, 0));
    for _ in 0..MAX_FAILURES {
        assert!(table.nodes().any(|node| node.addr == addr(3)));
        table.failed(addr(3), now);
    }
    assert!(table.nodes().all(|node| node.addr != addr(3)));
    assert!(table.nodes().any(|node| node.addr == addr(21)));
    table.check();
}

#[test]
fn questionable_nodes_are_pinged_when_others_want_their_place() {
    let start = Instant::now();
    let (mut table, mut rng) = full_bucket(start);
    assert_eq!(table.answered(sharing(0, &mut rng), addr(20), start), None);
    let later = start + FRESH;
    assert_eq!(table.counts(later), (0, 10));
    let pinged = table.answered(sharing(0, &mut rng), addr(21), later);
    let pinged = pinged.expect("a questionable node");
    let other = table.answered(sharing(0, &mut rng), addr(22), later);
    assert!(other.is_some_and(|other| other != pinged));
    let id = table.nodes().find(|node| node.addr == pinged).unwrap().id;
    table.answered(id, pinged, later);
    assert_eq!(table.counts(later), (1, 9));
}

#[test]
fn a_node_that_asks_stays_good() {
    let start = Instant::now();
    let mut table = Table::new(Id([0; 20]), start);
    let id = Id([0x80; 20]);
    assert!(table.asked(id, addr(1), start));
    assert_eq!(table.counts(start), (0, 0));
    table.answered(id, addr(1), start);
    assert!(!table.asked(id, addr(1), start + 14 * MIN));
    assert_eq!(table.counts(start + 20 * MIN), (1, 0));
    assert_eq!(table.counts(start + 29 * MIN), (0, 1));
    assert_eq!(table.ping_due(start + 20 * MIN), Some(addr(1)));
    assert_eq!(table.ping_due(start + 20 * MIN), None);
}

#[test]
fn a_network_and_a_host_have_few_places() {
    let now = Instant::now();
    let mut rng = Rng::with_seed(1);
    let mut table = Table::new(Id([0; 20]), now);
    let first: SocketAddrV4 = "93.184.216.1:1".parse().unwrap();
    for host in 1..100 {
        let addr = SocketAddrV4::new(Ipv4Addr::new(93, 184, 216, host), 1);
        table.answered(sharing(0, &mut rng), addr, now);
        table.answered(sharing(5, &mut rng), addr.with_port(2), now);
    }
    assert_eq!(table.nodes().count(), 1);
    // With another id, the node moves.
    let id = sharing(7, &mut rng);
    table.answered(id, first, now);
    assert_eq!(table.good(now), [(id, first)]);
    for host in 1..100 {
        let addr = SocketAddrV4::new(Ipv4Addr::new(192, 168, 0, host), 1);
        table.answered(sharing(host.into(), &mut rng), addr, now);
    }
    assert_eq!(table.nodes().count(), 100);
}

#[test]
fn an_id_belongs_to_the_first_that_has_it_while_it_answers() {
    let now = Instant::now();
    let mut table = Table::new(Id([0; 20]), now);
    let id = Id([0x80; 20]);
    table.answered(id, addr(1), now);
    table.answered(id, addr(2), now);
    assert_eq!(table.good(now), [(id, addr(1))]);
    (0..MAX_FAILURES).for_each(|_| table.failed(addr(1), now));
    table.answered(id, addr(2), now);
    assert_eq!(table.good(now), [(id, addr(2))]);
    table.answered(Id([0; 20]), addr(3), now);
    assert_eq!(table.good(now), [(id, addr(2))]);
}

#[test]
fn ids_that_follow_from_addresses_come_first() {
    let now = Instant::now();
    let mut rng = Rng::with_seed(1);
    let mut table = Table::new(Id([0; 20]), now);
    for number in 0..100 {
        table.answered(sharing(0, &mut rng), public(number), now);
        table.answered(sharing(1, &mut rng), public(100 + number), now);
    }
    assert_eq!(table.counts(now).0, MAX_UNVERIFIED);
    let verified = (200..).map(public).filter_map(|addr| {
        let id = secure_id(addr, &mut rng);
        (Id([0; 20]).shared_bits(id) == 0).then_some((id, addr))
    });
    let verified: Vec<_> = verified.take(20).collect();
    for (id, addr) in &verified {
        table.answered(*id, *addr, now);
    }
    let good = table.good(now);
    let count = good.iter().filter(|node| verified.contains(node)).count();
    assert!(count == K, "{count}");
    // A node cannot give up an id that follows from its address for another.
    let (id, addr) = good
        .iter()
        .find(|node| verified.contains(node))
        .copied()
        .unwrap();
    table.answered(sharing(9, &mut rng), addr, now);
    assert!(table.good(now).contains(&(id, addr)));
    table.check();
}

#[test]
fn at_most_half_of_an_answer_are_ids_that_do_not_follow_from_addresses() {
    let now = Instant::now();
    let mut rng = Rng::with_seed(1);
    let mut table = Table::new(Id([0; 20]), now);
    for number in 0..400 {
        table.answered(sharing(number % 8, &mut rng), public(number), now);
        let addr = public(1000 + number);
        table.answered(secure_id(addr, &mut rng), addr, now);
    }
    let unverified = |nodes: &[Node<SocketAddrV4>]| {
        let is = |(id, addr): &&Node<_>| standing(*addr, *id) == Standing::Unverified;
        nodes.iter().filter(is).count()
    };
    for bits in 0..12 {
        let target = sharing(bits, &mut rng);
        let nodes = table.nearest_answering(target);
        assert_eq!(nodes.len(), K);
        assert!(unverified(&nodes) <= MAX_UNVERIFIED);
    }
}

#[test]
fn buckets_are_refreshed_where_nothing_changed() {
    let start = Instant::now();
    let mut rng = Rng::with_seed(1);
    let (mut table, _) = full_bucket(start);
    assert_eq!(table.refresh_due(start + FRESH - MIN, &mut rng), None);
    let later = start + FRESH;
    let first = table.refresh_due(later, &mut rng).unwrap();
    assert_eq!(table.own().shared_bits(first), 0);
    assert_eq!(table.refresh_due(later, &mut rng), Some(table.own()));
    assert_eq!(table.refresh_due(later, &mut rng), None);
}

/// An event of a table.
#[derive(Debug, Clone)]
enum Operation {
    Answered(u32, u32, u64),
    Asked(u32, u32, u64),
    Failed(u32),
    SetOwn(u32, u64),
    Wait(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let (number, bits) = (|| 0..400_u32, || 0..30_u32);
    let seed = || 0..20_u64;
    prop_oneof![
        10 => (number(), bits(), seed()).prop_map(|(at, bits, seed)| Operation::Answered(at, bits, seed)),
        2 => (number(), bits(), seed()).prop_map(|(at, bits, seed)| Operation::Asked(at, bits, seed)),
        4 => number().prop_map(Operation::Failed),
        1 => (bits(), seed()).prop_map(|(bits, seed)| Operation::SetOwn(bits, seed)),
        2 => (0..1000_u64).prop_map(Operation::Wait),
    ]
}

/// Some networks have several hosts, some hosts several ports, some addresses are local.
fn shared(number: u32) -> SocketAddrV4 {
    let (network, host, port) = (number / 8, number / 2 % 4, number % 2);
    let base = if network % 5 == 0 {
        0x0a00_0001
    } else {
        0x0b00_0001
    };
    let ip = Ipv4Addr::from(base + (network << 8) + host);
    SocketAddrV4::new(ip, 6881 + port as u16)
}

proptest! {
    #[test]
    fn limits_hold(operations in prop::collection::vec(operation(), 0..400)) {
        let mut now = Instant::now();
        let mut table = Table::new(Id([0; 20]), now);
        for operation in operations {
            let id = |bits, seed| sharing(bits, &mut Rng::with_seed(seed));
            match operation {
                Operation::Answered(at, bits, seed) => {
                    table.answered(id(bits, seed), shared(at), now);
                }
                Operation::Asked(at, bits, seed) => {
                    table.asked(id(bits, seed), shared(at), now);
                }
                Operation::Failed(at) => table.failed(shared(at), now),
                Operation::SetOwn(bits, seed) => table.set_own(id(bits, seed), now),
                Operation::Wait(seconds) => now += Duration::from_secs(seconds),
            }
            table.check();
            let target = Id([0x40; 20]);
            let nearest = table.nearest_answering(target);
            prop_assert!(nearest.len() <= K && nearest.len() <= table.nodes().count());
            let (good, questionable) = table.counts(now);
            prop_assert!(good + questionable <= table.nodes().count());
        }
    }
}
