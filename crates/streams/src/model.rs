//! A connection over several paths on virtual time, each path a QUIC connection with a rate, a delay
//! and losses: how much arrives, and how long nothing does.
//!
//! A [`World`] begins with all paths connected and both sides at time 0. Each [`World::step`] is
//! one millisecond: the client writes all it may, each side hands its wires what they take, time
//! passes, a path over which nothing comes back is suspended at both sides until something does,
//! what has arrived is passed to the other side, acknowledgements and retries that are due are
//! made, and the server reads everything. A test takes these steps for 14 s, of which the first two
//! do not count; nothing else drives it, and it has no threads. It keeps what is under way: in the
//! streams by their own bounds, on a wire by its window.

mod wire;

use std::time::Duration;

use bytes::Bytes;

use super::*;
use wire::{Link, Wire};

/// The QUIC connection over one path.
struct Lane {
    key: PathKey,
    /// What is sent by the client, and by the server.
    wires: [Wire; 2],
    /// What QUIC has not taken yet, for each side.
    pending: [Bytes; 2],
    decoders: [Decoder; 2],
    is_suspended: bool,
}

/// Both sides, and what one of them receives.
struct World {
    now: Duration,
    sides: [Streams; 2],
    lanes: Vec<Lane>,
    /// When little that has arrived is acknowledged, for each side.
    due: [Option<Duration>; 2],
    received: u64,
    last: Duration,
    longest_pause: Duration,
}

const MS: Duration = Duration::from_millis(1);
/// As the carrier has them.
const ACKNOWLEDGED: Duration = Duration::from_millis(25);
const ESTIMATED: u64 = 20;
const RETRIED: u64 = 3000;
/// How often each comparison is made.
const SEEDS: u64 = 2;

impl World {
    fn new(links: &[Link], seed: u64) -> Self {
        let mut sides = [Side::Opens, Side::Accepts].map(Streams::new);
        let lanes = (0..).zip(links).map(|(key, link)| {
            for side in &mut sides {
                side.add_path(key);
                side.set_name(key, key);
            }
            Lane {
                key,
                wires: [1, 2].map(|side| Wire::new(*link, seed * 100 + key * 2 + side)),
                pending: Default::default(),
                decoders: Default::default(),
                is_suspended: false,
            }
        });
        Self {
            now: Duration::ZERO,
            lanes: lanes.collect(),
            sides,
            due: [None; 2],
            received: 0,
            last: Duration::ZERO,
            longest_pause: Duration::ZERO,
        }
    }

    /// One millisecond passes, while the client writes what it may to `id`.
    fn step(&mut self, id: StreamId) {
        let chunk = [7; 64 << 10];
        while self.sides[0].write(id, &chunk) == Some(chunk.len()) {}
        for side in 0..2 {
            self.send(side);
        }
        self.now += MS;
        self.watch();
        let now = self.now;
        self.sides.iter_mut().for_each(|side| side.advance(now));
        for side in 0..2 {
            for lane in &mut self.lanes {
                let acknowledged = lane.wires[1 - side].work(now);
                lane.wires[side].acknowledge(acknowledged);
                while let Some(bytes) = lane.wires[1 - side].read() {
                    lane.decoders[side].push(bytes);
                    while let Some(frame) = lane.decoders[side].pop().unwrap() {
                        self.sides[side].receive(lane.key, frame).unwrap();
                    }
                }
            }
            self.run_timers(side);
        }
        self.read(id);
    }

    /// Does as the carrier does with a lane over which nothing comes back for some time, until something
    /// does.
    fn watch(&mut self) {
        for lane in &mut self.lanes {
            let is_silent = lane.wires[0].is_silent(self.now);
            if std::mem::replace(&mut lane.is_suspended, is_silent) == is_silent {
                continue;
            }
            for side in &mut self.sides {
                match is_silent {
                    true => side.suspend_path(lane.key),
                    false => side.resume_path(lane.key),
                }
            }
        }
    }

