//! Connections with random users over random networks.

use std::time::{Duration, Instant};

use fastrand::Rng;
use proptest::prelude::*;

use super::watch::Watch;
use super::{Conditions, Network};
use crate::connection::Read;
use crate::{CloseReason, Config, Event, Handle};

const MS: Duration = Duration::from_millis(1);
/// Longest time that any of these transfers may take: far more than it does.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A user of one end of a connection: it does what it can, naps at times, and waits for an event when it can do
/// nothing.
struct User {
    handle: Handle,
    output: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    expected: Vec<u8>,
    wake: Option<Instant>,
    has_finished: bool,
    has_read_end: bool,
}

impl User {
    fn new(handle: Handle, output: Vec<u8>, expected: Vec<u8>, now: Instant) -> Self {
        Self {
            handle,
            output,
            written: 0,
            input: Vec::new(),
            expected,
            wake: Some(now),
            has_finished: false,
            has_read_end: false,
        }
    }

    fn is_done(&self) -> bool {
        self.has_finished && self.has_read_end
    }

    fn act(&mut self, network: &mut Network, at: usize) {
        if network.is_paused(at) || self.wake.is_none_or(|wake| wake > network.now) {
            return;
        }
        self.wake = None;
        let now = network.now;
        let endpoint = &mut network.hosts[at].endpoint;
        if !endpoint.is_connected(self.handle) {
            assert_eq!(endpoint.closed(self.handle), None);
            return;
        }
        for _ in 0..network.rng.usize(1..10) {
            let mut is_blocked = true;
            if !self.has_read_end {
                let mut room = vec![0; network.rng.usize(1..30_000)];
                match endpoint.read(self.handle, &mut room, now).unwrap() {
                    Read::Bytes(length) => {
                        self.input.extend(&room[..length]);
                        assert!(self.expected.starts_with(&self.input), "the stream differs");
                        is_blocked = false;
                    }
                    Read::End => {
                        assert_eq!(self.input.len(), self.expected.len(), "an early end");
                        self.has_read_end = true;
                    }
                    Read::Blocked => {}
                }
            }
            let rest = &self.output[self.written..];
            if rest.is_empty() && !self.has_finished {
                endpoint.finish(self.handle, now);
                self.has_finished = true;
            } else if !rest.is_empty() {
                let some = &rest[..rest.len().min(network.rng.usize(1..30_000))];
                let length = endpoint.write(self.handle, some, now).unwrap();
                self.written += length;
                is_blocked &= length == 0;
            }
            if is_blocked {
                return;
            }
        }
        let nap = match network.rng.u32(0..10) {
            0 => MS * network.rng.u32(0..3000),
            _ => MS * network.rng.u32(0..20),
        };
        self.wake = Some(now + nap);
    }
}

/// Wakes the user of an event; a nap lasts as long as it was meant to.
fn wake(user: &mut User, event: Event, now: Instant) {
    match event {
        Event::Readable(handle) | Event::Writable(handle) if handle == user.handle => {
            user.wake.get_or_insert(now);
        }
        _ => {}
    }
}

fn random_bytes(rng: &mut Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    bytes
}

