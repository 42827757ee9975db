use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::swarm::remote::tests::{path, remote};

const SIZE: u64 = BLOCK as u64;

#[test]
fn room_is_what_keeps_to_the_share() {
    let of = |share, here, all| room(share, here * SIZE, all * SIZE);
    // The first path to be asked: with 32 blocks it has 16 more than half.
    assert_eq!(of(0.5, 0, 0), Room { new: 32, again: 16 });
    assert_eq!(of(0.5, 32, 32), Room::NONE);
    assert_eq!(of(0.5, 32, 48), Room { new: 16, again: 8 });
    assert_eq!(of(0.25, 20, 40).new, 8);
    assert_eq!(of(0.5, 100, 100), Room::NONE);
    // 1 % of ten thousand blocks.
    assert_eq!(of(0.5, 5000, 10_000).again, 100);
    assert_eq!(of(0.0, 0, 1000), Room::NONE);
    assert_eq!(of(1.0, 1000, 0), Room::ANY);
}

type Known = Remote<Arc<hawser_path::Path>>;

/// Three paths over an AS each, of which `spread:50%` takes two.
fn three() -> (Known, [Fingerprint; 3]) {
    let mut known = remote("spread:50%".parse().unwrap(), 4);
    let paths = [1u16, 2, 3].map(|id| over(10 + id));
    known.offer_fit(&paths, Instant::now());
    let names = paths.map(|path| path.fingerprint());
    (known, names)
}

/// A path from AS 1 to AS 99 over one other.
fn over(via: u16) -> Arc<hawser_path::Path> {
    let ends = path(&[1]);
    let isd_as = format!("1-ff00:0:{via}").parse().unwrap();
    let at = |isd_as, id| hawser_path::Interface { isd_as, id };
    let way = vec![
        at(ends.src, via),
        at(isd_as, 1),
        at(isd_as, 2),
        at(ends.dst, via),
    ];
    let path = hawser_path::Path::new(ends.src, ends.dst, way, ends.metadata.clone());
    Arc::new(path.unwrap())
}

fn taken(known: &Known, of: &[Fingerprint; 3]) -> Vec<usize> {
    let taken = (0..3).filter(|one| known.paths[&of[*one]].taken);
    taken.collect()
}

fn carried(known: &mut Known, of: Fingerprint, blocks: u64) {
    if let Some(path) = known.paths.get_mut(&of) {
        path.bytes += blocks * SIZE;
    }
}

#[test]
fn what_is_asked_for_counts_and_what_comes_twice_does_not() {
    let (mut known, names) = three();
    let [one, two] = taken(&known, &names)[..] else {
        panic!("two keep the limit");
    };
    let left = names[3 - one - two];
    known.connected(names[one], 1, Duration::ZERO);
    known.connected(names[two], 2, Duration::ZERO);
    carried(&mut known, names[one], 50);
    let asked = |id| if id == 2 { 40 } else { 0 };
    // Nothing came over the other yet: of what it is asked for only 16 blocks count.
    assert_eq!(known.room(names[one], asked, 0).again, 0);
    carried(&mut known, names[two], 24);
    assert_eq!(known.room(names[one], asked, 0).again, 23);
    assert_eq!(known.room(names[one], asked, 10).again, 18);
    assert_eq!(known.room(names[two], asked, 0).again, 9);
    assert_eq!(known.room(left, asked, 0), Room::NONE);
    // A path that is not offered has no share to keep to.
    let other = path(&[1]).fingerprint();
    assert_eq!(known.room(other, asked, 0), Room::ANY);
}

#[test]
fn shares_are_renewed_when_a_path_takes_the_place_of_another() {
    let (mut known, names) = three();
    let now = Instant::now();
    let before = taken(&known, &names);
    let (stays, fails) = (names[before[0]], names[before[1]]);
    carried(&mut known, stays, 50);
    carried(&mut known, fails, 40);
    assert_eq!(known.room(stays, |_| 0, 0).again, 11);
    known.failed(fails, "no".into(), Duration::ZERO, now);
    // It is tried again: the other goes on waiting for it.
    assert_eq!(known.room(stays, |_| 0, 0).again, 11);
    known.failed(fails, "no".into(), Duration::ZERO, now);
    assert_eq!(known.room(fails, |_| 0, 0), Room::NONE);
    assert_eq!(known.room(stays, |_| 0, 0).again, 16);
    let third = names[3 - before[0] - before[1]];
    assert_eq!(known.room(third, |_| 0, 0).again, 16);
    carried(&mut known, stays, 16);
    assert_eq!(known.room(stays, |_| 0, 0).again, 8);
    // The same choice once more changes nothing.
    known.choose();
    assert_eq!(known.room(stays, |_| 0, 0).again, 8);
}

#[test]
fn the_last_path_carries_all() {
    let (mut known, names) = three();
    let now = Instant::now();
    for name in &names[1..] {
        known.failed(*name, "no".into(), Duration::ZERO, now);
        known.failed(*name, "no".into(), Duration::ZERO, now);
    }
    assert_eq!(known.room(names[0], |_| 0, 0), Room::ANY);
    let decision = known.paths[&names[0]].decision.clone().unwrap();
    let hawser_path::Reason::Spread { kept, .. } = decision.reason else {
        panic!("{decision}");
    };
    assert!(!kept);
}

#[test]
fn other_strategies_give_no_shares() {
    let mut known = remote(hawser_path::Select::disjoint(), 4);
    let paths = [over(11), over(12)];
    known.offer_fit(&paths, Instant::now());
    carried(&mut known, paths[0].fingerprint(), 1000);
    assert!(!known.has_shares());
    let room = known.room(paths[0].fingerprint(), |_| 0, 0);
    assert_eq!(room, Room::ANY);
}

proptest! {
    /// Whoever asks and whatever arrives: nobody goes beyond its share by more than the slack, and
    /// somebody may always ask.
    #[test]
    fn shares_are_kept_and_never_block_all(
        parts in proptest::collection::vec(1u32..100, 2..5),
        asks in proptest::collection::vec((0usize..5, 1usize..200), 0..300),
    ) {
        let sum: u32 = parts.iter().sum();
        let shares: Vec<f64> = parts.iter().map(|part| f64::from(*part) / f64::from(sum)).collect();
        let mut blocks = vec![0u64; shares.len()];
        let total = |blocks: &[u64]| blocks.iter().sum::<u64>() * SIZE;
        for (who, wish) in asks {
            let who = who % shares.len();
            let all = total(&blocks);
            let may = room(shares[who], blocks[who] * SIZE, all).new;
            blocks[who] += may.min(wish) as u64;
            let all = total(&blocks);
            let slack = (SLACK_BLOCKS * SIZE).max(all / SLACK_PART) as f64;
            for (share, here) in shares.iter().zip(&blocks) {
                prop_assert!((here * SIZE) as f64 <= share * all as f64 + slack + 1.0);
            }
            let may = shares.iter().zip(&blocks).map(|(share, here)| room(*share, here * SIZE, all).new);
            prop_assert!(may.max() > Some(0));
        }
    }
}
