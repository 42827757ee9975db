//! Each rate control on links of several kinds.

use proptest::prelude::*;

use super::*;

/// 1 Gbit/s over a long path, with a queue of 50 ms.
const FAR: Link = Link {
    rate: 125e6,
    rtt: Duration::from_millis(194),
    queue: Duration::from_millis(50),
    loss: 0.0,
    acks: None,
    change: None,
};
/// 100 Mbit/s.
const NEAR: Link = Link {
    rate: 12.5e6,
    rtt: Duration::from_millis(25),
    ..FAR
};
/// PCC in all its forms.
const PCC: [Algorithm; 3] = [
    Algorithm::AllegroPublished,
    Algorithm::AllegroHercules,
    Algorithm::Vivace,
];

fn alone(algorithm: Algorithm, link: Link, seconds: u64, seed: u64) -> Sender {
    let mut senders = vec![Sender::new(algorithm, Announced::default(), seed)];
    run(link, &mut senders, Duration::from_secs(seconds), seed);
    senders.remove(0)
}

#[test]
fn a_gigabit_over_194_ms_is_full_after_five_seconds() {
    for seed in 0..2 {
        for (loss, least) in [(0.0, 0.97), (1e-4, 0.97), (1e-3, 0.93)] {
            let link = Link { loss, ..FAR };
            let one = alone(Algorithm::default(), link, 15, seed);
            let share = share(&one, link.rate, 5.0, 15.0);
            assert!(share > least, "{loss} {seed}: {share}");
        }
    }
}

#[test]
fn bbr_starts_at_any_rate_with_losses_of_a_hundredth() {
    // 17 to 270 Mbit/s: Startup overshoots by another part at each.
    for (rate, rtt, least) in [
        (17, 200, 0.9),
        (64, 200, 0.9),
        (270, 200, 0.9),
        (17, 50, 0.95),
    ] {
        let link = Link {
            rate: f64::from(rate) * 125e3,
            rtt: rtt * MS,
            loss: 0.01,
            ..FAR
        };
        for seed in 0..4 {
            let one = alone(Algorithm::Bbr, link, 10, seed);
            let share = share(&one, link.rate, 4.0, 10.0);
            assert!(share > least, "{rate} {rtt} {seed}: {share}");
        }
    }
}

#[test]
fn a_first_window_overflows_no_short_queue() {
    // 20 Mbit/s with a queue of 5 ms: as announced, and announced as 100 Mbit/s.
    for (rtt, announced) in [(194, 2_500_000), (194, 12_500_000), (50, 12_500_000)] {
        let link = Link {
            rate: 2.5e6,
            rtt: rtt * MS,
            queue: 5 * MS,
            ..FAR
        };
        for algorithm in Algorithm::ALL {
            // The ASes announce another round-trip time than the handshake has measured.
            let announced = announcing(Some(announced), Some(20 * MS));
            let measured = announced.with_rtt(Some(link.rtt));
            // What is sent before anything is acknowledged.
            let sender = Sender::new(algorithm, measured, 1).active([Duration::ZERO..link.rtt]);
            let mut senders = vec![sender];
            run(link, &mut senders, 4 * link.rtt, 1);
            let one = &senders[0];
            assert!(one.sent >= 10, "{algorithm} {rtt}: {}", one.sent);
            assert_eq!(one.lost, 0, "{algorithm} {rtt}: of {}", one.sent);
        }
    }
}

#[test]
fn the_first_window_is_spread_over_the_round_trip() {
    // A queue of 25 packets, which a window sent at once would overflow long before the link is full.
    let link = Link {
        rate: 2.2e6,
        rtt: 200 * MS,
        queue: 15 * MS,
        ..FAR
    };
    let one = alone(Algorithm::Bbr, link, 10, 1);
    assert!(share(&one, link.rate, 3.0, 10.0) > 0.8);
}

