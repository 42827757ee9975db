//! Chokers on virtual time: random events with invariants after each, and swarms of a kind.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use proptest::prelude::*;

use super::*;

const PEERS: u16 = 12;
const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
enum Step {
    Join(u16),
    Leave(u16),
    Interest(u16, bool),
    UploadOnly(u16, bool),
    Slots(usize),
    Goal(Goal),
    /// Bytes received from a peer, and sent to it, over its open connections.
    Exchange(u16, u32, u32),
    /// The connections to a peer end; others open.
    End(u16),
    Skip(u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let peer = 0..PEERS;
    prop_oneof![
        3 => peer.clone().prop_map(Step::Join),
        1 => peer.clone().prop_map(Step::Leave),
        5 => (peer.clone(), prop::bool::weighted(0.8))
            .prop_map(|(peer, interested)| Step::Interest(peer, interested)),
        1 => (peer.clone(), any::<bool>()).prop_map(|(peer, only)| Step::UploadOnly(peer, only)),
        1 => (0..7usize).prop_map(Step::Slots),
        1 => prop_oneof![Just(Goal::Fetching), Just(Goal::Seeding)].prop_map(Step::Goal),
        5 => (peer.clone(), 0..9u32, 0..9u32)
            .prop_map(|(peer, received, sent)| Step::Exchange(peer, received, sent)),
        1 => peer.prop_map(Step::End),
        1 => (0..100u64).prop_map(Step::Skip),
        6 => (0..40u64).prop_map(Step::Wait),
    ]
}

/// A choker, and what the orders so far say.
struct Model {
    choker: Choker<u16>,
    now: Instant,
    slots: usize,
    /// By peer: whether it is interested, and whether it downloads nothing.
    peers: BTreeMap<u16, (bool, bool)>,
    open: BTreeMap<u16, Counters>,
    unchoked: BTreeSet<u16>,
    /// By peer: over how many connections the report spreads what was exchanged.
    paths: u64,
}

impl Model {
    fn new(slots: usize, paths: u64) -> Self {
        let now = Instant::now();
        Self {
            choker: Choker::new(Goal::Fetching, slots, 5, now),
            now,
            slots: slots.max(1),
            peers: BTreeMap::new(),
            open: BTreeMap::new(),
            unchoked: BTreeSet::new(),
            paths,
        }
    }

    fn join(&mut self, peer: u16, interested: bool) {
        self.choker.join(peer);
        self.choker.set_interested(peer, interested);
        self.peers.insert(peer, (interested, false));
    }

    fn take(&mut self, step: &Step) -> Result<Vec<Order<u16>>, TestCaseError> {
        match *step {
            Step::Join(peer) => {
                self.choker.join(peer);
                self.peers.entry(peer).or_default();
            }
            Step::Leave(peer) => {
                self.choker.leave(peer);
                self.peers.remove(&peer);
                self.open.remove(&peer);
                self.unchoked.remove(&peer);
            }
            Step::Interest(peer, interested) => {
                self.choker.set_interested(peer, interested);
                if let Some(known) = self.peers.get_mut(&peer) {
                    known.0 = interested;
                }
            }
            Step::UploadOnly(peer, only) => {
                self.choker.set_upload_only(peer, only);
                if let Some(known) = self.peers.get_mut(&peer) {
                    known.1 = only;
                }
            }
            Step::Slots(slots) => {
                self.choker.set_slots(slots);
                self.slots = slots.max(1);
            }
            Step::Goal(goal) => self.choker.set_goal(goal),
            Step::Exchange(peer, received, sent) => self.exchange(peer, received, sent),
            Step::End(peer) => {
                let counters = self.open.remove(&peer).unwrap_or_default();
                self.choker.ended(peer, counters);
            }
            Step::Skip(seconds) => {
                self.choker.skip(SECOND * seconds as u32);
                self.now += SECOND * seconds as u32;
            }
            Step::Wait(seconds) => self.now += SECOND * seconds as u32,
        }
        self.tick()
    }

    fn exchange(&mut self, peer: u16, received: u32, sent: u32) {
        if self.peers.contains_key(&peer) {
            let open = self.open.entry(peer).or_default();
            // Divisible by any number of paths.
            open.received += u64::from(received) * 840;
            open.sent += u64::from(sent) * 840;
        }
    }