#[derive(Debug, Clone)]
struct Case {
    conditions: [Conditions; 2],
    lengths: [usize; 2],
    receive_buffer: usize,
    send_buffer: usize,
    /// How many of a thousand steps make a host pause.
    pauses: u32,
    seed: u64,
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let chances = (
        prop_oneof![Just(0), 0..25u32],
        prop_oneof![Just(0), 0..25u32],
    );
    (chances, 0..200u32, prop_oneof![Just(0), 0..150u32]).prop_map(
        |((lost, repeated), delay, jitter)| Conditions {
            lost,
            repeated,
            delay: MS * delay,
            jitter: MS * jitter,
            bottleneck: None,
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let length = prop_oneof![Just(0), 0..3000usize, 0..600_000usize];
    let conditions = [conditions(), conditions()];
    let buffers = (3000..200_000usize, 1000..200_000usize);
    (
        conditions,
        [length.clone(), length],
        buffers,
        0..3u32,
        any::<u64>(),
    )
        .prop_map(
            |(conditions, lengths, (receive_buffer, send_buffer), pauses, seed)| Case {
                conditions,
                lengths,
                receive_buffer,
                send_buffer,
                pauses,
                seed,
            },
        )
}

/// Runs one connection to its end.
fn transfer(case: &Case) {
    let config = Config {
        receive_buffer: case.receive_buffer,
        send_buffer: case.send_buffer,
        ..Config::default()
    };
    let mut network = Network::new(case.conditions, config, case.seed);
    let end = network.now + PATIENCE;
    let [first, second] = case
        .lengths
        .map(|length| random_bytes(&mut network.rng, length));
    let peer = network.hosts[1].addr;
    let handle = network.hosts[0]
        .endpoint
        .connect(peer, network.now)
        .unwrap();
    let now = network.now;
    let mut users = [
        Some(User::new(handle, first.clone(), second.clone(), now)),
        None,
    ];
    let mut attempts = 1;
    loop {
        network.go_to(network.now);
        for (at, user) in users.iter_mut().enumerate() {
            while let Some(event) = network.hosts[at].events.pop_front() {
                if event == Event::Incoming
                    && let Some((handle, _)) = network.hosts[at].endpoint.accept()
                {
                    *user = Some(User::new(
                        handle,
                        second.clone(),
                        first.clone(),
                        network.now,
                    ));
                }
                if let Some(user) = user {
                    wake(user, event, network.now);
                }
            }
        }
        // A network that loses a quarter may lose each SYN, or each answer.
        let first = users[0].as_mut().unwrap();
        let [here, there] = &mut network.hosts;
        let is_new = first.written == 0 && first.input.is_empty();
        if is_new && here.endpoint.closed(first.handle) == Some(CloseReason::TimedOut) {
            attempts += 1;
            assert!(attempts < 10 && case.conditions.iter().any(|it| it.lost > 0));
            here.endpoint.close(first.handle, network.now);
            first.handle = here.endpoint.connect(peer, network.now).unwrap();
            if let Some(accepted) = users[1].take() {
                there.endpoint.close(accepted.handle, network.now);
            }
            network.watch = Some(Watch::default());
        }
        for (at, user) in users.iter_mut().enumerate() {
            if let Some(user) = user {
                user.act(&mut network, at);
            }
            network.run(at);
            let (kept, _) = network.hosts[at].endpoint.kept();
            let most = case.send_buffer + 2 * case.receive_buffer + 1400;
            assert!(kept <= most, "{kept} of {most}");
        }
        if network.rng.u32(0..1000) < case.pauses {
            let (at, pause) = (network.rng.usize(0..2), MS * network.rng.u32(0..5000));
            network.hosts[at].paused = Some(network.now + pause);
        }
        if network.hosts.iter().any(|host| !host.events.is_empty()) {
            continue;
        }
        if users
            .iter()
            .all(|user| user.as_ref().is_some_and(User::is_done))
        {
            break;
        }
        let wakes = users.iter().flatten().filter_map(|user| user.wake);
        // A host that is paused wakes nobody.
        let wakes = wakes.min().map(|wake| wake.max(network.now + MS / 10));
        let next = network.next(wakes).expect("a transfer hangs");
        assert!(next < end, "a transfer does not end");
        network.now = network.now.max(next);
    }
    let now = network.now;
    for (at, user) in users.iter().flatten().enumerate() {
        assert_eq!(user.input, user.expected);
        network.hosts[at].endpoint.close(user.handle, now);
    }
    // Nothing is left.
    network.pass_until(now + Duration::from_secs(90));
    for host in &network.hosts {
        assert_eq!(host.endpoint.kept(), (0, 0));
        assert_eq!(host.endpoint.next_due(), None);
    }
    assert!(network.under_way.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever the network loses, repeats, delays and reorders, and however long hosts pause: each side reads
    /// what the other wrote, to its end, and nothing remains.
    #[test]
    fn streams_are_exact_over_any_network(case in case()) {
        transfer(&case);
    }
}

/// What was written arrives although the connection is closed right after it.
#[test]
fn what_was_written_arrives_after_the_connection_is_closed() {
    for seed in 0..40 {
        let mut lossy = Conditions::clean(MS * 20);
        lossy.lost = 5;
        let mut network = Network::new([lossy; 2], Config::default(), seed);
        let (now, peer) = (network.now, network.hosts[1].addr);
        let handle = network.hosts[0].endpoint.connect(peer, now).unwrap();
        network.pass_until(now + MS * 8000);
        let bytes = random_bytes(&mut network.rng, 200_000);
        let now = network.now;
        let endpoint = &mut network.hosts[0].endpoint;
        assert_eq!(endpoint.write(handle, &bytes, now), Ok(bytes.len()));
        endpoint.close(handle, now);
        assert_eq!(
            endpoint.write(handle, b"more", now),
            Err(CloseReason::Closed)
        );
        network.pass_until(now + MS * 29_000);
        let endpoint = &mut network.hosts[1].endpoint;
        let (accepted, _) = endpoint.accept().unwrap();
        let mut input = vec![0; bytes.len() + 1];
        let now = network.now;
        assert_eq!(
            endpoint.read(accepted, &mut input, now),
            Ok(Read::Bytes(bytes.len()))
        );
        assert!(input.starts_with(&bytes));
        assert_eq!(endpoint.read(accepted, &mut input, now), Ok(Read::End));
    }
}

/// Many connections in both directions at once, each with its own bytes.
#[test]
fn connections_of_two_hosts_do_not_mix() {
    let mut lossy = Conditions::clean(MS * 10);
    (lossy.lost, lossy.repeated, lossy.jitter) = (3, 3, MS * 20);
    let mut network = Network::new([lossy; 2], Config::default(), 7);
    network.watch_nothing();
    let addrs = [network.hosts[0].addr, network.hosts[1].addr];
    let now = network.now;
    let mut opened = Vec::new();
    for at in 0..2 {
        for _ in 0..30 {
            let handle = network.hosts[at]
                .endpoint
                .connect(addrs[1 - at], now)
                .unwrap();
            opened.push((at, handle));
        }
    }
    network.pass_until(now + MS * 12_000);
    let now = network.now;
    for (number, (at, handle)) in opened.iter().enumerate() {
        let endpoint = &mut network.hosts[*at].endpoint;
        let bytes = vec![number as u8; 20_000 + number];
        assert_eq!(endpoint.write(*handle, &bytes, now), Ok(bytes.len()));
        endpoint.close(*handle, now);
    }
    network.pass_until(now + MS * 29_000);
    let now = network.now;
    let mut seen = Vec::new();
    for at in 0..2 {
        let endpoint = &mut network.hosts[at].endpoint;
        while let Some((handle, from)) = endpoint.accept() {
            assert_eq!(from, addrs[1 - at]);
            let mut input = vec![0; 40_000];
            let Ok(Read::Bytes(length)) = endpoint.read(handle, &mut input, now) else {
                panic!("nothing to read");
            };
            let number = input[0];
            assert_eq!(length, 20_000 + usize::from(number));
            assert!(input[..length].iter().all(|it| *it == number));
            assert_eq!(endpoint.read(handle, &mut input, now), Ok(Read::End));
            seen.push(number);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..60).collect::<Vec<u8>>());
}
