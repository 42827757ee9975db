//! A whole DHT on virtual time: latency, loss, nodes that come and go, hostile nodes.

mod hostile;
mod numbered;
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::{Duration, Instant};

use fastrand::Rng;

use self::hostile::Hostile;
pub(crate) use self::numbered::Numbered;
use crate::output::{Output, SearchId, Summary};
use crate::{ANNOUNCE_INTERVAL, Announce, Config, Dht};

/// What a simulated DHT is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub seed: u64,
    pub nodes: usize,
    /// Percent of the nodes that are hostile.
    pub hostile: usize,
    /// Mean life of the nodes that do not announce; `None` if they stay.
    pub life: Option<Duration>,
    /// Percent of the datagrams that are lost.
    pub loss: u8,
    /// How long the DHT runs before the first search.
    pub warm_up: Duration,
    pub torrents: usize,
    pub searches: usize,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 1,
            nodes: 100,
            hostile: 0,
            life: None,
            loss: 1,
            warm_up: Duration::from_secs(300),
            torrents: 20,
            searches: 100,
        }
    }
}

/// What came of the searches.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub searches: usize,
    /// Searches that found the announced peer.
    pub found: usize,
    /// Searches in which most of the peers found were false ones.
    pub misled: usize,
    pub summaries: Vec<Summary>,
    /// Nodes that confirmed each announcement.
    pub announced: Vec<usize>,
    pub slowest: Duration,
    pub datagrams: u64,
    /// Most queries answered by a node in a minute of a flood.
    pub limited: u64,
}

impl Report {
    /// The mean of a number of the summaries.
    pub fn mean(&self, of: impl Fn(&Summary) -> usize) -> f64 {
        let sum: usize = self.summaries.iter().map(of).sum();
        sum as f64 / self.summaries.len().max(1) as f64
    }

    /// The mean number of nodes that confirmed an announcement.
    pub fn mean_announced(&self) -> f64 {
        let sum: usize = self.announced.iter().sum();
        sum as f64 / self.announced.len().max(1) as f64
    }
}

enum Event<A> {
    Arrives { from: A, to: A, bytes: Vec<u8> },
    Due(A),
    Joins { number: u32, hostile: bool },
    Leaves(A),
    Announces(usize),
    Searches(usize),
}

struct Scheduled<A> {
    at: (Instant, u64),
    event: Event<A>,
}

impl<A> PartialEq for Scheduled<A> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<A> Eq for Scheduled<A> {}

impl<A> PartialOrd for Scheduled<A> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<A> Ord for Scheduled<A> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

enum Kind<A> {
    Honest(Box<Dht<A>>),
    Hostile(Hostile<A>),
}

struct Node<A> {
    kind: Kind<A>,
    /// The next `Due` event of the node.
    due: Instant,
}

/// A search that is being watched.
struct Watched {
    torrent: usize,
    began: Instant,
    found: bool,
    peers: usize,
}

pub(crate) struct World<A> {
    scenario: Scenario,
    rng: Rng,
    start: Instant,
    now: Instant,
    events: BinaryHeap<Reverse<Scheduled<A>>>,
    sequence: u64,
    nodes: HashMap<A, Node<A>>,
    /// The addresses of the nodes, to choose from.
    alive: Vec<A>,
    next_number: u32,
    /// The addresses of the nodes that announce a torrent each.
    announcers: Vec<A>,
    watched: HashMap<(A, SearchId), Watched>,
    report: Report,
}

fn info_hash(torrent: usize) -> [u8; 20] {
    let mut rng = Rng::with_seed(torrent as u64 + 1_000_000);
    crate::Id::random(&mut rng).0
}