    /// Hands each path what it has room for.
    fn send(&mut self, side: usize) {
        let streams = &mut self.sides[side];
        let estimate = (self.now.as_millis() as u64).is_multiple_of(ESTIMATED);
        for lane in &mut self.lanes {
            if estimate {
                streams.set_estimate(lane.key, lane.wires[side].estimate());
            }
            while lane.wires[side].write(&mut lane.pending[side]) {
                match streams.transmit(lane.key) {
                    Some(bytes) => lane.pending[side] = bytes,
                    None => break,
                }
            }
        }
        while let Some(key) = streams.next_path() {
            let lane = &mut self.lanes[key as usize];
            while lane.wires[side].write(&mut lane.pending[side]) {
                match streams.transmit(key) {
                    Some(bytes) => lane.pending[side] = bytes,
                    None => break,
                }
            }
        }
    }

    /// Does what the carrier's task does from time to time.
    fn run_timers(&mut self, side: usize) {
        let streams = &mut self.sides[side];
        if self.due[side].is_some_and(|due| due <= self.now) {
            streams.acknowledge();
            self.due[side] = None;
        } else if streams.lacks_acknowledgement() {
            self.due[side].get_or_insert(self.now + ACKNOWLEDGED);
        }
        if (self.now.as_millis() as u64).is_multiple_of(RETRIED) {
            streams.retry();
        }
        while streams.poll_event().is_some() {}
    }

    /// The server reads all that has arrived.
    fn read(&mut self, id: StreamId) {
        while let Read::Data(bytes) = self.sides[1].read(id, usize::MAX) {
            self.sides[1].consume(id, bytes.len());
            self.received += bytes.len() as u64;
            let pause = self.now.saturating_sub(self.last);
            self.longest_pause = self.longest_pause.max(pause);
            self.last = self.now;
        }
    }
}

/// Bytes that arrive in a second once the transfer has begun, and the longest time without any.
fn carried(links: &[Link], seed: u64) -> (u64, Duration) {
    let mut world = World::new(links, seed);
    let id = world.sides[0].open();
    while world.now < Duration::from_secs(2) {
        world.step(id);
    }
    (world.received, world.longest_pause) = (0, Duration::ZERO);
    while world.now < Duration::from_secs(14) {
        world.step(id);
    }
    let pause = (world.now - world.last).max(world.longest_pause);
    (world.received / 12, pause)
}

/// Compares two good paths with the same and `other`.
fn check(name: &str, other: Link) {
    let good = Link::GOOD;
    let (alone, _) = carried(&[good, good], 0);
    for seed in 0..SEEDS {
        let (with, pause) = carried(&[other, good, good], seed);
        let part = with as f64 / alone as f64;
        assert!(
            part >= 0.95 && pause <= Duration::from_millis(500),
            "{name}, seed {seed}: {part:.2} of the good paths alone, a pause of {} ms",
            pause.as_millis()
        );
    }
}

#[test]
fn a_lossy_path_takes_nothing_from_the_others() {
    for loss in [0.01, 0.1, 0.3] {
        check(&format!("loss {loss}"), Link { loss, ..Link::GOOD });
    }
}

#[test]
fn a_far_path_takes_nothing_from_the_others() {
    for delay in [60, 260, 510] {
        check(
            &format!("delay {delay} ms"),
            Link {
                delay,
                ..Link::GOOD
            },
        );
    }
}

#[test]
fn a_flapping_path_takes_nothing_from_the_others() {
    let flaps = Some(2000);
    check(
        "flapping",
        Link {
            flaps,
            ..Link::GOOD
        },
    );
}

#[test]
fn a_slow_path_takes_nothing_from_the_others() {
    for rate in [100, 1000] {
        check(&format!("{rate} bytes/ms"), Link { rate, ..Link::GOOD });
    }
}

#[test]
fn good_paths_add_up() {
    let good = Link::GOOD;
    let (one, _) = carried(&[good], 0);
    let (three, pause) = carried(&[good, good, good], 0);
    assert!(
        three as f64 >= one as f64 * 2.7,
        "{one} and {three} bytes/s"
    );
    assert!(pause <= 100 * MS, "a pause of {} ms", pause.as_millis());
}
