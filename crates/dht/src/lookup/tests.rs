use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::secure::secure_id;

type V4 = SocketAddrV4;

const TARGET: Id = Id([0x5a; 20]);

/// A host in a network of its own.
fn addr(number: u32) -> V4 {
    SocketAddrV4::new(Ipv4Addr::from(0x0b00_0001 + (number << 8)), 6881)
}

/// A network in which each node names the 8 nodes nearest to the target among some of the others.
struct World {
    nodes: BTreeMap<V4, Id>,
}

impl World {
    fn new(count: u32, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let nodes = (0..count).map(addr);
        Self {
            nodes: nodes
                .map(|addr| (addr, secure_id(addr, &mut rng)))
                .collect(),
        }
    }

    fn nearest(&self) -> Vec<V4> {
        let mut nodes: Vec<_> = self.nodes.iter().collect();
        nodes.sort_by_key(|(_, id)| id.distance(TARGET));
        nodes.iter().take(K).map(|(addr, _)| **addr).collect()
    }

    /// What a node answers: the nodes nearest to the target that are no more than 3 bits nearer
    /// than it.
    fn answer(&self, of: V4) -> Vec<Node<V4>> {
        let own = self.nodes[&of].shared_bits(TARGET);
        let near = |id: &Id| (own..=own + 3).contains(&id.shared_bits(TARGET));
        let mut nodes: Vec<_> = self.nodes.iter().filter(|(_, id)| near(id)).collect();
        nodes.sort_by_key(|(_, id)| id.distance(TARGET));
        nodes
            .iter()
            .take(K)
            .map(|(addr, id)| (**id, **addr))
            .collect()
    }

    fn run(&self, lookup: &mut Lookup<V4>) {
        while let Some(addr) = lookup.next() {
            assert!(!lookup.is_done());
            let token = Some(vec![7]);
            match self.nodes.get(&addr) {
                Some(id) => lookup.answered(addr, *id, token, &self.answer(addr)),
                None => lookup.failed(addr),
            }
        }
        assert!(lookup.is_done());
    }
}

fn found(lookup: &Lookup<V4>) -> Vec<V4> {
    lookup
        .announcees()
        .into_iter()
        .map(|(addr, _)| addr)
        .collect()
}

#[test]
fn the_nearest_nodes_are_found_in_few_steps() {
    for seed in 0..20 {
        let world = World::new(500, seed);
        let mut lookup = Lookup::new(TARGET, Some(9));
        (0..8).for_each(|at| lookup.add(Some(world.nodes[&addr(at)]), addr(at), Via::Own));
        world.run(&mut lookup);
        assert_eq!(found(&lookup), world.nearest());
        let (asked, answered) = lookup.counts();
        assert!(asked == answered && asked < 40, "{asked}");
        assert!((2..7).contains(&lookup.hops()));
    }
}

#[test]
fn a_few_are_asked_at_once_and_others_while_answers_are_late() {
    let mut lookup = Lookup::new(TARGET, None);
    (0..12).for_each(|at| lookup.add(None, addr(at), Via::Own));
    let asked: Vec<V4> = std::iter::from_fn(|| lookup.next()).collect();
    assert_eq!(asked.len(), PARALLEL);
    lookup.stalled(asked[0]);
    let more = lookup.next().unwrap();
    assert_eq!(lookup.next(), None);
    // The late answer counts.
    lookup.answered(asked[0], TARGET, Some(vec![1]), &[]);
    assert_eq!(found(&lookup), [asked[0]]);
    assert_eq!(lookup.next(), None);
    lookup.failed(more);
    assert!(lookup.next().is_some());
    // Nothing changes through what was not asked, or comes again.
    lookup.answered(asked[0], Id([1; 20]), None, &[(TARGET, addr(50))]);
    lookup.answered(addr(60), TARGET, None, &[]);
    lookup.failed(asked[0]);
    assert_eq!(lookup.counts(), (6, 1));
}

