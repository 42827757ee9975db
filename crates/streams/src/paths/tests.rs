use super::*;

const NOW: Duration = Duration::from_secs(1);

fn paths(all: &[(u64, u64)]) -> Paths {
    let mut paths = Paths::default();
    for (key, (rtt, window)) in (0..).zip(all) {
        paths.add(key);
        let estimate = Estimate {
            rtt: Duration::from_millis(*rtt),
            window: *window,
            loss: 0,
        };
        paths.set(key, estimate);
    }
    paths
}

fn least(paths: &Paths, key: PathKey) -> Option<u64> {
    paths.least_backlog(paths.rank(key, NOW)?, NOW)
}

#[test]
fn a_far_path_is_used_for_a_large_backlog_only() {
    // The slow path delivers 90 ms later; the fast one sends 10 MB/s meanwhile.
    let paths = paths(&[(10, 100_000), (100, 100_000)]);
    assert_eq!(least(&paths, 0), Some(0));
    assert_eq!(least(&paths, 1), Some(900_000));
    assert_eq!(least(&paths, 2), None);
}

#[test]
fn equal_paths_are_both_used() {
    let paths = paths(&[(20, 50_000), (20, 50_000)]);
    assert_eq!([0, 1].map(|key| least(&paths, key)), [Some(0); 2]);
}

#[test]
fn a_path_that_is_busy_delivers_later() {
    let mut paths = paths(&[(20, 50_000), (30, 50_000)]);
    let first = |paths: &Paths| paths.rank(0, NOW) < paths.rank(1, NOW);
    assert!(first(&paths));
    for offset in 0..10 {
        paths.on_sent(0, (0, offset << 14), 16 << 10, NOW);
    }
    assert!(!first(&paths));
    paths
        .on_arrived(0, 10 * (16 << 10), NOW + Duration::from_millis(20))
        .unwrap();
    assert!(first(&paths));
}

#[test]
fn the_fastest_path_with_room_comes_first() {
    let mut paths = paths(&[(30, 1 << 20), (10, 1 << 20), (20, 1 << 20)]);
    (0..3).for_each(|key| paths.set_idle(key, true));
    let is_first = |paths: &Paths, key| {
        let rank = paths.rank(key, NOW);
        rank.is_some_and(|rank| paths.is_first(rank, NOW))
    };
    assert_eq!(
        [0, 1, 2].map(|key| is_first(&paths, key)),
        [false, true, false]
    );
    assert_eq!(paths.idle(NOW), [1, 2, 0]);
    paths.set_idle(1, false);
    assert_eq!(
        [0, 1, 2].map(|key| is_first(&paths, key)),
        [false, true, true]
    );
    assert!(!is_first(&paths, 7));
}

#[test]
fn a_path_that_is_late_comes_last_until_it_delivers() {
    let mut paths = paths(&[(10, 100_000), (100, 100_000)]);
    paths.on_sent(0, (0, 0), 1000, NOW);
    let then = NOW + Duration::from_secs(1);
    let rank = |paths: &Paths, key| paths.rank(key, then).unwrap();
    assert!(rank(&paths, 0) > rank(&paths, 1));
    assert_eq!(paths.least_backlog(rank(&paths, 0), then), None);
    let late: Vec<_> = paths.late_on_others(rank(&paths, 1), then).collect();
    assert_eq!(late, [(0, 0, 0)]);
    // It delivers after all, but later than was expected: that counts for some time.
    assert_eq!(paths.on_arrived(0, 1000, then), Ok(vec![(0, 0)]));
    assert!(!rank(&paths, 0).is_late && rank(&paths, 0) > rank(&paths, 1));
    let later = then + Duration::from_secs(20);
    assert!(paths.rank(0, later) < paths.rank(1, later));
    assert_eq!(paths.on_arrived(0, 1001, then), Err(NeverSent));
}

#[test]
fn frames_without_data_avoid_losses() {
    let mut paths = paths(&[(20, 1 << 20), (25, 1 << 20), (200, 1 << 20)]);
    (0..3).for_each(|key| paths.set_idle(key, true));
    let first = |paths: &Paths| {
        let is_first =
            |key: &u64| paths.is_first_for_control(paths.rank(*key, NOW).unwrap(), None, NOW);
        (0..3).find(is_first)
    };
    assert_eq!(first(&paths), Some(0));
    let estimate = Estimate {
        rtt: Duration::from_millis(20),
        window: 1 << 20,
        loss: 100,
    };
    paths.set(0, estimate);
    assert_eq!(first(&paths), Some(1));
}

#[test]
fn a_path_that_has_enough_leaves_blocks_to_a_slower_one() {
    let mut paths = paths(&[(10, 100_000), (100, 50_000)]);
    (0..2).for_each(|key| paths.set_idle(key, true));
    let is_first = |paths: &Paths| paths.is_first(paths.rank(1, NOW).unwrap(), NOW);
    assert!(!is_first(&paths));
    let mut offset = 0;
    while !paths.is_full(0, NOW) {
        paths.on_sent(0, (0, offset), 16 << 10, NOW);
        offset += 16 << 10;
    }
    assert!(paths.rank(0, NOW) < paths.rank(1, NOW) && is_first(&paths));
}
