mod far;
mod link;

use std::time::{Duration, Instant};

use noq_proto::congestion::ControllerFactory;
use proptest::prelude::*;

use self::link::{Link, MTU, Sender};
use super::cubic::Cubic;
use super::*;

const MS: Duration = Duration::from_millis(1);
/// 18 Mbit/s of packets over a long path, with a queue that holds a quarter of the round trip.
const FAR: Link = Link {
    rate: 2.25e6,
    rtt: Duration::from_millis(200),
    queue: Duration::from_millis(50),
    loss: 0.0,
    change: None,
};

/// The result of a run: bytes that arrived and packets that were lost, by sender and second.
struct Shown {
    arrived: Vec<Vec<u64>>,
    lost: Vec<Vec<u64>>,
}

fn run(link: Link, mut senders: Vec<Sender>, seconds: u64) -> Shown {
    let mut shown = Shown {
        arrived: vec![vec![0]; senders.len()],
        lost: vec![vec![0]; senders.len()],
    };
    link.run(&mut senders, Duration::from_secs(seconds), |senders| {
        for (at, sender) in senders.iter().enumerate() {
            shown.arrived[at].push(sender.arrived);
            shown.lost[at].push(sender.lost);
        }
    });
    shown
}

impl Shown {
    /// The share of the link's rate that a sender had between two seconds.
    fn share(&self, link: Link, sender: usize, from: usize, until: usize) -> f64 {
        let bytes = self.arrived[sender][until] - self.arrived[sender][from];
        bytes as f64 / link.rate / (until - from) as f64
    }
}

fn announcing(announced: Option<u64>) -> Announced {
    Announced {
        bandwidth: announced,
        rtt: None,
    }
}

fn one(link: Link, announced: Option<u64>, seconds: u64) -> Shown {
    run(
        link,
        vec![Sender::new(
            Duration::ZERO,
            announcing(announced),
            Congestion::Cubic,
        )],
        seconds,
    )
}

#[test]
fn a_long_path_with_a_short_queue_stays_full() {
    for announced in [None, Some(2_250_000)] {
        let shown = one(FAR, announced, 60);
        let share = shown.share(FAR, 0, 3, 59);
        assert!(share > 0.99, "{announced:?}: {share}");
    }
}

#[test]
fn an_announcement_prevents_the_first_overshoot() {
    let blind = one(FAR, None, 10);
    let informed = one(FAR, Some(2_250_000), 10);
    assert!(blind.lost[0][3] > 300, "{:?}", blind.lost);
    assert!(informed.lost[0][3] < 60, "{:?}", informed.lost);
    assert!(informed.arrived[0][3] > blind.arrived[0][3]);
}

#[test]
fn the_first_window_is_larger_where_more_is_announced() {
    let begins = |rate, rtt: u32| {
        let announced = Some(rate);
        let rtt = Some(rtt * MS);
        Cubic::new(
            MTU,
            Announced {
                bandwidth: announced,
                rtt,
            },
        )
        .window()
            / u64::from(MTU)
    };
    assert_eq!(begins(2_250_000, 10), 10);
    assert_eq!(begins(500_000, 200), 19);
    assert_eq!(begins(2_250_000, 200), 64);
    assert_eq!(begins(u64::MAX, u32::MAX), 64);
    let sender = |rtt| {
        let announced = Some(2_250_000);
        Sender::new(
            Duration::ZERO,
            Announced {
                bandwidth: announced,
                rtt,
            },
            Congestion::Cubic,
        )
    };
    let knows = run(FAR, vec![sender(Some(FAR.rtt))], 3);
    let not = run(FAR, vec![sender(None)], 3);
    let ahead = knows.arrived[0][2] - not.arrived[0][2];
    // Two round trips of the link's rate.
    assert!(ahead as f64 > FAR.rate * 0.35, "{ahead}");
    assert!(knows.lost[0][2] < 60, "{:?}", knows.lost);
}

