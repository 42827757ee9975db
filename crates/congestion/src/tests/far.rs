//! Far and lossy paths at 1 Gbit/s, and senders that share a link, with CUBIC and BBR.

use super::*;
use crate::{CongestionReason, CongestionState};

/// 1 Gbit/s with a queue of 50 ms, and acknowledgements as QUIC sends them.
const GIGABIT: Link = Link {
    rate: 125e6,
    rtt: Duration::from_millis(194),
    queue: Duration::from_millis(50),
    loss: 0.0,
    acks: Some(Duration::from_micros(100)),
    change: None,
};
/// 200 Mbit/s.
const SHARED: Link = Link {
    rate: 25e6,
    rtt: Duration::from_millis(25),
    ..GIGABIT
};

fn sender(begins: u64, setting: Congestion) -> Sender<WindowControl> {
    window(setting, Announced::default(), begins)
}

/// The share of the link that one sender has from second 9 to 13, and what it uses then.
fn alone(link: Link, setting: Congestion, seed: u64) -> (f64, CongestionState) {
    let mut senders = [sender(0, setting)];
    run(link, &mut senders, Duration::from_secs(13), seed);
    let [one] = &senders;
    (share(one, link.rate, 9.0, 13.0), one.control.state())
}

/// The shares of two senders from second 15 to 30; the second begins at second 3.
fn both(link: Link, settings: [Congestion; 2]) -> ([f64; 2], [Sender<WindowControl>; 2]) {
    let mut senders = [sender(0, settings[0]), sender(3, settings[1])];
    run(link, &mut senders, Duration::from_secs(30), 1);
    let shares = [0, 1].map(|at| share(&senders[at], link.rate, 15.0, 30.0));
    (shares, senders)
}

#[test]
fn losses_at_random_do_not_idle_a_far_path() {
    for (rtt, loss) in [25, 100, 194]
        .map(|rtt| [1e-4, 1e-3].map(|loss| (rtt * MS, loss)))
        .concat()
    {
        let link = Link {
            rtt,
            loss,
            ..GIGABIT
        };
        for seed in 0..8 {
            let (share, state) = alone(link, Congestion::Auto, seed);
            assert!(share > 0.92, "{rtt:?} {loss} {seed}: {share}");
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
    let (share, state) = alone(link, Congestion::Cubic, 7);
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
            let (share, state) = alone(link, setting, 7);
            assert!(share > 0.98, "{rtt} {setting:?}: {share}");
            let bbr = setting == Congestion::Bbr;
            assert_eq!(state.algorithm == Algorithm::Bbr, bbr, "{rtt}");
        }
    }
}

#[test]
fn two_senders_share_a_link() {
    for (setting, loss) in [
        (Congestion::Auto, 0.0),
        (Congestion::Auto, 1e-3),
        (Congestion::Bbr, 0.0),
    ] {
        let link = Link { loss, ..SHARED };
        let (shares, _) = both(link, [setting; 2]);
        assert!(
            shares[0] + shares[1] > 0.95,
            "{setting:?} {loss}: {shares:?}"
        );
        let ratio = shares[0] / shares[1];
        assert!(
            (0.4..2.5).contains(&ratio),
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
        let (shares, senders) = both(link, [Congestion::Auto, Congestion::Cubic]);
        assert_eq!(senders[0].control.state(), CongestionState::default());
        let ratio = shares[0] / shares[1];
        assert!((0.4..2.5).contains(&ratio), "{rtt}: {ratio}");
    }
}

#[test]
fn a_queue_that_others_fill_is_left_to_cubic() {
    // It begins at different times of their cycles, also when the queue is nearly full.
    for (rtt, queue) in [(25, 50), (25, 10), (100, 50)] {
        let link = Link {
            rtt: rtt * MS,
            queue: queue * MS,
            ..SHARED
        };
        for begins in 8..14 {
            let settings = [Congestion::Cubic; 4].into_iter().chain([Congestion::Auto]);
            let begin = [0, 1, 2, 3, begins];
            let mut senders: Vec<_> = (begin.into_iter().zip(settings))
                .map(|(begins, setting)| sender(begins, setting))
                .collect();
            run(link, &mut senders, Duration::from_secs(17), begins);
            let state = senders[4].control.state();
            assert_eq!(state, CongestionState::default(), "{rtt} {queue} {begins}");
        }
    }
}

#[test]
fn a_change_of_the_rate_is_followed() {
    for (rate, loss) in [(5e6, 0.0), (5e6, 1e-3), (50e6, 0.0), (50e6, 1e-3)] {
        let link = Link {
            loss,
            change: Some((6000 * MS, Duration::MAX, rate)),
            ..SHARED
        };
        for setting in [Congestion::Auto, Congestion::Bbr] {
            let mut senders = [sender(0, setting)];
            run(link, &mut senders, Duration::from_secs(20), 1);
            assert!(share(&senders[0], link.rate, 4.0, 6.0) > 0.95);
            let share = share(&senders[0], rate, 16.0, 20.0);
            assert!(share > 0.95, "{rate} {loss} {setting:?}: {share}");
        }
    }
}

#[test]
fn a_change_of_the_algorithm_keeps_what_the_path_holds() {
    // Losses at random until BBR is at work.
    let link = Link {
        rtt: 100 * MS,
        loss: 1e-4,
        ..SHARED
    };
    let mut senders = [sender(0, Congestion::Auto)];
    run(link, &mut senders, Duration::from_secs(8), 1);
    let control = &mut senders[0].control;
    assert_eq!(control.state().algorithm, Algorithm::Bbr);
    // Losses at the longest round-trip time, one in each round, until CUBIC takes over.
    let mut now = Instant::now() + Duration::from_secs(60);
    let mut number = 1 << 40;
    while control.state().algorithm == Algorithm::Bbr {
        for one in [number, number + 1] {
            control.on_sent(now, PACKET, one);
        }
        let sent = now;
        now += 200 * MS;
        control.on_acked(now, sent, PACKET, number + 1, false);
        control.on_end(now, 0, false);
        control.on_lost(now, PACKET, number);
        control.on_congestion(now, sent, false, false);
        number += 2;
    }
    let reason = control.state().reason;
    assert!(matches!(reason, CongestionReason::LossWithQueue { .. }));
    let holds = (link.rate * link.rtt.as_secs_f64()) as u64;
    let window = control.window();
    assert!(window < holds * 11 / 10, "{window} {holds}");
}
