//! Which pieces of a torrent are verified, for those that look at it.

use std::ops::Range;
use std::sync::Arc;

use crate::bitfield::Bitfield;

/// A set of pieces as it is reported. A clone costs nothing; the set behind it is copied at the first change
/// after one was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PieceMap {
    /// One bit each, in the order of the wire (BEP 3): the high bit of the first byte is piece 0.
    bits: Arc<[u8]>,
    count: u32,
}

impl PieceMap {
    /// None of `count` pieces.
    pub(crate) fn empty(count: u32) -> Self {
        Self {
            bits: vec![0; Bitfield::byte_len(count)].into(),
            count,
        }
    }

    /// Adds a piece. Does nothing past the end.
    pub(crate) fn set(&mut self, piece: u32) {
        if piece < self.count {
            Arc::make_mut(&mut self.bits)[piece as usize / 8] |= 0x80 >> (piece % 8);
        }
    }

    /// Number of pieces of the torrent; 0 before they are known.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether a piece is in it; `false` past the end.
    pub fn has(&self, piece: u32) -> bool {
        let byte = self.bits.get(piece as usize / 8);
        byte.is_some_and(|byte| byte & (0x80 >> (piece % 8)) != 0)
    }

    /// Whether all of these are in it.
    pub fn has_all(&self, mut pieces: Range<u32>) -> bool {
        pieces.all(|piece| self.has(piece))
    }

    /// One bit each, the high bit of the first byte for piece 0, as a bitfield on the wire (BEP 3).
    pub fn as_bytes(&self) -> &[u8] {
        &self.bits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_bitfield_of_the_same_pieces(
            count in 0u32..70,
            pieces in proptest::collection::vec(0u32..90, 0..60),
        ) {
            let (mut map, mut field) = (PieceMap::empty(count), Bitfield::empty(count));
            for piece in pieces {
                let before = map.clone();
                map.set(piece);
                let is_new = field.set(piece);
                prop_assert_eq!(is_new, before != map);
            }
            prop_assert_eq!(map.as_bytes(), field.as_wire());
            prop_assert_eq!(map.count(), count);
            prop_assert!((0..100).all(|piece| map.has(piece) == field.has(piece)));
            prop_assert_eq!(map.has_all(0..count), field.is_full());
        }
    }
}