#[test]
fn it_ends_when_nobody_answers_and_waits_for_the_late() {
    let mut lookup = Lookup::new(TARGET, None);
    assert!(lookup.is_done());
    lookup.add(None, addr(1), Via::Own);
    assert!(!lookup.is_done());
    assert_eq!(lookup.next(), Some(addr(1)));
    lookup.stalled(addr(1));
    assert!(!lookup.is_done() && lookup.next().is_none());
    lookup.failed(addr(1));
    assert!(lookup.is_done() && lookup.announcees().is_empty());
}

#[test]
fn one_host_cannot_be_all_of_the_nearest() {
    let world = World::new(300, 1);
    let mut lookup = Lookup::new(TARGET, Some(8));
    (0..8).for_each(|at| lookup.add(Some(world.nodes[&addr(at)]), addr(at), Via::Own));
    let first = lookup.next().unwrap();
    // Ports of one host, each with an id nearer than any other.
    let mut rng = Rng::with_seed(1);
    let fakes = (0..8).map(|at| {
        (
            TARGET.random_beside(14, &mut rng),
            addr(5000).with_port(at + 1),
        )
    });
    let fakes: Vec<_> = fakes.collect();
    lookup.answered(first, world.nodes[&first], None, &fakes);
    while let Some(addr) = lookup.next() {
        match fakes.iter().find(|(_, fake)| *fake == addr) {
            Some((id, _)) => lookup.answered(addr, *id, Some(vec![7]), &fakes),
            None => lookup.answered(addr, world.nodes[&addr], Some(vec![7]), &world.answer(addr)),
        }
    }
    let found = found(&lookup);
    assert_eq!(
        found
            .iter()
            .filter(|addr| *addr.ip() == *fakes[0].1.ip())
            .count(),
        1
    );
    assert_eq!(found[1..], world.nearest());
}

#[test]
fn nodes_that_chose_their_ids_do_not_push_out_the_others() {
    let world = World::new(300, 1);
    let mut rng = Rng::with_seed(1);
    // Far nearer than plausible, and just so near that it is plausible.
    for (bits, count) in [(30, 0), (14, MAX_UNVERIFIED)] {
        let fakes = (5000..5100).map(|at| (TARGET.random_beside(bits, &mut rng), addr(at)));
        let fakes: BTreeMap<V4, Id> = fakes.map(|(id, addr)| (addr, id)).collect();
        let mut named = fakes.iter().map(|(addr, id)| (*id, *addr)).cycle();
        let mut lookup = Lookup::new(TARGET, Some(8));
        (0..8).for_each(|at| lookup.add(Some(world.nodes[&addr(at)]), addr(at), Via::Own));
        let first = lookup.next().unwrap();
        let some: Vec<_> = named.by_ref().take(8).collect();
        lookup.answered(first, world.nodes[&first], None, &some);
        while let Some(addr) = lookup.next() {
            let (id, nodes) = match fakes.get(&addr) {
                Some(id) => (*id, named.by_ref().take(8).collect()),
                None => (world.nodes[&addr], world.answer(addr)),
            };
            lookup.answered(addr, id, Some(vec![7]), &nodes);
        }
        let (fake, found): (Vec<V4>, Vec<V4>) = found(&lookup)
            .iter()
            .partition(|addr| fakes.contains_key(addr));
        assert_eq!(fake.len(), count);
        assert_eq!(found, world.nearest());
    }
}

#[test]
fn a_node_that_names_false_ones_is_doubted() {
    let mut lookup = Lookup::new(TARGET, None);
    let mut rng = Rng::with_seed(1);
    let far = |rng: &mut Rng| TARGET.random_beside(3, rng);
    for at in 0..20 {
        lookup.add(Some(far(&mut rng)), addr(at), Via::Own);
    }
    let liar = lookup.next().unwrap();
    let fakes: Vec<_> = (100..108)
        .map(|at| (TARGET.random_beside(9, &mut rng), addr(at)))
        .collect();
    let is_fake = |addr: V4| fakes.iter().any(|(_, fake)| *fake == addr);
    lookup.answered(liar, far(&mut rng), None, &fakes);
    let mut asked = 0;
    while let Some(addr) = lookup.next() {
        match is_fake(addr) {
            true => {
                asked += 1;
                lookup.stalled(addr);
            }
            false => lookup.answered(addr, far(&mut rng), Some(vec![1]), &[]),
        }
    }
    assert_eq!(asked, 3);
    assert!(lookup.is_done());
}

