//! A model network on virtual time: a source with its sealers, paths of any kind, and a sink with
//! its openers, which exchange real packets.

mod control;
mod path;
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use hawser_congestion::{Algorithm, Announced, RateControl};
use hawser_seal::{Cipher, HEADER, SECRET};

use self::control::Fixed;
pub(super) use self::path::Path;
use self::path::Pipe;
use super::*;
use crate::limit::{Allowance, Limit};

/// Content that a sink may hold and not have released.
const CREDIT: u64 = 64 << 20;

/// What a model transfer does.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub content: u64,
    pub credit: u64,
    /// Bytes that the sink releases per second; `None`: all at once.
    pub disk: Option<f64>,
    pub paths: Vec<Path>,
    pub per_packet: usize,
    pub cipher: Cipher,
    pub seed: u64,
    /// Packets of the source to each packet of an attacker.
    pub attack_every: Option<u64>,
    /// A range that the sink forgets and wants again once all arrived.
    pub again: Option<Range<u64>>,
    /// The longest transfer.
    pub limit: Duration,
    /// The rate control of all subflows; `None`: a fixed share of what each path carries.
    pub algorithm: Option<Algorithm>,
    /// Content bits per second over all paths together.
    pub rate: Option<u64>,
}

impl Plan {
    pub(super) fn new(content: u64, paths: Vec<Path>) -> Self {
        Self {
            content,
            credit: CREDIT,
            disk: None,
            paths,
            per_packet: 1400,
            cipher: Cipher::Aes128Gcm,
            seed: 7,
            attack_every: None,
            again: None,
            limit: Duration::from_secs(120),
            algorithm: None,
            rate: None,
        }
    }

    /// Runs the transfer until everything is delivered; panics if that takes too long, or if an
    /// invariant does not hold.
    pub(super) fn run(self) -> Outcome {
        Model::new(self).run()
    }
}

/// What came of a model transfer.
#[derive(Debug)]
pub(super) struct Outcome {
    pub time: Duration,
    /// Bytes of data packets and of acknowledgement packets.
    pub data_bytes: u64,
    pub ack_bytes: u64,
    pub sink: SinkStats,
    pub subflows: Vec<Option<SubflowStats>>,
    pub rejections: Vec<Rejections>,
    pub attacks: u64,
    /// The largest number of bytes that the sink had received and not released.
    pub held: u64,
}

impl Outcome {
    /// Content bytes per second.
    pub(super) fn goodput(&self) -> f64 {
        self.sink.received as f64 / self.time.as_secs_f64()
    }
}

/// The byte of the content at a position.
pub(super) fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

struct Ends {
    sealer: Sealer,
    opener: Opener,
    ack_sealer: Sealer,
    ack_opener: Opener,
    forward: Pipe,
    back: Pipe,
    alive: bool,
    /// The number of the last batch that it sent within a limit, of all batches.
    turn: u64,
    /// Packets that an attacker saw.
    seen: Vec<Vec<u8>>,
}

struct Model {
    plan: Plan,
    start: Instant,
    now: Instant,
    random: Random,
    source: Source,
    sink: Sink,
    ends: BTreeMap<SubflowKey, Ends>,
    content: Vec<u8>,
    have: RangeSet,
    released: f64,
    disk_at: Instant,
    outcome: Outcome,
    packets: u64,
    allowance: Allowance,
    /// Batches that were sent while the rate was limited.
    turns: u64,
}

/// A generator of random numbers (splitmix64).
#[derive(Debug, Clone)]
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// Below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / ((1_u64 << 53) as f64) < probability
    }
}

