//! A download on virtual time from seeders whose answers all pass one bottleneck, as the link of the
//! downloader is.

mod joining;
mod limits;
mod partners;

use std::collections::{HashMap, VecDeque};

use hawser_endhost::IsdAsn;

use self::joining::Ledger;
use self::partners::Conduct;
use super::*;
use crate::bitfield::Bitfield;
use crate::picker::Arrival;
use crate::pieces::Pieces;
use crate::pipeline::{SLACK, depth, time};

const MS: Duration = Duration::from_millis(1);

/// Steps of the virtual time, and how many of them are between two ticks of the downloader.
const STEP: Duration = Duration::from_millis(5);
const TICK: u32 = 10;

/// Round-trip time.
const RTT: Duration = Duration::from_millis(40);

/// Bytes of blocks that a seeder has handed to its system: a cancel comes too late for them.
const COMMITTED: usize = 4;

/// Steps for which the share of a connection in the bottleneck stays the same.
const PHASE: u32 = 40;

/// Bytes of the torrent.
const SIZE: u64 = 24_000_000;

/// A message to a seeder, and when it arrives.
enum Sent {
    Request(Request),
    Cancel(Request),
}

/// One seeder and the connection to it.
struct Seeder {
    pace: Pace,
    /// Messages under way to it.
    messages: VecDeque<(Instant, Sent)>,
    /// Blocks to be sent, and how many bytes of the first were sent already.
    queue: VecDeque<Request>,
    sent: u32,
    /// Bytes received from it.
    read: u64,
    /// Its part of the bottleneck, compared with others; 0 while its congestion control waits.
    weight: f64,
    stalled: bool,
    conduct: Conduct,
}

impl Seeder {
    fn new(now: Instant) -> Self {
        Self {
            pace: Pace::new(now),
            messages: VecDeque::new(),
            queue: VecDeque::new(),
            sent: 0,
            read: 0,
            weight: 1.0,
            stalled: false,
            conduct: Conduct::Prompt,
        }
    }

    /// Reads the messages that have arrived.
    fn read_messages(&mut self, now: Instant) {
        while let Some((due, _)) = self.messages.front()
            && *due <= now
            && let Some((_, message)) = self.messages.pop_front()
        {
            match message {
                Sent::Request(request) => {
                    let copies = self.conduct.copies();
                    self.queue.extend(std::iter::repeat_n(request, copies));
                }
                Sent::Cancel(request) => {
                    let mut waiting = self.queue.iter().skip(COMMITTED);
                    if let Some(at) = waiting.position(|it| *it == request) {
                        self.queue.remove(at + COMMITTED);
                    }
                }
            }
        }
    }

    /// Sends `bytes` bytes. Returns the blocks completed.
    fn send(&mut self, mut bytes: u32) -> Vec<Request> {
        let mut completed = Vec::new();
        while bytes > 0
            && let Some(first) = self.queue.front().copied()
        {
            let now = bytes.min(first.length - self.sent);
            (self.sent, bytes) = (self.sent + now, bytes - now);
            self.read += u64::from(now);
            if self.sent == first.length {
                self.sent = 0;
                completed.push(first);
                self.queue.pop_front();
            }
        }
        completed
    }
}

fn pieces(total: u64) -> Pieces {
    Pieces {
        length: 4 * BLOCK,
        total,
    }
}

/// What a download took.
#[derive(Debug)]
struct Outcome {
    seconds: f64,
    wasted: u64,
    uncancelled: u64,
    /// Seeders from which blocks were requested, on average.
    requested_from: f64,
}

struct Scene {
    /// Bytes of the torrent.
    size: u64,
    picker: Picker,
    requests: Requests,
    seeders: BTreeMap<ConnId, Seeder>,
    /// Bytes per second that the bottleneck carries.
    rate: f64,
    /// The most that one seeder sends.
    uplink: f64,
    rng: fastrand::Rng,
    start: Instant,
    now: Instant,
    /// Bytes of blocks that arrived, and of those that were not needed.
    arrived: u64,
    wasted: u64,
    /// Bytes of blocks that a seeder will send although the request was cancelled.
    uncancelled: u64,
    ledger: Ledger,
}