    /// Lets the choker order, and checks what holds at any time.
    fn tick(&mut self) -> Result<Vec<Order<u16>>, TestCaseError> {
        let (open, paths) = (self.open.clone(), self.paths);
        let report = move || {
            open.into_iter().flat_map(move |(peer, sum)| {
                let part = Counters {
                    received: sum.received / paths,
                    sent: sum.sent / paths,
                };
                (0..paths).map(move |_| (peer, part))
            })
        };
        let orders = self.choker.tick(report, self.now);
        for order in &orders {
            let is_new = match order.action {
                Action::Unchoke => self.unchoked.insert(order.peer),
                Action::Choke => self.unchoked.remove(&order.peer),
            };
            prop_assert!(is_new, "{order:?} changes nothing");
            prop_assert!(
                order.action == Action::Choke || self.unchoked.len() <= self.slots,
                "{orders:?} serves too many"
            );
        }
        prop_assert!(self.unchoked.len() <= self.slots);
        let wanting = self
            .peers
            .iter()
            .filter(|(_, (interested, only))| *interested && !only);
        let wanting: BTreeSet<u16> = wanting.map(|(peer, _)| *peer).collect();
        let served = self.unchoked.intersection(&wanting).count();
        prop_assert_eq!(served, wanting.len().min(self.slots), "a slot is wasted");
        for (peer, (_, only)) in &self.peers {
            let is_unchoked = self.unchoked.contains(peer);
            prop_assert_eq!(self.choker.is_unchoked(*peer), is_unchoked);
            prop_assert!(!(is_unchoked && *only), "{} downloads nothing", peer);
        }
        prop_assert_eq!(self.choker.next_due().is_some(), !wanting.is_empty());
        prop_assert!(self.choker.next_due().is_none_or(|due| due > self.now));
        let again = self.choker.tick(Vec::new, self.now);
        prop_assert!(again.is_empty(), "ordered twice: {again:?}");
        Ok(orders)
    }
}

proptest! {
    #[test]
    fn slots_are_never_exceeded_and_never_wasted(
        slots in 0..7usize,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut model = Model::new(slots, 1);
        for step in &steps {
            model.take(step)?;
        }
    }

    #[test]
    fn what_a_peer_sends_counts_the_same_over_any_number_of_paths(
        slots in 1..7usize,
        paths in 2..9u64,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let (mut one, mut many) = (Model::new(slots, 1), Model::new(slots, paths));
        for step in &steps {
            prop_assert_eq!(one.take(step)?, many.take(step)?);
        }
    }

    /// Whatever the others give: at most four times as many optimistic slots are given to others as
    /// peers wait.
    #[test]
    fn each_interested_peer_is_served_within_a_bound(
        slots in 1..9usize,
        gives in prop::collection::vec(0..5u32, 1..24),
        seeds in any::<bool>(),
    ) {
        let mut model = Model::new(slots, 1);
        let goal = if seeds { Goal::Seeding } else { Goal::Fetching };
        model.choker.set_goal(goal);
        let count = gives.len() as u16;
        (0..count).for_each(|peer| model.join(peer, true));
        let optimistic = match goal {
            Goal::Fetching => (slots / 5).max(1),
            Goal::Seeding => slots.div_ceil(2),
        };
        // A turn ends at the first review after 30 s; each ends all that began before.
        let rounds = (4 * gives.len()).div_ceil(optimistic) as u32 + 1;
        let bound = rounds * (TURN + RECHOKE);
        let mut since: BTreeMap<u16, Instant> = (0..count).map(|peer| (peer, model.now)).collect();
        for _ in 0..(4 * bound.as_secs() / 10).min(3000) {
            for (peer, give) in gives.iter().enumerate() {
                let served = u32::from(model.unchoked.contains(&(peer as u16)));
                model.exchange(peer as u16, *give, served * (give + 1));
            }
            model.now += RECHOKE;
            model.tick()?;
            for (peer, since) in &mut since {
                if model.unchoked.contains(peer) {
                    *since = model.now;
                }
                prop_assert!(model.now - *since <= bound, "{peer} waits for too long");
            }
        }
    }
}

/// Time for which each peer holds a slot while this side fetches, in seconds; `gives` says what
/// each sends in ten seconds, over how many paths.
fn held(slots: usize, gives: &[(u32, u64)], seconds: u64) -> Vec<u64> {
    let now = Instant::now();
    let mut choker = Choker::new(Goal::Fetching, slots, 3, now);
    for peer in 0..gives.len() {
        choker.join(peer);
        choker.set_interested(peer, true);
    }
    let mut held = vec![0; gives.len()];
    for step in 0..seconds / 10 {
        let report = || {
            let all = gives.iter().enumerate();
            all.flat_map(|(peer, (bytes, paths))| {
                let received = u64::from(*bytes) * step / paths;
                (0..*paths).map(move |_| (peer, Counters { received, sent: 0 }))
            })
        };
        choker.tick(report, now + RECHOKE * step as u32);
        for (peer, held) in held.iter_mut().enumerate() {
            *held += 10 * u64::from(choker.is_unchoked(peer));
        }
    }
    held
}

#[test]
fn free_riders_get_no_more_than_their_share_of_the_optimistic_slots() {
    // Ten peers send something, and ten nothing, for ten hours.
    let mut gives = vec![(8000, 1); 10];
    gives.extend(vec![(0, 1); 10]);
    let seconds = 36_000;
    let held = held(5, &gives, seconds);
    let (riders, others) = (&held[10..], &held[..10]);
    // One of five slots is optimistic, and 16 peers without an earned slot take turns.
    let share = seconds / 16;
    for time in riders {
        assert!(*time < share * 3 / 2, "{held:?}");
        assert!(*time > share / 2, "{held:?}");
    }
    let sum: u64 = others.iter().sum();
    assert!(sum > 4 * seconds, "{held:?}");
}

#[test]
fn a_peer_of_eight_paths_gets_what_a_peer_of_one_path_gets_for_the_same() {
    // Twenty peers send equally much: ten over eight paths, and ten over one.
    let gives = (0..20).map(|at| (8000, if at % 2 == 0 { 8 } else { 1 }));
    let gives: Vec<_> = gives.collect();
    let one_path: Vec<_> = gives.iter().map(|(bytes, _)| (*bytes, 1)).collect();
    assert_eq!(held(5, &gives, 36_000), held(5, &one_path, 36_000));
    // Over eight paths a tenth is still a tenth.
    let gives = [(800, 8), (8000, 1), (8000, 1), (8000, 1), (8000, 1), (0, 1)];
    let held = held(5, &gives, 36_000);
    assert!(held[1..5].iter().all(|time| *time > held[0]), "{held:?}");
}

#[test]
fn peers_that_send_most_are_served_until_they_stop() {
    let start = Instant::now();
    let mut choker = Choker::new(Goal::Fetching, 3, 1, start);
    for peer in 0..8 {
        choker.join(peer);
        choker.set_interested(peer, true);
    }
    let mut received = [0; 8];
    let mut review = |choker: &mut Choker<usize>, step: u32, gives: [u64; 8]| {
        for (sum, give) in received.iter_mut().zip(gives) {
            *sum += give;
        }
        let report = || {
            let all = received.into_iter().enumerate();
            all.map(|(peer, received)| (peer, Counters { received, sent: 0 }))
        };
        choker.tick(report, start + RECHOKE * step);
    };
    review(&mut choker, 1, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(choker.is_unchoked(6) && choker.is_unchoked(7));
    review(&mut choker, 2, [90, 2, 3, 4, 5, 6, 7, 8]);
    assert!(choker.is_unchoked(0) && choker.is_unchoked(7));
    // With nothing from anybody, those that sent last still earn slots for a minute.
    review(&mut choker, 3, [1, 1, 0, 0, 0, 0, 0, 0]);
    for step in 4..9 {
        review(&mut choker, step, [0; 8]);
        assert!(choker.is_unchoked(0) && choker.is_unchoked(1), "{step}");
    }
    let mut served = BTreeSet::new();
    for step in 9..40 {
        review(&mut choker, step, [0; 8]);
        served.extend((0..8).filter(|peer| choker.is_unchoked(*peer)));
    }
    // Without an earned slot all take turns.
    assert_eq!(served.len(), 8);
}

#[test]
fn peers_that_take_nothing_do_not_keep_others_waiting() {
    let start = Instant::now();
    let mut choker = Choker::new(Goal::Seeding, 8, 1, start);
    for peer in 0..8u16 {
        choker.join(peer);
        choker.set_interested(peer, true);
    }
    choker.tick(Vec::new, start);
    choker.join(8);
    choker.set_interested(8, true);
    // The others want blocks, and read none of them.
    choker.tick(Vec::new, start + RECHOKE / 2);
    assert!(!choker.is_unchoked(8));
    choker.tick(Vec::new, start + RECHOKE);
    assert!(choker.is_unchoked(8));
}

#[test]
fn a_seeder_keeps_half_of_its_slots_for_those_that_receive_fastest() {
    let start = Instant::now();
    let mut choker = Choker::new(Goal::Seeding, 4, 1, start);
    for peer in 0..20usize {
        choker.join(peer);
        choker.set_interested(peer, true);
    }
    let mut sent = [0; 20];
    let mut held = [0; 20];
    for step in 0..2000 {
        for (peer, sum) in sent.iter_mut().enumerate() {
            let rate = if peer < 2 { 900 } else { 10 };
            *sum += rate * u64::from(choker.is_unchoked(peer));
            held[peer] += u32::from(choker.is_unchoked(peer));
        }
        let report = || {
            let all = sent.into_iter().enumerate();
            all.map(|(peer, sent)| (peer, Counters { received: 0, sent }))
        };
        choker.tick(report, start + RECHOKE * step);
    }
    assert!(held[..2].iter().all(|time| *time > 1800), "{held:?}");
    // The others take turns in two slots.
    assert!(
        held[2..].iter().all(|time| *time > 2000 * 2 / 18 / 2),
        "{held:?}"
    );
}

#[test]
fn peers_that_never_held_a_slot_are_drawn_with_three_times_the_chance() {
    let start = Instant::now();
    let mut first = 0;
    for seed in 0..1000 {
        let mut choker = Choker::new(Goal::Fetching, 1, seed, start);
        // Both had a slot, then a third comes.
        for (peer, interested) in [(0, true), (0, false), (1, true), (1, false), (2, true)] {
            choker.join(peer);
            choker.set_interested(peer, interested);
            choker.tick(Vec::new, start);
        }
        choker.join(3);
        for peer in [0, 1, 3] {
            choker.set_interested(peer, true);
        }
        choker.leave(2);
        choker.tick(Vec::new, start);
        first += u32::from(choker.is_unchoked(3));
    }
    // Three of five.
    assert!((540..660).contains(&first), "{first}");
}

/// A peer that counts how often peers are compared.
#[derive(Debug, Clone, Copy)]
struct Counted<'a>(u32, &'a Cell<u64>);

impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted<'_> {}

impl PartialOrd for Counted<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Counted<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.1.set(self.1.get() + 1);
        self.0.cmp(&other.0)
    }
}

