//! How many connections are requested from.

use super::*;
use crate::pipeline::BURST_SLACK;

/// Connections over one path, with requests, of which the later ones are faster.
fn sources_over_one_path(count: u64) -> BTreeMap<ConnId, Source> {
    (1..=count)
        .map(|id| (id, source(1, id as f64, 1)))
        .collect()
}

#[test]
fn the_best_of_many_seeders_are_kept() {
    let start = Instant::now();
    let mut active = Active::new();
    let sources = sources_over_one_path(20);
    let mut members = Vec::new();
    // More connections do not help: twice as many are tried, and the fastest of them kept.
    for second in 0..5 {
        active.review(&sources, false, 1000.0, start + 1001 * second * MS);
        members.push(active.len());
    }
    assert_eq!(members, [4, 4, 8, 4, 4]);
    let of: Vec<bool> = (1..=20).map(|id| active.contains(id)).collect();
    assert!((5..=8).all(|id| active.contains(id)), "{of:?}");
}

#[test]
fn more_connections_are_tried_when_those_there_are_have_reached_their_rates() {
    // Half a second, ten round trips, or a second where peers may answer in bursts.
    for (rtt, slack, ms) in [(20, SLACK, 500), (80, SLACK, 800), (20, BURST_SLACK, 1000)] {
        let (mut active, start) = (Active::new(), Instant::now());
        let mut sources = sources_over_one_path(64);
        for source in sources.values_mut() {
            source.subflow.rtt = rtt * MS;
            source.time = time(rtt * MS, slack);
        }
        let mut members = |rate, after: u32| {
            active.review(&sources, false, rate, start + after * MS);
            active.len()
        };
        assert_eq!([members(0.0, 0), members(0.0, 5_000)], [4, 4]);
        // It counts from when the first block arrives, and each change from the one before.
        let first = 10_000;
        assert_eq!(members(1.0, first), 4);
        // As long as the rate grows, those there are have not shown it.
        for (rate, time) in [(1.0, 1), (1.2, 2), (1.4, 3)] {
            assert_eq!(members(rate, first + time * ms), 4);
        }
        for (doubled, limit) in [4, 8, 16, 32, 64].windows(2).zip(0..) {
            let rate = 1.5 * f64::from(1 << limit);
            let [before, after] = doubled else {
                unreachable!("windows of two")
            };
            let due = first + (limit + 4) * ms;
            assert_eq!(members(rate, due - 1), *before);
            assert_eq!(members(rate, due), *after);
        }
    }
}

#[test]
fn nothing_is_tried_while_each_connection_is_requested_from() {
    let (mut active, start) = (Active::new(), Instant::now());
    // Each has a path of its own, and none is faster than the others.
    let sources = (1..=9).map(|id| (id, source(id, 1.0, 1))).collect();
    for second in 0..4 {
        active.review(&sources, false, 9.0, start + 1001 * second * MS);
        assert_eq!((active.len(), active.limit), (9, 4));
    }
}

#[test]
fn members_without_requests_leave_room_for_others() {
    let now = Instant::now();
    let mut active = Active::new();
    let mut sources: BTreeMap<ConnId, Source> =
        (1..=20).map(|id| (id, source(1, 1.0, 1))).collect();
    active.review(&sources, false, 1.0, now);
    assert_eq!(active.len(), 4);
    // Two have nothing more that is missing here, and one has gone.
    for id in 1..=2 {
        sources.insert(id, source(1, 1.0, 0));
    }
    sources.remove(&3);
    active.review(&sources, false, 1.0, now);
    assert_eq!(active.len(), 6);
}

#[test]
fn members_that_do_not_answer_leave_room_for_others() {
    let now = Instant::now();
    let mut active = Active::new();
    let mut sources = sources_over_one_path(20);
    let mut set_rate = |rate, after: u32| {
        for id in 1..=2 {
            sources.insert(
                id,
                Source {
                    subflow: Subflow {
                        rate,
                        ..sources[&id].subflow
                    },
                    ..sources[&id]
                },
            );
        }
        active.review(&sources, false, 1.0, now + after * MS);
        active.len()
    };
    // While they may still answer, they keep their places.
    assert_eq!([set_rate(None, 0), set_rate(None, 200)], [4, 4]);
    assert_eq!(set_rate(Some(0.0), 300), 6);
}

#[test]
fn connections_over_all_paths_are_used() {
    let now = Instant::now();
    let mut active = Active::new();
    // Those over one path come first.
    let first = (1..=8).filter(|id| active.admit(*id, path(1))).count();
    assert_eq!(first, 2);
    let mut over_their_own = Active::new();
    let first = (1..=64).filter(|id| over_their_own.admit(*id, path(*id)));
    assert_eq!(first.count(), 16);
    let mut sources: BTreeMap<ConnId, Source> = (1..=8).map(|id| (id, source(1, 1.0, 1))).collect();
    active.review(&sources, false, 1.0, now);
    assert_eq!(active.len(), 4);
    let over_two = |active: &Active| (11..=20).filter(|id| active.contains(*id)).count();
    sources.extend((11..=20).map(|id| (id, source(2, 1.0, 1))));
    active.review(&sources, false, 1.0, now);
    assert_eq!(over_two(&active), 2);
    // Those over both come at once.
    let mut active = Active::new();
    active.review(&sources, false, 1.0, now);
    assert_eq!((active.len(), over_two(&active)), (4, 2));
    // Each has a path of its own.
    let mut active = Active::new();
    let sources = (1..=64).map(|id| (id, source(id, 1.0, 1))).collect();
    active.review(&sources, false, 1.0, now);
    assert_eq!(active.len(), 16);
}
