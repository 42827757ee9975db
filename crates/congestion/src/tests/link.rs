//! CUBIC on links with short and long queues.

use super::*;

/// 18 Mbit/s of packets over a long path, with a queue that holds a quarter of the round trip.
const FAR: Link = Link {
    rate: 2.25e6,
    rtt: Duration::from_millis(200),
    queue: Duration::from_millis(50),
    loss: 0.0,
    acks: Some(Duration::from_micros(100)),
    change: None,
};

fn cubic(link: Link, announced: Announced, seconds: u64) -> Sender<WindowControl> {
    let mut senders = vec![window(Congestion::Cubic, announced, 0)];
    run(link, &mut senders, Duration::from_secs(seconds), 1);
    senders.remove(0)
}

fn one(announced: Option<u64>, seconds: u64) -> Sender<WindowControl> {
    cubic(FAR, announcing(announced, None), seconds)
}

#[test]
fn a_long_path_with_a_short_queue_stays_full() {
    for announced in [None, Some(2_250_000)] {
        let share = share(&one(announced, 60), FAR.rate, 4.0, 60.0);
        assert!(share > 0.99, "{announced:?}: {share}");
    }
}

#[test]
fn no_start_overshoots() {
    let (blind, informed) = (one(None, 4), one(Some(2_250_000), 4));
    // Doubling the window without a train would lose more than 300 packets.
    assert!(blind.lost < 60, "{}", blind.lost);
    assert!(informed.lost < 60, "{}", informed.lost);
}

#[test]
fn a_larger_first_window_is_ahead() {
    let known = cubic(FAR, announcing(Some(2_250_000), Some(FAR.rtt)), 3);
    let unknown = one(Some(2_250_000), 3);
    let ahead = known.arrived[29] - unknown.arrived[29];
    // Both jump once something is acknowledged.
    assert!(ahead > 0, "{ahead}");
    assert!(known.lost < 60, "{}", known.lost);
}

#[test]
fn a_false_announcement_costs_seconds_at_most() {
    let low = one(Some(FAR.rate as u64 / 10), 20);
    let low = share(&low, FAR.rate, 9.0, 20.0);
    assert!(low > 0.99, "{low}");
    let high = one(Some(FAR.rate as u64 * 10), 20);
    let high = share(&high, FAR.rate, 9.0, 20.0);
    assert!(high > 0.9, "{high}");
    let nothing = one(Some(0), 20);
    assert!(share(&nothing, FAR.rate, 16.0, 20.0) > 0.95);
}

#[test]
fn links_of_all_kinds_are_full_and_shared() {
    // Jain's fairness of the second half, and how full the link is.
    for (rtt, queue, full, fair) in [
        (10, 50, 0.99, 0.85),
        (20, 5, 0.99, 0.85),
        (20, 400, 0.99, 0.85),
        (50, 50, 0.99, 0.85),
        (100, 10, 0.97, 0.85),
        // The first of them takes more than a minute to give way.
        (200, 50, 0.99, 0.75),
    ] {
        let link = Link {
            rtt: rtt * MS,
            queue: queue * MS,
            ..FAR
        };
        let sender = |at: u64| window(Congestion::Cubic, Announced::default(), 5 * at);
        let mut senders: Vec<_> = (0..3).map(sender).collect();
        run(link, &mut senders, Duration::from_secs(80), 1);
        let shares = [0, 1, 2].map(|at| share(&senders[at], link.rate, 40.0, 80.0));
        let sum: f64 = shares.iter().sum();
        let jain = sum * sum / (3.0 * shares.iter().map(|share| share * share).sum::<f64>());
        assert!(
            sum > full && jain > fair,
            "{rtt} {queue}: {shares:?} {jain}"
        );
    }
}