#[test]
fn addresses_that_nobody_can_reach_are_not_asked() {
    let mut lookup = Lookup::new(TARGET, None);
    lookup.add(None, addr(1), Via::Own);
    lookup.next().unwrap();
    let bad = [
        "10.0.0.1:1",
        "127.0.0.1:1",
        "8.8.8.8:0",
        "255.255.255.255:1",
        "224.0.0.1:1",
    ];
    let bad = bad.map(|text| (TARGET, text.parse().unwrap()));
    lookup.answered(addr(1), Id([1; 20]), None, &bad);
    assert!(lookup.next().is_none() && lookup.is_done());
    // A node on the own network may name others there.
    let mut lookup = Lookup::new(TARGET, None);
    let local: V4 = "10.0.0.9:1".parse().unwrap();
    lookup.add(None, local, Via::Own);
    lookup.next().unwrap();
    lookup.answered(local, Id([1; 20]), None, &bad);
    assert_eq!(
        [lookup.next(), lookup.next()].map(|one| one.is_some()),
        [true; 2]
    );
    assert_eq!(lookup.next(), None);
}

#[test]
fn a_false_id_does_not_hide_a_node() {
    let mut lookup = Lookup::new(TARGET, None);
    (0..2).for_each(|at| lookup.add(None, addr(at), Via::Own));
    let (first, second) = (lookup.next().unwrap(), lookup.next().unwrap());
    let far = TARGET.random_beside(0, &mut Rng::with_seed(1));
    let near = TARGET.random_beside(12, &mut Rng::with_seed(1));
    lookup.answered(first, far, None, &[(far, addr(9))]);
    lookup.answered(second, far, None, &[(near, addr(9))]);
    lookup.add(
        Some(TARGET.random_beside(5, &mut Rng::with_seed(2))),
        addr(10),
        Via::Own,
    );
    assert_eq!(lookup.next(), Some(addr(9)));
}

proptest! {
    #[test]
    fn each_lookup_ends(seed: u64, silent in 0..100_u8, lying in 0..100_u8) {
        let mut rng = Rng::with_seed(seed);
        let mut lookup = Lookup::new(TARGET, Some(10));
        (0..8).for_each(|at| lookup.add(None, addr(at), Via::Own));
        let mut waiting = Vec::new();
        let mut steps = 0;
        while !lookup.is_done() {
            steps += 1;
            prop_assert!(steps < 10 * MAX_ASKED);
            waiting.extend(std::iter::from_fn(|| lookup.next()));
            prop_assert!(lookup.candidates.len() <= MAX_CANDIDATES);
            prop_assert!(lookup.candidates.is_sorted_by_key(|one| one.distance));
            let at = rng.usize(..waiting.len());
            let addr = waiting[at];
            if rng.u8(..100) < silent {
                match rng.bool() {
                    true => lookup.stalled(addr),
                    false => {
                        lookup.failed(addr);
                        waiting.swap_remove(at);
                    }
                }
                continue;
            }
            waiting.swap_remove(at);
            let bits = if rng.u8(..100) < lying { rng.u32(..160) } else { rng.u32(..12) };
            let id = TARGET.random_beside(bits, &mut rng);
            let nodes: Vec<_> = (0..16)
                .map(|_| (TARGET.random_beside(rng.u32(..160), &mut rng), self::addr(rng.u32(..2000))))
                .collect();
            lookup.answered(addr, id, Some(vec![1]), &nodes);
        }
        prop_assert!(lookup.counts().0 <= MAX_ASKED);
        prop_assert!(lookup.announcees().len() <= K + MAX_UNVERIFIED);
    }
}
