//! The header: the part of a packet that is not encrypted. It is authenticated.

/// Bytes of the header: kind and flags, subflow id, low bits of the number.
pub const HEADER: usize = 13;

/// The id in all packets of one direction of a subflow.
pub type SubflowId = [u8; 8];

const KIND: u8 = 0b111;
const PHASE: u8 = 1 << 3;
const ASK: u8 = 1 << 4;

/// What a packet carries: a number from 1 to 7, which means what the user of this crate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(u8);

impl Kind {
    /// The kind with this number; `None` unless it is 1 to 7.
    pub const fn new(number: u8) -> Option<Self> {
        match number {
            1..=KIND => Some(Self(number)),
            _ => None,
        }
    }

    /// Its number, 1 to 7.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// The phase of the key: changes with every key.
    pub(crate) phase: bool,
    /// The sender wants an answer at once.
    pub(crate) ask: bool,
    /// The sender's id.
    pub(crate) subflow: SubflowId,
    /// The low 32 bits of the packet number.
    pub(crate) number: u32,
}

impl Header {
    #[inline]
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let [a, b, c, d, e, f, g, h] = self.subflow;
        let [i, j, k, l] = self.number.to_be_bytes();
        let first = self.kind.0 | flag(self.phase, PHASE) | flag(self.ask, ASK);
        [first, a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// `None` if the first byte is not that of a packet.
    #[inline]
    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let [first, a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        Some(Self {
            kind: kind(&[first])?,
            phase: first & PHASE != 0,
            ask: first & ASK != 0,
            subflow: [a, b, c, d, e, f, g, h],
            number: u32::from_be_bytes([i, j, k, l]),
        })
    }
}

/// The kind of a packet by its first byte; `None` if that is missing or not the first byte of a
/// packet. Nothing is authenticated.
#[inline]
pub fn kind(packet: &[u8]) -> Option<Kind> {
    Kind::new(packet.first()? & !(PHASE | ASK))
}

/// The subflow id of a packet; `None` when the packet is too short to have one. Nothing is
/// authenticated.
#[inline]
pub fn subflow_id(packet: &[u8]) -> Option<SubflowId> {
    packet.get(1..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_has_the_specified_bytes() {
        let header = Header {
            kind: Kind(3),
            phase: true,
            ask: true,
            subflow: *b"subflow!",
            number: 0x0102_0304,
        };
        assert_eq!(header.encode(), *b"\x1bsubflow!\x01\x02\x03\x04");
    }

    #[test]
    fn kinds_are_1_to_7() {
        let valid = (0..=u8::MAX).filter_map(Kind::new).map(Kind::number);
        assert!(valid.eq(1..=7));
    }

    #[test]
    fn short_packets_have_no_id() {
        assert_eq!(subflow_id(b"\x01subflow!"), Some(*b"subflow!"));
        assert_eq!(subflow_id(b"\x01subflow"), None);
        assert_eq!((subflow_id(&[]), kind(&[])), (None, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_refused(bytes: [u8; HEADER]) {
            match Header::decode(&bytes) {
                Some(header) => {
                    prop_assert_eq!(header.encode(), bytes);
                    prop_assert_eq!(kind(&bytes), Some(header.kind));
                    prop_assert_eq!(subflow_id(&bytes), Some(header.subflow));
                }
                None => prop_assert!(bytes[0] & KIND == 0 || bytes[0] >= 1 << 5),
            }
        }
    }
}
