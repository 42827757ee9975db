//! Datagrams on lanes: sealed packets of `hawser-seal`, whose payload begins with the slot.
//!
//! A TCP segment is carried without its IPv6 header: the session and the slot say what that was. Most
//! have a compact form of their TCP header ([`segment`](super::segment)).

use hawser_endhost::lanes::{PacketFormat, Token};
use hawser_seal::{HEADER, subflow_id};

use crate::address::{SLOTS, Slot};

/// Bytes before a TCP segment: slot and congestion mark, epoch.
pub const PREFIX: usize = 2;

/// The payload of a datagram that is sent over every path, in bytes: the packets of the QUIC
/// connection beside it are as large (RFC 9000, 14).
pub const MIN_PAYLOAD: u16 = 1200;

/// The format of datagrams on lanes; their token is the subflow id.
pub const FORMAT: PacketFormat = PacketFormat {
    token: token_of,
    min_payload: MIN_PAYLOAD,
};

/// What a datagram carries: the `kind` of its sealed packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramKind {
    /// A TCP segment with the header that the kernel has made, behind [`SlotEpoch`].
    Segment,
    /// A whole IP packet that is not TCP, behind [`SlotEpoch`].
    Packet,
    /// [`SlotEpoch`] and zeros: a question if the packet asks for an answer, otherwise the answer.
    Probe,
    /// A TCP segment with a compact header, behind [`SlotEpoch`].
    Compact,
}

impl DatagramKind {
    /// As the sealed packet has it.
    #[inline]
    pub const fn seal(self) -> hawser_seal::Kind {
        let number = match self {
            Self::Segment => 1,
            Self::Packet => 2,
            Self::Probe => 3,
            Self::Compact => 4,
        };
        hawser_seal::Kind::new(number).expect("a number from 1 to 7")
    }

    /// The kind of a sealed packet; `None` if it is none of these.
    #[inline]
    pub fn of(kind: hawser_seal::Kind) -> Option<Self> {
        match kind.number() {
            1 => Some(Self::Segment),
            2 => Some(Self::Packet),
            3 => Some(Self::Probe),
            4 => Some(Self::Compact),
            _ => None,
        }
    }
}

/// How often the side that dials has put a slot on another lane, modulo 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epoch(pub u8);

impl Epoch {
    /// The next one.
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Whether it is later than `other`, of which it is fewer than 128 away.
    pub fn is_after(self, other: Self) -> bool {
        (1..128).contains(&self.0.wrapping_sub(other.0))
    }
}

/// The slot of a datagram, as of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotEpoch {
    /// The slot of the side that dialed, 1 to [`SLOTS`].
    pub slot: Slot,
    /// Which of the slot's lanes it is.
    pub epoch: Epoch,
    /// The congestion mark of the IP header (two bits, RFC 3168).
    pub ecn: u8,
}

impl SlotEpoch {
    /// Its bytes.
    #[inline]
    pub fn encode(self) -> [u8; PREFIX] {
        [self.slot | (self.ecn & 3) << 4, self.epoch.0]
    }

    /// Reads it from the beginning of a payload, and returns the rest; `None` if it is invalid.
    #[inline]
    pub fn decode(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (&[first, epoch], rest) = payload.split_first_chunk()?;
        let slot = first & 0x0f;
        let valid = first & 0xc0 == 0 && (1..=SLOTS).contains(&slot);
        let bound = Self {
            slot,
            epoch: Epoch(epoch),
            ecn: first >> 4,
        };
        valid.then_some((bound, rest))
    }
}

/// The subflow id of a packet that is one by its length.
fn token_of(packet: &[u8]) -> Option<Token> {
    (packet.len() >= HEADER)
        .then(|| subflow_id(packet))
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn epochs_follow_each_other_around_the_circle() {
        let mut epoch = Epoch::default();
        for _ in 0..600 {
            let next = epoch.next();
            assert!(next.is_after(epoch) && !epoch.is_after(next) && !epoch.is_after(epoch));
            epoch = next;
        }
    }

    #[test]
    fn kinds_have_their_numbers() {
        let numbers = (0..=7).filter_map(hawser_seal::Kind::new);
        let known: Vec<_> = numbers.filter_map(DatagramKind::of).collect();
        let all = [
            DatagramKind::Segment,
            DatagramKind::Packet,
            DatagramKind::Probe,
            DatagramKind::Compact,
        ];
        assert_eq!(known, all);
        assert!(
            known
                .iter()
                .all(|kind| DatagramKind::of(kind.seal()) == Some(*kind))
        );
    }

    proptest! {
        #[test]
        fn what_was_bound_is_read_again(slot in 1..=SLOTS, epoch: u8, ecn in 0..4u8, rest: Vec<u8>) {
            let bound = SlotEpoch { slot, epoch: Epoch(epoch), ecn };
            let bytes = [&bound.encode()[..], &rest].concat();
            prop_assert_eq!(SlotEpoch::decode(&bytes), Some((bound, &rest[..])));
        }

        #[test]
        fn any_bytes_are_read_as_they_would_be_written(bytes: Vec<u8>) {
            if let Some((bound, rest)) = SlotEpoch::decode(&bytes) {
                prop_assert_eq!([&bound.encode()[..], rest].concat(), bytes);
            }
        }
    }
}
