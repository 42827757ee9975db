//! What a sink knows of each range of its content: which hash it must have, whether it is there, and
//! whether it is verified. No I/O.
//!
//! A range is *missing* until it is *done*: written with the hash that the source has named, known to be
//! zeros, or there before and kept once the source has named its hash.

use std::collections::BTreeMap;
use std::ops::Range;

use super::source::length;
use super::values::Values;
use crate::bitmap::Bitmap;
use crate::content::tree::{self, ChainingValue};
use crate::error::TransferError;
use crate::report::Progress;

/// What follows from a hash that the source has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// Nothing: the range is done, with this hash.
    Done,
    /// What is there has it: the range is kept.
    Keep,
    /// What arrives must have it.
    Expect,
}

/// What a sink knows of each range.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// Chaining values by range, once verified.
    values: Values,
    /// Ranges that were there, whose hash the source has not named yet.
    there: BTreeMap<u64, ChainingValue>,
    /// Ranges of zeros that the source does not send.
    zeroed: Bitmap,
    /// Ranges that are not done.
    missing: usize,
    progress: Progress,
}

impl Ranges {
    /// The manifest has `files` entries and `total` bytes of content. Of the ranges nothing is known.
    pub(super) fn announce(&mut self, files: u64, total: u64) {
        (self.progress.files, self.progress.total) = (files, total);
    }

    /// The files can be written, and have these ranges already.
    pub(super) fn begin(&mut self, there: BTreeMap<u64, ChainingValue>) {
        let total = self.progress.total;
        self.values = Values::of(total);
        self.missing = tree::count(total) as usize;
        self.progress.existing = there.keys().map(|range| length(*range, total)).sum();
        self.progress.verified = self.progress.existing;
        self.there = there;
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    /// Whether no range is missing.
    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// The hash of the whole; `None` while the hash of a range is not known.
    pub(super) fn root(&self) -> Option<ChainingValue> {
        let values = self.values.all()?;
        Some(tree::root(&values, self.progress.total))
    }

    /// The source names the hash of a range.
    ///
    /// # Errors
    /// When there is no such range, or it was verified with another hash.
    pub(super) fn name(
        &mut self,
        range: u64,
        value: ChainingValue,
    ) -> Result<Named, TransferError> {
        if !self.values.has(range) {
            return Err(no_such_range());
        }
        match self.values.get(range) {
            // A source that reads a range again names its hash again.
            Some(known) if known == value => return Ok(Named::Done),
            Some(_) => {
                return Err(TransferError::Protocol(
                    "it names another hash of a range that was verified",
                ));
            }
            None => {}
        }
        match self.there.remove(&range) {
            Some(there) if there == value => {
                self.values.set(range, value);
                return Ok(Named::Keep);
            }
            // What is there is something else.
            Some(_) => self.discard(range),
            None => {}
        }
        Ok(Named::Expect)
    }

    /// The source announces ranges as zeros, which it does not send. Returns them.
    ///
    /// # Errors
    /// When there is no such range, or one was announced or verified before.
    pub(super) fn zeros(&mut self, first: u64, count: u64) -> Result<Range<u64>, TransferError> {
        let end = first.checked_add(count);
        let end = end.filter(|end| *end > first && self.values.has(*end - 1));
        let end = end.ok_or_else(no_such_range)?;
        if self.zeroed.has_any(first..end) || self.values.has_any(first..end) {
            return Err(TransferError::Protocol("it sent a range twice"));
        }
        self.zeroed.insert(first..end);
        let there = self.there.range(first..end).map(|(range, _)| *range);
        for range in there.collect::<Vec<_>>() {
            self.there.remove(&range);
            self.discard(range);
        }
        Ok(first..end)
    }

    /// A range that was there is kept.
    pub(super) fn kept(&mut self) {
        self.missing -= 1;
    }

    /// A range is written, and has the hash that was named. Returns `false` if it was done before.
    pub(super) fn written(&mut self, range: u64, value: ChainingValue) -> bool {
        let is_new = self.done(range, value);
        if is_new {
            self.progress.verified += length(range, self.progress.total);
        }
        is_new
    }

    /// A range of zeros has this hash.
    pub(super) fn zero(&mut self, range: u64, value: ChainingValue) {
        if self.done(range, value) {
            self.progress.skipped += length(range, self.progress.total);
        }
    }

    fn done(&mut self, range: u64, value: ChainingValue) -> bool {
        if self.values.get(range).is_some() {
            return false;
        }
        self.values.set(range, value);
        self.missing -= 1;
        true
    }

    /// What is there of a range counts no more.
    fn discard(&mut self, range: u64) {
        let length = length(range, self.progress.total);
        self.progress.verified -= length;
        self.progress.existing -= length;
    }
}

fn no_such_range() -> TransferError {
    TransferError::Protocol("it names a range that does not exist")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOTAL: u64 = 5 * tree::RANGE + 7;

    fn hash(number: u8) -> ChainingValue {
        [number; 32]
    }

    fn ranges(there: &[u64]) -> Ranges {
        let mut ranges = Ranges::default();
        ranges.announce(1, TOTAL);
        ranges.begin(there.iter().map(|range| (*range, hash(1))).collect());
        ranges
    }

    #[test]
    fn what_is_there_is_kept_by_its_hash_alone() {
        let mut ranges = ranges(&[0, 5]);
        let there = ranges.progress();
        assert_eq!(
            (there.existing, there.verified),
            (tree::RANGE + 7, tree::RANGE + 7)
        );
        assert_eq!(ranges.name(0, hash(1)).unwrap(), Named::Keep);
        assert_eq!(ranges.name(5, hash(2)).unwrap(), Named::Expect);
        assert_eq!(ranges.progress().existing, tree::RANGE);
        ranges.kept();
        assert_eq!(ranges.name(0, hash(1)).unwrap(), Named::Done);
        assert!(ranges.name(0, hash(2)).is_err() && ranges.name(6, hash(2)).is_err());
        assert!(ranges.root().is_none() && !ranges.is_complete());
    }

    #[test]
    fn ranges_are_zeros_once() {
        let mut ranges = ranges(&[1]);
        assert_eq!(ranges.zeros(1, 2).unwrap(), 1..3);
        assert_eq!(ranges.progress().existing, 0);
        for (first, count) in [(2, 1), (0, 2), (5, 2), (6, 1), (0, 0), (u64::MAX, 2)] {
            assert!(ranges.zeros(first, count).is_err(), "{first}, {count}");
        }
        ranges.zero(1, hash(0));
        ranges.zero(1, hash(0));
        assert_eq!(ranges.progress().skipped, tree::RANGE);
        assert!(ranges.zeros(1, 1).is_err());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Name(u64, u8),
        Zeros(u64, u64),
        Arrives(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..8_u64, 1..3_u8).prop_map(|(range, value)| Step::Name(range, value)),
            (0..7_u64, 0..4_u64).prop_map(|(first, count)| Step::Zeros(first, count)),
            (0..6_u64).prop_map(Step::Arrives),
        ]
    }

