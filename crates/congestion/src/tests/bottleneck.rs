//! Bottlenecks on virtual time: senders that share links, which drop what their queues have no room
//! for, and some packets at random.
//!
//! The receiver acknowledges an interval after the first packet that is not acknowledged yet.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::{Algorithm, Announced, RateControl};

/// Bytes of a packet.
pub const PACKET: u64 = 1300;
/// Step of the virtual time.
const TICK: Duration = Duration::from_micros(100);
/// Time that packets sent at once take at the pacing rate.
const BATCH: Duration = Duration::from_micros(500);
/// Later packets that arrive until one counts as lost (RFC 9002, 6.1.1).
const REORDERED: u64 = 3;
/// Shortest interval of acknowledgements, and longest.
const ACKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(25));
/// Time without an acknowledgement after which all packets count as lost.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A bottleneck link.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Bytes per second.
    pub rate: f64,
    /// The round-trip time when the queue is empty.
    pub rtt: Duration,
    /// The delay of the full queue.
    pub queue: Duration,
    /// The share of packets lost at random.
    pub loss: f64,
    /// The longest time that an acknowledgement waits for more packets, at least 100 µs; `None`: the
    /// bulk protocol's.
    pub acks: Option<Duration>,
    /// Another rate between two times; with 0 all packets are lost.
    pub change: Option<(Duration, Duration, f64)>,
}

/// A sender, and what became of its packets.
#[derive(Debug)]
pub struct Sender<C = Box<dyn RateControl>> {
    pub control: C,
    /// When it has something to send.
    pub active: Vec<Range<Duration>>,
    /// Bytes that arrived until the end of each tenth of a second.
    pub arrived: Vec<u64>,
    /// Packets sent, and lost.
    pub sent: u64,
    pub lost: u64,
    bytes: u64,
    tokens: f64,
    refilled: Option<Instant>,
    flying: VecDeque<(u64, Instant)>,
    /// The links that its packets cross, by their place in the network.
    route: Vec<usize>,
    /// Packets that passed the queue of each link of the route, with the time at which they do.
    crossed: Vec<VecDeque<(Instant, u64)>>,
    acked_at: Option<Instant>,
}

impl Sender {
    pub fn new(algorithm: Algorithm, announced: Announced, seed: u64) -> Self {
        Self::with(algorithm.start(Instant::now(), PACKET, announced, seed))
    }
}

impl<C: RateControl> Sender<C> {
    pub fn with(control: C) -> Self {
        Self {
            control,
            active: vec![Duration::ZERO..Duration::MAX],
            arrived: Vec::new(),
            sent: 0,
            lost: 0,
            bytes: 0,
            tokens: 0.0,
            refilled: None,
            flying: VecDeque::new(),
            route: vec![0],
            crossed: vec![VecDeque::new()],
            acked_at: None,
        }
    }

    /// The same, with something to send only in `active`.
    pub fn active(mut self, active: impl IntoIterator<Item = Range<Duration>>) -> Self {
        self.active = active.into_iter().collect();
        self
    }

    /// The same, over these links of the network.
    pub fn over(mut self, route: impl IntoIterator<Item = usize>) -> Self {
        self.route = route.into_iter().collect();
        self.crossed = self.route.iter().map(|_| VecDeque::new()).collect();
        self
    }

    /// Bytes that arrived.
    pub fn delivered(&self) -> u64 {
        self.bytes
    }

    fn in_flight(&self) -> u64 {
        self.flying.len() as u64 * PACKET
    }

    fn has_data(&self, at: Duration) -> bool {
        self.active.iter().any(|active| active.contains(&at))
    }

    /// Handles the acknowledgement that arrives now, if one does.
    fn take_acks(&mut self, now: Instant, links: &[Crossing], has_data: bool) {
        let last = self.route.len() - 1;
        let link = links[self.route[last]].link;
        // A source of the bulk protocol names a longer interval once trains of packets are over.
        let named = match self.control.is_probing() {
            true => ACKS.0,
            false => (link.rtt / 8).clamp(ACKS.0, ACKS.1),
        };
        let interval = link.acks.unwrap_or(named);
        let passed = &mut self.crossed[last];
        let Some((first, _)) = passed.front().copied() else {
            let since = self.acked_at.max(self.flying.back().map(|(_, sent)| *sent));
            if !self.flying.is_empty() && since.is_some_and(|since| now > since + TIMEOUT) {
                self.lost += self.flying.len() as u64;
                self.flying.clear();
                self.acked_at = Some(now);
                self.control.timed_out(now);
            }
            return;
        };
        let until = first + interval;
        if now < until + link.rtt {
            return;
        }
        self.acked_at = Some(now);
        let mut largest = 0;
        while let Some((_, number)) = passed.front().copied().filter(|(at, _)| *at <= until) {
            passed.pop_front();
            if let Ok(place) = self.flying.binary_search_by_key(&number, |(one, _)| *one)
                && let Some((_, sent)) = self.flying.remove(place)
            {
                self.bytes += PACKET;
                self.control.acked(now, number, sent, PACKET);
                largest = largest.max(number);
            }
        }
        let before = (largest + 1).saturating_sub(REORDERED);
        while let Some((number, sent)) = self
            .flying
            .front()
            .copied()
            .filter(|(one, _)| *one < before)
        {
            self.flying.pop_front();
            self.control.lost(now, number, sent, PACKET);
            self.lost += 1;
        }
        let in_flight = self.in_flight();
        let app_limited = !has_data && in_flight < self.control.window();
        self.control.end(now, in_flight, app_limited);
    }

