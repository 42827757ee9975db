//! Restarts of the router at either end of a link, ours and scionproto's in any order.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::*;
use super::reference::Reference;

const MS: Duration = Duration::from_millis(1);
/// Within this time both ends of an undisturbed link come up from any state: scionproto's router
/// sends nothing in its first second, and a session that is down may need the detection time of its
/// slow packets, four seconds with the multipliers used here, to forget a forged one.
const SETTLED: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    Reference,
}

enum Router {
    Ours(Box<Session>),
    Reference(Reference),
}

impl Router {
    fn new(kind: Kind, config: Bfd, seed: u64, now: Instant) -> Self {
        match kind {
            Kind::Ours => Self::Ours(Box::new(Session::new(config, seed, now))),
            Kind::Reference => Self::Reference(Reference::new(config, seed, now)),
        }
    }

    fn is_up(&self) -> bool {
        match self {
            Self::Ours(session) => session.is_up(),
            Self::Reference(reference) => reference.is_up(),
        }
    }

    fn receive(&mut self, packet: &Control, now: Instant) {
        match self {
            Self::Ours(session) => drop(session.receive(packet, now)),
            Self::Reference(reference) => reference.receive(packet, now),
        }
    }

    /// Advances the time to `now`; returns the packet that is due then.
    fn advance(&mut self, now: Instant) -> Option<Control> {
        match self {
            Self::Ours(session) => {
                session.observe(None, now);
                session.expire(now, None);
                session.must_send(now).then(|| session.take(now))?
            }
            Self::Reference(reference) => {
                reference.expire(now);
                reference.send(now)
            }
        }
    }

    fn next_due(&self) -> Instant {
        match self {
            Self::Ours(session) => session.next_due(),
            Self::Reference(reference) => reference.next_due(),
        }
    }
}

/// A link in virtual time. Packets arrive in the order in which they were sent, also those of a
/// router that has ended.
struct Link {
    now: Instant,
    random: fastrand::Rng,
    delay: Duration,
    /// The router at each end; `None` while there is none.
    ends: [Option<Router>; 2],
    /// The packets in flight to each end, and their times of arrival.
    queues: [VecDeque<(Instant, Control)>; 2],
    /// The percentage of packets to each end that is lost.
    loss: [u8; 2],
}

impl Link {
    fn new(delay: Duration, seed: u64) -> Self {
        Self {
            now: Instant::now(),
            random: fastrand::Rng::with_seed(seed),
            delay,
            ends: [None, None],
            queues: Default::default(),
            loss: [0, 0],
        }
    }

    fn start(&mut self, end: usize, kind: Kind, config: Bfd) {
        let seed = self.random.u64(..);
        self.ends[end] = Some(Router::new(kind, config, seed, self.now));
    }

