//! The Internet checksum (RFC 1071) as SCION uses it for UDP and SCMP.

/// A running ones' complement sum of 16-bit words in the machine's byte order: stored in that
/// order, the sum is correct on any machine (RFC 1071, 2 (B)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// Adds `bytes`, which must begin at an even offset of the summed data; an odd last byte is
    /// padded with zero.
    #[inline]
    pub fn add_bytes(mut self, bytes: &[u8]) -> Self {
        // Ones' complement sums may be taken over longer words and folded later (RFC 1071, 2 (C)).
        // The two halves of a word are summed apart: no carry is lost below 2^32 words, and the
        // compiler vectorises the loop.
        let (words, rest) = bytes.as_chunks();
        let halves = words.iter().fold((0, 0), |(low, high), word| {
            let word = u64::from_ne_bytes(*word);
            (low + (word & u64::from(u32::MAX)), high + (word >> 32))
        });
        self.0 += halves.0 + halves.1;
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let last = u64::from_ne_bytes(last);
        self.0 += (last & u64::from(u32::MAX)) + (last >> 32);
        self
    }

    /// Adds a number in the byte order of packets, big-endian.
    #[inline]
    pub fn add_u16(mut self, value: u16) -> Self {
        self.0 += u64::from(u16::from_ne_bytes(value.to_be_bytes()));
        self
    }

    /// Adds the part of SCION's pseudo header that varies: upper-layer length and protocol.
    #[inline]
    pub fn add_upper(self, length: u16, protocol: u8) -> Self {
        self.add_u16(length).add_u16(u16::from(protocol))
    }

    #[inline]
    fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum to write into the packet. Never zero, which would mean "no checksum" (RFC 768).
    #[inline]
    pub fn finish(self) -> [u8; 2] {
        match !self.fold() {
            0 => [0xff, 0xff],
            sum => sum.to_ne_bytes(),
        }
    }

    /// Whether the checksum is correct, after the whole packet including its checksum has been
    /// added.
    #[inline]
    pub fn is_valid(self) -> bool {
        self.fold() == 0xffff
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word_by_word(bytes: &[u8], numbers: &[u16]) -> u16 {
        let words = bytes.chunks(2).map(|word| {
            let low = word.get(1).copied().unwrap_or(0);
            u16::from_be_bytes([word[0], low])
        });
        !words
            .chain(numbers.iter().copied())
            .fold(0u16, |sum, word| {
                let (sum, carry) = sum.overflowing_add(word);
                sum + u16::from(carry)
            })
    }

    #[test]
    fn equals_the_example_of_rfc_1071() {
        // Section 3: the sum of these bytes is ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(word_by_word(&bytes, &[]), !0xddf2);
        let sum = Checksum::default().add_bytes(&bytes).finish();
        assert_eq!(u16::from_be_bytes(sum), !0xddf2);
    }

    proptest! {
        /// Word by word with the carry added at once, as in RFC 1071, section 4.1.
        #[test]
        fn is_the_complement_of_the_sum_of_words(bytes: Vec<u8>, length: u16, protocol: u8) {
            let ours = Checksum::default().add_bytes(&bytes).add_upper(length, protocol).finish();
            let expected = match word_by_word(&bytes, &[length, protocol.into()]) {
                0 => 0xffff,
                sum => sum,
            };
            prop_assert_eq!(u16::from_be_bytes(ours), expected);
        }

        #[test]
        fn is_valid_with_its_own_checksum(mut bytes in prop::collection::vec(any::<u8>(), 2..3000)) {
            bytes[..2].fill(0);
            let checksum = Checksum::default().add_bytes(&bytes).finish();
            bytes[..2].copy_from_slice(&checksum);
            prop_assert!(Checksum::default().add_bytes(&bytes).is_valid());
        }

        #[test]
        fn detects_a_changed_bit(
            mut bytes in prop::collection::vec(any::<u8>(), 3..200), at: prop::sample::Index, bit in 0u8..8,
        ) {
            bytes[..2].fill(0);
            let checksum = Checksum::default().add_bytes(&bytes).finish();
            bytes[..2].copy_from_slice(&checksum);
            let at = at.index(bytes.len());
            bytes[at] ^= 1u8 << bit;
            prop_assert!(!Checksum::default().add_bytes(&bytes).is_valid());
        }
    }
}
