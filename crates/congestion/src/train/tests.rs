//! What trains show on a link without other traffic.

use proptest::prelude::*;

use super::*;

const PACKET: u64 = 1300;

/// Packets of a train over a link, as its receiver acknowledges them.
struct Link {
    /// Bytes per second.
    rate: f64,
    rtt: Duration,
    /// The interval of acknowledgements.
    acks: Duration,
    /// The part of the packets that is lost at random, and what determines which.
    loss: f64,
    seed: u64,
}

impl Link {
    /// The first flight of ten packets is acknowledged, which were paced.
    fn seen(&self) -> Seen {
        let step = self.rtt / 10;
        Seen {
            now: Instant::now(),
            delivered: 10 * PACKET,
            lost: 0,
            in_flight: 0,
            acked: PACKET,
            prior: 0,
            rtt: self.rtt,
            min_rtt: self.rtt,
            window: 10 * PACKET,
            packet: PACKET,
            app_limited: false,
            spread: Duration::ZERO,
            lump: step * (self.acks.as_micros() / step.as_micros()) as u32,
        }
    }

    /// Sends `train` and acknowledges it until it is judged.
    fn cross(&self, train: &mut Train, seen: &mut Seen) -> Verdict {
        let start = seen.now;
        let seconds = Duration::from_secs_f64;
        let mut free = start;
        // When packets have arrived, and were sent.
        let mut arrived = Vec::new();
        let mut random = fastrand::Rng::with_seed(self.seed ^ train.bytes());
        for at in 0..train.bytes().div_ceil(PACKET) {
            let sent = start + seconds((at * PACKET) as f64 / train.rate());
            free = free.max(sent) + seconds(PACKET as f64 / self.rate);
            let is_lost = random.f64() < self.loss;
            arrived.push((free, sent, is_lost));
        }
        seen.prior = seen.delivered;
        let mut packets = arrived.into_iter().peekable();
        while let Some((first, oldest, _)) = packets.peek().copied() {
            let until = first + self.acks;
            let before = seen.delivered;
            while let Some((_, sent, is_lost)) = packets.next_if(|(at, _, _)| *at <= until) {
                match is_lost {
                    true => seen.lost += PACKET,
                    false => seen.delivered += PACKET,
                }
                seen.rtt = self.rtt + (until - sent);
                seen.spread = sent - oldest;
            }
            seen.lump = seen.lump.max(seen.spread);
            seen.acked = seen.delivered - before;
            seen.now = until + self.rtt;
            match train.acked(seen) {
                Verdict::Waits => {}
                verdict => return verdict,
            }
        }
        panic!("not judged: {train:?}");
    }

    /// Sends trains until one shows what the link carries, or nothing; with their bytes.
    fn find(&self) -> (Verdict, Vec<u64>) {
        let mut seen = self.seen();
        let mut next = Train::first(&seen, None).unwrap();
        let mut trains = Vec::new();
        loop {
            trains.push(next.bytes());
            match self.cross(&mut next, &mut seen) {
                Verdict::Next(faster) => next = faster,
                verdict => return (verdict, trains),
            }
        }
    }
}

fn link(mbit: f64, rtt: u64, acks: u64) -> Link {
    Link {
        rate: mbit * 125e3,
        rtt: Duration::from_millis(rtt),
        acks: Duration::from_micros(acks),
        loss: 0.0,
        seed: 0,
    }
}

#[test]
fn trains_become_faster_until_one_is_slowed_down() {
    for mbit in [20.0, 100.0, 1000.0] {
        for rtt in [20, 194] {
            for acks in [100, 1000] {
                let (verdict, trains) = link(mbit, rtt, acks).find();
                let Verdict::Carries(rate) = verdict else {
                    panic!("{mbit} {rtt} {acks}: {verdict:?} {trains:?}");
                };
                let part = rate / (mbit * 125e3);
                assert!((0.8..1.01).contains(&part), "{mbit} {rtt} {acks}: {part}");
                assert!(trains.len() <= 5, "{mbit} {rtt} {acks}: {trains:?}");
            }
        }
    }
}

