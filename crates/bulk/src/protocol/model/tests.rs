use proptest::prelude::*;

use super::*;

const MB: u64 = 1 << 20;
const MS: Duration = Duration::from_millis(1);

/// The share of a path's rate that data packets leave to content, at the rate of the test's control.
const CONTENT: f64 = 0.99 * 1400.0 / 1437.0;

fn sum_of_rates(paths: &[Path]) -> f64 {
    paths.iter().map(|path| path.rate).sum::<f64>() * CONTENT
}

#[test]
fn content_arrives_over_one_path_with_few_acknowledgements() {
    for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
        let paths = vec![Path::new(100.0, 10)];
        let wanted = sum_of_rates(&paths);
        let outcome = Plan {
            cipher,
            ..Plan::new(8 * MB, paths)
        }
        .run();
        assert!(outcome.goodput() > 0.95 * wanted, "{outcome:?}");
        assert!(outcome.ack_bytes * 100 < outcome.data_bytes, "{outcome:?}");
        assert_eq!(outcome.sink.repeated, 0);
        let stats = outcome.subflows[0].unwrap();
        assert_eq!((stats.lost, stats.spurious, stats.control), (0, 0, "fixed"));
        assert!(stats.marked > 0 && !stats.stalled);
        assert!(stats.min_rtt >= 20 * MS && stats.rtt < 30 * MS, "{stats:?}");
    }
}

#[test]
fn disjoint_paths_add_up() {
    let one = Plan::new(4 * MB, vec![Path::new(20.0, 20)]).run().goodput();
    let eight = Plan::new(32 * MB, vec![Path::new(20.0, 20); 8])
        .run()
        .goodput();
    assert!(eight >= 0.97 * 8.0 * one, "{eight} of 8 times {one}");
}

#[test]
fn different_paths_finish_together() {
    // 10 s at the sum of their rates.
    let paths = vec![Path::new(20.0, 5), Path::new(2.0, 100)];
    let wanted = sum_of_rates(&paths);
    let outcome = Plan::new((wanted * 10.0) as u64, paths).run();
    assert!(
        outcome.goodput() >= 0.95 * wanted,
        "{} of {wanted}: {outcome:?}",
        outcome.goodput()
    );
    assert!(outcome.sink.repeated < MB / 4, "{outcome:?}");
    // The slow path is the one with the short delay.
    let mut paths = vec![Path::new(2.0, 5), Path::new(20.0, 100)];
    paths[1].loss = 0.01;
    let wanted = sum_of_rates(&paths);
    let outcome = Plan::new((wanted * 10.0) as u64, paths).run();
    assert!(
        outcome.goodput() >= 0.95 * wanted,
        "{} of {wanted}: {outcome:?}",
        outcome.goodput()
    );
}

#[test]
fn losses_are_repaired() {
    let mut path = Path::new(50.0, 20);
    path.loss = 0.05;
    let outcome = Plan::new(8 * MB, vec![path.clone(), path]).run();
    for stats in outcome.subflows.iter().flatten() {
        assert!(
            stats.lost * 10 < stats.sent && stats.spurious * 100 < stats.sent,
            "{stats:?}"
        );
    }
    assert!(
        outcome.sink.repeated * 50 < outcome.sink.received,
        "{outcome:?}"
    );
    assert!(outcome.ack_bytes * 100 < outcome.data_bytes, "{outcome:?}");
}

#[test]
fn reordering_is_learnt() {
    let mut path = Path::new(50.0, 20);
    path.reorder = (0.2, 3 * MS);
    let outcome = Plan::new(8 * MB, vec![path]).run();
    let stats = outcome.subflows[0].unwrap();
    assert!(
        stats.lost == stats.spurious && stats.lost * 50 < stats.sent,
        "{stats:?}"
    );
}

#[test]
fn a_dead_path_s_content_arrives_over_others() {
    let mut dead = Path::new(50.0, 20);
    dead.dead = Some((200 * MS, Duration::MAX));
    // Noticed by the source alone.
    let outcome = Plan::new(8 * MB, vec![Path::new(50.0, 20), dead.clone()]).run();
    let stats = outcome.subflows[1].unwrap();
    assert!(stats.stalled && stats.in_flight == 0, "{stats:?}");
    // What arrived while its acknowledgements did not.
    let round_trip = 50e6 / 8.0 * 0.04;
    assert!((outcome.sink.repeated as f64) < round_trip, "{outcome:?}");
    // Removed while content is in flight, before any timeout.
    dead.noticed = Some(210 * MS);
    let outcome = Plan::new(8 * MB, vec![Path::new(50.0, 20), dead]).run();
    assert_eq!(outcome.subflows[1], None);
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let mut path = Path::new(50.0, 20);
    path.dead = Some((200 * MS, 2000 * MS));
    let outcome = Plan::new(8 * MB, vec![path]).run();
    assert!(!outcome.subflows[0].unwrap().stalled);
    assert!(outcome.time < Duration::from_secs(6), "{outcome:?}");
}

#[test]
fn a_slow_disk_bounds_what_the_sink_holds() {
    let (credit, disk) = (MB, 1e6);
    let paths = vec![Path::new(50.0, 20), Path::new(50.0, 5)];
    let plan = Plan {
        credit,
        disk: Some(disk),
        ..Plan::new(4 * MB, paths)
    };
    let outcome = plan.run();
    assert!(outcome.held <= credit, "{outcome:?}");
    // All but the first credit waits for the disk.
    let least = 3.0 * MB as f64 / disk;
    assert!(
        outcome.time.as_secs_f64() < least * 1.1 && outcome.sink.repeated < MB / 8,
        "{outcome:?}"
    );
}