    proptest! {
        /// Whatever a source names, nothing is counted twice, and the end comes with the last range.
        #[test]
        fn every_range_is_done_once(
            there in prop::collection::btree_set(0..6_u64, 0..6),
            steps in prop::collection::vec(step(), 0..40),
        ) {
            let there: Vec<u64> = there.into_iter().collect();
            let mut ranges = ranges(&there);
            let mut expected = BTreeMap::new();
            let mut done = std::collections::BTreeSet::new();
            for step in steps {
                match step {
                    Step::Name(range, value) => match ranges.name(range, hash(value)) {
                        Ok(Named::Keep) => {
                            prop_assert!(there.contains(&range) && done.insert(range));
                            ranges.kept();
                        }
                        Ok(Named::Expect) => drop(expected.insert(range, hash(value))),
                        Ok(Named::Done) => prop_assert!(done.contains(&range)),
                        Err(_) => prop_assert!(range > 5 || done.contains(&range)),
                    },
                    Step::Zeros(first, count) => {
                        for range in ranges.zeros(first, count).unwrap_or_default() {
                            prop_assert!(done.insert(range));
                            ranges.zero(range, hash(0));
                        }
                    }
                    Step::Arrives(range) => {
                        if let Some(value) = expected.get(&range) {
                            prop_assert_eq!(ranges.written(range, *value), done.insert(range));
                        }
                    }
                }
                let progress = ranges.progress();
                prop_assert!(progress.verified + progress.skipped <= TOTAL);
                prop_assert!(progress.existing <= progress.verified);
                prop_assert_eq!(ranges.is_complete(), done.len() == 6);
                prop_assert_eq!(ranges.root().is_some(), done.len() == 6);
                if ranges.is_complete() {
                    prop_assert_eq!(progress.verified + progress.skipped, TOTAL);
                }
            }
        }
    }
}
