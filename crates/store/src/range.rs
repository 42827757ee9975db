//! The division of content into ranges that are verified one by one.

use std::ops::Range;

use digest::{Digest, Output};

/// The hash of a range.
pub type Hash<R> = Output<<R as Ranges>::Hasher>;

/// Divides content into ranges, each of which is verified as a whole, such as BitTorrent's pieces.
///
/// Ranges are numbered in order. They leave no gap, and together they are the content.
pub trait Ranges: Send + Sync + 'static {
    /// The hash function. Its default is that of the blocks of a range, which are compared with each other
    /// alone.
    type Hasher: Digest + Send;

    /// Number of ranges.
    fn count(&self) -> u32;

    /// The bytes of a range within the content; empty past the last one.
    fn range(&self, index: u32) -> Range<u64>;

    /// Computes the hash of a range from its bytes, in order. By itself it is the default hash function.
    fn hasher(&self, index: u32) -> Self::Hasher {
        let _ = index;
        Self::Hasher::new()
    }

    /// The hash that a range of zeros has, where that depends on more than its length; `None`, as by itself,
    /// where it does not.
    fn zeros(&self, index: u32) -> Option<Hash<Self>> {
        let _ = index;
        None
    }

    /// The hash that a range must have; `None` past the last one.
    fn expected(&self, index: u32) -> Option<Hash<Self>>;
}

/// The ranges that have bytes in common with `bytes`.
pub(crate) fn overlapping(ranges: &impl Ranges, bytes: &Range<u64>) -> Range<u32> {
    if bytes.is_empty() {
        return 0..0;
    }
    let count = ranges.count();
    let first = partition(count, |index| ranges.range(index).end <= bytes.start);
    first..partition(count, |index| ranges.range(index).start < bytes.end)
}

/// The first of `0..count` for which `is_before` is false, by bisection.
fn partition(count: u32, is_before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        match is_before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
pub(crate) mod testing {
    use sha1::Sha1;

    use super::*;

    /// Ranges of equal length, hashed with SHA-1.
    #[derive(Debug, Clone)]
    pub struct Pieces {
        pub length: u64,
        pub total: u64,
        pub hashes: Vec<[u8; 20]>,
    }

    impl Pieces {
        /// The ranges of `content`, of `length` bytes each.
        pub fn of(content: &[u8], length: u64) -> Self {
            let hashes = content.chunks(length as usize);
            Self {
                length,
                total: content.len() as u64,
                hashes: hashes.map(|bytes| Sha1::digest(bytes).into()).collect(),
            }
        }
    }

    impl Ranges for Pieces {
        type Hasher = Sha1;

        fn count(&self) -> u32 {
            self.total.div_ceil(self.length) as u32
        }

        fn range(&self, index: u32) -> Range<u64> {
            let start = (u64::from(index) * self.length).min(self.total);
            start..(start + self.length).min(self.total)
        }

        fn expected(&self, index: u32) -> Option<Hash<Self>> {
            self.hashes.get(index as usize).map(|hash| (*hash).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::testing::Pieces;
    use super::*;

    proptest! {
        #[test]
        fn overlapping_ranges_are_those_with_bytes_in_common(
            length in 1u64..20,
            total in 1u64..200,
            start in 0u64..220,
            bytes in 0u64..50,
        ) {
            let pieces = Pieces { length, total, hashes: Vec::new() };
            let bytes = start..start + bytes;
            let common = |index: &u32| {
                let range = pieces.range(*index);
                range.start.max(bytes.start) < range.end.min(bytes.end)
            };
            let expected: Vec<u32> = (0..pieces.count()).filter(common).collect();
            prop_assert_eq!(overlapping(&pieces, &bytes).collect::<Vec<_>>(), expected);
        }
    }
}