impl Model {
    fn new(plan: Plan) -> Self {
        let start = Instant::now();
        let mut source = Source::new(plan.content, plan.credit);
        let mut sink = Sink::new(plan.content, plan.credit);
        source.want(0..plan.content);
        let mut ends = BTreeMap::new();
        for (index, path) in plan.paths.iter().enumerate() {
            let key = SubflowKey(index as u32);
            let secret = |direction: u8| {
                let mut secret = [direction; SECRET];
                secret[32] = index as u8;
                secret
            };
            let packet = (plan.per_packet + DATA_OVERHEAD) as u64;
            let control: Box<dyn RateControl> = match plan.algorithm {
                Some(algorithm) => algorithm.start(start, packet, Announced::default(), plan.seed),
                None => Box::new(Fixed::new(path.rate, path.delay * 2)),
            };
            source.add_subflow(key, plan.per_packet, control, Some(path.delay * 2), start);
            sink.add_subflow(key, start);
            let (data, acks) = (secret(1), secret(2));
            ends.insert(
                key,
                Ends {
                    sealer: Sealer::new(plan.cipher, &data),
                    opener: Opener::new(plan.cipher, &data),
                    ack_sealer: Sealer::new(plan.cipher, &acks),
                    ack_opener: Opener::new(plan.cipher, &acks),
                    forward: Pipe::new(path.clone(), start),
                    back: Pipe::new(path.clone(), start),
                    alive: true,
                    turn: 0,
                    seen: Vec::new(),
                },
            );
        }
        Self {
            start,
            now: start,
            random: Random(plan.seed),
            source,
            sink,
            ends,
            content: vec![0; plan.content as usize],
            have: RangeSet::new(),
            released: 0.0,
            disk_at: start,
            outcome: Outcome {
                time: Duration::ZERO,
                data_bytes: 0,
                ack_bytes: 0,
                sink: SinkStats::default(),
                subflows: Vec::new(),
                rejections: Vec::new(),
                attacks: 0,
                held: 0,
            },
            packets: 0,
            allowance: Allowance::new(plan.rate.map(|rate| Limit::new(rate, None))),
            turns: 0,
            plan,
        }
    }

    fn run(mut self) -> Outcome {
        let mut again = self.plan.again.take();
        loop {
            self.end_dead_paths();
            self.source.timeout(self.now);
            self.send_all();
            if self.source.is_delivered() {
                match again.take() {
                    Some(range) => {
                        self.sink.forget(range.clone());
                        self.have.remove(range.clone());
                        self.content[range.start as usize..range.end as usize].fill(0);
                        self.source.want(range);
                        continue;
                    }
                    None => break,
                }
            }
            self.acknowledge();
            self.now = self.next_event().max(self.now);
            assert!(
                self.now - self.start < self.plan.limit,
                "not delivered: {:?} of {:?}, {:?}",
                self.source.missing().iter().next(),
                self.source.missing().len(),
                self.source,
            );
            self.deliver();
            self.write();
        }
        self.finish()
    }

    fn finish(mut self) -> Outcome {
        assert_eq!(
            self.have.len(),
            self.plan.content,
            "everything arrives once"
        );
        for (position, byte) in (0..).zip(&self.content) {
            assert_eq!(*byte, byte_at(position), "at {position}");
        }
        self.outcome.time = self.now - self.start;
        self.outcome.sink = self.sink.stats();
        let keys = (0..self.plan.paths.len() as u32).map(SubflowKey);
        self.outcome.subflows = keys.map(|key| self.source.stats(key)).collect();
        self.outcome.rejections = self
            .ends
            .values()
            .map(|ends| ends.opener.rejections())
            .collect();
        self.outcome
    }

    /// Paths that the path manager found dead by now.
    fn end_dead_paths(&mut self) {
        for (key, ends) in &mut self.ends {
            let noticed = ends.forward.path.noticed.map(|after| self.start + after);
            if ends.alive && noticed.is_some_and(|at| at <= self.now) {
                ends.alive = false;
                self.source.remove_subflow(*key);
                self.sink.remove_subflow(*key);
            }
        }
    }

    fn send_all(&mut self) {
        let mut keys: Vec<_> = self.ends.keys().copied().collect();
        if self.allowance.is_limited() {
            keys.sort_by_key(|key| self.ends[key].turn);
        }
        for key in keys {
            let wait = loop {
                let ends = self.ends.get_mut(&key).unwrap();
                let mut out = Vec::new();
                let transmit = self.source.poll_within(key, self.now, &mut self.allowance);
                match transmit {
                    Transmit::Data {
                        number,
                        content,
                        packets,
                        per_packet,
                        ask,
                    } => {
                        let bytes: Vec<u8> = content.clone().map(byte_at).collect();
                        let numbers =
                            ends.sealer
                                .seal_data(&mut out, content.start, &bytes, per_packet, ask);
                        assert_eq!(numbers, number..number + packets);
                        self.outcome.data_bytes += out.len() as u64;
                        for packet in out.chunks(per_packet + DATA_OVERHEAD) {
                            self.packets += 1;
                            if self.plan.attack_every.is_some() {
                                ends.seen.push(packet.to_vec());
                            }
                            ends.forward
                                .send(packet.to_vec(), self.now, &mut self.random);
                        }
                        if self.allowance.is_limited() {
                            self.turns += 1;
                            ends.turn = self.turns;
                            break Some(self.now);
                        }
                    }
                    Transmit::Probe { number, size } => {
                        assert_eq!(ends.sealer.seal_probe(&mut out, size), number);
                        ends.forward.send(out, self.now, &mut self.random);
                    }
                    Transmit::Wait(until) => break until,
                }
            };
            self.ends.get_mut(&key).unwrap().forward.poll_at = wait;
        }
        assert!(
            self.source.sent() <= self.source.credit(),
            "beyond the credit"
        );
        assert!(self.source.credit() <= self.sink.credit());
        self.attack();
    }

