//! A random few of many.

use std::collections::HashSet;

use fastrand::Rng;

/// `count` different numbers below `total`, or all of them, in random order. Takes time by `count` alone
/// (R. W. Floyd's algorithm).
pub(super) fn sample(total: usize, count: usize, rng: &mut Rng) -> Vec<usize> {
    let count = count.min(total);
    let mut chosen = HashSet::with_capacity(count);
    let mut order = Vec::with_capacity(count);
    for last in total - count..total {
        let number = rng.usize(..=last);
        let number = if chosen.contains(&number) {
            last
        } else {
            number
        };
        chosen.insert(number);
        order.push(number);
    }
    rng.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_different_and_in_range(total in 0usize..500, count in 0usize..500, seed: u64) {
            let sampled = sample(total, count, &mut fastrand::Rng::with_seed(seed));
            prop_assert_eq!(sampled.len(), count.min(total));
            prop_assert!(sampled.iter().all(|number| *number < total));
            let different: HashSet<_> = sampled.iter().collect();
            prop_assert_eq!(different.len(), sampled.len());
        }
    }

    #[test]
    fn all_numbers_come_equally_often() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut counts = [0u32; 20];
        for _ in 0..10_000 {
            sample(20, 5, &mut rng)
                .into_iter()
                .for_each(|number| counts[number] += 1);
        }
        assert!(
            counts.iter().all(|count| (2300..2700).contains(count)),
            "{counts:?}"
        );
    }
}
