//! Web seeds and peers by random operations, on virtual time.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::seed::{Failure, RUN_BLOCKS};
use super::seeds::MAX_WEB_SEEDS;
use super::*;
use crate::bitfield::Bitfield;
use crate::metainfo::Metainfo;
use crate::picker::Padding;
use crate::picker::{Arrival, ConnId, GroupId, Picker};
use crate::progress::WebSeedState;
use crate::selection::{PieceOrder, Priority, Selection};
use crate::testing::torrent_of;
use crate::wire::{BLOCK, Request};

const SEEDS: usize = 3;

/// The connection of a peer that has everything, apart from those of web seeds.
const PEER: ConnId = 1000;
const PEER_GROUP: GroupId = 1000;

/// A torrent at work: what is decided, and what would be fetched.
struct World {
    metainfo: Metainfo,
    picker: Picker,
    seeds: WebSeeds,
    now: Instant,
    /// The runs under way: their web seeds, and the blocks that are still to come.
    runs: BTreeMap<RunId, (SeedId, ConnId, VecDeque<Request>)>,
    /// What was requested of the peer.
    of_peer: VecDeque<Request>,
    /// The blocks that are padding alone.
    padding: HashSet<(u32, u32)>,
    /// Which web seeds send wrong data.
    is_liar: [bool; SEEDS],
    banned: Vec<SeedId>,
}

/// What may happen.
#[derive(Debug, Clone)]
enum Op {
    Wait(u64),
    /// A web seed delivers this many blocks.
    Deliver(usize, usize),
    /// A run of a web seed ends with a failure.
    Fail(usize, u8),
    /// The peer is asked for this many blocks.
    AskPeer(usize),
    /// The peer delivers this many blocks.
    PeerDelivers(usize),
    /// Another selection.
    Select(u8, bool),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (1..4000u64).prop_map(Op::Wait),
        8 => (0..SEEDS, 1..40usize).prop_map(|(seed, blocks)| Op::Deliver(seed, blocks)),
        2 => (0..SEEDS, 0..4u8).prop_map(|(seed, kind)| Op::Fail(seed, kind)),
        2 => (1..20usize).prop_map(Op::AskPeer),
        2 => (1..20usize).prop_map(Op::PeerDelivers),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(files, order)| Op::Select(files, order)),
    ]
}

impl World {
    fn new(files: &[(u64, bool)], is_liar: [bool; SEEDS], has_peer: bool) -> Self {
        let names: Vec<String> = (0..files.len()).map(|at| at.to_string()).collect();
        let listed = files.iter().zip(&names);
        let listed: Vec<_> = listed
            .map(|((length, padding), name)| (name.as_str(), *length, *padding))
            .collect();
        let mut metainfo = torrent_of(&listed, 4 * BLOCK);
        metainfo.sources.web_seeds = (0..SEEDS).map(|n| format!("http://w{n}/")).collect();
        let wanted = Selection::all().wanted(&metainfo);
        let none = Bitfield::empty(metainfo.pieces.count());
        let pieces = metainfo.pieces;
        let padding = Padding::of(&metainfo);
        let padded = (0..pieces.count()).flat_map(|piece| {
            let blocks = padding.blocks(pieces, piece).into_iter();
            blocks.map(move |block| (piece, block))
        });
        let padded = padded.collect();
        let mut picker = Picker::of(metainfo.pieces, none, wanted, padding, 1);
        let (now, mut last) = (Instant::now(), 0);
        let name = |_: &str| {
            last += 1;
            (last, last as GroupId)
        };
        let seeds = WebSeeds::new(&metainfo, &mut picker, name, now);
        if has_peer {
            picker.add_conn(PEER, PEER_GROUP);
            picker.set_has(PEER, Bitfield::full(metainfo.pieces.count()));
        }
        Self {
            metainfo,
            picker,
            seeds,
            now,
            runs: BTreeMap::new(),
            of_peer: VecDeque::new(),
            padding: padded,
            is_liar,
            banned: Vec::new(),
        }
    }