impl<A: Numbered> World<A> {
    pub fn new(scenario: Scenario) -> Self {
        let start = Instant::now();
        let mut world = Self {
            scenario,
            rng: Rng::with_seed(scenario.seed),
            start,
            now: start,
            events: BinaryHeap::new(),
            sequence: 0,
            nodes: HashMap::new(),
            alive: Vec::new(),
            next_number: 0,
            announcers: Vec::new(),
            watched: HashMap::new(),
            report: Report::default(),
        };
        // The first node is honest, and stays; the others join within a minute.
        for at in 0..scenario.nodes {
            let hostile = at % 100 >= 100 - scenario.hostile;
            let after = Duration::from_millis(60_000 * at as u64 / scenario.nodes as u64);
            let number = world.number();
            world.schedule(after, Event::Joins { number, hostile });
        }
        for torrent in 0..scenario.torrents {
            let after = Duration::from_millis(120_000 + 500 * torrent as u64);
            world.schedule(after, Event::Announces(torrent));
        }
        for search in 0..scenario.searches {
            let after = scenario.warm_up + Duration::from_millis(2000 * search as u64);
            world.schedule(after, Event::Searches(search % scenario.torrents));
        }
        world
    }

    fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    fn schedule(&mut self, after: Duration, event: Event<A>) {
        self.sequence += 1;
        let at = (self.now + after, self.sequence);
        self.events.push(Reverse(Scheduled { at, event }));
    }

    /// Runs until all searches have ended.
    pub fn run(mut self) -> Report {
        let last = self.scenario.warm_up + Duration::from_secs(2 * self.scenario.searches as u64);
        let end = self.start + last + Duration::from_secs(120);
        while let Some(Reverse(Scheduled { at, event })) = self.events.pop() {
            if at.0 > end {
                break;
            }
            self.now = at.0;
            self.on_event(event);
        }
        assert!(
            self.watched.is_empty(),
            "{} searches did not end",
            self.watched.len()
        );
        for node in self.nodes.values() {
            if let Kind::Honest(dht) = &node.kind {
                self.report.limited += dht.stats(self.now).counters.queries_limited;
            }
        }
        self.report
    }

    fn on_event(&mut self, event: Event<A>) {
        match event {
            Event::Arrives { from, to, bytes } => {
                let Some(node) = self.nodes.get_mut(&to) else {
                    return;
                };
                match &mut node.kind {
                    Kind::Honest(dht) => {
                        dht.receive(self.now, from, &bytes);
                        self.settle(to);
                    }
                    Kind::Hostile(hostile) => {
                        let answer = hostile.answer(from, &bytes, &mut self.rng);
                        answer
                            .into_iter()
                            .for_each(|bytes| self.send(to, from, bytes));
                    }
                }
            }
            Event::Due(addr) => self.on_due(addr),
            Event::Joins { number, hostile } => self.join(number, hostile),
            Event::Leaves(addr) => {
                if self.announcers.contains(&addr) || self.watched.keys().any(|(at, _)| *at == addr)
                {
                    return self.live_on(addr);
                }
                self.nodes.remove(&addr);
                self.alive.retain(|alive| *alive != addr);
                let number = self.number();
                self.join(number, false);
            }
            Event::Announces(torrent) => {
                if self.announcers.len() <= torrent {
                    let announcer = self.honest();
                    self.announcers.push(announcer);
                }
                let addr = self.announcers[torrent];
                self.search(addr, torrent, Some(Announce::SamePort));
                self.schedule(ANNOUNCE_INTERVAL, Event::Announces(torrent));
            }
            Event::Searches(torrent) => {
                let searcher = std::iter::repeat_with(|| self.honest());
                let searcher = searcher.take(20).last();
                let Some(addr) = searcher.filter(|addr| *addr != self.announcers[torrent]) else {
                    return self.schedule(Duration::from_millis(1), Event::Searches(torrent));
                };
                if let Some(id) = self.search(addr, torrent, None) {
                    let watched = Watched {
                        torrent,
                        began: self.now,
                        found: false,
                        peers: 0,
                    };
                    self.watched.insert((addr, id), watched);
                    self.report.searches += 1;
                    self.settle(addr);
                }
            }
        }
    }

    /// A random honest node.
    fn honest(&mut self) -> A {
        loop {
            let addr = self.alive[self.rng.usize(..self.alive.len())];
            if matches!(self.nodes[&addr].kind, Kind::Honest(_)) {
                return addr;
            }
        }
    }

    fn search(&mut self, addr: A, torrent: usize, announce: Option<Announce>) -> Option<SearchId> {
        let Kind::Honest(dht) = &mut self.nodes.get_mut(&addr)?.kind else {
            return None;
        };
        let id = dht.search(self.now, info_hash(torrent), announce).unwrap();
        if announce.is_some() {
            self.settle(addr);
        }
        Some(id)
    }