impl Scene {
    /// `seeders` of `uplink` Mbit/s each, behind a bottleneck of `mbit` Mbit/s.
    fn new(seeders: u64, mbit: f64, uplink: f64, seed: u64) -> Self {
        Self::with_size(SIZE, seeders, mbit, uplink, seed)
    }

    /// The same for a torrent of `size` bytes.
    fn with_size(size: u64, seeders: u64, mbit: f64, uplink: f64, seed: u64) -> Self {
        let pieces = pieces(size);
        let none = Bitfield::empty(pieces.count());
        let mut picker = Picker::new(pieces, none, seed);
        let now = Instant::now();
        for id in 1..=seeders {
            picker.add_conn(id, id as u32);
            picker.set_has(id, Bitfield::full(pieces.count()));
        }
        Self {
            size,
            requests: Requests::new(picker.free_blocks(), now),
            picker,
            seeders: (1..=seeders).map(|id| (id, Seeder::new(now))).collect(),
            rate: mbit * 125_000.0,
            uplink: uplink * 125_000.0,
            rng: fastrand::Rng::with_seed(seed),
            start: now,
            now,
            arrived: 0,
            wasted: 0,
            uncancelled: 0,
            ledger: Ledger::default(),
        }
    }

    /// Downloads everything.
    fn run(mut self) -> Outcome {
        let start = self.now;
        let mut requested_from = Vec::new();
        for step in 0.. {
            assert!(self.now < start + 300_000 * MS, "the download hangs");
            if step % PHASE == 0 {
                self.change_weights();
            }
            self.connect_due();
            let arrived = self.carry();
            for (id, request) in arrived {
                self.receive(id, request);
            }
            if self.picker.verified().is_full() {
                break;
            }
            self.request(step % TICK == 0);
            let seeders = self.seeders.keys();
            requested_from.push(seeders.filter(|id| self.picker.asked(**id) > 0).count());
            self.now += STEP;
        }
        assert_eq!(self.arrived, self.size + self.wasted);
        Outcome {
            seconds: (self.now - start).as_secs_f64(),
            wasted: self.wasted,
            uncancelled: self.uncancelled,
            requested_from: requested_from.iter().sum::<usize>() as f64
                / requested_from.len() as f64,
        }
    }

    /// Connections in competition get very different parts of a bottleneck, and some wait.
    fn change_weights(&mut self) {
        let rng = &mut self.rng;
        let busy = self.seeders.values().filter(|it| !it.queue.is_empty());
        let crowded = busy.count() > 1;
        for seeder in self.seeders.values_mut() {
            seeder.weight = match crowded && rng.f64() < 0.15 {
                true => 0.0,
                false => 0.2 + 2.0 * rng.f64(),
            };
        }
    }

    /// Carries what passes the bottleneck in one step. Returns the blocks completed.
    fn carry(&mut self) -> Vec<Placed> {
        let now = self.now;
        self.seeders
            .values_mut()
            .for_each(|it| it.read_messages(now));
        let sending = || self.seeders.values().filter(|it| !it.queue.is_empty());
        let weights: f64 = sending().map(|it| it.weight).sum();
        let step = STEP.as_secs_f64();
        let mut arrived = Vec::new();
        for (id, seeder) in &mut self.seeders {
            if seeder.queue.is_empty() || weights == 0.0 {
                continue;
            }
            let part = (self.rate * seeder.weight / weights).min(self.uplink);
            let completed = seeder.send((part * step) as u32);
            arrived.extend(completed.into_iter().map(|request| (*id, request)));
        }
        arrived
    }

