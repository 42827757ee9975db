//! Far and lossy paths at 1 Gbit/s, and senders that share a link, with each algorithm.

use super::*;

/// 1 Gbit/s with a queue of 50 ms.
const GIGABIT: Link = Link {
    rate: 125e6,
    rtt: Duration::from_millis(194),
    queue: Duration::from_millis(50),
    loss: 0.0,
    change: None,
};

fn sender(begins: u64, setting: Congestion) -> Sender {
    Sender::new(Duration::from_secs(begins), announcing(None), setting)
}

/// The share of the link that one sender has from second 8 to 12, and what it uses then.
fn alone(link: Link, setting: Congestion) -> (f64, CongestionState) {
    let one = sender(0, setting);
    let choice = one.choice.clone();
    let shown = run(link, vec![one], 13);
    (shown.share(link, 0, 8, 12), choice.get())
}

#[test]
fn losses_at_random_do_not_idle_a_far_path() {
    for rtt in [25, 100, 194] {
        for loss in [1e-4, 1e-3] {
            let rtt = rtt * MS;
            let link = Link {
                rtt,
                loss,
                ..GIGABIT
            };
            let (share, state) = alone(link, Congestion::Auto);
            assert!(share > 0.95, "{rtt:?} {loss}: {share}");
            assert_eq!(state.algorithm, Algorithm::Bbr);
            let CongestionReason::LossWithoutQueue { rtt: shortest } = state.reason else {
                panic!("{state:?}");
            };
            assert!(shortest >= rtt && shortest < rtt + MS);
        }
    }
}

#[test]
fn losses_at_random_are_congestion_to_cubic() {
    let link = Link {
        loss: 1e-3,
        ..GIGABIT
    };
    let (share, state) = alone(link, Congestion::Cubic);
    assert!(share < 0.05, "{share}");
    assert_eq!(state.reason, CongestionReason::Requested);
}

#[test]
fn without_losses_each_algorithm_fills_a_far_path() {
    for rtt in [25, 194] {
        let link = Link {
            rtt: rtt * MS,
            ..GIGABIT
        };
        for setting in [Congestion::Auto, Congestion::Bbr] {
            let (share, state) = alone(link, setting);
            assert!(share > 0.98, "{rtt} {setting:?}: {share}");
            let bbr = setting == Congestion::Bbr;
            assert_eq!(state.algorithm == Algorithm::Bbr, bbr, "{rtt}");
        }
    }
}

#[test]
fn a_queue_of_a_millisecond_is_enough_for_bbr() {
    for rtt in [25, 100] {
        let link = Link {
            rtt: rtt * MS,
            queue: MS,
            ..GIGABIT
        };
        // What is left to others is 15 %.
        let (share, _) = alone(link, Congestion::Bbr);
        assert!(share > 0.85, "{rtt}: {share}");
    }
}

/// 200 Mbit/s.
const SHARED: Link = Link {
    rate: 25e6,
    rtt: Duration::from_millis(25),
    ..GIGABIT
};

#[test]
fn two_senders_share_a_link() {
    for (setting, loss) in [
        (Congestion::Auto, 0.0),
        (Congestion::Auto, 1e-3),
        (Congestion::Bbr, 0.0),
    ] {
        let link = Link { loss, ..SHARED };
        let shown = run(link, vec![sender(0, setting), sender(3, setting)], 30);
        let shares = [0, 1].map(|at| shown.share(link, at, 15, 29));
        assert!(
            shares[0] + shares[1] > 0.95,
            "{setting:?} {loss}: {shares:?}"
        );
        let ratio = shares[0] / shares[1];
        assert!(
            (0.5..2.0).contains(&ratio),
            "{setting:?} {loss}: {shares:?}"
        );
    }
}

#[test]
fn the_choice_leaves_a_shared_queue_to_cubic() {
    for rtt in [25, 100] {
        let link = Link {
            rtt: rtt * MS,
            ..SHARED
        };
        let senders = [sender(0, Congestion::Auto), sender(3, Congestion::Cubic)];
        let choice = senders[0].choice.clone();
        let shown = run(link, senders.into(), 30);
        assert_eq!(choice.get(), CongestionState::default());
        let ratio = shown.share(link, 0, 15, 29) / shown.share(link, 1, 15, 29);
        assert!((0.67..1.5).contains(&ratio), "{rtt}: {ratio}");
    }
}

#[test]
fn a_change_of_the_rate_is_followed() {
    for (rate, loss) in [(5e6, 0.0), (5e6, 1e-3), (50e6, 0.0), (50e6, 1e-3)] {
        let before = Link {
            loss,
            change: Some((6000 * MS, rate)),
            ..SHARED
        };
        let after = Link { rate, ..before };
        for setting in [Congestion::Auto, Congestion::Bbr] {
            let shown = run(before, vec![sender(0, setting)], 20);
            assert!(shown.share(before, 0, 3, 5) > 0.95);
            let share = shown.share(after, 0, 15, 19);
            assert!(share > 0.95, "{rate} {loss} {setting:?}: {share}");
        }
    }
}

#[test]
fn a_change_of_the_algorithm_keeps_what_the_path_holds() {
    // Losses at random for six seconds; then a third of the rate, so that the queue is full.
    let link = Link {
        rtt: 100 * MS,
        loss: 1e-4,
        ..SHARED
    };
    let mut one = vec![sender(0, Congestion::Auto)];
    link.run(&mut one, Duration::from_secs(6), |_| ());
    let control = &mut one[0].control;
    assert_eq!(control.records.choice.get().algorithm, Algorithm::Bbr);
    let holds = (link.rate * link.rtt.as_secs_f64()) as u64;
    let bbr = control.bbr.as_ref().unwrap();
    let known = bbr.known();
    assert!((known.bandwidth / link.rate - 1.0).abs() < 0.05);
    assert!((holds * 9 / 10..holds * 11 / 10).contains(&known.window));
    // Losses at the longest round-trip time, one in each round, until CUBIC takes over.
    let mut now = Instant::now() + Duration::from_secs(60);
    while control.bbr.is_some() {
        now += 200 * MS;
        control.evidence.acked(now, 200 * MS);
        control.on_congestion_event(now, now - 150 * MS, false, false, 0, 0);
    }
    let state = control.records.choice.get();
    assert!(matches!(
        state.reason,
        CongestionReason::LossWithQueue { .. }
    ));
    assert_eq!(control.window(), known.window);
}
