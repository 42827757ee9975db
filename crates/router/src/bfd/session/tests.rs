#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod reference;
mod restarts;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// Two neighbours and the link between them.
struct Pair {
    ends: [Session; 2],
    now: Instant,
    /// Whether packets from an end arrive.
    passes: [bool; 2],
}

impl Pair {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            ends: [1, 2].map(|seed| Session::new(Bfd::default(), seed, now)),
            now,
            passes: [true; 2],
        }
    }

    /// Advances the time by `time` in steps of a millisecond.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += MS;
            for from in [0, 1] {
                self.ends[from].expire(self.now, None);
                if self.ends[from].must_send(self.now) {
                    let packet = self.ends[from].take(self.now).unwrap();
                    let packet = Control::parse(&packet.to_bytes()).unwrap();
                    if self.passes[from] {
                        self.ends[1 - from].receive(&packet, self.now);
                    }
                }
            }
        }
    }

    fn up(&self) -> [bool; 2] {
        [self.ends[0].is_up(), self.ends[1].is_up()]
    }
}

#[test]
fn both_ends_come_up_as_soon_as_they_receive_packets() {
    let mut pair = Pair::new();
    pair.run(5 * MS);
    assert_eq!(pair.up(), [true, true]);
}

#[test]
fn both_ends_detect_a_cut_in_either_direction() {
    for passes in [[false, false], [true, false], [false, true]] {
        let mut pair = Pair::new();
        pair.run(1000 * MS);
        assert_eq!(pair.up(), [true, true]);
        pair.passes = passes;
        pair.run(620 * MS);
        assert_eq!(pair.up(), [false, false], "{passes:?}");
        pair.passes = [true; 2];
        pair.run(1100 * MS);
        assert_eq!(pair.up(), [true, true]);
    }
}

#[test]
fn a_restarted_neighbour_comes_up_again() {
    let mut pair = Pair::new();
    pair.run(1000 * MS);
    pair.ends[1] = Session::new(Bfd::default(), 77, pair.now);
    pair.run(5 * MS);
    assert_eq!(pair.up(), [true, true]);
}

#[test]
fn packets_are_no_more_frequent_than_the_neighbour_accepts() {
    let mut pair = Pair::new();
    let config = Bfd {
        required_min_rx: 500 * MS,
        ..Bfd::default()
    };
    pair.ends[1].pace = Pace::new(config, pair.now);
    pair.run(1000 * MS);
    let (mut sent, end) = (0, pair.now + 10_000 * MS);
    while pair.now < end {
        let before = pair.ends[0].sent;
        pair.run(MS);
        sent += usize::from(pair.ends[0].sent != before);
    }
    // Between 75 and 100 % of 500 ms.
    assert!((20..=27).contains(&sent), "{sent}");
    assert_eq!(pair.up(), [true, true]);
}

#[test]
fn other_packets_keep_the_session_up() {
    let mut pair = Pair::new();
    pair.run(1000 * MS);
    let session = &mut pair.ends[0];
    let late = pair.now + 5000 * MS;
    assert!(!session.expire(late, Some(late - 100 * MS)));
    assert!(session.is_up());
    assert!(!session.expire(late + 499 * MS, Some(late - 100 * MS)));
    assert!(session.expire(late + 501 * MS, Some(late - 100 * MS)));
    assert!(!session.is_up());
}

#[test]
fn a_neighbour_in_admin_down_takes_the_session_down() {
    let mut pair = Pair::new();
    pair.run(1000 * MS);
    let mut packet = pair.ends[1].take(pair.now + 1000 * MS).unwrap();
    packet.state = SessionState::AdminDown;
    assert!(pair.ends[0].receive(&packet, pair.now));
    assert!(!pair.ends[0].is_up());
    let packet = pair.ends[0].take(pair.now).unwrap();
    assert_eq!(
        (packet.state, packet.diagnostic),
        (SessionState::Down, NEIGHBOUR_DOWN)
    );
}

#[test]
fn packets_for_another_session_are_ignored() {
    let mut pair = Pair::new();
    pair.run(1000 * MS);
    let mut packet = pair.ends[1].take(pair.now + 1000 * MS).unwrap();
    packet.state = SessionState::Down;
    packet.yours ^= 1;
    assert!(!pair.ends[0].receive(&packet, pair.now));
    assert!(pair.ends[0].is_up());
}

#[test]
fn a_shorter_interval_of_the_neighbour_takes_effect_at_once() {
    let mut pair = Pair::new();
    let mut packet = Control {
        required_min_rx: 4_000_000 * MS,
        ..pair.ends[1].take(pair.now).unwrap()
    };
    let session = &mut pair.ends[0];
    session.receive(&packet, pair.now);
    session.take(pair.now).unwrap();
    let later = pair.now + 1000 * MS;
    assert!(!session.must_send(later));
    packet.required_min_rx = 200 * MS;
    session.receive(&packet, later);
    assert!(session.must_send(later));
}

#[test]
fn the_detection_time_is_bounded() {
    let mut pair = Pair::new();
    pair.run(1000 * MS);
    let mut packet = pair.ends[1].take(pair.now + 1000 * MS).unwrap();
    (packet.detect_mult, packet.desired_min_tx) = (255, 4_000_000 * MS);
    pair.ends[0].receive(&packet, pair.now);
    assert!(pair.ends[0].expire(pair.now + LONGEST_DETECTION, None));
    assert!(!pair.ends[0].is_up());
}

#[test]
fn a_poll_is_answered_at_once_and_once() {
    let mut pair = Pair::new();
    pair.run(1000 * MS);
    let packet = Control {
        poll: true,
        ..pair.ends[1].take(pair.now + 1000 * MS).unwrap()
    };
    pair.ends[0].receive(&packet, pair.now);
    assert!(pair.ends[0].must_send(pair.now));
    assert!(pair.ends[0].take(pair.now).unwrap().last);
    assert!(!pair.ends[0].take(pair.now + 1000 * MS).unwrap().last);
}

proptest! {
    /// No sequence of packets makes the session stop sending or send too often.
    #[test]
    fn sessions_keep_sending_at_a_bounded_rate(
        packets in proptest::collection::vec((any::<[u8; 24]>(), 0u64..1000), 0..50),
    ) {
        let mut now = Instant::now();
        let mut session = Session::new(Bfd::default(), 3, now);
        for (bytes, pause) in packets {
            if let Some(packet) = Control::parse(&bytes) {
                session.receive(&packet, now);
            }
            now += Duration::from_millis(pause);
            session.expire(now, None);
            if session.must_send(now) {
                prop_assert!(session.take(now).is_some());
                prop_assert!(session.send_at(EARLIEST) > now);
            }
            prop_assert!(session.send_at(session.jitter) >= session.send_at(EARLIEST));
        }
    }
}
