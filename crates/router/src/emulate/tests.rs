use std::time::Duration;

use super::*;

fn shape(delay_ms: u64, jitter_ms: u64, loss: f64) -> Shape {
    Shape {
        delay: Duration::from_millis(delay_ms),
        jitter: Duration::from_millis(jitter_ms),
        loss,
        ..Shape::default()
    }
}

/// When packets held at `times` are due, both in milliseconds after the start.
fn due(emulator: &mut Emulator, times: &[u64]) -> Vec<u128> {
    let start = Instant::now();
    for time in times {
        let now = start + Duration::from_millis(*time);
        assert!(emulator.hold(now, 10, vec![0; 10], false).is_ok());
    }
    let end = start + Duration::from_secs(3600);
    std::iter::from_fn(|| emulator.take_due(end))
        .map(|held| (held.due - start).as_millis())
        .collect()
}

#[test]
fn a_link_without_delay_holds_no_packets() {
    let mut emulator = Emulator::new(Shape::default(), 1);
    assert!(!emulator.delays());
    assert!((0..1000).all(|_| !emulator.loses()));
}

#[test]
fn delay_is_added_to_each_packet() {
    let mut emulator = Emulator::new(shape(20, 0, 0.0), 1);
    assert!(emulator.delays());
    assert_eq!(due(&mut emulator, &[0, 1, 7]), [20, 21, 27]);
}

#[test]
fn packets_are_not_due_early() {
    let mut emulator = Emulator::new(shape(20, 0, 0.0), 1);
    let start = Instant::now();
    assert!(emulator.hold(start, 1, vec![0], false).is_ok());
    assert_eq!(emulator.next_due(), Some(start + Duration::from_millis(20)));
    assert!(
        emulator
            .take_due(start + Duration::from_millis(19))
            .is_none()
    );
    assert!(
        emulator
            .take_due(start + Duration::from_millis(20))
            .is_some()
    );
    assert!(emulator.next_due().is_none());
}

#[test]
fn jitter_stays_within_its_bounds_and_keeps_the_order() {
    let mut emulator = Emulator::new(shape(20, 10, 0.0), 3);
    // Far enough apart that no packet is delayed to keep the order.
    let times: Vec<_> = (0..500).map(|i| i * 100).collect();
    let delays: Vec<_> = due(&mut emulator, &times)
        .iter()
        .zip(&times)
        .map(|(due, time)| due - u128::from(*time))
        .collect();
    assert!(delays.iter().all(|delay| (10..=30).contains(delay)));
    assert!(delays.iter().any(|delay| *delay <= 12));
    assert!(delays.iter().any(|delay| *delay >= 27));
    let mean = delays.iter().sum::<u128>() / 500;
    assert!((19..=21).contains(&mean), "{mean}");

    let together = due(&mut emulator, &[100_000; 100]);
    assert!(together.is_sorted());
}

#[test]
fn loss_has_the_configured_rate() {
    let mut emulator = Emulator::new(shape(0, 0, 0.1), 5);
    let lost = (0..100_000).filter(|_| emulator.loses()).count();
    assert!((9_500..10_500).contains(&lost), "{lost}");
    emulator.set_shape(shape(0, 0, 1.0));
    assert!((0..1000).all(|_| emulator.loses()));
}

#[test]
fn equal_seeds_draw_equal_values() {
    let draws = |seed| {
        let mut emulator = Emulator::new(shape(0, 0, 0.5), seed);
        (0..64).map(|_| emulator.loses()).collect::<Vec<_>>()
    };
    assert_eq!(draws(1), draws(1));
    assert_ne!(draws(1), draws(2));
}

#[test]
fn packets_in_flight_are_sent_first_when_the_delay_ends() {
    let mut emulator = Emulator::new(shape(20, 0, 0.0), 1);
    let start = Instant::now();
    assert!(emulator.hold(start, 1, vec![1], false).is_ok());
    emulator.set_shape(Shape::default());
    assert!(emulator.delays());
    assert!(emulator.hold(start, 1, vec![2], false).is_ok());
    let later = start + Duration::from_millis(20);
    let order: Vec<_> = std::iter::from_fn(|| emulator.take_due(later))
        .map(|held| held.data[0])
        .collect();
    assert_eq!(order, [1, 2]);
    assert!(!emulator.delays());
}

#[test]
fn memory_is_bounded_and_released() {
    let mut emulator = Emulator::new(shape(1000, 0, 0.0), 1);
    let now = Instant::now();
    let mut taken = 0;
    while emulator.hold(now, 1000, vec![0; 64_000], false).is_ok() {
        taken += 1;
        assert!(taken < 10_000);
    }
    assert_eq!(taken, MAX_HELD / 64_000);
    assert!(!emulator.take_drained(), "all of it is under way");
    assert_eq!(emulator.clear(), taken as u64 * 64);
    assert!(emulator.take_drained());
    assert!(!emulator.take_drained(), "once is enough");
    assert!(emulator.hold(now, 1000, vec![0; 64_000], false).is_ok());
}
