//! A set of small numbers.

/// How many numbers fit: 0 to 511.
pub(super) const CAPACITY: usize = 64 * WORDS;

const WORDS: usize = 8;

/// A set of numbers below [`CAPACITY`], cheap to copy and to intersect.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Set([u64; WORDS]);

impl Set {
    /// Adds a number; whether it is new.
    pub fn insert(&mut self, number: usize) -> bool {
        let (word, bit) = (&mut self.0[number / 64], 1 << (number % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    /// The numbers that are in both.
    pub fn and(mut self, other: &Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= other;
        }
        self
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                (word != 0).then(|| {
                    word &= word - 1;
                    64 * at + bit
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(
            ours in prop::collection::vec(0..CAPACITY, 0..80),
            theirs in prop::collection::vec(0..CAPACITY, 0..80),
            gone in prop::collection::vec(0..CAPACITY, 0..80),
        ) {
            let mut one = Set::default();
            let mut model = BTreeSet::new();
            for &number in &ours {
                prop_assert_eq!(one.insert(number), model.insert(number));
            }
            for &number in gone.iter().chain(&ours[..ours.len() / 4]) {
                one.remove(number);
                model.remove(&number);
            }
            prop_assert!(one.iter().eq(model.iter().copied()));

            let mut other = Set::default();
            let other_model: BTreeSet<_> = theirs.iter().copied().collect();
            for &number in theirs.iter().chain(&ours[..ours.len() / 2]) {
                other.insert(number);
            }
            let other_model = &other_model | &ours[..ours.len() / 2].iter().copied().collect();
            prop_assert!(one.and(&other).iter().eq((&model & &other_model).into_iter()));
        }
    }
}
