//! Starts on links of their own, over paths that announce nothing.

use super::*;
use crate::Carried;

/// 100 Mbit/s over a long path.
const LONG: Link = Link {
    rate: 12.5e6,
    rtt: Duration::from_millis(194),
    queue: Duration::from_millis(100),
    loss: 0.0,
    acks: None,
    change: None,
};

/// The part of the link that a start uses from second 1.4 to 2.4, after seven round trips of
/// [`LONG`].
fn used(link: Link, algorithm: Algorithm, seed: u64) -> f64 {
    let mut senders = [Sender::new(
        algorithm,
        announcing(None, Some(link.rtt)),
        seed,
    )];
    run(link, &mut senders, 2500 * MS, seed);
    share(&senders[0], link.rate, 1.4, 2.4)
}

#[test]
fn losses_by_chance_do_not_delay_a_start() {
    for loss in [1e-3, 1e-2] {
        let link = Link { loss, ..LONG };
        for seed in 0..48 {
            let used = used(link, Algorithm::Bbr, seed);
            assert!(used > 0.8, "{loss} {seed}: {used}");
        }
    }
}

/// A queue of 5 ms, and acknowledgements in lumps, as a busy machine sends them.
fn lumpy(mbit: f64, rtt: u32) -> Link {
    Link {
        rate: mbit * 125e3,
        rtt: rtt * MS,
        queue: 5 * MS,
        acks: Some(8 * MS),
        ..LONG
    }
}

#[test]
fn acknowledgements_in_lumps_do_not_hide_how_fast_a_link_is() {
    for rtt in [20, 194] {
        for step in 0..12 {
            let mbit = 20.0 * 50f64.powf(f64::from(step) / 11.0);
            let link = lumpy(mbit, rtt);
            for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
                let announced = announcing(None, Some(link.rtt));
                let mut senders = [Sender::new(algorithm, announced, 1)];
                run(link, &mut senders, 16 * link.rtt, 1);
                let [one] = &senders;
                // Without trains more than a tenth is lost.
                let lost = one.lost as f64 / one.sent as f64;
                assert!(lost < 0.06, "{algorithm} {mbit} {rtt}: {lost}");
            }
        }
    }
}

#[test]
fn acknowledgements_in_lumps_do_not_look_like_a_queue() {
    for mbit in [20.0, 100.0, 1000.0] {
        for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
            let link = lumpy(mbit, 20);
            let announced = announcing(Some(link.rate as u64), Some(link.rtt));
            let mut senders = [Sender::new(algorithm, announced, 1)];
            run(link, &mut senders, 500 * MS, 1);
            let used = share(&senders[0], link.rate, 0.2, 0.5);
            assert!(used > 0.8, "{algorithm} {mbit}: {used}");
            let (lost, sent) = (senders[0].lost, senders[0].sent);
            assert!(lost * 20 < sent, "{algorithm} {mbit}: {lost} of {sent}");
        }
    }
}

/// What `link` carries, as a sender over it finds out.
fn carried(link: Link, algorithm: Algorithm) -> Option<Carried> {
    let mut senders = [Sender::new(algorithm, Announced::default(), 1)];
    run(link, &mut senders, 20 * link.rtt, 1);
    senders[0].control.carried()
}

#[test]
fn a_path_that_has_carried_much_is_full_after_five_round_trips() {
    let link = Link {
        rate: 125e6,
        queue: 5 * MS,
        ..LONG
    };
    for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
        let before = carried(link, algorithm).unwrap();
        let part = before.rate / link.rate;
        assert!((0.7..1.05).contains(&part), "{algorithm}: {part}");
        for (now, rate) in [("the same", link.rate), ("a quarter", link.rate / 4.0)] {
            let link = Link { rate, ..link };
            let mut senders = [Sender::new(algorithm, announcing(None, Some(link.rtt)), 2)];
            senders[0].control.remember(before);
            run(link, &mut senders, 1500 * MS, 2);
            let [one] = &senders;
            // Without it, a gigabit is full after 1.4 s.
            let used = share(one, link.rate, 1.0, 1.4);
            assert!(used > 0.7, "{algorithm} {now}: {used}");
            assert!(one.lost * 16 < one.sent, "{algorithm} {now}: {}", one.lost);
        }
    }
}

#[test]
fn a_path_that_has_carried_more_loses_little() {
    for rtt in [20, 194] {
        for acks in [None, Some(8 * MS)] {
            let now = Link {
                acks,
                ..lumpy(100.0, rtt)
            };
            let rate = 4.0 * now.rate;
            for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
                let before = carried(Link { rate, ..now }, algorithm).unwrap();
                let mut senders = [Sender::new(algorithm, announcing(None, Some(now.rtt)), 2)];
                senders[0].control.remember(before);
                run(now, &mut senders, 10 * now.rtt, 2);
                let (lost, sent) = (senders[0].lost, senders[0].sent);
                assert!(
                    lost * 25 < sent,
                    "{algorithm} {rtt} {acks:?}: {lost} of {sent}"
                );
            }
        }
    }
}

#[test]
fn a_start_has_nothing_to_tell_yet() {
    let mut senders = [Sender::new(Algorithm::Auto, Announced::default(), 1)];
    assert_eq!(senders[0].control.carried(), None);
    run(LONG, &mut senders, LONG.rtt * 3, 1);
    assert_eq!(senders[0].control.carried(), None);
}
