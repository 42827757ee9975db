//! Congestion control over a link with a queue.

use std::time::{Duration, Instant};

use super::{Bottleneck, Conditions, Network};
use crate::connection::Read;
use crate::{Config, Handle};

const MS: Duration = Duration::from_millis(1);
/// 16 Mbit/s.
const RATE: u64 = 2_000_000;

/// A connection that sends all the time.
struct Flow {
    network: Network,
    from: Handle,
    to: Option<Handle>,
    received: u64,
}

/// A flow that fills the queue until it loses a packet, as TCP does (RFC 5681).
struct Greedy {
    window: f64,
    in_flight: f64,
    /// When packets are acknowledged, or noticed as lost.
    answers: std::collections::BTreeMap<(Instant, u64), bool>,
    number: u64,
    /// Losses until then belong to the last reduction.
    recovery: Instant,
}

const GREEDY_PACKET: u64 = 1400;

impl Flow {
    fn new(delay: Duration, queue: Duration) -> Self {
        let mut there = Conditions::clean(delay);
        there.bottleneck = Some(Bottleneck { rate: RATE, queue });
        let conditions = [there, Conditions::clean(delay)];
        let mut network = Network::new(conditions, Config::default(), 1);
        network.watch_nothing();
        let (now, peer) = (network.now, network.hosts[1].addr);
        let from = network.hosts[0].endpoint.connect(peer, now).unwrap();
        Self {
            network,
            from,
            to: None,
            received: 0,
        }
    }

    /// How long a packet waits in the queue now.
    fn queue(&self) -> Duration {
        self.network.hosts[0]
            .free
            .saturating_duration_since(self.network.now)
    }

    fn step(&mut self, time: Instant) {
        self.network.pass_until(time);
        let now = self.network.now;
        let [sender, receiver] = &mut self.network.hosts;
        // Refused only before it is connected.
        let _ = sender.endpoint.write(self.from, &[0; 100_000], now);
        self.to = self
            .to
            .or_else(|| receiver.endpoint.accept().map(|it| it.0));
        let mut room = vec![0; 100_000];
        while let Some(to) = self.to
            && let Ok(Read::Bytes(length)) = receiver.endpoint.read(to, &mut room, now)
        {
            self.received += length as u64;
        }
        (0..2).for_each(|at| self.network.run(at));
    }

    /// Runs for this time. Returns the share of the link that it got, and the mean wait in the queue.
    fn run(&mut self, time: Duration, mut greedy: Option<&mut Greedy>) -> (f64, Duration) {
        let (begin, before) = (self.network.now, self.received);
        let (mut waits, mut steps) = (Duration::ZERO, 0);
        while self.network.now < begin + time {
            self.step(self.network.now + MS);
            if let Some(greedy) = greedy.as_deref_mut() {
                greedy.step(&mut self.network);
            }
            waits += self.queue();
            steps += 1;
        }
        let share = (self.received - before) as f64 / time.as_secs_f64() / RATE as f64;
        (share, waits / steps)
    }
}

impl Greedy {
    fn new(now: Instant) -> Self {
        Self {
            // As slow start leaves it.
            window: 400.0,
            in_flight: 0.0,
            answers: std::collections::BTreeMap::new(),
            number: 0,
            recovery: now,
        }
    }

    fn step(&mut self, network: &mut Network) {
        let now = network.now;
        while let Some((key, arrived)) = self.answers.pop_first() {
            if key.0 > now {
                self.answers.insert(key, arrived);
                break;
            }
            self.in_flight -= 1.0;
            if arrived {
                self.window += 1.0 / self.window;
            } else if key.0 > self.recovery {
                self.window = (self.window / 2.0).max(2.0);
                self.recovery = now + MS * 300;
            }
        }
        let host = &mut network.hosts[0];
        let bottleneck = host.conditions.bottleneck.unwrap();
        while self.in_flight + 1.0 <= self.window {
            let begin = host.free.max(now);
            let arrives = begin - now <= bottleneck.queue;
            if arrives {
                let time = GREEDY_PACKET * 1_000_000_000 / bottleneck.rate;
                host.free = begin + Duration::from_nanos(time);
            }
            self.number += 1;
            let answer = host.free.max(now) + host.conditions.delay * 2;
            self.answers.insert((answer, self.number), arrives);
            self.in_flight += 1.0;
        }
    }
}

#[test]
fn a_flow_alone_fills_the_link_and_keeps_the_queue_near_the_target() {
    for delay in [5, 25, 75] {
        let mut flow = Flow::new(MS * delay, MS * 1000);
        flow.run(MS * 20_000, None);
        let (share, wait) = flow.run(MS * 30_000, None);
        assert!(share > 0.93, "{delay} ms: {share}");
        assert!((MS * 60..MS * 140).contains(&wait), "{delay} ms: {wait:?}");
    }
}

#[test]
fn a_flow_fills_a_link_with_a_short_queue() {
    let mut flow = Flow::new(MS * 20, MS * 40);
    flow.run(MS * 10_000, None);
    let (share, wait) = flow.run(MS * 30_000, None);
    assert!(share > 0.75, "{share}");
    assert!(wait <= MS * 40, "{wait:?}");
}

#[test]
fn a_flow_gives_way_to_one_that_fills_the_queue_and_comes_back() {
    let mut flow = Flow::new(MS * 20, MS * 400);
    flow.run(MS * 10_000, None);
    let mut greedy = Greedy::new(flow.network.now);
    // Three packets less in a round trip take their time.
    flow.run(MS * 40_000, Some(&mut greedy));
    let (share, wait) = flow.run(MS * 30_000, Some(&mut greedy));
    assert!(share < 0.1, "{share}");
    assert!(wait > MS * 150, "{wait:?}");
    drop(greedy);
    flow.run(MS * 10_000, None);
    let (share, _) = flow.run(MS * 20_000, None);
    assert!(share > 0.85, "{share}");
}
