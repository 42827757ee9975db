//! The division of a torrent's bytes into pieces (BEP 3).

use std::ops::Range;

/// Pieces of equal length; only the last may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    /// Bytes of every piece except the last.
    pub length: u32,
    /// Bytes of all pieces.
    pub total: u64,
}

impl Pieces {
    /// Number of pieces.
    pub fn count(self) -> u32 {
        self.total.div_ceil(u64::from(self.length)) as u32
    }

    /// Offset of a piece in the torrent's bytes.
    pub fn start(self, piece: u32) -> u64 {
        u64::from(piece) * u64::from(self.length)
    }

    /// Bytes of a piece; 0 past the last.
    pub fn size(self, piece: u32) -> u32 {
        let left = self.total.saturating_sub(self.start(piece));
        // The minimum with a u32 fits.
        left.min(u64::from(self.length)) as u32
    }

    /// The range of a piece in the torrent's bytes; empty past the last.
    pub fn range(self, piece: u32) -> Range<u64> {
        let start = self.start(piece);
        start..start + u64::from(self.size(piece))
    }

    /// The pieces that have some of `bytes`, which are within the torrent.
    pub fn overlapping(self, bytes: &Range<u64>) -> Range<u32> {
        if bytes.is_empty() {
            return 0..0;
        }
        let length = u64::from(self.length);
        let end = bytes.end.div_ceil(length).min(self.count().into());
        (bytes.start / length) as u32..end as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_add_up_to_the_whole(length in 1u32..40, total in 1u64..600) {
            let pieces = Pieces { length, total };
            let sum: u64 = (0..pieces.count()).map(|piece| u64::from(pieces.size(piece))).sum();
            prop_assert_eq!(sum, total);
            prop_assert_eq!(pieces.size(pieces.count()), 0);
            prop_assert!(pieces.range(pieces.count()).is_empty());
        }
    }
}