#[test]
fn losses_by_chance_do_not_slow_a_train_down() {
    for (mbit, rtt) in [(100.0, 194), (1000.0, 20), (1000.0, 194)] {
        for seed in 0..200 {
            let link = Link {
                loss: 0.01,
                seed,
                ..link(mbit, rtt, 1000)
            };
            let (verdict, trains) = link.find();
            let Verdict::Carries(rate) = verdict else {
                panic!("{mbit} {rtt} {seed}: {verdict:?} {trains:?}");
            };
            let part = rate / link.rate;
            assert!((0.75..1.01).contains(&part), "{mbit} {rtt} {seed}: {part}");
        }
    }
}

#[test]
fn a_link_without_a_queue_is_known_by_what_it_drops() {
    let mut seen = link(100.0, 194, 100).seen();
    let mut train = Train::first(&seen, None).unwrap();
    // Every other packet is dropped, and none is late.
    let packets = train.bytes() / PACKET;
    let step = Duration::from_secs_f64(2.0 * PACKET as f64 / train.rate());
    seen.prior = seen.delivered;
    let mut verdict = Verdict::Waits;
    for _ in 0..packets / 2 {
        seen.now += step;
        seen.delivered += PACKET;
        seen.lost += PACKET;
        verdict = train.acked(&seen);
        if verdict != Verdict::Waits {
            break;
        }
    }
    let Verdict::Carries(rate) = verdict else {
        panic!("{verdict:?}");
    };
    let part = rate / train.rate();
    assert!((0.4..0.55).contains(&part), "{part}");
}

#[test]
fn a_train_outlasts_a_lump_of_acknowledgements() {
    for rtt in [20, 194] {
        let link = link(1000.0, rtt, 8000);
        let mut seen = link.seen();
        let mut first = Train::first(&seen, None).unwrap();
        let Verdict::Next(longer) = link.cross(&mut first, &mut seen) else {
            panic!("{first:?}");
        };
        assert!(longer.lasts() > link.acks.as_secs_f64(), "{longer:?}");
        assert_eq!(longer.bytes(), 2 * first.bytes());
    }
    // Half of the round trip is a lump.
    let (verdict, trains) = link(1000.0, 20, 11_000).find();
    assert_eq!((verdict, trains.len()), (Verdict::Nothing, 1));
}

#[test]
fn lumps_of_acknowledgements_show_the_rate() {
    for rtt in [20, 50, 194] {
        for lump in [6000, 8000] {
            for step in 0..40 {
                let mbit = 20.0 * 50f64.powf(f64::from(step) / 39.0);
                let (verdict, trains) = link(mbit, rtt, lump).find();
                let Verdict::Carries(rate) = verdict else {
                    panic!("{mbit} {rtt} {lump}: {verdict:?} {trains:?}");
                };
                let part = rate / (mbit * 125e3);
                assert!((0.7..1.05).contains(&part), "{mbit} {rtt} {lump}: {part}");
            }
        }
    }
}

#[test]
fn a_train_that_overflows_a_queue_shows_the_rate_of_its_first_lump() {
    let mut seen = link(100.0, 20, 100).seen();
    let mut train = Train::first(&seen, None).unwrap();
    // Half of it arrives within 8 ms, and nothing of the rest.
    seen.prior = seen.delivered;
    seen.acked = train.bytes() / 2;
    seen.delivered += seen.acked;
    seen.now += seen.min_rtt + Duration::from_millis(8);
    seen.rtt = seen.min_rtt + Duration::from_millis(6);
    seen.lump = Duration::from_millis(8);
    seen.spread = Duration::from_millis(2);
    assert_eq!(train.acked(&seen), Verdict::Waits);
    // A packet that was sent after that shows so.
    seen.prior = seen.delivered;
    seen.now += seen.min_rtt;
    seen.lost += train.bytes() - seen.acked;
    let bytes = seen.acked as f64;
    seen.acked = PACKET;
    seen.delivered += PACKET;
    let Verdict::Carries(rate) = train.acked(&seen) else {
        panic!("{train:?}");
    };
    assert!((rate - SHOWN * bytes / 0.008).abs() < 1.0, "{rate}");
}

