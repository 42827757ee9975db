//! Paths of the model network.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Random;

/// What a path is like.
#[derive(Debug, Clone)]
pub(in super::super) struct Path {
    /// Bytes per second.
    pub rate: f64,
    pub delay: Duration,
    /// The bytes that its queue takes; more are dropped.
    pub queue: u64,
    /// Probabilities for each packet.
    pub loss: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    pub truncate: f64,
    /// Probability and longest delay of packets that are overtaken.
    pub reorder: (f64, Duration),
    /// When the path stops to carry anything, after the start, and for how long.
    pub dead: Option<(Duration, Duration)>,
    /// When that is noticed from outside, and the subflow removed.
    pub noticed: Option<Duration>,
}

impl Path {
    /// A path of `mbit` Mbit/s and `ms` ms of delay in each direction, with a queue of 20 ms.
    pub(in super::super) fn new(mbit: f64, ms: u64) -> Self {
        let rate = mbit * 1e6 / 8.0;
        Self {
            rate,
            delay: Duration::from_millis(ms),
            queue: (rate * 0.02) as u64,
            loss: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            truncate: 0.0,
            reorder: (0.0, Duration::ZERO),
            dead: None,
            noticed: None,
        }
    }
}

/// One direction of a path.
#[derive(Debug)]
pub(super) struct Pipe {
    pub path: Path,
    start: Instant,
    /// When the link has sent all it was given.
    free: Instant,
    /// Packets by their arrival and order.
    packets: BTreeMap<(Instant, u64), Vec<u8>>,
    count: u64,
    /// When the sender may send again.
    pub poll_at: Option<Instant>,
}

impl Pipe {
    pub(super) fn new(path: Path, start: Instant) -> Self {
        Self {
            path,
            start,
            free: start,
            packets: BTreeMap::new(),
            count: 0,
            poll_at: None,
        }
    }

    pub(super) fn send(&mut self, mut packet: Vec<u8>, now: Instant, random: &mut Random) {
        let path = &self.path;
        let is_dead = path.dead.is_some_and(|(from, length)| {
            (from..from.saturating_add(length)).contains(&(now - self.start))
        });
        let waiting = self.free.saturating_duration_since(now).as_secs_f64() * path.rate;
        if is_dead || waiting as u64 > path.queue {
            return;
        }
        let time = Duration::from_secs_f64(packet.len() as f64 / path.rate);
        self.free = self.free.max(now) + time;
        if random.chance(path.loss) {
            return;
        }
        if random.chance(path.corrupt) {
            let at = random.below(packet.len() as u64) as usize;
            packet[at] ^= 1 << random.below(8);
        }
        if random.chance(path.truncate) {
            packet.truncate(random.below(packet.len() as u64) as usize);
        }
        let copies = 1 + u64::from(random.chance(path.duplicate));
        for _ in 0..copies {
            let (probability, longest) = path.reorder;
            let extra = match random.chance(probability) {
                true => Duration::from_nanos(random.below(longest.as_nanos() as u64)),
                false => Duration::ZERO,
            };
            self.count += 1;
            let arrival = self.free + path.delay + extra;
            self.packets.insert((arrival, self.count), packet.clone());
        }
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.packets.keys().next().map(|(arrival, _)| *arrival)
    }

    /// The next packet that arrived, and whether it has the congestion mark.
    pub(super) fn receive(&mut self, now: Instant) -> Option<(Vec<u8>, bool)> {
        let first = self.packets.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let marked = first.key().1 % 100 == 0;
        Some((first.remove(), marked))
    }

    /// Adds a packet that is not the sender's, to arrive at once.
    pub(super) fn inject(&mut self, packet: Vec<u8>, now: Instant) {
        self.count += 1;
        self.packets.insert((now, self.count), packet);
    }
}