    /// Has the web seeds asked, as the owner of a torrent does.
    fn obey(&mut self) {
        let peers_idle = self.picker.asked(PEER) == 0 && self.picker.is_interesting(PEER);
        let (orders, cancel) = self
            .seeds
            .orders(&mut self.picker, peers_idle, None, self.now);
        for (conn, request) in cancel {
            assert_eq!(conn, PEER, "only a peer has requests that are suspended");
            self.of_peer.retain(|it| *it != request);
        }
        for order in orders {
            self.carry_out(order);
        }
        self.check();
    }

    fn carry_out(&mut self, order: WebOrder) {
        match order {
            WebOrder::Fetch(run) => {
                assert!(!self.banned.contains(&run.seed), "a liar is asked again");
                assert!(!run.requests.is_empty());
                let most = (*RUN_BLOCKS.end()).max(4);
                assert!(run.requests.len() <= most, "{}", run.requests.len());
                let mut of_seed = self.runs.values().filter(|(seed, ..)| *seed == run.seed);
                assert!(of_seed.next().is_none(), "one run at a time");
                let queue = run.requests.into();
                self.runs.insert(run.run, (run.seed, run.conn, queue));
            }
            WebOrder::Shorten(run, less) => {
                let (_, _, queue) = self.runs.get_mut(&run).expect("a run under way");
                queue.truncate(queue.len().saturating_sub(less));
            }
            WebOrder::Stop(run) => {
                assert!(self.runs.remove(&run).is_some(), "it is under way");
            }
        }
    }

    /// What holds at all times.
    fn check(&self) {
        for (seed, conn, queue) in self.runs.values() {
            assert!(!self.banned.contains(seed));
            // What is taken back at the end is left out; what others brought stays in the run.
            assert!(self.picker.asked(*conn) <= queue.len());
            for request in queue {
                let block = request.begin / BLOCK;
                let is_padding = self.padding.contains(&(request.piece, block));
                assert!(!is_padding, "padding is asked for");
            }
        }
        for id in 0..SEEDS {
            let shown = &self.seeds.progress(self.now)[id];
            let is_running = self.runs.values().any(|(seed, ..)| *seed == id);
            assert_eq!(shown.state == WebSeedState::Fetching, is_running);
            assert_eq!(
                shown.state == WebSeedState::Dropped,
                self.banned.contains(&id)
            );
            assert!(shown.state != WebSeedState::Dropped || shown.last_error.is_some());
        }
    }

    /// A block arrives; a complete piece is verified.
    fn arrive(&mut self, conn: ConnId, request: Request) {
        let arrived = self.picker.receive(conn, request, self.now);
        let Arrival::New { cancel, complete } = arrived else {
            return;
        };
        for (conn, request) in cancel {
            if conn == PEER {
                self.of_peer.retain(|it| *it != request);
            }
        }
        if !complete {
            return;
        }
        let pieces = self.picker.senders(request.piece);
        let liars: Vec<GroupId> = pieces
            .into_iter()
            .flatten()
            .filter(|group| *group != PEER_GROUP && self.is_liar[*group as usize - 1])
            .collect();
        if liars.is_empty() {
            return self.picker.verify(request.piece);
        }
        self.picker.fail(request.piece);
        // The engine finds the sender of the wrong block by comparing blocks: see `blame`.
        for group in liars {
            let seed = group as usize - 1;
            if self.banned.contains(&seed) {
                continue;
            }
            self.banned.push(seed);
            let orders = self.seeds.ban(group, "it lies", &mut self.picker);
            for order in orders.expect("it is a web seed in use") {
                self.carry_out(order);
            }
        }
    }