    fn receive(&mut self, id: ConnId, request: Request) {
        self.arrived += u64::from(request.length);
        self.requests.arrived(request.length.into(), self.now);
        if let Some(seeder) = self.seeders.get_mut(&id) {
            seeder.pace.delivered();
        }
        match self.picker.receive(id, request, self.now) {
            Arrival::New { cancel, complete } => {
                self.ledger.received(request);
                self.send(cancel, Sent::Cancel);
                if complete {
                    self.picker.verify(request.piece);
                }
            }
            Arrival::Surplus => {
                self.wasted += u64::from(request.length);
            }
            Arrival::Flood(_) => panic!("no more was sent than was requested"),
        }
    }

    fn send(&mut self, placed: Vec<Placed>, message: impl Fn(Request) -> Sent) {
        for (id, request) in placed {
            match message(request) {
                Sent::Request(_) => self.ledger.requested(id, request, self.now),
                Sent::Cancel(_) => self.ledger.cancelled(id, request),
            }
            let Some(seeder) = self.seeders.get_mut(&id) else {
                continue;
            };
            match (message(request), seeder.conduct) {
                (_, Conduct::Never) => {}
                (Sent::Cancel(_), Conduct::Late(_)) => {
                    self.uncancelled += u64::from(request.length);
                }
                (message, conduct) => {
                    let due = self.now + RTT + conduct.delay();
                    seeder.messages.push_back((due, message));
                }
            }
        }
    }

    /// Does what the owner of a torrent does on each event, and on each tick.
    fn request(&mut self, ticked: bool) {
        let now = self.now;
        let mut cancel = Vec::new();
        for (id, seeder) in &mut self.seeders {
            let is_new = seeder.pace.observe(seeder.read, false, now);
            if seeder.stalled && is_new {
                seeder.stalled = false;
                self.picker.resume(*id);
                self.ledger.resume(*id);
            } else if !seeder.stalled && seeder.pace.is_silent(RTT) {
                seeder.stalled = true;
                let released = self.picker.suspend(*id);
                self.ledger.suspend(*id);
                cancel.extend(released.into_iter().map(|request| (*id, request)));
                seeder.pace.stall();
            }
        }
        self.send(cancel, Sent::Cancel);
        let mut sources = BTreeMap::new();
        for (id, seeder) in &mut self.seeders {
            let asked = self.picker.asked(*id);
            seeder.pace.set_asked(asked, RTT, now);
            if seeder.stalled {
                continue;
            }
            let rate = seeder.pace.rate(RTT, now);
            let source = Source {
                path: path(1),
                subflow: Subflow {
                    rate,
                    rtt: RTT,
                    asked,
                },
                depth: depth(seeder.pace.peak(RTT, now), RTT, SLACK, 500),
                time: time(RTT, SLACK),
            };
            sources.insert(*id, source);
        }
        if ticked {
            self.requests.review(&sources, false, now);
        }
        let any = |_: &Picker, _| Room::ANY;
        if self.requests.is_ending(&self.picker, now) {
            let filled = self.requests.fill_by_plan(&mut self.picker, &sources, any);
            self.place(filled);
            return self.ledger.check(&self.picker);
        }
        for (id, source) in &sources {
            let picker = &mut self.picker;
            let filled = self.requests.fill_one(picker, *id, source, Room::ANY);
            self.place(filled);
        }
    }

    fn place(&mut self, filled: Filled) {
        self.send(filled.cancel, Sent::Cancel);
        for (id, requests) in filled.requests {
            let placed = requests.into_iter().map(|request| (id, request));
            self.send(placed.collect(), Sent::Request);
        }
        let now = self.now;
        for (id, seeder) in &mut self.seeders {
            seeder.pace.set_asked(self.picker.asked(*id), RTT, now);
        }
    }
}

/// Downloads from this many seeders behind a bottleneck of 30 Mbit/s, three times each.
fn behind_a_bottleneck() -> HashMap<u64, Vec<Outcome>> {
    let runs = [1, 4, 16, 64].map(|seeders| {
        let runs = (1..=3).map(|seed| Scene::new(seeders, 30.0, 1000.0, seed).run());
        (seeders, runs.collect::<Vec<_>>())
    });
    runs.into_iter().collect()
}

