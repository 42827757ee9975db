//! Sets of small numbers.

/// A set of small numbers, cheap to intersect.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number. Returns whether it is new.
    pub fn insert(&mut self, number: usize) -> bool {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        let (word, bit) = (&mut self.0[number / 64], 1 << (number % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    /// Removes the numbers that are in `others`.
    pub fn remove_all(&mut self, others: &Self) {
        for (word, others) in self.0.iter_mut().zip(&others.0) {
            *word &= !others;
        }
    }

    pub fn contains(&self, number: usize) -> bool {
        let word = self.0.get(number / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// The numbers that are in both.
    pub fn and(&self, other: &Self) -> Self {
        let words = self.0.iter().zip(&other.0);
        Self(words.map(|(word, other)| word & other).collect())
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let mut word = word;
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
            ours in prop::collection::vec(0..500usize, 0..80),
            theirs in prop::collection::vec(0..500usize, 0..80),
            gone in prop::collection::vec(0..500usize, 0..80),
        ) {
            let mut one = Bits::default();
            let mut model = BTreeSet::new();
            for &number in &ours {
                prop_assert_eq!(one.insert(number), model.insert(number));
            }
            for &number in gone.iter().chain(&ours[..ours.len() / 4]) {
                one.remove(number);
                model.remove(&number);
            }
            prop_assert!(one.iter().eq(model.iter().copied()));
            prop_assert!((0..600).all(|number| one.contains(number) == model.contains(&number)));

            let mut other = Bits::default();
            let other_model: BTreeSet<_> = theirs.iter().copied().collect();
            for &number in theirs.iter().chain(&ours[..ours.len() / 2]) {
                other.insert(number);
            }
            let other_model = &other_model | &ours[..ours.len() / 2].iter().copied().collect();
            prop_assert!(one.and(&other).iter().eq((&model & &other_model).into_iter()));
            one.remove_all(&other);
            prop_assert!(one.iter().eq((&model - &other_model).into_iter()));
        }
    }
}