#[test]
fn the_first_train_is_a_little_faster_than_what_the_path_has_carried() {
    let seen = link(1000.0, 100, 100).seen();
    let train = Train::first(&seen, Some(125e6)).unwrap();
    assert!(
        (train.rate() / (1.5 * 125e6) - 1.0).abs() < 1e-3,
        "{train:?}"
    );
    let part = train.bytes() as f64 / (125e6 * seen.min_rtt.as_secs_f64());
    assert!(part < 0.05, "{part}");
    // It is bounded, and what is known anyway is no reason for a slower one.
    assert!(Train::first(&seen, Some(1e18)).unwrap().bytes() <= MAX_BYTES);
    assert_eq!(Train::first(&seen, Some(1.0)), Train::first(&seen, None));
}

#[test]
fn what_a_path_has_carried_is_exceeded_by_the_second_train_where_lumps_are_long() {
    let mut seen = link(1000.0, 20, 100).seen();
    seen.lump = Duration::from_millis(8);
    let train = Train::first(&seen, Some(125e6)).unwrap();
    assert!(train.rate() < 0.5 * 125e6, "{train:?}");
    assert!(train.lasts() > seen.lump.as_secs_f64(), "{train:?}");
    let Verdict::Next(next) = train.next(&seen, FASTER_LONG, train.lasts()) else {
        panic!("{train:?}");
    };
    assert!(next.rate() > 1.2 * 125e6, "{next:?}");
    assert!(next.bytes() <= 3 * train.bytes(), "{next:?}");
}

#[test]
fn no_train_is_sent_over_a_short_path_or_behind_a_queue() {
    let seen = link(100.0, 20, 100).seen();
    assert!(Train::first(&seen, None).is_some());
    let change: [fn(&mut Seen); 3] = [
        |seen| seen.min_rtt = Duration::from_millis(9),
        |seen| seen.rtt = 2 * seen.min_rtt,
        |seen| seen.window = 65 * PACKET,
    ];
    for (at, change) in change.into_iter().enumerate() {
        let mut seen = seen;
        change(&mut seen);
        assert_eq!(Train::first(&seen, None), None, "{at}");
    }
}

#[test]
fn a_train_behind_a_queue_or_with_little_to_send_shows_nothing() {
    let change: [fn(&mut Seen); 2] = [
        |seen| seen.rtt = 2 * seen.min_rtt,
        |seen| seen.app_limited = true,
    ];
    for change in change {
        let mut seen = link(100.0, 20, 100).seen();
        let mut train = Train::first(&seen, None).unwrap();
        assert!(
            train.is_of(&Seen {
                prior: seen.delivered,
                ..seen
            }) && !train.is_of(&seen)
        );
        change(&mut seen);
        assert_eq!(train.acked(&seen), Verdict::Nothing);
    }
}

proptest! {
    /// Whatever a peer acknowledges and when: a train is at most three times as fast and as large as the
    /// one before, and nothing is relied on that is faster than what was sent.
    #[test]
    fn what_is_shown_is_bounded_by_what_was_sent(
        events in prop::collection::vec((0..400u64, 0..20u64, 0..400u64, 0..9000u64, 0..40u64, 0..20u64), 1..200),
    ) {
        let mut seen = link(100.0, 100, 100).seen();
        let Some(mut train) = Train::first(&seen, None) else { unreachable!() };
        for (acked, gone, behind, wait, queue, spread) in events {
            seen.acked = acked * PACKET;
            seen.delivered += seen.acked;
            seen.lost += gone * PACKET;
            seen.prior = seen.delivered.saturating_sub(behind * PACKET);
            seen.now += Duration::from_micros(wait);
            seen.rtt = seen.min_rtt + Duration::from_millis(queue);
            seen.spread = Duration::from_millis(spread);
            seen.lump = seen.lump.max(seen.spread);
            if !train.is_of(&seen) {
                continue;
            }
            match train.acked(&seen) {
                Verdict::Waits => {}
                Verdict::Next(next) => {
                    prop_assert!(next.rate() <= FASTER * train.rate());
                    prop_assert!(next.bytes() as f64 <= FASTER * train.bytes() as f64);
                    prop_assert!(next.bytes() <= MAX_BYTES);
                    train = next;
                }
                Verdict::Carries(rate) => {
                    prop_assert!(rate > 0.0 && rate <= train.rate());
                    break;
                }
                Verdict::Nothing => break,
            }
        }
    }
}
