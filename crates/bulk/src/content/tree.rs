//! The BLAKE3 tree over the content, cut into ranges (`docs/bulk-protocol.md`, *Verification*).
//!
//! A range is a subtree of 1024 chunks (BLAKE3 paper, section 2.1), so that it is hashed on its own,
//! and the hash of the content follows from the chaining values of all ranges.

use std::ops::Range;

use blake3::Hasher;
use blake3::hazmat::{self, HasherExt, Mode};

/// Bytes of a range; the last one of a content may be shorter.
pub const RANGE: u64 = 1 << 20;

/// The chaining value of the subtree over a range; the hash of a content of one range.
pub type ChainingValue = [u8; 32];

/// Number of ranges of a content of `total` bytes.
#[must_use]
pub const fn count(total: u64) -> u64 {
    total.div_ceil(RANGE)
}

/// The positions of range `index` in a content of `total` bytes; empty beyond its end.
#[must_use]
pub const fn range(index: u64, total: u64) -> Range<u64> {
    let start = index.saturating_mul(RANGE);
    let end = start.saturating_add(RANGE);
    let end = if end < total { end } else { total };
    if start < end { start..end } else { end..end }
}

/// The chaining value of range `index`, which has `bytes`, in a content of `total` bytes.
///
/// # Panics
/// If `bytes` does not have the length of the range, or the range is empty.
#[must_use]
pub fn chaining_value(index: u64, bytes: &[u8], total: u64) -> ChainingValue {
    let mut hasher = RangeHasher::new(index, total);
    hasher.update(bytes);
    hasher.finish()
}

/// The chaining value of range `index` of zeros, in a content of `total` bytes.
///
/// # Panics
/// If the content has no such range.
#[must_use]
pub fn zeros_value(index: u64, total: u64) -> ChainingValue {
    /// A part of a range, so that the program does not have a whole one in it.
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut hasher = RangeHasher::new(index, total);
    let mut left = hasher.length as usize;
    while left > 0 {
        let zeros = &ZEROS[..left.min(ZEROS.len())];
        hasher.update(zeros);
        left -= zeros.len();
    }
    hasher.finish()
}

/// Computes the chaining value of a range from its bytes in order. Slices of 64 KiB or more make
/// use of the widest vector instructions.
#[derive(Debug, Clone)]
pub struct RangeHasher {
    hasher: Hasher,
    /// Bytes of the range.
    length: u64,
    /// Whether the range is all of the content.
    is_root: bool,
}

impl RangeHasher {
    /// A hasher for range `index` of a content of `total` bytes.
    ///
    /// # Panics
    /// If the content has no such range.
    #[must_use]
    pub fn new(index: u64, total: u64) -> Self {
        let Range { start, end } = range(index, total);
        assert!(start < end, "range {index} of {total} bytes");
        let mut hasher = Hasher::new();
        hasher.set_input_offset(start);
        Self {
            hasher,
            length: end - start,
            is_root: total <= RANGE,
        }
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The chaining value.
    ///
    /// # Panics
    /// If the bytes appended are not as many as the range has.
    #[must_use]
    pub fn finish(self) -> ChainingValue {
        assert_eq!(self.hasher.count(), self.length, "bytes of the range");
        match self.is_root {
            true => self.hasher.finalize().into(),
            false => self.hasher.finalize_non_root(),
        }
    }
}

/// The BLAKE3 hash of a content from the chaining values of all its ranges, in order.
///
/// # Panics
/// If they are not as many as a content of `total` bytes has ranges.
#[must_use]
pub fn root(values: &[ChainingValue], total: u64) -> [u8; 32] {
    assert_eq!(values.len() as u64, count(total), "ranges of the content");
    match values {
        [] => blake3::hash(&[]).into(),
        [value] => *value,
        _ => {
            let (left, right) = values.split_at(left_ranges(values.len()));
            hazmat::merge_subtrees_root(&merge(left), &merge(right), Mode::Hash).into()
        }
    }
}

/// The chaining value of the subtree over ranges.
fn merge(values: &[ChainingValue]) -> ChainingValue {
    match values {
        [value] => *value,
        _ => {
            let (left, right) = values.split_at(left_ranges(values.len()));
            hazmat::merge_subtrees_non_root(&merge(left), &merge(right), Mode::Hash)
        }
    }
}

/// Ranges in the left subtree of `count` ranges, at least two: the largest power of two below.
const fn left_ranges(count: usize) -> usize {
    count.div_ceil(2).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zeros_are_hashed_as_other_bytes() {
        for total in [1, 65_536, 65_537, RANGE, RANGE + 70_000] {
            let Range { start, end } = range(count(total) - 1, total);
            let zeros = vec![0; (end - start) as usize];
            let index = count(total) - 1;
            assert_eq!(
                zeros_value(index, total),
                chaining_value(index, &zeros, total)
            );
        }
    }

    /// `length` bytes that differ from range to range.
    fn bytes(length: u64, seed: u64) -> Vec<u8> {
        let word = |at: u64| {
            (at ^ seed)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .to_be_bytes()
        };
        let words = (0..length.div_ceil(8)).flat_map(word);
        words.take(length as usize).collect()
    }

    /// The root of `content`, from each range hashed in slices of `step` bytes.
    fn root_of(content: &[u8], step: usize) -> [u8; 32] {
        let total = content.len() as u64;
        let values = (0..count(total)).map(|index| {
            let Range { start, end } = range(index, total);
            let bytes = &content[start as usize..end as usize];
            let mut hasher = RangeHasher::new(index, total);
            bytes.chunks(step).for_each(|slice| hasher.update(slice));
            let value = hasher.finish();
            assert_eq!(value, chaining_value(index, bytes, total));
            value
        });
        root(&values.collect::<Vec<_>>(), total)
    }

    #[test]
    fn the_root_is_the_hash_of_the_content() {
        let sizes = [
            0,
            1,
            63,
            64,
            1023,
            1024,
            1025,
            65_536,
            RANGE - 1,
            RANGE,
            RANGE + 1,
            RANGE + 1024,
            2 * RANGE - 1,
            2 * RANGE,
            2 * RANGE + 1,
            7 * RANGE / 2,
            4 * RANGE,
            5 * RANGE - 1,
            7 * RANGE,
            8 * RANGE + 1,
        ];
        for size in sizes {
            let content = bytes(size, 7);
            let expected: [u8; 32] = blake3::hash(&content).into();
            assert_eq!(root_of(&content, 65_536), expected, "{size} bytes");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_root_is_the_hash_for_any_size(
            near in 0u64..6,
            by in -1500i64..1500,
            step in 1000usize..200_000,
            seed: u64,
        ) {
            let content = bytes((near * RANGE).saturating_add_signed(by), seed);
            let expected: [u8; 32] = blake3::hash(&content).into();
            prop_assert_eq!(root_of(&content, step), expected);
        }

        #[test]
        fn ranges_tile_the_content(total in 0u64..u64::MAX, index: u64) {
            let last = range(count(total).saturating_sub(1), total);
            prop_assert_eq!(last.end, total);
            let range = range(index, total);
            prop_assert!(range.end - range.start <= RANGE && range.end <= total);
            prop_assert_eq!(range.is_empty(), index >= count(total));
        }
    }

    #[test]
    fn the_left_subtree_is_the_largest_power_of_two_below() {
        for count in 2usize..5000 {
            let left = left_ranges(count);
            assert!(
                left.is_power_of_two() && left < count && left * 2 >= count,
                "{count}"
            );
        }
    }
}
