use proptest::prelude::*;

use super::*;

fn path(n: u8) -> Fingerprint {
    Fingerprint::from([n; 32])
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Paths that carry given bytes in each slot while they are used.
struct Run {
    slots: Slots,
    began: Instant,
    now: Instant,
    read: BTreeMap<Fingerprint, u64>,
}

impl Run {
    fn new(options: SlotOptions) -> Self {
        let began = Instant::now();
        Self {
            slots: Slots::new(options),
            began,
            now: began,
            read: BTreeMap::new(),
        }
    }

    fn connect(&mut self, n: u8, handshake: u64) {
        self.slots.connected(path(n), ms(handshake), self.now);
        self.read.insert(path(n), 0);
    }

    /// Runs one slot of a second at these rates, in bytes; `None` if a path cannot be used.
    fn slot(&mut self, rates: &[(u8, Option<u64>)]) -> Vec<(Fingerprint, String)> {
        self.now += Duration::from_secs(1);
        for (n, rate) in rates {
            if !self.slots.is_waiting(path(*n)) {
                *self.read.entry(path(*n)).or_default() += rate.unwrap_or(0);
            }
        }
        let usable: BTreeMap<Fingerprint, bool> = rates
            .iter()
            .map(|(n, rate)| (path(*n), rate.is_some()))
            .collect();
        let read = self.read.clone();
        let read = |path| read.get(&path).copied().filter(|_| usable[&path]);
        assert!(self.slots.due(self.now));
        let changes = self.slots.slot(read, self.now);
        let text = |(path, decision): (Fingerprint, Decision)| (path, decision.to_string());
        changes.into_iter().map(text).collect()
    }

    fn waiting(&self) -> Vec<u8> {
        let all = 0..=255u8;
        all.filter(|n| self.slots.is_waiting(path(*n))).collect()
    }
}

fn strict() -> SlotOptions {
    SlotOptions {
        min_weight: 0.1,
        ..SlotOptions::default()
    }
}

// 000, Alg. 2.
#[test]
fn paths_with_slow_handshakes_wait() {
    let mut run = Run::new(strict());
    run.slots.expect(3);
    run.connect(1, 8);
    run.connect(2, 80);
    assert!(!run.slots.due(run.now));
    run.now += ms(210);
    run.connect(3, 210);
    assert!(run.slots.due(run.now));
    let changes = run.slots.slot(|_| None, run.now);
    let text: Vec<_> = changes.iter().map(|(p, d)| (*p, d.to_string())).collect();
    let expected = "waiting: handshake 210 ms, 4 % of the best's weight";
    assert_eq!(text, [(path(3), expected.to_owned())]);
    assert_eq!(run.waiting(), [3]);
}

#[test]
fn handshakes_are_compared_after_a_second_without_missing_ones() {
    let mut run = Run::new(strict());
    run.slots.expect(3);
    run.connect(1, 8);
    run.now += ms(500);
    run.connect(2, 508);
    run.now += ms(499);
    assert!(!run.slots.due(run.now));
    run.now += ms(1);
    assert!(run.slots.due(run.now));
    run.slots.slot(|_| None, run.now);
    assert_eq!(run.waiting(), [2]);
}

// 000, Alg. 3.
#[test]
fn paths_that_carry_too_little_wait_and_are_probed() {
    let mut run = Run::new(strict());
    for n in 1..=3 {
        run.connect(n, 10);
    }
    let rates = [(1, Some(3_000_000)), (2, Some(300_000)), (3, Some(12_500))];
    // The first slot only sets the marks; two round trips of the second are the grace period.
    assert_eq!(run.slot(&rates), []);
    let expected = "waiting: 0.1 Mbit/s, 0.4 % of the best".to_owned();
    assert_eq!(run.slot(&rates), [(path(3), expected)]);
    // It waits for four slots and is then used.
    for _ in 0..3 {
        assert_eq!(run.slot(&rates), []);
    }
    let probing = "taken: probed after waiting 4 time slots".to_owned();
    assert_eq!(run.slot(&rates), [(path(3), probing)]);
    // Its rate has risen meanwhile.
    let better = [
        (1, Some(3_000_000)),
        (2, Some(300_000)),
        (3, Some(1_012_500)),
    ];
    let taken = "taken: probed again, 8.1 Mbit/s".to_owned();
    assert_eq!(run.slot(&better), [(path(3), taken)]);
    assert!(run.waiting().is_empty());
}

#[test]
fn a_path_that_gets_no_better_waits_longer() {
    let mut run = Run::new(strict());
    run.connect(1, 1);
    run.connect(2, 1);
    let rates = [(1, Some(1_000_000)), (2, Some(10))];
    let mut waits = Vec::new();
    for _ in 0..200 {
        for (_, text) in run.slot(&rates) {
            let slots = text.strip_prefix("taken: probed after waiting ");
            waits.extend(slots.map(|text| text.split(' ').next().unwrap().to_owned()));
        }
    }
    assert_eq!(waits, ["4", "8", "16", "32", "32", "32", "32"]);
}

#[test]
fn a_path_that_cannot_be_used_is_not_weighed() {
    let mut run = Run::new(strict());
    run.connect(1, 1);
    run.connect(2, 1);
    for _ in 0..10 {
        assert_eq!(run.slot(&[(1, Some(1_000_000)), (2, None)]), []);
    }
}

#[test]
fn the_best_waiting_path_takes_over() {
    let start = || {
        let mut run = Run::new(strict());
        (1..=3).for_each(|n| run.connect(n, 1));
        let rates = [(1, Some(1_000_000)), (2, Some(2_000)), (3, Some(1_000))];
        (0..3).for_each(|_| drop(run.slot(&rates)));
        assert_eq!(run.waiting(), [2, 3]);
        run
    };
    let mut run = start();
    let (taker, decision) = run.slots.gone(path(1), run.now).unwrap();
    let expected = format!("taken: takes over from path {}", path(1).short());
    assert_eq!((taker, decision.to_string()), (path(2), expected));

    let mut run = start();
    let text = run.slot(&[(1, None), (2, Some(2_000)), (3, Some(1_000))]);
    let expected = "taken: takes over: no other path delivers".to_owned();
    assert_eq!(text, [(path(2), expected)]);
}

// A path with a tenth of the rate and twenty times the delay is still worth using.
#[test]
fn unequal_paths_are_both_used_by_default() {
    let mut run = Run::new(SlotOptions::default());
    run.slots.expect(2);
    run.connect(1, 3 * 5);
    run.connect(2, 3 * 100);
    for _ in 0..50 {
        assert_eq!(run.slot(&[(1, Some(10_000_000)), (2, Some(1_000_000))]), []);
    }
}

/// Rates that vary by up to 20 % from slot to slot, the same for the same seed.
fn noisy(run: &mut Run, rates: &[(u8, f64)], seed: u64) -> Vec<(u8, Option<u64>)> {
    let slot = run.now.duration_since(run.began).as_secs();
    let noise = |n: u8| crate::testing::noise(seed, slot * 16 + u64::from(n));
    let rates = rates.iter();
    rates
        .map(|(n, rate)| (*n, Some((rate * (1.0 + 0.2 * noise(*n))) as u64)))
        .collect()
}

#[test]
fn noise_makes_no_sufficient_path_wait() {
    for seed in 0..50 {
        let mut run = Run::new(strict());
        (1..=3).for_each(|n| run.connect(n, 1));
        for _ in 0..1000 {
            let rates = noisy(&mut run, &[(1, 1e6), (2, 9e5), (3, 1.7e5)], seed);
            assert_eq!(run.slot(&rates), [], "seed {seed}");
        }
    }
}

// A path at the limit alternates between use and waiting, but ever more rarely.
#[test]
fn a_path_at_the_limit_does_not_flap() {
    for seed in 0..50 {
        let mut run = Run::new(strict());
        (1..=2).for_each(|n| run.connect(n, 1));
        let mut changes = 0;
        for _ in 0..1000 {
            let rates = noisy(&mut run, &[(1, 1e6), (2, 1e5)], seed);
            changes += run.slot(&rates).len();
        }
        // Each wait makes three changes: waiting, probed, taken.
        assert!(changes <= 90, "seed {seed}: {changes} changes");
    }
}

#[test]
fn a_single_slot_without_data_makes_no_path_wait() {
    let mut run = Run::new(strict());
    (1..=2).for_each(|n| run.connect(n, 1));
    for slot in 0..100 {
        let stalls = slot % 4 == 3;
        let second = if stalls { 0 } else { 500_000 };
        assert_eq!(run.slot(&[(1, Some(1_000_000)), (2, Some(second))]), []);
    }
}

#[test]
fn no_path_is_weighed_while_there_is_little_to_send() {
    let mut run = Run::new(strict());
    (1..=2).for_each(|n| run.connect(n, 1));
    let busy = [(1, Some(1_000_000)), (2, Some(800_000))];
    (0..5).for_each(|_| assert_eq!(run.slot(&busy), []));
    // All that is sent goes over the first.
    for _ in 0..15 {
        assert_eq!(run.slot(&[(1, Some(5_000)), (2, Some(0))]), []);
    }
    (0..5).for_each(|_| assert_eq!(run.slot(&busy), []));
}

#[test]
fn a_path_that_breaks_waits_after_three_slots() {
    let mut run = Run::new(strict());
    (1..=2).for_each(|n| run.connect(n, 1));
    let good = [(1, Some(1_000_000)), (2, Some(800_000))];
    (0..5).for_each(|_| assert_eq!(run.slot(&good), []));
    let broken = [(1, Some(1_000_000)), (2, Some(0))];
    (0..2).for_each(|_| assert_eq!(run.slot(&broken), []));
    assert_eq!(run.slot(&broken).len(), 1);
    assert_eq!(run.waiting(), [2]);
    // It works again when it is probed.
    (0..6).for_each(|_| drop(run.slot(&good)));
    assert!(run.waiting().is_empty());
}

proptest! {
    #[test]
    fn never_do_all_paths_wait_nor_does_any_wait_forever(
        handshakes in prop::collection::vec(1u64..3000, 1..6),
        steps in prop::collection::vec(prop::collection::vec(prop::option::of(0u64..1_000_000), 6), 1..150),
        min in 0.0f64..=1.0,
        leaves in 0usize..150,
    ) {
        let mut run = Run::new(SlotOptions { min_weight: min, ..SlotOptions::default() });
        let mut count = handshakes.len();
        for (n, handshake) in handshakes.iter().enumerate() {
            run.connect(n as u8, *handshake);
        }
        let mut waits = vec![0; count];
        for (step, rates) in steps.iter().enumerate() {
            if step == leaves && count > 1 {
                count -= 1;
                run.slots.gone(path(count as u8), run.now);
            }
            let rates: Vec<_> = (0..count).map(|n| (n as u8, rates[n])).collect();
            run.slot(&rates);
            let waiting = run.waiting();
            prop_assert!(waiting.len() < count, "all wait");
            for (n, slots) in waits.iter_mut().enumerate() {
                let waits = waiting.contains(&(n as u8));
                *slots = if waits { *slots + 1 } else { 0 };
                prop_assert!(*slots <= MAX_SLOTS, "{} waited {} slots", n, slots);
            }
        }
    }

    #[test]
    fn a_path_that_carries_enough_never_waits(
        shares in prop::collection::vec(0.2f64..=1.0, 1..6),
        handshakes in prop::collection::vec(100u64..900, 6),
        best in 1_000u64..1_000_000_000,
    ) {
        let mut run = Run::new(strict());
        for (n, handshake) in handshakes.iter().take(shares.len()).enumerate() {
            run.connect(n as u8, *handshake);
        }
        let rates: Vec<_> = shares
            .iter()
            .enumerate()
            .map(|(n, share)| (n as u8, Some((best as f64 * share) as u64)))
            .collect();
        for _ in 0..20 {
            prop_assert_eq!(run.slot(&rates), []);
        }
    }
}
