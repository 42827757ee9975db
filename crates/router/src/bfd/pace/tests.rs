#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

use proptest::prelude::*;

use super::super::packet::Control;
use super::super::session::Session;
use super::*;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Two sessions at the ends of a link that delays what it carries.
struct Link {
    ends: [Session; 2],
    now: Instant,
    delay: Duration,
    /// Of a hundred BFD packets, how many are lost.
    loss: u8,
    random: fastrand::Rng,
    in_flight: Vec<(Instant, usize, Control)>,
    last_use: [Option<Instant>; 2],
    sent: usize,
}

impl Link {
    fn new(delay: Duration, seed: u64) -> Self {
        let now = Instant::now();
        Self {
            ends: [1, 2].map(|end| Session::new(Bfd::default(), seed ^ end, now)),
            now,
            delay,
            loss: 0,
            random: fastrand::Rng::with_seed(seed),
            in_flight: Vec::new(),
            last_use: [None; 2],
            sent: 0,
        }
    }

    /// One millisecond.
    fn step(&mut self) {
        self.now += MS;
        let arrived = self.in_flight.extract_if(.., |(at, ..)| *at <= self.now);
        for (_, to, packet) in arrived.collect::<Vec<_>>() {
            self.ends[to].receive(&packet, self.now);
        }
        for end in [0, 1] {
            let session = &mut self.ends[end];
            session.observe(self.last_use[end], self.now);
            session.expire(self.now, None);
            if session.must_send(self.now) {
                let packet = session.take(self.now).unwrap();
                assert!(!(packet.poll && packet.last));
                self.sent += 1;
                if self.random.u8(0..100) >= self.loss {
                    let at = self.now + self.delay;
                    self.in_flight.push((at, 1 - end, packet));
                }
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// A packet crosses the link.
    fn carry(&mut self) {
        self.last_use = [Some(self.now), Some(self.now + self.delay)];
    }

    fn up(&self) -> [bool; 2] {
        self.ends.each_ref().map(Session::is_up)
    }

    fn resting(&self) -> [bool; 2] {
        self.ends.each_ref().map(Session::is_resting)
    }

    /// Packets of both ends in a second.
    fn rate(&mut self) -> usize {
        let before = self.sent;
        self.run(20 * SECOND);
        (self.sent - before) / 20
    }
}

#[test]
fn a_link_that_carries_nothing_comes_to_rest() {
    let mut link = Link::new(20 * MS, 1);
    link.run(SECOND);
    assert!(link.rate() >= 10);
    link.run(20 * SECOND);
    assert_eq!(link.resting(), [true; 2]);
    assert!(link.rate() <= 3);
    assert_eq!(link.up(), [true; 2]);
}

#[test]
fn the_first_packet_that_crosses_wakes_it() {
    let mut link = Link::new(20 * MS, 2);
    link.run(60 * SECOND);
    assert_eq!(link.resting(), [true; 2]);
    link.carry();
    link.run(SECOND);
    assert_eq!((link.resting(), link.up()), ([false; 2], [true; 2]));
    // As soon as before: both ends are down before three intervals of 200 ms have passed.
    link.loss = 100;
    link.run(650 * MS);
    assert_eq!(link.up(), [false; 2]);
}

#[test]
fn a_failure_at_rest_is_detected() {
    let mut link = Link::new(20 * MS, 3);
    link.run(60 * SECOND);
    link.loss = 100;
    link.run(3100 * MS);
    assert_eq!(link.up(), [false; 2]);
    link.loss = 0;
    link.run(2 * SECOND);
    assert_eq!((link.resting(), link.up()), ([false; 2], [true; 2]));
}

#[test]
fn a_link_in_use_never_rests() {
    let mut link = Link::new(20 * MS, 4);
    for _ in 0..20 {
        link.run(10 * SECOND);
        link.carry();
        assert_eq!(link.resting(), [false; 2]);
    }
}

#[test]
fn slow_or_short_sighted_sessions_keep_their_intervals() {
    let now = Instant::now();
    let later = now + 100 * SECOND;
    let slow = Bfd {
        desired_min_tx: 2 * SECOND,
        required_min_rx: 2 * SECOND,
        ..Bfd::default()
    };
    let short = Bfd {
        detect_mult: 1,
        ..Bfd::default()
    };
    for config in [slow, short] {
        let mut pace = Pace::new(config, now);
        assert!(!pace.observe(None, later));
        assert_eq!(pace.desired_min_tx(), config.desired_min_tx);
    }
}

#[test]
fn a_neighbour_that_never_answers_keeps_the_configured_intervals() {
    let now = Instant::now();
    let mut pace = Pace::new(Bfd::default(), now);
    let later = now + 100 * SECOND;
    assert!(pace.observe(None, later));
    let polls = (0..3 * MAX_PACKETS).filter(|_| pace.on_sent()).count();
    assert!((20..=22).contains(&polls), "{polls}");
    assert!(!pace.observe(None, later + 100 * SECOND));
    assert_eq!(pace.expected_rx(), Bfd::default().required_min_rx);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever crosses the link when, and however long it takes, no end loses the other.
    #[test]
    fn changes_of_pace_take_no_link_down(
        seed: u64,
        delay in 0u64..400,
        pauses in proptest::collection::vec(0u64..70_000, 1..6),
    ) {
        let mut link = Link::new(Duration::from_millis(delay), seed);
        link.run(5 * SECOND);
        prop_assert_eq!(link.up(), [true; 2]);
        for pause in pauses {
            let end = link.now + Duration::from_millis(pause);
            while link.now < end {
                link.step();
                prop_assert_eq!(link.up(), [true; 2]);
            }
            link.carry();
        }
    }

    /// With losses that the configured intervals bear, those of rest, and the change, bear them too.
    #[test]
    fn single_losses_take_no_link_down(seed: u64, pauses in proptest::collection::vec(0u64..70_000, 1..4)) {
        let mut link = Link::new(10 * MS, seed);
        link.run(5 * SECOND);
        for pause in pauses {
            let end = link.now + Duration::from_millis(pause);
            while link.now < end {
                // One packet of at least four is lost, so never two in a row.
                link.loss = if link.sent.is_multiple_of(8) { 100 } else { 0 };
                link.step();
                prop_assert_eq!(link.up(), [true; 2]);
            }
            link.carry();
        }
    }
}
