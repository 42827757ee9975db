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
fn due(emulator: &mut Emulator<()>, times: &[u64]) -> Vec<u128> {
    let start = Instant::now();
    for time in times {
        let now = start + Duration::from_millis(*time);
        assert!(emulator.hold(now, 10, ()).is_ok());
    }
    let next = || {
        let due = emulator.next_due()?;
        emulator.take_due(due)?;
        Some((due - start).as_millis())
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn a_link_without_delay_holds_no_packets() {
    let mut emulator = Emulator::<()>::new(Shape::default(), 1);
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
    assert!(emulator.hold(start, 1, 0).is_ok());
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
    let mut emulator = Emulator::<()>::new(shape(0, 0, 0.1), 5);
    let lost = (0..100_000).filter(|_| emulator.loses()).count();
    assert!((9_500..10_500).contains(&lost), "{lost}");
    emulator.set_shape(shape(0, 0, 1.0));
    assert!((0..1000).all(|_| emulator.loses()));
}

#[test]
fn equal_seeds_draw_equal_values() {
    let draws = |seed| {
        let mut emulator = Emulator::<()>::new(shape(0, 0, 0.5), seed);
        (0..64).map(|_| emulator.loses()).collect::<Vec<_>>()
    };
    assert_eq!(draws(1), draws(1));
    assert_ne!(draws(1), draws(2));
}

#[test]
fn packets_in_flight_are_sent_first_when_the_delay_ends() {
    let mut emulator = Emulator::new(shape(20, 0, 0.0), 1);
    let start = Instant::now();
    assert!(emulator.hold(start, 1, 1).is_ok());
    emulator.set_shape(Shape::default());
    assert!(emulator.delays());
    assert!(emulator.hold(start, 1, 2).is_ok());
    let later = start + Duration::from_millis(20);
    let order: Vec<_> = std::iter::from_fn(|| emulator.take_due(later)).collect();
    assert_eq!(order, [1, 2]);
    assert!(!emulator.delays());
}

#[test]
fn memory_is_bounded_and_released() {
    let mut emulator = Emulator::new(shape(1000, 0, 0.0), 1);
    let now = Instant::now();
    let taken = (0..10_000).take_while(|i| emulator.hold(now, 64_000, *i).is_ok());
    let taken = taken.count();
    assert_eq!(taken, WITHOUT_RATE / 64_000);
    assert_eq!(emulator.hold(now, 64_000, 7), Err(7));
    assert!(!emulator.take_drained(), "all of it is under way");
    assert!(emulator.clear().eq(0..taken));
    assert!(emulator.take_drained());
    assert!(!emulator.take_drained(), "once is enough");
    assert!(emulator.hold(now, 64_000, 0).is_ok());
}

#[test]
fn no_more_is_held_than_the_rate_carries() {
    let held = |shape: Shape| {
        let mut emulator = Emulator::new(shape, 1);
        let now = Instant::now();
        (0..u32::MAX)
            .take_while(|_| emulator.hold(now, 10_000, ()).is_ok())
            .count()
            * 10_000
    };
    let with_rate = |rate, delay| Shape {
        rate: Some(rate),
        queue: Duration::from_millis(50),
        ..shape(delay, 0, 0.0)
    };
    // 244 ms at 1 Gbit/s, and the burst.
    let expected = 30_500_000 + BURST;
    let found = held(with_rate(1_000_000_000, 194));
    assert!((expected - 10_000..=expected).contains(&found), "{found}");
    let found = held(with_rate(100_000_000_000, 1000));
    assert!(
        (MAX_IN_FLIGHT - 10_000..=MAX_IN_FLIGHT).contains(&found),
        "{found}"
    );
}

#[test]
fn a_batch_is_what_the_rate_carries_in_a_millisecond() {
    assert_eq!(max_batch(Some(1_000_000_000)), Some(125_000));
    assert_eq!(max_batch(Some(8_000)), Some(1));
    assert_eq!(max_batch(None), None);
}