    fn live_on(&mut self, addr: A) {
        if let Some(mean) = self.scenario.life {
            let life = -mean.as_secs_f64() * (1.0 - self.rng.f64()).ln();
            self.schedule(Duration::from_secs_f64(life), Event::Leaves(addr));
        }
    }

    fn join(&mut self, number: u32, hostile: bool) {
        let addr = A::numbered(number);
        let known: Vec<A> = match self.alive.len() {
            0 => Vec::new(),
            count => (0..3)
                .map(|_| self.alive[self.rng.usize(..count)])
                .collect(),
        };
        let seed = self.rng.u64(..);
        let kind = match hostile {
            true => Kind::Hostile(Hostile::new(
                (addr, number),
                self.scenario.nodes,
                &mut self.rng,
            )),
            false => {
                let config = Config {
                    external: Some(addr),
                    ..Config::default()
                };
                let mut dht = Dht::new(config, Rng::with_seed(seed), self.now);
                dht.bootstrap(self.now, known);
                self.live_on(addr);
                Kind::Honest(Box::new(dht))
            }
        };
        self.nodes.insert(
            addr,
            Node {
                kind,
                due: self.now,
            },
        );
        self.alive.push(addr);
        match hostile {
            true => self.schedule(Duration::ZERO, Event::Due(addr)),
            false => {
                self.settle(addr);
                self.schedule_due(addr, true);
            }
        }
    }

    fn on_due(&mut self, addr: A) {
        let Some(node) = self.nodes.get_mut(&addr) else {
            return;
        };
        if let Kind::Hostile(hostile) = &mut node.kind {
            let datagrams = hostile.advance(&self.alive, &mut self.rng);
            datagrams
                .into_iter()
                .for_each(|(to, bytes)| self.send(addr, to, bytes));
            return self.schedule(Duration::from_secs(10), Event::Due(addr));
        }
        if node.due != self.now {
            // A later event than was needed meanwhile.
            return;
        }
        if let Kind::Honest(dht) = &mut node.kind {
            dht.advance(self.now);
        }
        self.settle(addr);
        self.schedule_due(addr, true);
    }

    /// Schedules the next due time of an honest node, if it is sooner than the one scheduled.
    fn schedule_due(&mut self, addr: A, always: bool) {
        let Some(node) = self.nodes.get_mut(&addr) else {
            return;
        };
        let Kind::Honest(dht) = &node.kind else {
            return;
        };
        let due = dht.next_due().max(self.now);
        if always || due < node.due {
            node.due = due;
            self.schedule(due - self.now, Event::Due(addr));
        }
    }

    /// Carries out the outputs of a node.
    fn settle(&mut self, addr: A) {
        while let Some(Node {
            kind: Kind::Honest(dht),
            ..
        }) = self.nodes.get_mut(&addr)
            && let Some(output) = dht.poll()
        {
            match output {
                Output::Send { to, bytes } => self.send(addr, to, bytes),
                Output::Peers { search, peers } => {
                    if let Some(watched) = self.watched.get_mut(&(addr, search)) {
                        watched.peers += peers.len();
                        watched.found |= peers.contains(&self.announcers[watched.torrent]);
                    }
                }
                Output::Finished { search, summary } => self.finish(addr, search, summary),
            }
        }
        self.schedule_due(addr, false);
    }

    fn finish(&mut self, addr: A, search: SearchId, summary: Summary) {
        let Some(watched) = self.watched.remove(&(addr, search)) else {
            self.report.announced.push(summary.announced);
            return;
        };
        self.report.found += usize::from(watched.found);
        self.report.misled += usize::from(watched.peers > 2);
        self.report.summaries.push(summary);
        let took = self.now - watched.began;
        self.report.slowest = self.report.slowest.max(took);
    }

    fn send(&mut self, from: A, to: A, bytes: Vec<u8>) {
        assert!(bytes.len() <= 1200, "a datagram of {} bytes", bytes.len());
        self.report.datagrams += 1;
        if self.rng.u8(..100) >= self.scenario.loss {
            let latency = Duration::from_millis(self.rng.u64(10..=200));
            self.schedule(latency, Event::Arrives { from, to, bytes });
        }
    }
}