/// A peer joins that wants blocks.
fn join<'a>(choker: &mut Choker<Counted<'a>>, peer: Counted<'a>) {
    choker.join(peer);
    choker.set_interested(peer, true);
}

#[test]
fn peers_that_wait_cost_nothing_when_others_come_and_leave() {
    // Comparisons for twenty peers that come and leave, half of them served.
    let comparisons = |waiting: u32| {
        let (start, count) = (Instant::now(), Cell::new(0));
        let mut choker = Choker::new(Goal::Seeding, 8, 1, start);
        (0..waiting).for_each(|peer| join(&mut choker, Counted(peer, &count)));
        choker.tick(Vec::new, start);
        count.set(0);
        for new in waiting..waiting + 10 {
            let new = Counted(new, &count);
            join(&mut choker, new);
            choker.tick(Vec::new, start);
            choker.leave(new);
            choker.tick(Vec::new, start);
            let served = choker.unchoked().next().unwrap();
            choker.leave(served);
            let orders = choker.tick(Vec::new, start);
            assert_eq!(orders.len(), 1);
        }
        count.get()
    };
    let (few, many) = (comparisons(100), comparisons(20_000));
    // Those of searches grow with the logarithm.
    assert!(many < 4 * few, "{few}, {many}");
}

#[test]
fn slots_follow_the_limit_of_the_rate() {
    assert_eq!(slots_for(None), DEFAULT_SLOTS);
    assert_eq!(slots_for(Some(0)), 2);
    assert_eq!(slots_for(Some(5 * (16 << 10))), 5);
    assert_eq!(slots_for(Some(u64::MAX)), DEFAULT_SLOTS);
}
