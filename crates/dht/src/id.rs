//! Ids of nodes, info-hashes, and the distance between them.

use std::fmt;

use fastrand::Rng;

/// The id of a node, an info-hash, or the distance between two of them (BEP 5): 160 bits,
/// big-endian.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(
    /// The bits. Every value is an id.
    pub [u8; 20],
);

impl Id {
    /// Length in bytes.
    pub const LEN: usize = 20;
    /// The largest distance.
    pub const MAX: Self = Self([0xff; Self::LEN]);
    /// Length in bits.
    pub const BITS: u32 = 160;

    /// A random id.
    pub fn random(rng: &mut Rng) -> Self {
        let mut id = Self([0; Self::LEN]);
        rng.fill(&mut id.0);
        id
    }

    /// Reads an id that fills `bytes`; `None` if they are not 20.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The distance to `other`: the bits in which they differ (exclusive or).
    pub fn distance(self, other: Self) -> Self {
        let mut distance = self;
        let bytes = distance.0.iter_mut().zip(other.0);
        bytes.for_each(|(byte, other)| *byte ^= other);
        distance
    }

    /// How many of the first bits equal those of `other`, from 0 to 160.
    pub fn shared_bits(self, other: Self) -> u32 {
        let mut shared = 0;
        for byte in self.distance(other).0 {
            shared += byte.leading_zeros();
            if byte != 0 {
                break;
            }
        }
        shared
    }

    /// A random id whose first `bits` bits are those of this one, and whose next bit is not.
    pub(crate) fn random_beside(self, bits: u32, rng: &mut Rng) -> Self {
        let mut id = Self::random(rng);
        for bit in 0..Self::BITS.min(bits + 1) {
            let (at, mask) = ((bit / 8) as usize, 0x80 >> (bit % 8));
            let own = self.0[at] & mask;
            let wanted = if bit == bits { own ^ mask } else { own };
            id.0[at] = id.0[at] & !mask | wanted;
        }
        id
    }
}

impl From<[u8; 20]> for Id {
    fn from(bits: [u8; 20]) -> Self {
        Self(bits)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn distances_are_a_metric(a: [u8; 20], b: [u8; 20], c: [u8; 20]) {
            let (a, b, c) = (Id(a), Id(b), Id(c));
            prop_assert_eq!(a.distance(b), b.distance(a));
            prop_assert_eq!(a.distance(b).distance(b.distance(c)), a.distance(c));
            prop_assert_eq!(a.distance(a), Id([0; 20]));
            prop_assert_eq!(a.shared_bits(a), 160);
        }

        #[test]
        fn an_id_beside_another_shares_just_these_bits(a: [u8; 20], bits in 0u32..160, seed: u64) {
            let beside = Id(a).random_beside(bits, &mut Rng::with_seed(seed));
            prop_assert_eq!(Id(a).shared_bits(beside), bits);
        }

        #[test]
        fn what_shares_more_bits_is_nearer(a: [u8; 20], x in 0u32..160, y in 0u32..160, seed: u64) {
            prop_assume!(x < y);
            let mut rng = Rng::with_seed(seed);
            let (far, near) = (Id(a).random_beside(x, &mut rng), Id(a).random_beside(y, &mut rng));
            prop_assert!(Id(a).distance(near) < Id(a).distance(far));
        }
    }

    #[test]
    fn ids_print_as_hexadecimal() {
        let id = Id([0xab; 20]);
        assert_eq!(id.to_string(), "ab".repeat(20));
        assert_eq!(format!("{id:?}"), id.to_string());
        assert_eq!(Id::from_bytes(&[0xab; 20]), Some(id));
        assert_eq!(Id::from_bytes(&[0xab; 19]), None);
    }
}
