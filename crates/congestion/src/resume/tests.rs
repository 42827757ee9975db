//! What a jump needs, and what becomes of it.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const PACKET: u64 = 1300;
const RTT: Duration = Duration::from_millis(100);
/// 8 Mbit/s: the path holds 100 kB.
const HINT: Hint = Hint { bandwidth: 1e6 };

fn seen() -> Seen {
    Seen {
        now: Instant::now(),
        delivered: 10 * PACKET,
        lost: 0,
        in_flight: 10 * PACKET,
        acked: PACKET,
        prior: 0,
        rtt: RTT,
        min_rtt: RTT,
        window: 13_000,
        packet: PACKET,
        app_limited: false,
        spread: Duration::ZERO,
        lump: Duration::ZERO,
    }
}

/// A sender that has jumped.
fn jumped() -> Resume {
    let mut resume = Resume::new(Some(HINT));
    assert_eq!(resume.acked(&seen()), Some(Order::Jump(50_000)));
    assert!(resume.is_jumping());
    resume
}

/// Of packets that were sent after the jump.
fn validating() -> Seen {
    Seen {
        delivered: 21 * PACKET,
        in_flight: 38 * PACKET,
        prior: 10 * PACKET,
        window: 50_000,
        ..seen()
    }
}

#[test]
fn a_jump_that_arrives_is_kept_and_grows_to_the_hint() {
    let mut resume = jumped();
    let used = 38 * PACKET + PACKET;
    assert_eq!(resume.acked(&validating()), Some(Order::Settle(used)));
    let later = Seen {
        delivered: 22 * PACKET,
        ..validating()
    };
    let more = 50_000 + 2 * PACKET;
    assert_eq!(resume.acked(&later), Some(Order::Grow(more, 100_000)));
    for prior in [21, 22] {
        let round = Seen {
            delivered: 30 * PACKET,
            prior: prior * PACKET + 8 * PACKET * (prior - 21),
            ..validating()
        };
        assert_eq!(resume.acked(&round), None);
    }
    assert!(!resume.is_jumping());
}

#[test]
fn losses_and_a_queue_end_a_jump() {
    let losses = Seen {
        lost: 12 * PACKET,
        ..validating()
    };
    let queue = Seen {
        rtt: 2 * RTT,
        ..validating()
    };
    // 10 packets were in flight, and 11 arrived since.
    for (seen, kept) in [(losses, 21 * PACKET / 2), (queue, 24_570)] {
        let mut resume = jumped();
        assert_eq!(resume.acked(&seen), Some(Order::Retreat(kept)));
        // A packet that was sent after the retreat, when ten more had arrived.
        let after = Seen {
            delivered: seen.delivered + 10 * PACKET,
            prior: seen.delivered,
            ..seen
        };
        let Some(Order::Recover(window)) = resume.acked(&after) else {
            panic!("{resume:?}");
        };
        assert!(window > kept, "{window}");
        assert_eq!(resume.acked(&after), None);
    }
}

#[test]
fn nothing_is_jumped_to_without_a_reason() {
    let limited = Seen {
        app_limited: true,
        ..seen()
    };
    let lost = Seen {
        lost: 8 * PACKET,
        ..seen()
    };
    let wide = Seen {
        window: 60_000,
        ..seen()
    };
    for seen in [limited, lost, wide] {
        assert_eq!(Resume::new(Some(HINT)).acked(&seen), None);
    }
    // It may still jump later, except where the window is as large already.
    let mut resume = Resume::new(Some(HINT));
    assert_eq!(resume.acked(&limited), None);
    assert_eq!(resume.acked(&seen()), Some(Order::Jump(50_000)));
}

proptest! {
    /// Whatever is acknowledged and lost, and when: no window beyond half of the hint before
    /// packets of the jump arrive, beyond what is in use or what the hint allows after that.
    #[test]
    fn windows_are_bounded_by_what_is_known(
        bandwidth in any::<u32>().prop_map(Some),
        events in prop::collection::vec(
            (0..200u64, 0..200u64, 0..400u64, 0..400u64, 0..300u64, any::<bool>()), 1..100),
    ) {
        let hint = bandwidth.map(|rate| Hint { bandwidth: rate.into() });
        let most = hint.map_or(0.0, |hint| hint.holds(RTT));
        let mut resume = Resume::new(hint);
        let (mut window, mut delivered, mut lost) = (10 * PACKET, 0, 0);
        for (acked, gone, behind, in_flight, more, app_limited) in events {
            let acked = acked * PACKET;
            delivered += acked;
            lost += gone * PACKET / 50;
            let in_flight = in_flight * PACKET;
            let seen = Seen {
                now: Instant::now(),
                delivered,
                lost,
                in_flight,
                acked,
                prior: delivered.saturating_sub(behind * PACKET),
                rtt: RTT + Duration::from_millis(more),
                min_rtt: RTT,
                window,
                packet: PACKET,
                app_limited,
                spread: Duration::ZERO,
                lump: Duration::ZERO,
            };
            match resume.acked(&seen) {
                None => {}
                Some(Order::Train(_) | Order::Hold(_) | Order::Fill(..)) => {
                    prop_assert!(false, "a hint is known");
                }
                Some(Order::Jump(to)) => {
                    prop_assert!(to as f64 <= JUMP * most && to as f64 <= MAX_JUMP);
                    prop_assert!(to >= window && !app_limited);
                    window = to;
                }
                Some(Order::Grow(to, _)) => {
                    prop_assert!(to as f64 <= GROW * most && to > window);
                    prop_assert!(to <= window + 2 * acked);
                    window = to;
                }
                Some(Order::Settle(to)) => {
                    prop_assert!(to >= in_flight);
                    window = window.min(to);
                }
                Some(Order::Retreat(to) | Order::Recover(to)) => {
                    prop_assert!(to <= delivered + 400 * PACKET);
                    window = window.min(to);
                }
            }
        }
    }
}