#[test]
fn a_false_announcement_costs_seconds_at_most() {
    let (far_less, far_more) = (FAR.rate as u64 / 10, FAR.rate as u64 * 10);
    let low = one(FAR, Some(far_less), 20);
    assert!(low.share(FAR, 0, 8, 19) > 0.99);
    let (high, none) = (one(FAR, Some(far_more), 20), one(FAR, None, 20));
    assert_eq!(high.arrived, none.arrived);
    let nothing = one(FAR, Some(0), 20);
    assert!(nothing.share(FAR, 0, 15, 19) > 0.95);
}

#[test]
fn links_of_all_kinds_are_full_and_shared() {
    // Jain's fairness of the second half, and how full the link is.
    for (rtt, queue, full, fair) in [
        (10, 50, 0.99, 0.95),
        (20, 5, 0.99, 0.95),
        (20, 400, 0.99, 0.9),
        (50, 50, 0.99, 0.95),
        (100, 10, 0.97, 0.95),
        // The first of them takes more than a minute to give way.
        (200, 50, 0.99, 0.75),
    ] {
        let link = Link {
            rtt: rtt * MS,
            queue: queue * MS,
            ..FAR
        };
        let senders =
            (0..3).map(|at| Sender::new(at * 5000 * MS, announcing(None), Congestion::Cubic));
        let shown = run(link, senders.collect(), 80);
        let shares: Vec<f64> = (0..3).map(|at| shown.share(link, at, 40, 79)).collect();
        let sum: f64 = shares.iter().sum();
        let jain = sum * sum / (3.0 * shares.iter().map(|share| share * share).sum::<f64>());
        assert!(
            sum > full && jain > fair,
            "{rtt} {queue}: {shares:?} {jain}"
        );
    }
}

/// A window that has left slow start with a loss, and when that was.
fn cut() -> (Cubic, Instant) {
    let start = Instant::now();
    let mut cubic = Cubic::new(MTU, announcing(None));
    for at in 0..100 {
        let sent = start + at * MS;
        cubic.acked(sent + 20 * MS, sent, MTU.into(), false);
    }
    let now = start + 150 * MS;
    assert!(cubic.lost(now, start + 130 * MS, false));
    (cubic, now)
}

#[test]
fn the_window_is_cut_once_per_round_trip() {
    let (mut cubic, now) = cut();
    let window = cubic.window();
    assert!(!cubic.lost(now + 5 * MS, now - MS, false));
    cubic.acked(now + 6 * MS, now - MS, MTU.into(), false);
    assert_eq!(cubic.window(), window);
    assert!(cubic.lost(now + 25 * MS, now + 5 * MS, false));
    let kept = cubic.window() as f64 / window as f64;
    assert!((0.69..=0.81).contains(&kept), "{kept}");
}

#[test]
fn the_window_does_not_grow_while_nothing_is_sent() {
    let (mut cubic, mut now) = cut();
    let window = cubic.window();
    for _ in 0..1000 {
        now += 10 * MS;
        cubic.acked(now, now - 5 * MS, MTU.into(), true);
    }
    assert_eq!(cubic.window(), window);
    // The ten idle seconds do not count on the curve either.
    cubic.acked(now + 10 * MS, now + 5 * MS, MTU.into(), false);
    assert!(cubic.window() < window + u64::from(MTU));
}

#[test]
fn after_persistent_congestion_slow_start_ends_at_the_former_window() {
    let (mut cubic, mut now) = cut();
    let before = cubic.window();
    assert!(cubic.lost(now + 25 * MS, now + 5 * MS, true));
    assert_eq!(cubic.window(), 2 * u64::from(MTU));
    assert_eq!(cubic.threshold(), None);
    // Packets sent before the cut do not cut the window again.
    assert!(!cubic.lost(now + 26 * MS, now + 20 * MS, false));
    assert_eq!(cubic.threshold(), None);
    while cubic.threshold().is_none() {
        now += 20 * MS;
        cubic.acked(now + 20 * MS, now, MTU.into(), false);
    }
    assert!(cubic.window() < before);
}

