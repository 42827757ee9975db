use proptest::prelude::*;

use super::{IsdAsn, PRECISION, Path, inner, packing};
use crate::{Interface, Metadata, Select, select};

fn isd_as(n: u64) -> IsdAsn {
    IsdAsn(0x0001_ff00_0000_0000 + n)
}

/// A path from AS 1 to AS 9 over these.
fn over(inner: &[u64]) -> Path {
    let mut ases = vec![1];
    ases.extend(inner);
    ases.push(9);
    let links = ases.windows(2).flat_map(|ends| {
        let interface = |ours: u64, theirs: u64| Interface {
            isd_as: isd_as(ours),
            id: theirs as u16,
        };
        [interface(ends[0], ends[1]), interface(ends[1], ends[0])]
    });
    Path::new(isd_as(1), isd_as(9), links.collect(), Metadata::default()).unwrap()
}

fn any_paths() -> impl proptest::strategy::Strategy<Value = Vec<Path>> {
    let inner = prop::sample::subsequence((2..8).collect::<Vec<u64>>(), 1..4);
    prop::collection::vec(inner, 1..9).prop_map(|mut all| {
        all.sort();
        all.dedup();
        all.iter().map(|inner| over(inner)).collect()
    })
}

/// The largest share of an AS between the ends.
fn load(paths: &[Path], taken: &[usize], shares: &[f64]) -> f64 {
    let carried = (2..9).map(|n| {
        let over = taken.iter().zip(shares);
        let over = over.filter(|(one, _)| inner(&paths[**one]).contains(&isd_as(n)));
        over.map(|(_, share)| share).sum::<f64>()
    });
    carried.fold(0.0, f64::max)
}

/// Every way to share `parts` out over `count` paths.
fn ways(count: usize, parts: u32) -> Vec<Vec<u32>> {
    match count {
        0 => Vec::new(),
        1 => vec![vec![parts]],
        _ => (0..=parts)
            .flat_map(|first| {
                ways(count - 1, parts - first)
                    .into_iter()
                    .map(move |mut rest| {
                        rest.push(first);
                        rest
                    })
            })
            .collect(),
    }
}

proptest! {
    /// If a distribution in twelfths over as many paths keeps the limit, spread keeps it too. It
    /// reports that it cannot only when its own load is above the limit.
    #[test]
    fn the_limit_is_kept_if_possible(
        paths in any_paths(),
        percent in 10..80_u8,
        max in 1..5_usize,
    ) {
        let chosen: Select = format!("spread:{percent}%").parse().unwrap();
        let selection = select(&paths, &chosen, max);
        let limit = f64::from(percent) / 100.0;
        let shares = selection.shares.unwrap();
        let ours = load(&paths, &selection.taken, &shares);
        let kept = selection.taken.iter().all(|&one| {
            !selection.decisions[one].to_string().contains("cannot be kept")
        });
        prop_assert_eq!(kept, ours <= limit + PRECISION);
        // Larger sets would take too long.
        for set in 0..1_u32 << paths.len() {
            let set: Vec<_> = (0..paths.len()).filter(|one| set >> one & 1 == 1).collect();
            if set.len() > max.min(3) {
                continue;
            }
            for way in ways(set.len(), 12) {
                let shares: Vec<_> = way.iter().map(|parts| f64::from(*parts) / 12.0).collect();
                let theirs = load(&paths, &set, &shares);
                if theirs <= limit {
                    prop_assert!(kept, "{set:?} with {way:?} keeps the limit");
                    prop_assert!(selection.taken.len() <= set.len());
                }
                prop_assert!(kept || ours <= theirs + PRECISION);
            }
        }
    }

    /// No other distribution of the bytes has a lower load.
    #[test]
    fn the_load_is_least(paths in any_paths(), tried in prop::collection::vec(0..100_u32, 8)) {
        let sets: Vec<_> = paths.iter().map(inner).collect();
        let (shares, least) = packing::least_load(&sets.iter().collect::<Vec<_>>());
        prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < PRECISION);
        let all: Vec<_> = (0..paths.len()).collect();
        prop_assert!((load(&paths, &all, &shares) - least).abs() < PRECISION);
        let tried = &tried[..paths.len()];
        let sum: u32 = tried.iter().sum();
        prop_assume!(sum > 0);
        let tried: Vec<_> = tried.iter().map(|one| f64::from(*one) / f64::from(sum)).collect();
        prop_assert!(least <= load(&paths, &all, &tried) + PRECISION);
    }
}
