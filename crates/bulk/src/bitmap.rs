//! Sets of ranges that a peer names, at a bit each: however it names them, one by one or all at once,
//! they take little.

use std::collections::BTreeMap;
use std::ops::Range;

/// Numbers in a word, and words kept together.
const WORD: u64 = u64::BITS as u64;
const WORDS: usize = 16;
/// Numbers that are kept together.
const GROUP: u64 = WORD * WORDS as u64;

/// A set of numbers, with a bit for each and for some beside it.
#[derive(Debug, Default)]
pub(crate) struct Bitmap(BTreeMap<u64, Box<[u64; WORDS]>>);

impl Bitmap {
    /// Whether any number of `run` is in the set.
    pub(crate) fn has_any(&self, run: Range<u64>) -> bool {
        words(run).any(|(group, word, bits)| {
            self.0
                .get(&group)
                .is_some_and(|words| words[word] & bits != 0)
        })
    }

    /// Adds the numbers of `run`.
    pub(crate) fn insert(&mut self, run: Range<u64>) {
        for (group, word, bits) in words(run) {
            self.0.entry(group).or_default()[word] |= bits;
        }
    }

    /// Takes out the smallest number.
    pub(crate) fn pop_first(&mut self) -> Option<u64> {
        let mut entry = self.0.first_entry()?;
        let group = *entry.key();
        let words = entry.get_mut();
        let word = words.iter().position(|bits| *bits != 0)?;
        let bit = words[word].trailing_zeros();
        words[word] &= !(1 << bit);
        if words.iter().all(|bits| *bits == 0) {
            entry.remove();
        }
        Some(group * GROUP + word as u64 * WORD + u64::from(bit))
    }

    /// The number of groups.
    #[cfg(test)]
    pub(crate) fn groups(&self) -> usize {
        self.0.len()
    }
}

/// The words of the numbers of `run`: group, place in it, and bits.
fn words(run: Range<u64>) -> impl Iterator<Item = (u64, usize, u64)> {
    let first = run.start / WORD;
    let end = match run.is_empty() {
        true => first,
        false => (run.end - 1) / WORD + 1,
    };
    (first..end).map(move |word| {
        let (from, to) = (word * WORD, (word + 1).saturating_mul(WORD));
        let low = run.start.max(from) - from;
        let high = to - run.end.min(to);
        let bits = (u64::MAX << low) & (u64::MAX >> high);
        (word / WORDS as u64, (word % WORDS as u64) as usize, bits)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_the_numbers_that_were_added(
            steps in prop::collection::vec((0u64..5000, 0u64..2000, any::<bool>()), 0..60),
        ) {
            let (mut bitmap, mut model) = (Bitmap::default(), BTreeSet::new());
            for (start, length, pops) in steps {
                let run = start..start + length;
                let known = model.range(run.clone()).next().is_some();
                prop_assert_eq!(bitmap.has_any(run.clone()), known && length > 0);
                match pops {
                    true => prop_assert_eq!(bitmap.pop_first(), model.pop_first()),
                    false => {
                        bitmap.insert(run.clone());
                        model.extend(run);
                    }
                }
            }
            while let Some(number) = bitmap.pop_first() {
                prop_assert_eq!(Some(number), model.pop_first());
            }
            prop_assert!(model.is_empty());
            prop_assert_eq!(bitmap.groups(), 0);
        }
    }

    #[test]
    fn numbers_take_a_bit_each_however_they_are_added() {
        let (mut at_once, mut apart) = (Bitmap::default(), Bitmap::default());
        at_once.insert(0..1 << 26);
        assert_eq!(at_once.groups() as u64, (1 << 26) / GROUP);
        (0..1 << 16).for_each(|number| apart.insert(number * 2..number * 2 + 1));
        assert_eq!(apart.groups() as u64, (1 << 17) / GROUP);
    }
}