#[test]
fn losses_at_random_do_not_stop_pcc() {
    for algorithm in PCC {
        for loss in [1e-4, 1e-3] {
            let link = Link { loss, ..FAR };
            let share = share(&alone(algorithm, link, 15, 1), link.rate, 8.0, 15.0);
            assert!(share > 0.9, "{algorithm} {loss}: {share}");
        }
    }
}

#[test]
fn a_queue_of_a_millisecond_is_enough() {
    let link = Link { queue: MS, ..NEAR };
    for algorithm in Algorithm::ALL {
        let share = share(&alone(algorithm, link, 15, 1), link.rate, 5.0, 15.0);
        assert!(share > 0.6, "{algorithm}: {share}");
    }
}

#[test]
fn a_queue_of_a_millisecond_leaves_most_of_a_gigabit() {
    for rtt in [25, 194] {
        let link = Link {
            rtt: rtt * MS,
            queue: MS,
            ..FAR
        };
        let one = alone(Algorithm::default(), link, 15, 1);
        // What BBR leaves to others is 15 %.
        let share = share(&one, link.rate, 5.0, 15.0);
        assert!(share > 0.75, "{rtt}: {share}");
    }
}

#[test]
fn slow_links_are_full() {
    for (rate, least) in [(1.25e6, 0.7), (125e3, 0.6)] {
        let link = Link {
            rate,
            queue: 100 * MS,
            ..NEAR
        };
        for algorithm in Algorithm::ALL {
            let share = share(&alone(algorithm, link, 20, 1), link.rate, 5.0, 20.0);
            assert!(share > least, "{algorithm} {rate}: {share}");
        }
    }
}

#[test]
fn equal_senders_share_a_link() {
    for (algorithm, least) in [
        (Algorithm::default(), 0.5),
        (Algorithm::Bbr, 0.5),
        (Algorithm::Vivace, 0.5),
    ] {
        let sender = |begins, seed| {
            let sender = Sender::new(algorithm, Announced::default(), seed);
            sender.active([Duration::from_secs(begins)..Duration::MAX])
        };
        let mut senders = [sender(0, 1), sender(5, 2)];
        run(NEAR, &mut senders, Duration::from_secs(60), 1);
        let [one, other] = [0, 1].map(|at| share(&senders[at], NEAR.rate, 30.0, 60.0));
        assert!(one + other > 0.9, "{algorithm}: {one} {other}");
        let ratio = one.min(other) / one.max(other);
        assert!(ratio > least, "{algorithm}: {one} {other}");
    }
}

#[test]
fn a_link_is_shared_with_cubic() {
    for (algorithm, seed) in [
        (Algorithm::default(), 0),
        (Algorithm::default(), 1),
        (Algorithm::Vivace, 0),
        (Algorithm::Vivace, 1),
    ] {
        let sender = |algorithm, seed| Sender::new(algorithm, Announced::default(), seed);
        let mut senders = [sender(algorithm, seed), sender(Algorithm::Cubic, seed)];
        run(NEAR, &mut senders, Duration::from_secs(40), seed);
        let [one, other] = [0, 1].map(|at| share(&senders[at], NEAR.rate, 15.0, 40.0));
        assert!(
            (0.4..2.5).contains(&(one / other)),
            "{algorithm} {seed}: {one} {other}"
        );
        assert!(one + other > 0.95, "{algorithm} {seed}: {one} {other}");
    }
}

#[test]
fn bbr_that_comes_late_leaves_cubic_its_share() {
    let link = Link {
        rate: 25e6,
        rtt: 100 * MS,
        ..FAR
    };
    for seed in 0..3 {
        let bbr = Sender::new(Algorithm::Bbr, Announced::default(), seed);
        let mut senders = [
            bbr.active([Duration::from_millis(3000 + 500 * seed)..Duration::MAX]),
            Sender::new(Algorithm::Cubic, Announced::default(), seed),
        ];
        run(link, &mut senders, Duration::from_secs(45), seed);
        let [bbr, cubic] = [0, 1].map(|at| share(&senders[at], link.rate, 15.0, 45.0));
        assert!((0.5..2.5).contains(&(bbr / cubic)), "{seed}: {bbr} {cubic}");
    }
}