    /// Sends packets that an attacker makes of those it saw.
    fn attack(&mut self) {
        let Some(every) = self.plan.attack_every else {
            return;
        };
        while self.outcome.attacks * every < self.packets {
            self.outcome.attacks += 1;
            let index = self.random.below(self.ends.len() as u64) as u32;
            let ends = self.ends.get_mut(&SubflowKey(index)).unwrap();
            if !ends.seen.is_empty() {
                let index = self.random.below(ends.seen.len() as u64) as usize;
                let mut packet = ends.seen[index].clone();
                match self.random.below(4) {
                    0 => {
                        let bit = self.random.below(packet.len() as u64 * 8) as usize;
                        packet[bit / 8] ^= 1 << (bit % 8);
                    }
                    1 => packet.truncate(self.random.below(60) as usize),
                    2 => {
                        let forged = packet.iter_mut().skip(HEADER);
                        forged.for_each(|byte| *byte = self.random.next() as u8);
                    }
                    // A replay.
                    _ => {}
                }
                ends.forward.inject(packet, self.now);
            }
            if ends.seen.len() > 1000 {
                ends.seen.drain(..500);
            }
        }
    }

    fn acknowledge(&mut self) {
        for (key, ends) in &mut self.ends {
            if !ends.alive {
                continue;
            }
            if let Some(interval) = self.source.poll_interval(*key) {
                self.sink.set_interval(*key, interval);
            }
            while let Some(ack) = self.sink.poll_ack(*key, self.now) {
                let mut out = Vec::new();
                ends.ack_sealer.seal_ack(&mut out, &ack, 1400);
                self.outcome.ack_bytes += out.len() as u64;
                ends.back.send(out, self.now, &mut self.random);
            }
        }
    }

    fn next_event(&self) -> Instant {
        let pipes = self.ends.values().flat_map(|ends| {
            let arrivals = [ends.forward.next_arrival(), ends.back.next_arrival()];
            let noticed = ends.forward.path.noticed.map(|after| self.start + after);
            let noticed = noticed.filter(|_| ends.alive);
            let poll_at = ends.forward.poll_at.filter(|_| ends.alive);
            arrivals.into_iter().chain([noticed, poll_at])
        });
        let disk = (self.plan.disk).map(|_| self.disk_at + Duration::from_millis(1));
        pipes
            .chain([self.source.next_timeout(), self.sink.next_timeout(), disk])
            .flatten()
            .min()
            .expect("something is to come")
    }

    fn deliver(&mut self) {
        let mut scratch = Vec::new();
        for (key, ends) in &mut self.ends {
            while let Some((packet, marked)) = ends.forward.receive(self.now) {
                let Ok(opened) = ends.opener.open(&packet, &mut scratch) else {
                    continue;
                };
                if let Payload::Data { position, content } = opened.payload {
                    let range = position..position + content.len() as u64;
                    for part in self.sink.on_data(range).unwrap() {
                        assert!(self.have.overlaps(part.clone()).next().is_none(), "twice");
                        self.have.insert(part.clone());
                        let from = (part.start - position) as usize;
                        let length = (part.end - part.start) as usize;
                        let to = part.start as usize..part.end as usize;
                        self.content[to].copy_from_slice(&content[from..from + length]);
                    }
                }
                self.sink
                    .on_packet(*key, opened.number, opened.ask, marked, self.now);
            }
            while let Some((packet, _)) = ends.back.receive(self.now) {
                if let Ok(opened) = ends.ack_opener.open(&packet, &mut scratch) {
                    let Payload::Ack(ack) = opened.payload else {
                        panic!("{opened:?} is not an acknowledgement");
                    };
                    self.source.on_ack(*key, &ack, self.now).unwrap();
                }
            }
        }
    }

    /// The sink writes what it has, and releases it.
    fn write(&mut self) {
        let received = self.sink.stats().received;
        let held = received.saturating_sub(self.released as u64);
        self.outcome.held = self.outcome.held.max(held);
        let bytes = match self.plan.disk {
            None => held,
            Some(rate) => {
                let elapsed = self.now - self.disk_at;
                self.disk_at = self.now;
                (held as f64).min(rate * elapsed.as_secs_f64()) as u64
            }
        };
        self.released += bytes as f64;
        self.sink.release(bytes, self.now);
    }
}