    fn run_of(&self, seed: SeedId) -> Option<RunId> {
        let mut runs = self.runs.iter();
        runs.find_map(|(run, (of, ..))| (*of == seed).then_some(*run))
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Wait(ms) => self.now += Duration::from_millis(ms),
            Op::Deliver(seed, blocks) => self.deliver(seed, blocks),
            Op::Fail(seed, kind) => {
                if let Some(run) = self.run_of(seed) {
                    self.runs.remove(&run);
                    let failure = match kind {
                        0 => Failure::Missing {
                            file: 0..u64::from(BLOCK),
                            why: "it is not there".into(),
                        },
                        1 => Failure::Busy {
                            retry_after: Some(Duration::from_secs(9)),
                            why: "it is busy".into(),
                        },
                        _ => Failure::Failed("it is silent".into()),
                    };
                    let picker = &mut self.picker;
                    self.seeds.on_end(seed, run, Err(failure), picker, self.now);
                    if kind > 0 {
                        let shown = &self.seeds.progress(self.now)[seed];
                        assert_eq!(shown.state, WebSeedState::Waiting);
                    }
                }
            }
            Op::AskPeer(blocks) => {
                let picked = self.picker.pick(PEER, blocks);
                self.of_peer.extend(picked.requests);
            }
            Op::PeerDelivers(blocks) => {
                for _ in 0..blocks {
                    if let Some(request) = self.of_peer.pop_front() {
                        self.arrive(PEER, request);
                    }
                }
            }
            Op::Select(files, in_order) => {
                let mut selection = Selection::all();
                for file in 0..self.metainfo.files.len() {
                    if files >> (file % 8) & 1 == 0 {
                        selection = selection.with_file(file, Priority::Skip);
                    }
                }
                if in_order {
                    selection = selection.with_order(PieceOrder::Sequential);
                }
                self.select(&selection);
            }
        }
        self.obey();
    }

    fn select(&mut self, selection: &Selection) {
        let wanted = selection.wanted(&self.metainfo);
        for (conn, request) in self.picker.select(wanted) {
            if conn == PEER {
                self.of_peer.retain(|it| *it != request);
            }
        }
    }

    fn deliver(&mut self, seed: SeedId, blocks: usize) {
        for _ in 0..blocks {
            let Some(run) = self.run_of(seed) else {
                return;
            };
            let (_, conn, queue) = self.runs.get_mut(&run).expect("it is under way");
            let (conn, request) = (*conn, queue.pop_front());
            self.now += Duration::from_millis(1);
            match request {
                Some(request) => {
                    let bytes = u64::from(request.length);
                    self.seeds.on_block(seed, run, bytes, self.now);
                    self.arrive(conn, request);
                }
                None => {
                    self.runs.remove(&run);
                    let picker = &mut self.picker;
                    self.seeds.on_end(seed, run, Ok(()), picker, self.now);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn everything_is_fetched_while_one_source_is_honest(
        files in proptest::collection::vec((0u64..900_000, any::<bool>()), 1..6),
        liars: [bool; SEEDS],
        has_peer: bool,
        ops in proptest::collection::vec(any_op(), 0..80),
    ) {
        prop_assume!(files.iter().any(|(length, padding)| !padding && *length > 0));
        let is_honest = liars.iter().any(|is_liar| !is_liar);
        let mut world = World::new(&files, liars, has_peer);
        world.obey();
        for op in &ops {
            world.apply(op);
        }
        world.select(&Selection::all());
        // Everything is to be had from now on.
        let mut rounds = 0;
        while !world.picker.is_complete() && (is_honest || has_peer) {
            rounds += 1;
            prop_assert!(rounds < 5000, "it never ends");
            for seed in 0..SEEDS {
                world.apply(&Op::Deliver(seed, 32));
            }
            // A piece whose hash was wrong may be fetched from the peer alone, which is asked all the time.
            if has_peer && (!is_honest || rounds % 8 == 0) {
                world.apply(&Op::AskPeer(16));
            }
            world.apply(&Op::PeerDelivers(16));
            // Files that were missing are there again after a while.
            world.apply(&Op::Wait(2500));
        }
        world.obey();
        prop_assert!(!world.picker.is_complete() || world.runs.is_empty());
        let usable = (0..SEEDS).any(|seed| !world.banned.contains(&seed));
        prop_assert_eq!(world.seeds.any_usable(), usable);
    }
}

#[test]
fn a_failing_server_is_asked_less_and_less_often_and_one_that_delivers_at_once() {
    let mut world = World::new(&[(60_000_000, false)], [false; SEEDS], false);
    let mut pauses = Vec::new();
    let begin = world.now;
    world.obey();
    for _ in 0..6 {
        let run = world.run_of(0).expect("a run");
        world.runs.remove(&run);
        let failure = Failure::Failed("it is silent".into());
        let picker = &mut world.picker;
        world.seeds.on_end(0, run, Err(failure), picker, world.now);
        let failed = world.now;
        while world.run_of(0).is_none() {
            world.now += Duration::from_millis(100);
            world.obey();
        }
        pauses.push((world.now - failed).as_secs());
    }
    assert_eq!(pauses, [2, 4, 8, 16, 32, 64]);
    assert!(world.now > begin);
    world.deliver(0, 1);
    let run = world.run_of(0).expect("a run");
    world.runs.remove(&run);
    let busy = Failure::Busy {
        retry_after: Some(Duration::from_secs(1_000_000)),
        why: "it is busy".into(),
    };
    let picker = &mut world.picker;
    world.seeds.on_end(0, run, Err(busy), picker, world.now);
    world.now += Duration::from_secs(3590);
    world.obey();
    assert!(world.run_of(0).is_none());
    world.now += Duration::from_secs(11);
    world.obey();
    assert!(world.run_of(0).is_some(), "an hour at most");
}

#[test]
fn runs_grow_with_the_rate_and_give_way_to_those_that_wait() {
    let mut world = World::new(&[(30_000_000, false)], [false; SEEDS], false);
    world.banned = vec![1, 2];
    for group in [2, 3] {
        world
            .seeds
            .ban(group, "not of this test", &mut world.picker);
    }
    world.obey();
    let mut lengths = Vec::new();
    while world.picker.free_blocks() > 0 {
        let run = world.run_of(0).expect("a run");
        lengths.push(world.runs[&run].2.len());
        while world.run_of(0) == Some(run) {
            world.apply(&Op::Deliver(0, 1));
        }
    }
    // A block a millisecond.
    assert_eq!(lengths, [64, 128, 256, 512]);
    // Nothing is left but what it was asked for, and a peer comes.
    world.picker.add_conn(PEER, PEER_GROUP);
    let pieces = world.metainfo.pieces.count();
    world.picker.set_has(PEER, Bitfield::full(pieces));
    world.now += Duration::from_secs(3);
    world.obey();
    assert!(world.run_of(0).is_none(), "it has sent nothing for seconds");
    world.apply(&Op::AskPeer(10));
    assert_eq!(world.of_peer.len(), 10);
}

#[test]
fn only_the_first_web_seeds_are_used_each_once() {
    let mut metainfo = torrent_of(&[("a", 100_000, false)], BLOCK);
    metainfo.sources.web_seeds = (0..2 * MAX_WEB_SEEDS)
        .map(|n| format!("http://w{}/", n / 2))
        .chain(["http://late/".to_owned()])
        .collect();
    let none = Bitfield::empty(metainfo.pieces.count());
    let mut picker = Picker::new(metainfo.pieces, none, 1);
    let mut last = 0;
    let name = |_: &str| {
        last += 1;
        (last, last as GroupId)
    };
    let seeds = WebSeeds::new(&metainfo, &mut picker, name, Instant::now());
    let shown = seeds.progress(Instant::now());
    assert_eq!(shown.len(), MAX_WEB_SEEDS);
    assert_eq!(shown.last().map(|it| it.url.as_str()), Some("http://w15/"));
}
