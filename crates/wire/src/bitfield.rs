//! Sets of pieces, one bit each, in the order of the wire (BEP 3): the high bit of the first byte
//! is piece 0.

/// A set of pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitfield {
    bytes: Vec<u8>,
    len: u32,
    ones: u32,
}

impl Bitfield {
    /// None of `len` pieces.
    pub fn empty(len: u32) -> Self {
        Self {
            bytes: vec![0; Self::byte_len(len)],
            len,
            ones: 0,
        }
    }

    /// All of `len` pieces.
    pub fn full(len: u32) -> Self {
        let mut field = Self::empty(len);
        (0..len).for_each(|piece| {
            field.set(piece);
        });
        field
    }

    /// Bytes needed for `len` pieces.
    pub fn byte_len(len: u32) -> usize {
        (len as usize).div_ceil(8)
    }

    /// Decodes a bitfield; `None` if its length is wrong or a spare bit is set.
    pub fn from_wire(bytes: &[u8], len: u32) -> Option<Self> {
        let spare = (bytes.len() * 8).checked_sub(len as usize)?;
        let last = bytes.last().copied().unwrap_or_default();
        (spare < 8 && last.trailing_zeros() as usize >= spare).then(|| Self {
            bytes: bytes.to_vec(),
            len,
            ones: bytes.iter().map(|byte| byte.count_ones()).sum(),
        })
    }

    /// Encodes it.
    pub fn as_wire(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether `piece` is in it; `false` past the end.
    pub fn has(&self, piece: u32) -> bool {
        piece < self.len && self.bytes[piece as usize / 8] & (0x80 >> (piece % 8)) != 0
    }

    /// Adds `piece`; returns whether it is new. Does nothing past the end.
    pub fn set(&mut self, piece: u32) -> bool {
        let new = piece < self.len && !self.has(piece);
        if new {
            self.bytes[piece as usize / 8] |= 0x80 >> (piece % 8);
            self.ones += 1;
        }
        new
    }

    /// Removes `piece`; returns whether it was in the set.
    pub fn clear(&mut self, piece: u32) -> bool {
        let was = self.has(piece);
        if was {
            self.bytes[piece as usize / 8] &= !(0x80 >> (piece % 8));
            self.ones -= 1;
        }
        was
    }

    /// The pieces in exactly one of the two sets, in order; both must have the same length.
    pub fn differences<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u32> + 'a {
        let bytes = self.bytes.iter().zip(&other.bytes).zip(0u32..);
        let changed = bytes.map(|((a, b), at)| (at, a ^ b));
        let changed = changed.filter(|(_, changed)| *changed != 0);
        changed.flat_map(|(at, changed)| {
            let bits = (0..8).filter(move |bit| changed & (0x80 >> bit) != 0);
            bits.map(move |bit| at * 8 + bit)
        })
    }

    /// Number of pieces in the set.
    pub fn count(&self) -> u32 {
        self.ones
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ones == 0
    }

    /// Whether every piece is in the set.
    pub fn is_full(&self) -> bool {
        self.ones == self.len
    }

    /// The pieces in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).filter(|piece| self.has(*piece))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn exactly_the_pieces_set_are_in_it(len in 1u32..100, picks in proptest::collection::vec(0u32..120, 0..60)) {
            let mut field = Bitfield::empty(len);
            let mut expected = std::collections::BTreeSet::new();
            for pick in picks {
                let new = pick < len && expected.insert(pick);
                prop_assert_eq!(field.set(pick), new);
            }
            prop_assert_eq!(field.iter().collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(field.count() as usize, expected.len());
            let again = Bitfield::from_wire(field.as_wire(), len);
            prop_assert_eq!(again, Some(field));
        }

        #[test]
        fn differences_are_in_exactly_one_of_both(
            len in 1u32..100,
            one in proptest::collection::vec(0u32..100, 0..60),
            other in proptest::collection::vec(0u32..100, 0..60),
        ) {
            let of = |pieces: &[u32]| {
                let mut field = Bitfield::empty(len);
                pieces.iter().for_each(|piece| { field.set(*piece); });
                field
            };
            let (mut one, other) = (of(&one), of(&other));
            let different: Vec<u32> = one.differences(&other).collect();
            let expected: Vec<u32> = (0..len).filter(|p| one.has(*p) != other.has(*p)).collect();
            prop_assert_eq!(&different, &expected);
            for piece in different {
                let changed = if other.has(piece) { one.set(piece) } else { one.clear(piece) };
                prop_assert!(changed);
            }
            prop_assert_eq!(one, other);
        }

        #[test]
        fn from_wire_never_panics_and_is_strict(bytes in proptest::collection::vec(any::<u8>(), 0..20), len in 0u32..200) {
            if let Some(field) = Bitfield::from_wire(&bytes, len) {
                prop_assert_eq!(bytes.len(), Bitfield::byte_len(len));
                prop_assert_eq!(field.iter().count() as u32, field.count());
            }
        }
    }

    #[test]
    fn spare_bits_and_wrong_lengths_are_refused() {
        assert!(Bitfield::from_wire(&[0xff, 0x80], 9).is_some());
        assert!(Bitfield::from_wire(&[0xff, 0xc0], 9).is_none());
        assert!(Bitfield::from_wire(&[0xff], 9).is_none());
        assert!(Bitfield::from_wire(&[0xff, 0, 0], 9).is_none());
        assert!(Bitfield::full(9).is_full());
    }
}