#[test]
fn waste_and_time_do_not_grow_with_seeders() {
    let runs = behind_a_bottleneck();
    println!("{runs:#?}");
    let longest = |seeders: u64| {
        let seconds = runs[&seeders].iter().map(|run| run.seconds);
        seconds.fold(0.0, f64::max)
    };
    for (seeders, outcomes) in &runs {
        for outcome in outcomes {
            assert!(
                outcome.wasted <= SIZE / 50,
                "{seeders} seeders: {outcome:?}"
            );
        }
        let (of_one, here) = (longest(1), longest(*seeders));
        assert!(here <= 1.1 * of_one, "{seeders} seeders: {here} s");
    }
}

#[test]
fn few_seeders_behind_a_bottleneck_are_requested_from() {
    for (seeders, outcomes) in behind_a_bottleneck() {
        for outcome in outcomes {
            let requested_from = outcome.requested_from;
            assert!(requested_from <= 6.0, "{requested_from} of {seeders}");
        }
    }
}

#[test]
fn seeders_with_links_of_their_own_are_all_used() {
    let seconds = |seeders| Scene::new(seeders, 1000.0, 1.0, 1).run().seconds;
    let (few, many) = (seconds(4), seconds(64));
    // A sixteenth of the time, and that in which their number grows to all.
    assert!(many < few / 16.0 + 3.0, "{few} s, {many} s");
}

/// A path.
fn path(number: u64) -> Fingerprint {
    Fingerprint::local(IsdAsn(number))
}

/// A connection over a path that delivers `rate` bytes per second.
fn source(over: u64, rate: f64, asked: usize) -> Source {
    Source {
        path: path(over),
        subflow: Subflow {
            rate: Some(rate),
            rtt: RTT,
            asked,
        },
        depth: 10,
        time: RTT,
    }
}

#[test]
fn requests_are_topped_up_for_several_blocks_at_once() {
    let scene = Scene::new(1, 30.0, 1000.0, 1);
    let Scene {
        mut picker,
        mut requests,
        ..
    } = scene;
    let mut filled = |depth, asked| {
        let source = Source {
            depth,
            ..source(1, 1e6, asked)
        };
        let filled = requests.fill_one(&mut picker, 1, &source, Room::ANY);
        filled.count()
    };
    // A quarter is missing, or 16 blocks.
    assert_eq!([filled(40, 31), filled(40, 30)], [0, 10]);
    assert_eq!([filled(200, 185), filled(200, 184)], [0, 16]);
    // With few there is no block to wait for.
    assert_eq!([filled(3, 2), filled(2, 2)], [1, 0]);
    assert_eq!(filled(64, 0), 64);
}

#[test]
fn what_is_requested_covers_the_rate_of_each_connection_beside_others_that_deliver_in_bursts() {
    let Scene {
        mut picker,
        mut requests,
        ..
    } = Scene::new(1, 30.0, 1000.0, 1);
    let of = |id: ConnId, rate: f64, peak: f64| Source {
        depth: depth(Some(peak), RTT, SLACK, 500),
        time: time(RTT, SLACK),
        ..source(id, rate, 0)
    };
    let bursts = (2..=8).map(|id| (id, of(id, 1e4, 2.5e7)));
    let sources: BTreeMap<ConnId, Source> = bursts.chain([(1, of(1, 1e6, 1e6))]).collect();
    let start = Instant::now();
    for ms in (0..1000).step_by(10) {
        requests.arrived(10_700, start + ms * MS);
    }
    for (id, source) in &sources {
        requests.depth(*id, source);
    }
    requests.review(&sources, false, start + 1000 * MS);
    let filled = requests.fill_one(&mut picker, 1, &sources[&1], Room::ANY);
    // What arrives in 240 ms.
    assert_eq!(filled.count(), 15);
}