#[test]
fn an_announced_rate_is_reached_in_four_round_trips() {
    // With a queue of 5 ms, which any overshoot fills.
    let link = Link {
        queue: 5 * MS,
        ..FAR
    };
    for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
        let announced = announcing(Some(link.rate as u64), Some(link.rtt));
        let mut senders = [Sender::new(algorithm, announced, 1)];
        run(link, &mut senders, Duration::from_secs(1), 1);
        let one = &senders[0];
        // Four round trips are 0.78 s.
        let share = share(one, link.rate, 0.8, 1.0);
        assert!(share > 0.9, "{algorithm}: {share}");
        assert!(one.lost * 50 < one.sent, "{algorithm}: {}", one.lost);
    }
}

#[test]
fn a_start_without_an_announcement_fills_a_link_in_eight_round_trips() {
    // With a queue of 5 ms, and acknowledgements of bulk transfer and of QUIC.
    for (rtt, acks) in [
        (20, None),
        (20, Some(MS / 10)),
        (194, None),
        (194, Some(MS / 10)),
    ] {
        let link = Link {
            rtt: rtt * MS,
            queue: 5 * MS,
            acks,
            ..FAR
        };
        let setting = match acks {
            None => Congestion::Bbr,
            Some(_) => Congestion::Auto,
        };
        let announced = announcing(None, Some(link.rtt));
        let mut senders = [window(setting, announced, 0)];
        // Bytes delivered at each hundredth of a second.
        let mut delivered = Vec::new();
        run_network(&[link], &mut senders, 11 * link.rtt, 1, |_, all| {
            delivered.push(all[0].delivered() as f64);
        });
        let round = (rtt / 10) as usize;
        let part = |from: usize| {
            (delivered[from + round] - delivered[from]) / (link.rate * round as f64 / 100.0)
        };
        let most = (0..=17 * round / 2).map(part).fold(0.0, f64::max);
        assert!(most > 0.88, "{rtt} {acks:?}: {most}");
        let one = &senders[0];
        let lost = one.lost as f64 / one.sent as f64;
        assert!(lost < 0.02, "{rtt} {acks:?}: {lost}");
    }
}

#[test]
fn a_jump_leaves_others_their_share() {
    let announced = announcing(Some(NEAR.rate as u64), Some(NEAR.rtt));
    for algorithm in [Algorithm::Bbr, Algorithm::Cubic] {
        let late = Sender::new(algorithm, announced, 1);
        let mut senders = [
            Sender::new(Algorithm::Cubic, Announced::default(), 2),
            late.active([5000 * MS..Duration::MAX]),
        ];
        run(NEAR, &mut senders, Duration::from_secs(40), 1);
        let [one, late] = [0, 1].map(|at| share(&senders[at], NEAR.rate, 15.0, 40.0));
        // CUBIC that comes late and has to double its rate has 1.9 times the share here.
        assert!(
            (0.4..3.0).contains(&(late / one)),
            "{algorithm}: {one} {late}"
        );
        assert!(one + late > 0.95, "{algorithm}: {one} {late}");
    }
}

#[test]
fn what_becomes_free_is_taken() {
    let link = Link {
        change: Some((10_000 * MS, 20_000 * MS, NEAR.rate / 2.0)),
        ..NEAR
    };
    for seed in 0..3 {
        let one = alone(Algorithm::default(), link, 22, seed);
        let halved = share(&one, link.rate, 15.0, 20.0);
        assert!((0.45..0.51).contains(&halved), "{seed}: {halved}");
        // 90 % of the half that becomes free, a second later.
        let back = share(&one, link.rate, 21.0, 22.0);
        assert!(back > 0.95, "{seed}: {back}");
    }
}

