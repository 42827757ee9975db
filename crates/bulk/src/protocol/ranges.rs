//! Sets of positions as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of positions, held as ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// The end of each range by its start.
    ranges: BTreeMap<u64, u64>,
    len: u64,
}

impl RangeSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of positions in the set.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the set has no position.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of ranges.
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        self.ranges.iter().map(|(start, end)| *start..*end)
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.iter().next()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.iter().next_back()
    }

    /// Whether all of `range` is in the set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self
                .at_or_before(range.start)
                .is_some_and(|one| range.end <= one.end)
    }

    /// Whether `range` overlaps a range of the set, or adjoins one: to add it adds no further range.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        let before = self.ranges.range(..=range.end).next_back();
        before.is_some_and(|(_, end)| *end >= range.start)
    }

    /// The parts of `range` that are in the set, ascending.
    pub fn overlaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self
            .at_or_before(range.start)
            .map_or(range.start, |one| one.start);
        // An empty range would begin behind its end.
        let found = self.ranges.range(first..range.end.max(first));
        found
            .map(move |(start, end)| (*start).max(range.start)..(*end).min(range.end))
            .filter(|part| !part.is_empty())
    }

    /// The parts of `range` that are not in the set, ascending.
    pub fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let end = range.end.max(range.start);
        let mut next = range.start;
        self.overlaps(range)
            .chain(std::iter::once(end..end))
            .filter_map(move |part| {
                let gap = next..part.start;
                next = part.end;
                (!gap.is_empty()).then_some(gap)
            })
    }

    /// The first part of `range` that is not in the set.
    pub fn first_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        self.gaps(range).next()
    }

    /// Adds `range`.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        // The most frequent case: the range continues one, and reaches no other.
        if let Some((first, last)) = self.ranges.range_mut(..=end).next_back()
            && *first <= start
            && start <= *last
        {
            self.len += end.saturating_sub(*last);
            *last = end.max(*last);
            return;
        }
        while let Some((&first, &last)) = self.ranges.range(..=end).next_back()
            && start <= last
        {
            self.take(first..last);
            (start, end) = (start.min(first), end.max(last));
        }
        self.put(start..end);
    }

    /// Removes `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&first, &last)) = self.ranges.range(..range.end).next_back()
            && range.start < last
        {
            self.take(first..last);
            self.put(first..range.start);
            self.put(range.end..last);
        }
    }

    /// Removes the lowest positions, one run of `most` at most, and returns them.
    pub fn pop_first(&mut self, most: u64) -> Option<Range<u64>> {
        let first = self.first()?;
        let taken = first.start..first.end.min(first.start.saturating_add(most));
        self.remove(taken.clone());
        (!taken.is_empty()).then_some(taken)
    }

    /// Removes the highest positions, one run of `most` at most, and returns them.
    pub fn pop_last(&mut self, most: u64) -> Option<Range<u64>> {
        let last = self.last()?;
        let taken = last.start.max(last.end.saturating_sub(most))..last.end;
        self.remove(taken.clone());
        (!taken.is_empty()).then_some(taken)
    }

    /// The range that begins at `position` or is the nearest before it.
    fn at_or_before(&self, position: u64) -> Option<Range<u64>> {
        let (start, end) = self.ranges.range(..=position).next_back()?;
        Some(*start..*end)
    }

    /// Removes a range as it is held.
    fn take(&mut self, range: Range<u64>) {
        self.ranges.remove(&range.start);
        self.len -= range.end - range.start;
    }

    /// Adds a range that touches no other.
    fn put(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.len += range.end - range.start;
            self.ranges.insert(range.start, range.end);
        }
    }
}

impl Extend<Range<u64>> for RangeSet {
    fn extend<I: IntoIterator<Item = Range<u64>>>(&mut self, ranges: I) {
        ranges.into_iter().for_each(|range| self.insert(range));
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        set.extend(ranges);
        set
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 64;

    fn runs(model: u64, range: Range<u64>, wanted: bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for position in range.filter(|at| (model >> at & 1 == 1) == wanted) {
            match runs.last_mut() {
                Some(run) if run.end == position => run.end += 1,
                _ => runs.push(position..position + 1),
            }
        }
        runs
    }

    fn mask(range: &Range<u64>) -> u64 {
        range.clone().fold(0, |mask, at| mask | 1 << at)
    }

    #[test]
    fn the_ends_of_the_numbers_fit() {
        let mut set = RangeSet::new();
        set.insert(0..u64::MAX);
        assert_eq!(set.len(), u64::MAX);
        set.remove(10..u64::MAX);
        set.insert(5..20);
        assert_eq!(set.pop_last(u64::MAX), Some(0..20));
    }

    proptest! {
        #[test]
        fn the_set_equals_a_bitmap(
            operations in prop::collection::vec((0..5_u8, 0..SIZE, 0..SIZE), 1..100)
        ) {
            let (mut set, mut model) = (RangeSet::new(), 0_u64);
            for (operation, a, b) in operations {
                let range = a.min(b)..a.max(b);
                match operation {
                    0 | 1 => {
                        set.insert(range.clone());
                        model |= mask(&range);
                    }
                    2 => {
                        set.remove(range.clone());
                        model &= !mask(&range);
                    }
                    3 => {
                        let all = runs(model, 0..SIZE, true);
                        let first = all.first().map(|run| run.start..run.end.min(run.start + a));
                        let first = first.filter(|run| !run.is_empty());
                        prop_assert_eq!(set.pop_first(a), first.clone());
                        model &= !mask(&first.unwrap_or(0..0));
                    }
                    _ => {
                        let all = runs(model, 0..SIZE, true);
                        let last = all.last().map(|run| run.start.max(run.end.saturating_sub(a))..run.end);
                        let last = last.filter(|run| !run.is_empty());
                        prop_assert_eq!(set.pop_last(a), last.clone());
                        model &= !mask(&last.unwrap_or(0..0));
                    }
                }
                prop_assert_eq!(set.len(), u64::from(model.count_ones()));
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), runs(model, 0..SIZE, true));
                prop_assert_eq!(set.count(), set.iter().count());
                let overlaps: Vec<_> = set.overlaps(range.clone()).collect();
                prop_assert_eq!(overlaps, runs(model, range.clone(), true));
                let gaps = runs(model, range.clone(), false);
                prop_assert_eq!(set.first_gap(range.clone()), gaps.first().cloned());
                let mut more = set.clone();
                more.insert(range.clone());
                if !range.is_empty() {
                    prop_assert_eq!(set.touches(&range), more.count() <= set.count());
                }
                prop_assert_eq!(set.contains(&range), gaps.is_empty());
                prop_assert_eq!(set.gaps(range).collect::<Vec<_>>(), gaps);
            }
        }
    }
}
