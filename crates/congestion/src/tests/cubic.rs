use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{MS, PACKET, announcing};
use crate::cubic::Cubic;

const MTU: u16 = PACKET as u16;

#[test]
fn the_first_window_is_larger_where_more_is_announced() {
    let begins = |rate, rtt: u32| {
        let announced = announcing(Some(rate), Some(rtt * MS));
        Cubic::new(MTU, announced).window() / PACKET
    };
    assert_eq!(begins(2_250_000, 10), 10);
    assert_eq!(begins(500_000, 200), 19);
    assert_eq!(begins(2_250_000, 200), 64);
    assert_eq!(begins(u64::MAX, u32::MAX), 64);
}

/// A window that has left slow start with a loss, and when that was.
fn cut() -> (Cubic, Instant) {
    let start = Instant::now();
    let mut cubic = Cubic::new(MTU, announcing(None, None));
    for at in 0..100 {
        let sent = start + at * MS;
        cubic.acked(sent + 20 * MS, sent, PACKET, false);
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
    cubic.acked(now + 6 * MS, now - MS, PACKET, false);
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
        cubic.acked(now, now - 5 * MS, PACKET, true);
    }
    assert_eq!(cubic.window(), window);
    // The ten idle seconds do not count on the curve either.
    cubic.acked(now + 10 * MS, now + 5 * MS, PACKET, false);
    assert!(cubic.window() < window + PACKET);
}

#[test]
fn after_persistent_congestion_slow_start_ends_at_the_former_window() {
    let (mut cubic, mut now) = cut();
    let before = cubic.window();
    assert!(cubic.lost(now + 25 * MS, now + 5 * MS, true));
    assert_eq!(cubic.window(), 2 * PACKET);
    assert_eq!(cubic.threshold(), None);
    // Packets sent before the cut do not cut the window again.
    assert!(!cubic.lost(now + 26 * MS, now + 20 * MS, false));
    assert_eq!(cubic.threshold(), None);
    while cubic.threshold().is_none() {
        now += 20 * MS;
        cubic.acked(now + 20 * MS, now, PACKET, false);
    }
    assert!(cubic.window() < before);
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
        let mut cubic = Cubic::new(MTU, announcing(announced, rtt.map(Duration::from_micros)));
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
            prop_assert!(cubic.window() >= 2 * PACKET);
            prop_assert!(cubic.window() < 1 << 32, "{}", cubic.window());
        }
    }
}
