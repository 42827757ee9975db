//! Endpoints over a network on virtual time.

mod ledbat;
mod operations;
mod refused;
mod tail;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;

use self::watch::Watch;
use crate::{Config, Endpoint, Event};

/// What one direction of the network does to datagrams.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    /// How many of a hundred are lost, and repeated.
    lost: u32,
    repeated: u32,
    delay: Duration,
    /// Up to how much longer a datagram takes, each for itself: this reorders them.
    jitter: Duration,
    bottleneck: Option<Bottleneck>,
}

/// A link with a queue.
#[derive(Debug, Clone, Copy)]
struct Bottleneck {
    /// In bytes per second.
    rate: u64,
    /// The longest time that a datagram waits; one that would wait longer is lost.
    queue: Duration,
}

impl Conditions {
    fn clean(delay: Duration) -> Self {
        Self {
            lost: 0,
            repeated: 0,
            delay,
            jitter: Duration::ZERO,
            bottleneck: None,
        }
    }
}

/// One of the two hosts.
struct Host {
    addr: SocketAddr,
    endpoint: Endpoint,
    /// The direction away from it.
    conditions: Conditions,
    /// When the bottleneck of that direction is free.
    free: Instant,
    /// The largest datagram that its device takes; others are refused.
    largest: usize,
    /// Until when the host does nothing.
    paused: Option<Instant>,
    /// What arrived while it was paused.
    inbox: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
}

struct Network {
    now: Instant,
    hosts: [Host; 2],
    /// Datagrams on their way, by arrival and number: the receiver, and the bytes.
    under_way: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    number: u64,
    rng: Rng,
    /// `None` with several connections.
    watch: Option<Watch>,
}

impl Network {
    fn new(conditions: [Conditions; 2], config: Config, seed: u64) -> Self {
        let now = Instant::now();
        let mut rng = Rng::with_seed(seed);
        let mut host = |conditions, port| Host {
            addr: SocketAddr::from(([127, 0, 0, 1], port)),
            endpoint: Endpoint::new(config, Rng::with_seed(rng.u64(..)), now),
            conditions,
            free: now,
            largest: usize::MAX,
            paused: None,
            inbox: VecDeque::new(),
            events: VecDeque::new(),
        };
        Self {
            now,
            hosts: [host(conditions[0], 1), host(conditions[1], 2)],
            under_way: BTreeMap::new(),
            number: 0,
            rng,
            watch: Some(Watch::default()),
        }
    }

    fn watch_nothing(&mut self) {
        self.watch = None;
    }

    /// Puts a datagram of `from` on its way.
    fn send(&mut self, from: usize, datagram: &[u8]) {
        let host = &mut self.hosts[from];
        let conditions = host.conditions;
        let mut depart = self.now;
        if let Some(bottleneck) = conditions.bottleneck {
            let begin = host.free.max(self.now);
            if begin - self.now > bottleneck.queue {
                return;
            }
            // With the headers of IP and UDP.
            let time = (datagram.len() as u64 + 28) * 1_000_000_000 / bottleneck.rate;
            depart = begin + Duration::from_nanos(time);
            host.free = depart;
        }
        if self.rng.u32(0..100) < conditions.lost {
            return;
        }
        let copies = if self.rng.u32(0..100) < conditions.repeated {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let jitter = conditions.jitter.mul_f64(self.rng.f64());
            self.number += 1;
            let arrival = depart + conditions.delay + jitter;
            let key = (arrival, self.number);
            self.under_way.insert(key, (1 - from, datagram.to_vec()));
        }
    }

    fn is_paused(&self, at: usize) -> bool {
        self.hosts[at].paused.is_some_and(|until| until > self.now)
    }

    /// Has a host do what it can now.
    fn run(&mut self, at: usize) {
        if self.is_paused(at) {
            return;
        }
        let (now, peer) = (self.now, self.hosts[1 - at].addr);
        let host = &mut self.hosts[at];
        while let Some(datagram) = host.inbox.pop_front() {
            if let Some(watch) = &mut self.watch {
                watch.on_received(at, &datagram);
            }
            host.endpoint.receive(peer, &datagram, now);
        }
        host.endpoint.advance(now);
        loop {
            let mut out = Vec::new();
            let most = self.rng.usize(1..20);
            let Some(transmit) = self.hosts[at].endpoint.transmit(&mut out, most, now) else {
                break;
            };
            assert_eq!(transmit.to, peer);
            assert!(!out.is_empty());
            let mut is_refused = false;
            for datagram in out.chunks(transmit.stride) {
                let host = &mut self.hosts[at];
                // With one all behind it, as by the driver.
                is_refused |= datagram.len() > host.largest;
                if is_refused {
                    host.endpoint.on_too_large(peer, datagram, now);
                    continue;
                }
                if let Some(watch) = &mut self.watch {
                    watch.on_sent(at, datagram);
                }
                self.send(at, datagram);
            }
        }
        let host = &mut self.hosts[at];
        host.events
            .extend(std::iter::from_fn(|| host.endpoint.poll()));
    }

    /// When the next thing happens, `other` included; `None` if nothing does any more.
    fn next(&self, other: Option<Instant>) -> Option<Instant> {
        let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
        let due = (0..2).map(|at| {
            let host = &self.hosts[at];
            match self.is_paused(at) {
                true => host.paused,
                false => host.endpoint.next_due(),
            }
        });
        due.chain([arrival, other]).flatten().min()
    }

    /// Goes to this time, and has both hosts do what they can.
    fn go_to(&mut self, time: Instant) {
        self.now = self.now.max(time);
        while let Some((key, (to, datagram))) = self.under_way.pop_first() {
            if key.0 > self.now {
                self.under_way.insert(key, (to, datagram));
                break;
            }
            // A host that does nothing loses what its socket has no room for.
            if self.hosts[to].inbox.len() < 150 {
                self.hosts[to].inbox.push_back(datagram);
            }
        }
        (0..2).for_each(|at| self.run(at));
    }

    /// Runs both hosts until `time`.
    fn pass_until(&mut self, time: Instant) {
        self.go_to(self.now);
        while let Some(next) = self.next(None)
            && next <= time
        {
            self.go_to(next);
        }
        self.go_to(time);
    }
}