#[test]
fn a_spurious_loss_is_undone() {
    let factory = Arc::new(Factory::unknown(Congestion::Cubic));
    let start = Instant::now();
    let mut control = factory.build(start, MTU);
    assert_eq!(control.window(), 10 * u64::from(MTU));
    assert_eq!(control.initial_window(), 10 * u64::from(MTU));
    control.on_congestion_event(start + 20 * MS, start, false, false, 1300, 0);
    assert_eq!(control.window(), 7 * u64::from(MTU));
    control.on_spurious_congestion_event();
    assert_eq!(control.window(), 10 * u64::from(MTU));
    // The loss is undone only once.
    control.on_congestion_event(start + 50 * MS, start + 30 * MS, false, true, 0, 0);
    control.on_spurious_congestion_event();
    assert_eq!(control.window(), 7 * u64::from(MTU));
}

proptest! {
    /// The window stays usable, whatever a peer acknowledges and when.
    #[test]
    fn any_acknowledgements_leave_a_usable_window(
        announced in proptest::option::of(any::<u64>()),
        rtt in proptest::option::of(any::<u64>()),
        events in proptest::collection::vec((0..5u8, 0..2_000_000u64, 0..2_000_000u64, any::<u16>()), 0..300),
    ) {
        let mut now = Instant::now();
        let mut cubic = Cubic::new(MTU, Announced { bandwidth: announced, rtt: rtt.map(Duration::from_micros) });
        for (kind, wait, ago, bytes) in events {
            now += Duration::from_micros(wait);
            let sent = now.checked_sub(Duration::from_micros(ago)).unwrap_or(now);
            match kind {
                0 => drop(cubic.lost(now, sent, false)),
                1 => drop(cubic.lost(now, sent, true)),
                2 => cubic.acked(now, sent, bytes.into(), true),
                3 => cubic.acked(sent, now, bytes.into(), false),
                _ => cubic.acked(now, sent, bytes.into(), false),
            }
            prop_assert!(cubic.window() >= 2 * u64::from(MTU));
            prop_assert!(cubic.window() < 1 << 32, "{}", cubic.window());
        }
    }

    /// Each algorithm leaves a usable window and rate, whatever is acknowledged, lost and marked.
    #[test]
    fn any_events_leave_a_usable_window(
        setting in prop::sample::select(vec![Congestion::Auto, Congestion::Cubic, Congestion::Bbr]),
        announced in proptest::option::of(any::<u64>()),
        events in proptest::collection::vec((0..8u8, 0..300_000u64, 0..40u64), 0..400),
    ) {
        let start = Instant::now();
        let mut control = Sender::new(Duration::ZERO, announcing(announced), setting).control;
        let (mut now, mut sent) = (start, Vec::new());
        for (kind, wait, which) in events {
            now += Duration::from_micros(wait);
            let number = (sent.len() as u64).saturating_sub(which + 1);
            let at = sent.get(number as usize).copied().unwrap_or(now);
            match kind {
                0..3 => {
                    control.on_packet_sent(now, MTU, sent.len() as u64);
                    sent.push(now);
                }
                3 | 4 => {
                    control.acked(now, at, MTU.into(), number, which % 2 == 0);
                    control.on_end_acks(now, which * u64::from(MTU), which % 3 == 0, Some(number));
                }
                5 => {
                    control.on_packet_lost(MTU, number, now);
                    control.on_congestion_event(now, at, which == 0, false, MTU.into(), number);
                }
                6 => control.on_congestion_event(now, at, false, true, 0, number),
                _ => {
                    control.on_spurious_congestion_event();
                    control.on_cwnd_limited();
                    control.on_mtu_update(MTU + which as u16);
                }
            }
            prop_assert!(control.window() >= 2 * u64::from(MTU));
            prop_assert!(control.window() < 1 << 32, "{}", control.window());
            let metrics = control.metrics();
            prop_assert!(metrics.pacing_rate.is_none_or(|rate| rate > 0));
            prop_assert!(metrics.send_quantum.is_none_or(|bytes| bytes >= u64::from(MTU)));
        }
    }
}
