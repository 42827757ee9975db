use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_path::{Interface, Path, Reason, Select};
use proptest::prelude::*;

use super::*;
use crate::path_set::testing::{Bench, path};

/// The number of bytes that transfers request at once.
const BLOCK: u64 = 16 << 10;

fn blocks(new: u64, again: u64) -> Room {
    Room {
        new: new * BLOCK,
        again: again * BLOCK,
    }
}

#[test]
fn room_keeps_to_the_share() {
    let of = |share, here, all| Room::of(share, here * BLOCK, all * BLOCK);
    // The first path with requests: with 32 blocks it has 16 more than half.
    assert_eq!(of(0.5, 0, 0), blocks(32, 16));
    assert_eq!(of(0.5, 32, 32), Room::NONE);
    assert_eq!(of(0.5, 32, 48), blocks(16, 8));
    assert_eq!(of(0.25, 20, 40).new / BLOCK, 8);
    assert_eq!(of(0.5, 100, 100), Room::NONE);
    // 1 % of ten thousand blocks.
    assert_eq!(of(0.5, 5000, 10_000).again / BLOCK, 100);
    assert_eq!(of(0.0, 0, 1000), Room::NONE);
    assert_eq!(of(1.0, 1000, 0), Room::ANY);
}

/// Three paths over an AS each, of which `spread:50%` takes two.
fn three() -> (Bench, [Arc<Path>; 3], [Fingerprint; 3]) {
    let mut bench = Bench::new("spread:50%".parse().unwrap(), 4);
    let paths = [1, 2, 3].map(|id| over(10 + id));
    bench.offer(&paths, Instant::now());
    let names = [0, 1, 2].map(|at| paths[at].fingerprint());
    (bench, paths, names)
}

/// A path from AS 1 to AS 99 over one other.
fn over(via: u16) -> Arc<Path> {
    let ends = path(&[1]);
    let isd_as = format!("1-ff00:0:{via}").parse().unwrap();
    let at = |isd_as, id| Interface { isd_as, id };
    let interfaces = vec![
        at(ends.src, via),
        at(isd_as, 1),
        at(isd_as, 2),
        at(ends.dst, via),
    ];
    let path = Path::new(ends.src, ends.dst, interfaces, ends.metadata.clone());
    Arc::new(path.unwrap())
}

fn taken(bench: &Bench, of: &[Fingerprint; 3]) -> Vec<usize> {
    let taken = bench.taken();
    (0..3).filter(|one| taken.contains(&of[*one])).collect()
}

fn again(bench: &Bench, of: Fingerprint) -> u64 {
    bench.set.room(of, |_| 0, 0).again / BLOCK
}

#[test]
fn requested_bytes_count_and_duplicates_do_not() {
    let (mut bench, paths, names) = three();
    let [one, two] = taken(&bench, &names)[..] else {
        panic!("two keep the limit");
    };
    let left = names[3 - one - two];
    let now = Instant::now();
    bench.connected(&paths[one], Duration::ZERO, now);
    bench.connected(&paths[two], Duration::ZERO, now);
    bench.set.delivered(names[one], 50 * BLOCK);
    let second = bench.subflows[&names[two]];
    let requested = |subflow| if subflow == second { 40 * BLOCK } else { 0 };
    let room = |bench: &Bench, of, doubles| bench.set.room(of, requested, doubles * BLOCK);
    // Nothing was received over the other path yet: of its requested blocks only 16 count.
    assert_eq!(room(&bench, names[one], 0).again, 0);
    bench.set.delivered(names[two], 24 * BLOCK);
    assert_eq!(room(&bench, names[one], 0).again / BLOCK, 23);
    assert_eq!(room(&bench, names[one], 10).again / BLOCK, 18);
    assert_eq!(room(&bench, names[two], 0).again / BLOCK, 9);
    assert_eq!(room(&bench, left, 0), Room::NONE);
    // A path that is not offered has no share to keep to.
    assert_eq!(room(&bench, path(&[1]).fingerprint(), 0), Room::ANY);
}

#[test]
fn shares_are_renewed_when_a_path_takes_the_place_of_another() {
    let (mut bench, _, names) = three();
    let mut now = Instant::now();
    let before = taken(&bench, &names);
    let (stays, fails) = (names[before[0]], names[before[1]]);
    bench.set.delivered(stays, 50 * BLOCK);
    bench.set.delivered(fails, 40 * BLOCK);
    assert_eq!(again(&bench, stays), 11);
    bench.orders(now);
    bench.failed(fails, now);
    // It is retried: the other path still waits for it.
    assert_eq!(again(&bench, stays), 11);
    now += Duration::from_secs(1);
    bench.orders(now);
    bench.failed(fails, now);
    assert_eq!(bench.set.room(fails, |_| 0, 0), Room::NONE);
    assert_eq!(again(&bench, stays), 16);
    let third = names[3 - before[0] - before[1]];
    assert_eq!(again(&bench, third), 16);
    bench.set.delivered(stays, 16 * BLOCK);
    assert_eq!(again(&bench, stays), 8);
    // Selecting the same paths again changes nothing.
    bench.set.set_policy(None);
    assert_eq!(again(&bench, stays), 8);
}

#[test]
fn the_last_path_carries_all() {
    let (mut bench, _, names) = three();
    let mut now = Instant::now();
    for _ in 0..4 {
        bench.orders(now);
        for name in &names[1..] {
            if bench.subflows.contains_key(name) {
                bench.failed(*name, now);
            }
        }
        now += Duration::from_secs(5);
    }
    assert_eq!(bench.set.room(names[0], |_| 0, 0), Room::ANY);
    let decision = bench.set.decision(names[0]).unwrap();
    let Reason::Spread { kept, .. } = decision.reason else {
        panic!("{decision}");
    };
    assert!(!kept);
}

#[test]
fn other_strategies_give_no_shares() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let paths = [over(11), over(12)];
    bench.offer(&paths, Instant::now());
    bench.set.delivered(paths[0].fingerprint(), 1000 * BLOCK);
    assert!(!bench.set.has_shares());
    assert_eq!(bench.set.room(paths[0].fingerprint(), |_| 0, 0), Room::ANY);
}

proptest! {
    /// In any order of requests: no path exceeds its share by more than the slack, and there is
    /// always a path with room.
    #[test]
    fn shares_are_kept_and_never_block_all(
        parts in proptest::collection::vec(1u32..100, 2..5),
        asks in proptest::collection::vec((0usize..5, 1u64..200), 0..300),
    ) {
        let sum: u32 = parts.iter().sum();
        let shares: Vec<f64> = parts.iter().map(|part| f64::from(*part) / f64::from(sum)).collect();
        let mut blocks = vec![0u64; shares.len()];
        let total = |blocks: &[u64]| blocks.iter().sum::<u64>() * BLOCK;
        for (at, wish) in asks {
            let at = at % shares.len();
            let all = total(&blocks);
            let may = Room::of(shares[at], blocks[at] * BLOCK, all).new / BLOCK;
            blocks[at] += may.min(wish);
            let all = total(&blocks);
            let slack = SLACK.max(all / SLACK_PART) as f64;
            for (share, here) in shares.iter().zip(&blocks) {
                prop_assert!((here * BLOCK) as f64 <= share * all as f64 + slack + 1.0);
            }
            let may = shares.iter().zip(&blocks).map(|(share, here)| Room::of(*share, here * BLOCK, all).new / BLOCK);
            prop_assert!(may.max() > Some(0));
        }
    }
}