    /// Packets that may be sent now.
    fn allowed(&mut self, now: Instant) -> u64 {
        let since = self.refilled.map(|last| now - last);
        if since.is_some_and(|since| since < BATCH) {
            return 0;
        }
        let rate = self.control.rate();
        let batch = rate * BATCH.as_secs_f64();
        let more = since.map_or(batch, |since| rate * since.as_secs_f64());
        self.refilled = Some(now);
        self.tokens = (self.tokens + more).min(batch.max(PACKET as f64) + PACKET as f64);
        let window = self.control.window().saturating_sub(self.in_flight());
        (self.tokens as u64 / PACKET).min(window / PACKET)
    }
}

/// A link at work.
#[derive(Debug)]
struct Crossing {
    link: Link,
    /// Bytes per second now, and the time of a packet.
    rate: f64,
    transmission: Duration,
    /// When the queue is empty.
    free_at: Instant,
}

impl Crossing {
    fn set_time(&mut self, time: Duration) {
        self.rate = match self.link.change {
            Some((from, until, rate)) if (from..until).contains(&time) => rate,
            _ => self.link.rate,
        };
        self.transmission = match self.rate > 0.0 {
            true => Duration::from_secs_f64(PACKET as f64 / self.rate),
            false => Duration::ZERO,
        };
    }

    /// When a packet that arrives at `at` has crossed the link; `None` if it is lost.
    fn cross(&mut self, at: Instant, random: &mut fastrand::Rng) -> Option<Instant> {
        self.free_at = self.free_at.max(at);
        if self.rate == 0.0 || self.free_at - at >= self.link.queue {
            return None;
        }
        self.free_at += self.transmission;
        let arrives = self.link.loss == 0.0 || random.f64() >= self.link.loss;
        arrives.then_some(self.free_at)
    }
}

/// Runs `senders` over `link` for `length`. `seed` determines which packets are lost at random.
pub fn run<C: RateControl>(link: Link, senders: &mut [Sender<C>], length: Duration, seed: u64) {
    run_network(&[link], senders, length, seed, |_, _| {});
}

/// Runs `senders` over their routes through `links` for `length`. The round-trip time of a route, and
/// its acknowledgements, are those of its last link. `each` is called with the senders a hundred times
/// a second.
pub fn run_network<C: RateControl>(
    links: &[Link],
    senders: &mut [Sender<C>],
    length: Duration,
    seed: u64,
    mut each: impl FnMut(Instant, &mut [Sender<C>]),
) {
    let start = Instant::now();
    let mut now = start;
    let crossing = |link: &Link| Crossing {
        link: *link,
        rate: link.rate,
        transmission: Duration::ZERO,
        free_at: start,
    };
    let mut links: Vec<_> = links.iter().map(crossing).collect();
    let mut tenth = start + Duration::from_millis(100);
    let mut hundredth = start;
    let mut random = fastrand::Rng::with_seed(seed);
    while now < start + length {
        now += TICK;
        let time = now - start;
        links.iter_mut().for_each(|link| link.set_time(time));
        if now >= hundredth {
            hundredth += Duration::from_millis(10);
            each(now, senders);
        }
        // Nobody is always the first to find room in the queue.
        let count = senders.len();
        let first = random.usize(..count);
        for at in 0..count {
            let sender = &mut senders[(first + at) % count];
            let has_data = sender.has_data(time);
            sender.take_acks(now, &links, has_data);
            if now >= tenth {
                sender.arrived.push(sender.bytes);
            }
            for hop in 1..sender.route.len() {
                let link = &mut links[sender.route[hop]];
                let arrived = |one: &(Instant, u64)| one.0 <= now;
                while let Some((at, number)) =
                    sender.crossed[hop - 1].front().copied().filter(arrived)
                {
                    sender.crossed[hop - 1].pop_front();
                    let crossed = link.cross(at, &mut random);
                    sender.crossed[hop].extend(crossed.map(|at| (at, number)));
                }
            }
            if !has_data {
                continue;
            }
            let link = &mut links[sender.route[0]];
            for _ in 0..sender.allowed(now) {
                let number = sender.sent;
                sender.sent += 1;
                sender.tokens -= PACKET as f64;
                sender.control.sent(now, number, PACKET);
                sender.flying.push_back((number, now));
                let crossed = link.cross(now, &mut random);
                sender.crossed[0].extend(crossed.map(|at| (at, number)));
            }
        }
        if now >= tenth {
            tenth += Duration::from_millis(100);
        }
    }
}

/// The share of `rate` bytes per second that a sender had between two times, in seconds.
pub fn share<C>(sender: &Sender<C>, rate: f64, from: f64, until: f64) -> f64 {
    let at = |time: f64| sender.arrived[(time * 10.0) as usize - 1];
    (at(until) - at(from)) as f64 / rate / (until - from)
}
