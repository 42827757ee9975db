//! The chaining values of ranges, as they are verified.

use std::ops::Range;

use crate::content::tree::{self, ChainingValue};

/// Ranges whose values are kept together.
const TOGETHER: usize = 1024;

/// The chaining values of all ranges of a content. A source names its size long before it sends
/// anything: memory is taken for what is verified, and little for what is named.
#[derive(Debug, Default)]
pub(super) struct Values {
    count: u64,
    known: u64,
    groups: Vec<Option<Box<[Option<ChainingValue>; TOGETHER]>>>,
}

impl Values {
    /// No values, for a content of `total` bytes.
    pub(super) fn of(total: u64) -> Self {
        let count = tree::count(total);
        let groups = count.div_ceil(TOGETHER as u64) as usize;
        Self {
            count,
            known: 0,
            groups: std::iter::repeat_with(|| None).take(groups).collect(),
        }
    }

    /// Whether the content has a range of this number.
    pub(super) fn has(&self, range: u64) -> bool {
        range < self.count
    }

    /// The value of a range, if it is known.
    pub(super) fn get(&self, range: u64) -> Option<ChainingValue> {
        let group = self.groups.get(range as usize / TOGETHER)?.as_ref()?;
        group[range as usize % TOGETHER]
    }

    /// Whether the value of any range of `run` is known.
    pub(super) fn has_any(&self, run: Range<u64>) -> bool {
        let mut range = run.start;
        while range < run.end {
            let next = (range / TOGETHER as u64 + 1) * TOGETHER as u64;
            let group = self.groups.get(range as usize / TOGETHER);
            if let Some(Some(group)) = group {
                let to = next.min(run.end);
                let mut known = (range..to).map(|one| group[one as usize % TOGETHER]);
                if known.any(|value| value.is_some()) {
                    return true;
                }
            }
            range = next;
        }
        false
    }

    /// Sets the value of a range that the content has.
    pub(super) fn set(&mut self, range: u64, value: ChainingValue) {
        if let Some(group) = self.groups.get_mut(range as usize / TOGETHER) {
            let group = group.get_or_insert_with(|| Box::new([None; TOGETHER]));
            let before = group[range as usize % TOGETHER].replace(value);
            self.known += u64::from(before.is_none());
        }
    }

    /// All values, if all are known.
    pub(super) fn all(&self) -> Option<Vec<ChainingValue>> {
        match self.known == self.count {
            true => (0..self.count).map(|range| self.get(range)).collect(),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_by_range() {
        let mut values = Values::of(1500 * tree::RANGE - 1);
        assert!(values.has(1499) && !values.has(1500) && !values.has_any(0..1500));
        for range in (0..1500_u64).rev() {
            assert_eq!((values.get(range), values.all()), (None, None));
            values.set(range, [range as u8; 32]);
            assert!(values.has_any(0..range + 1) && !values.has_any(0..range));
            values.set(range, [range as u8; 32]);
        }
        let all = values.all().unwrap();
        assert!(
            (0..)
                .zip(&all)
                .all(|(range, value)| *value == [range as u8; 32])
        );
        assert_eq!((all.len(), Values::of(0).all()), (1500, Some(Vec::new())));
    }
}