#[test]
fn lost_acknowledgements_of_credit_do_not_stop_the_transfer() {
    let mut path = Path::new(50.0, 5);
    path.loss = 0.3;
    let plan = Plan {
        credit: MB / 8,
        disk: Some(1e6),
        ..Plan::new(MB, vec![path])
    };
    assert!(plan.run().held <= MB / 8);
}

#[test]
fn content_that_is_wanted_again_arrives_again() {
    let mut path = Path::new(50.0, 5);
    path.loss = 0.02;
    let again = Some(MB - 100..2 * MB + 5);
    // The credit is for each byte once.
    let plan = Plan {
        again,
        credit: 4 * MB,
        ..Plan::new(4 * MB, vec![path.clone(), path])
    };
    assert_eq!(plan.run().sink.received, 4 * MB);
}

#[test]
fn hostile_packets_change_nothing_but_counters() {
    let mut path = Path::new(50.0, 5);
    (path.loss, path.duplicate, path.corrupt, path.truncate) = (0.02, 0.05, 0.02, 0.02);
    path.reorder = (0.1, MS);
    let plan = Plan {
        attack_every: Some(3),
        ..Plan::new(4 * MB, vec![path.clone(), path])
    };
    let outcome = plan.run();
    assert!(outcome.attacks > 900);
    for rejections in &outcome.rejections {
        assert!(
            rejections.sealed.forged > 100 && rejections.sealed.replayed > 50,
            "{rejections:?}"
        );
        assert!(
            rejections.sealed.not_packets > 10 && rejections.malformed == 0,
            "{rejections:?}"
        );
    }
}

#[test]
fn a_limit_is_kept_and_every_path_carries_its_part() {
    // The slow path alone cannot carry a third of the limit, and the fast one could carry all of it.
    let paths = vec![
        Path::new(100.0, 5),
        Path::new(4.0, 50),
        Path::new(100.0, 20),
    ];
    let rate = 16_000_000;
    let outcome = Plan {
        rate: Some(rate),
        ..Plan::new(8 * MB, paths)
    }
    .run();
    let share = outcome.goodput() * 8.0 / rate as f64;
    assert!((0.95..=1.01).contains(&share), "{share}");
    let carried = |index: usize| {
        let stats = outcome.subflows[index].unwrap();
        stats.acked as f64 * 1400.0 * 8e-6 / outcome.time.as_secs_f64()
    };
    let rates = [0, 1, 2].map(carried);
    assert!(rates[1] > 0.75 * 4.0 && rates[1] < 4.0, "{rates:?}");
    assert!((rates[0] / rates[2] - 1.0).abs() < 0.2, "{rates:?}");
}

#[test]
fn rate_control_does_not_take_a_limit_for_the_path() {
    let rate = 10_000_000;
    for algorithm in Algorithm::ALL {
        let outcome = Plan {
            rate: Some(rate),
            algorithm: Some(algorithm),
            ..Plan::new(10 * MB, vec![Path::new(100.0, 20)])
        }
        .run();
        let stats = outcome.subflows[0].unwrap();
        let share = outcome.goodput() * 8.0 / rate as f64;
        assert!((0.95..=1.01).contains(&share), "{algorithm}: {share}");
        assert_eq!(stats.lost, 0, "{algorithm}: {stats:?}");
        // The window neither grows without need, nor is it what limits.
        let in_flight = rate as f64 / 8.0 * 0.04;
        let window = stats.window as f64 / in_flight;
        let most = match algorithm {
            // It begins with 1460 packets in a round trip.
            Algorithm::AllegroHercules => 100.0,
            _ => 8.0,
        };
        assert!((1.0..most).contains(&window), "{algorithm}: {window}");
    }
}

fn path() -> impl Strategy<Value = Path> {
    let kind = (1.0..100.0_f64, 0..100_u64, 1500..300_000_u64);
    let faults = (
        0.0..0.2_f64,
        0.0..0.1_f64,
        0.0..0.1_f64,
        0.0..0.1_f64,
        0.0..0.3_f64,
        1..30_u64,
    );
    let death = prop::option::of((0..500_u64, 0..2000_u64));
    (kind, faults, death).prop_map(|((mbit, ms, queue), faults, death)| {
        let (loss, duplicate, corrupt, truncate, reorder, late) = faults;
        Path {
            queue,
            loss,
            duplicate,
            corrupt,
            truncate,
            reorder: (reorder, Duration::from_millis(late)),
            dead: death
                .map(|(from, length)| (Duration::from_millis(from), Duration::from_millis(length))),
            ..Path::new(mbit, ms)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn content_arrives_over_any_paths(
        paths in prop::collection::vec(path(), 1..5),
        content in 0..MB,
        credit in 10_000..MB,
        per_packet in 500..1400_usize,
        seed: u64,
        noticed in prop::option::of(0..1000_u64),
        rate in prop::option::of(100_000..100_000_000_u64),
    ) {
        let mut paths = paths;
        if paths.len() > 1 {
            paths[0].noticed = noticed.map(Duration::from_millis);
        }
        let limit = Duration::from_secs(600);
        let plan = Plan { credit, per_packet, seed, limit, rate, ..Plan::new(content, paths) };
        let outcome = plan.run();
        prop_assert!(outcome.held <= credit);
        // All but 20 ms and a batch.
        let most = |rate: u64| rate as f64 / 8.0 * (outcome.time.as_secs_f64() + 0.02) + 65e3;
        prop_assert!(rate.is_none_or(|rate| content as f64 <= most(rate)));
    }
}