    fn run(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Advances the time by `time`, or until `condition` is met; returns the time that has passed.
    fn run_until(&mut self, time: Duration, condition: impl Fn(&Self) -> bool) -> Duration {
        let start = self.now;
        let mut turns = 0;
        while !condition(self) {
            let routers = self.ends.iter().flatten().map(Router::next_due);
            let queues = self
                .queues
                .iter()
                .filter_map(|queue| Some(queue.front()?.0));
            let due = routers.chain(queues).min().unwrap_or(start + time);
            if due > start + time {
                self.now = start + time;
                break;
            }
            turns = if due > self.now { 0 } else { turns + 1 };
            assert!(turns < 100, "the routers answer each other without end");
            self.now = self.now.max(due);
            self.turn();
        }
        self.now - start
    }

    /// Processes all events of the current time.
    fn turn(&mut self) {
        for end in [0, 1] {
            while self.queues[end]
                .front()
                .is_some_and(|(at, _)| *at <= self.now)
            {
                if let (Some((_, packet)), Some(router)) =
                    (self.queues[end].pop_front(), &mut self.ends[end])
                {
                    router.receive(&packet, self.now);
                }
            }
            let Some(packet) = self.ends[end]
                .as_mut()
                .and_then(|end| end.advance(self.now))
            else {
                continue;
            };
            let packet = Control::parse(&packet.to_bytes()).unwrap();
            if self.random.u8(..100) >= self.loss[1 - end] {
                self.queues[1 - end].push_back((self.now + self.delay, packet));
            }
        }
    }

    fn is_up(&self) -> bool {
        let mut ends = self.ends.iter();
        ends.all(|end| end.as_ref().is_some_and(Router::is_up))
    }
}

#[test]
fn a_router_restarted_within_the_detection_time_comes_up() {
    use Kind::{Ours, Reference};
    for neighbour in [Ours, Reference] {
        for (before, after) in [
            (Ours, Ours),
            (Reference, Ours),
            (Ours, Reference),
            (Reference, Reference),
        ] {
            let mut link = Link::new(10 * MS, 1);
            link.start(0, neighbour, Bfd::default());
            link.start(1, before, Bfd::default());
            link.run(SETTLED);
            assert!(link.is_up());
            link.ends[1] = None;
            link.run(100 * MS);
            link.start(1, after, Bfd::default());
            link.run(50 * MS);
            let took = link.run_until(SETTLED, Link::is_up);
            // Three slow intervals are less than the detection time of a session that is down.
            let order = format!("{before:?}, then {after:?}, beside {neighbour:?}: {took:?}");
            assert!(link.is_up() && took < 3 * MIN_DOWN_INTERVAL, "{order}");
            assert_eq!(
                link.run_until(SETTLED, |link| !link.is_up()),
                SETTLED,
                "{order}"
            );
        }
    }
}

/// scionproto's router restarts its interval when it leaves Down: up to two intervals pass
/// between its packets.
#[test]
fn a_neighbour_with_a_multiplier_of_one_stays_up() {
    let config = Bfd {
        detect_mult: 1,
        ..Bfd::default()
    };
    let mut link = Link::new(50 * MS, 3);
    link.start(0, Kind::Reference, config);
    link.start(1, Kind::Ours, config);
    link.run(SETTLED);
    assert!(link.is_up());
    link.start(1, Kind::Ours, config);
    link.run(SETTLED);
    assert!(link.is_up());
    assert_eq!(link.run_until(SETTLED, |link| !link.is_up()), SETTLED);
}

/// The neighbour received packets of the previous router, but not of this one: the link carries
/// packets in one direction only.
#[test]
fn a_one_way_link_does_not_come_up_after_a_restart() {
    for kept in [100 * MS, 1200 * MS, 3000 * MS] {
        let mut link = Link::new(10 * MS, 2);
        link.start(0, Kind::Reference, Bfd::default());
        link.start(1, Kind::Ours, Bfd::default());
        link.run(kept);
        link.loss[0] = 100;
        link.queues[0].clear();
        link.start(1, Kind::Ours, Bfd::default());
        let is_up = |link: &Link| link.ends[1].as_ref().is_some_and(Router::is_up);
        assert_eq!(link.run_until(SETTLED, is_up), SETTLED, "{kept:?}");
        link.loss[0] = 0;
        link.run(SETTLED);
        assert!(link.is_up());
    }
}

/// An event on a link.
#[derive(Debug, Clone)]
enum Event {
    /// The router at an end stops, if there is one, and another starts after a pause.
    Replace(usize, Kind, Duration, Bfd),
    /// The loss of packets to an end changes to this percentage.
    Lose(usize, u8),
    /// A forged packet arrives at an end.
    Forge(usize, Control),
}

fn config() -> impl Strategy<Value = Bfd> {
    (1u8..5, 20u64..400, 20u64..400).prop_map(|(detect_mult, tx, rx)| Bfd {
        disable: false,
        detect_mult,
        desired_min_tx: Duration::from_millis(tx),
        required_min_rx: Duration::from_millis(rx),
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Ours), Just(Kind::Reference)]
}

fn control() -> impl Strategy<Value = Control> {
    let state = prop_oneof![
        Just(SessionState::Down),
        Just(SessionState::Init),
        Just(SessionState::Up)
    ];
    (state, 1u8..5, 1u32.., 1u32.., 0u64..400, 0u64..400).prop_map(
        |(state, detect_mult, mine, yours, tx, rx)| Control {
            diagnostic: 0,
            state,
            poll: false,
            last: false,
            detect_mult,
            mine,
            yours,
            desired_min_tx: Duration::from_millis(tx),
            required_min_rx: Duration::from_millis(rx),
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let pause = (0u64..1500).prop_map(Duration::from_millis);
    prop_oneof![
        5 => (0..2usize, kind(), pause, config())
            .prop_map(|(end, kind, pause, config)| Event::Replace(end, kind, pause, config)),
        1 => (0..2usize, 0u8..=100).prop_map(|(end, share)| Event::Lose(end, share)),
        1 => (0..2usize, control()).prop_map(|(end, packet)| Event::Forge(end, packet)),
    ]
}

proptest! {
    /// After any events, a link that is then undisturbed comes up and stays up.
    #[test]
    fn a_link_comes_up_after_any_restarts(
        seed: u64,
        delay in 0u64..300,
        first in [(kind(), config()), (kind(), config())],
        events in proptest::collection::vec((0u64..5000, event()), 0..8),
    ) {
        let mut link = Link::new(Duration::from_millis(delay), seed);
        for (end, (kind, config)) in first.into_iter().enumerate() {
            link.start(end, kind, config);
        }
        for (pause, event) in events {
            link.run(Duration::from_millis(pause));
            match event {
                Event::Replace(end, kind, pause, config) => {
                    link.ends[end] = None;
                    link.run(pause);
                    link.start(end, kind, config);
                }
                Event::Lose(end, share) => link.loss[end] = share,
                Event::Forge(end, packet) => {
                    if let Some(router) = &mut link.ends[end] {
                        router.receive(&packet, link.now);
                    }
                }
            }
        }
        // Links between two scionproto routers are not tested: with a detection multiplier of 1
        // their sessions may flap.
        if link.ends.iter().flatten().all(|end| matches!(end, Router::Reference(_))) {
            return Ok(());
        }
        link.loss = [0, 0];
        link.run(SETTLED);
        prop_assert!(link.is_up());
        // As nothing crosses it, it comes to rest meanwhile, beside scionproto's router in vain.
        prop_assert_eq!(link.run_until(6 * SETTLED, |link| !link.is_up()), 6 * SETTLED);
    }
}
