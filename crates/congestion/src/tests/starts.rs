//! Starts on links of their own, over paths that announce nothing.

use super::*;

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