#[test]
fn a_dead_link_is_filled_again_when_it_is_back() {
    let link = Link {
        change: Some((4000 * MS, 7000 * MS, 0.0)),
        ..NEAR
    };
    for algorithm in Algorithm::ALL {
        let one = alone(algorithm, link, 20, 1);
        let share = share(&one, link.rate, 15.0, 20.0);
        assert!(share > 0.6, "{algorithm}: {share}");
    }
}

#[test]
fn after_idle_times_the_rate_is_still_known() {
    for algorithm in Algorithm::ALL {
        // Nothing to send half of the time.
        let active = (0..10).map(|at| at * 2000 * MS..(at * 2000 + 1000) * MS);
        let mut senders = [Sender::new(algorithm, Announced::default(), 1).active(active)];
        run(NEAR, &mut senders, Duration::from_secs(20), 1);
        let share = share(&senders[0], NEAR.rate, 8.0, 20.0);
        assert!((0.3..0.55).contains(&share), "{algorithm}: {share}");
    }
}

proptest! {
    /// Rate and window stay usable, whatever is acknowledged, lost and timed out, and when.
    #[test]
    fn any_events_leave_a_usable_rate(
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        bandwidth in proptest::option::of(any::<u64>()),
        rtt in proptest::option::of(0..u64::MAX / 2),
        events in prop::collection::vec((0..8u8, 0..300_000u64, 0..40u64), 0..400),
    ) {
        let mut now = Instant::now();
        let announced = announcing(bandwidth, rtt.map(Duration::from_micros));
        let mut control = algorithm.start(now, PACKET, announced, 1);
        let mut sent = Vec::new();
        for (kind, wait, which) in events {
            now += Duration::from_micros(wait);
            let number = (sent.len() as u64).saturating_sub(which + 1);
            let at = sent.get(number as usize).copied().unwrap_or(now);
            match kind {
                0..3 => {
                    control.sent(now, sent.len() as u64, PACKET);
                    sent.push(now);
                }
                3 | 4 => {
                    control.acked(now, number, at, PACKET);
                    control.end(now, which * PACKET, which % 3 == 0);
                }
                5 => control.lost(now, number, at, PACKET),
                6 => control.end(now, which * PACKET, false),
                _ => control.timed_out(now),
            }
            prop_assert!(control.rate() > 0.0 && control.rate().is_finite());
            prop_assert!(control.window() >= 2 * PACKET);
        }
    }

    /// CUBIC and BBR as QUIC uses them, with marks, spurious losses and changes of the packet size.
    #[test]
    fn any_events_leave_a_usable_window(
        setting in prop::sample::select(vec![Congestion::Auto, Congestion::Cubic, Congestion::Bbr]),
        bandwidth in proptest::option::of(any::<u64>()),
        events in prop::collection::vec((0..8u8, 0..300_000u64, 0..40u64), 0..400),
    ) {
        let mut now = Instant::now();
        let mtu = PACKET as u16;
        let mut control = WindowControl::new(now, mtu, announcing(bandwidth, None), setting, 1);
        let mut sent = Vec::new();
        for (kind, wait, which) in events {
            now += Duration::from_micros(wait);
            let number = (sent.len() as u64).saturating_sub(which + 1);
            let at = sent.get(number as usize).copied().unwrap_or(now);
            match kind {
                0..3 => {
                    control.on_sent(now, PACKET, sent.len() as u64);
                    sent.push(now);
                }
                3 | 4 => {
                    control.on_acked(now, at, PACKET, number, which % 2 == 0);
                    control.on_end(now, which * PACKET, which % 3 == 0);
                }
                5 => {
                    control.on_lost(now, PACKET, number);
                    control.on_congestion(now, at, which == 0, false);
                }
                6 => control.on_congestion(now, at, false, true),
                _ => {
                    control.on_spurious();
                    control.on_window_limited();
                    control.set_mtu(mtu + which as u16);
                }
            }
            prop_assert!(control.window() >= 2 * PACKET);
            prop_assert!(control.window() < 1 << 32, "{}", control.window());
            prop_assert!(control.pacing_rate().is_none_or(|rate| rate > 0.0));
        }
    }
}
