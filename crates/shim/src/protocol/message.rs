//! Messages on the control stream of a connection between two shims.
//!
//! Each is a length of two bytes, a type, and its fields, in network byte order.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use hawser_session::ControlMessage;
use thiserror::Error;

use crate::address::Slot;
use crate::choice::CarrierSet;
use crate::protocol::datagram::{Epoch, SlotEpoch};

/// The version of the protocol.
pub const VERSION: u8 = 5;

/// Longest message, in bytes: the largest IP packet with its slot.
const MAX: usize = u16::MAX as usize;

const OPEN: u8 = 1;
const ACCEPT: u8 = 2;
const REFUSE: u8 = 3;
const SEGMENT: u8 = 4;
const DOWN: u8 = 5;
const ANNOUNCE: u8 = 6;
const PACKET: u8 = 7;
const BYE: u8 = 8;

/// Takes the messages out of the bytes of a control stream.
pub type Framing = hawser_session::Framing<Message>;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The first one: the side that dialed adds a lane to its session.
    Open(Open),
    /// The answer.
    Accept {
        /// The UDP port of the host to which datagrams go.
        port: u16,
        /// What may carry connections.
        carriers: CarrierSet,
    },
    /// The other answer: the connection is of no use.
    Refuse {
        /// Why, for programs.
        code: RefusalCode,
        /// Why, for people.
        text: String,
    },
    /// A TCP segment, sent so until the lane has shown that it works.
    Segment {
        /// Its slot.
        bound: SlotEpoch,
        /// The segment.
        segment: Vec<u8>,
    },
    /// A whole IP packet that is not TCP, sent so until the lane has shown that it works, and if no
    /// datagram has room for it.
    Packet {
        /// The packet.
        packet: Vec<u8>,
    },
    /// Nothing gets through any more over the lane that carries the slot.
    Down {
        /// The slot.
        slot: Slot,
        /// The slot's lane.
        epoch: Epoch,
    },
    /// The side that accepts can be reached over plain IP, too.
    Announce {
        /// Where it listens.
        address: SocketAddr,
    },
    /// The side that dials has ended the session.
    Bye,
}

/// What a lane is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// The number of the cipher.
    pub cipher: u8,
    /// The UDP port of this side's datagrams.
    pub port: u16,
    /// Tells sessions of hosts with the same key apart.
    pub tag: u64,
    /// The slot that the lane carries.
    pub slot: Slot,
    /// Which of the slot's lanes it is.
    pub epoch: Epoch,
    /// What this side has connections carried by.
    pub carriers: CarrierSet,
}

impl Open {
    /// The slot, as datagrams name it.
    pub fn bound(&self) -> SlotEpoch {
        bound(self.slot, self.epoch)
    }
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalCode(pub u8);

impl RefusalCode {
    /// The key is not allowed.
    pub const KEY: Self = Self(1);
    /// The other side breaks the protocol, or has another version of it.
    pub const PROTOCOL: Self = Self(2);
    /// There are too many sessions.
    pub const TOO_MANY: Self = Self(3);
    /// The host serves nobody.
    pub const NOT_SERVING: Self = Self(4);
    /// The host has none of the carriers.
    pub const CARRIER: Self = Self(5);

    /// Whether another attempt may succeed.
    pub fn may_pass(self) -> bool {
        self == Self::TOO_MANY
    }
}

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A message ends too early, or goes on too long.
    #[error("a message of type {0} has the wrong length")]
    Length(u8),
    /// It is of an unknown type.
    #[error("a message has the unknown type {0}")]
    Type(u8),
    /// Its version is another one.
    #[error("it speaks version {0} of the protocol, this is version {VERSION}")]
    Version(u8),
    /// A field has a value that it cannot have.
    #[error("{0} is invalid")]
    Field(&'static str),
}

impl ControlMessage for Message {
    type Error = DecodeError;

    const MAX_LENGTH: usize = MAX;

    /// A segment or text that is too long is cut off.
    fn encode_body(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Open(open) => {
                out.extend([OPEN, VERSION, open.cipher, open.carriers.0]);
                out.extend(open.port.to_be_bytes());
                out.extend(open.tag.to_be_bytes());
                out.extend(bound(open.slot, open.epoch).encode());
            }
            Self::Accept { port, carriers } => {
                out.extend([ACCEPT, carriers.0]);
                out.extend(port.to_be_bytes());
            }
            Self::Refuse { code, text } => {
                out.extend([REFUSE, code.0]);
                out.extend(text.as_bytes());
            }
            Self::Segment { bound, segment } => {
                out.push(SEGMENT);
                out.extend(bound.encode());
                out.extend(segment);
            }
            Self::Packet { packet } => {
                out.push(PACKET);
                out.extend(packet);
            }
            Self::Down { slot, epoch } => {
                out.push(DOWN);
                out.extend(bound(*slot, *epoch).encode());
            }
            Self::Announce { address } => {
                out.push(ANNOUNCE);
                out.extend(address.port().to_be_bytes());
                match address.ip() {
                    IpAddr::V4(ip) => out.extend(ip.octets()),
                    IpAddr::V6(ip) => out.extend(ip.octets()),
                }
            }
            Self::Bye => out.push(BYE),
        }
        out.truncate(start + MAX);
    }

    fn encode_length(length: usize, out: &mut Vec<u8>) {
        out.extend((length as u16).to_be_bytes());
    }

    fn decode_length(bytes: &[u8]) -> Option<(u64, usize)> {
        let length = bytes.first_chunk()?;
        Some((u16::from_be_bytes(*length).into(), length.len()))
    }

    fn decode_body(body: Bytes) -> Result<Self, DecodeError> {
        let (&kind, rest) = body.split_first().ok_or(DecodeError::Length(0))?;
        let length = || DecodeError::Length(kind);
        let slot = |bytes: &[u8]| match SlotEpoch::decode(bytes) {
            Some((bound, [])) if bound.ecn == 0 => Ok(bound),
            _ => Err(DecodeError::Field("slot")),
        };
        match kind {
            OPEN => {
                let (&version, rest) = rest.split_first().ok_or_else(length)?;
                if version != VERSION {
                    return Err(DecodeError::Version(version));
                }
                let (&[cipher, carriers], rest) = rest.split_first_chunk().ok_or_else(length)?;
                let (&port, rest) = rest.split_first_chunk().ok_or_else(length)?;
                let (&tag, rest) = rest.split_first_chunk().ok_or_else(length)?;
                let bound = slot(rest)?;
                Ok(Self::Open(Open {
                    cipher,
                    port: u16::from_be_bytes(port),
                    tag: u64::from_be_bytes(tag),
                    slot: bound.slot,
                    epoch: bound.epoch,
                    carriers: CarrierSet(carriers),
                }))
            }
            ACCEPT => {
                let [carriers, port @ ..]: [u8; 3] = rest.try_into().map_err(|_| length())?;
                Ok(Self::Accept {
                    port: u16::from_be_bytes(port),
                    carriers: CarrierSet(carriers),
                })
            }
            REFUSE => {
                let (&code, text) = rest.split_first().ok_or_else(length)?;
                Ok(Self::Refuse {
                    code: RefusalCode(code),
                    text: String::from_utf8_lossy(text).into_owned(),
                })
            }
            SEGMENT => {
                let (bound, segment) = SlotEpoch::decode(rest).ok_or(DecodeError::Field("slot"))?;
                let segment = segment.to_vec();
                Ok(Self::Segment { bound, segment })
            }
            PACKET => Ok(Self::Packet {
                packet: rest.to_vec(),
            }),
            DOWN => {
                let SlotEpoch { slot, epoch, .. } = slot(rest)?;
                Ok(Self::Down { slot, epoch })
            }
            ANNOUNCE => {
                let (&port, ip) = rest.split_first_chunk().ok_or_else(length)?;
                let v4 = <[u8; 4]>::try_from(ip).map(IpAddr::from);
                let ip = v4.or_else(|_| <[u8; 16]>::try_from(ip).map(IpAddr::from));
                let ip = ip.map_err(|_| length())?;
                let address = SocketAddr::new(ip, u16::from_be_bytes(port));
                Ok(Self::Announce { address })
            }
            BYE => match rest {
                [] => Ok(Self::Bye),
                _ => Err(length()),
            },
            other => Err(DecodeError::Type(other)),
        }
    }
}

fn bound(slot: Slot, epoch: Epoch) -> SlotEpoch {
    SlotEpoch {
        slot,
        epoch,
        ecn: 0,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use hawser_session::ControlError;
    use proptest::prelude::*;

    use super::*;
    use crate::address::SLOTS;

    pub(crate) fn messages() -> impl Strategy<Value = Message> {
        let bound = |ecn: std::ops::Range<u8>| {
            (1..=SLOTS, any::<u8>(), ecn).prop_map(|(slot, epoch, ecn)| SlotEpoch {
                slot,
                epoch: Epoch(epoch),
                ecn,
            })
        };
        prop_oneof![
            (any::<(u8, u16, u64, u8)>(), bound(0..1)).prop_map(
                |((cipher, port, tag, carriers), bound)| {
                    Message::Open(Open {
                        cipher,
                        port,
                        tag,
                        slot: bound.slot,
                        epoch: bound.epoch,
                        carriers: CarrierSet(carriers),
                    })
                }
            ),
            any::<(u16, u8)>().prop_map(|(port, carriers)| Message::Accept {
                port,
                carriers: CarrierSet(carriers),
            }),
            (any::<u8>(), ".{0,40}").prop_map(|(code, text)| Message::Refuse {
                code: RefusalCode(code),
                text,
            }),
            (bound(0..4), any::<Vec<u8>>())
                .prop_map(|(bound, segment)| Message::Segment { bound, segment }),
            any::<Vec<u8>>().prop_map(|packet| Message::Packet { packet }),
            bound(0..1).prop_map(|SlotEpoch { slot, epoch, .. }| Message::Down { slot, epoch }),
            any::<(IpAddr, u16)>().prop_map(|ends| Message::Announce {
                address: ends.into()
            }),
            Just(Message::Bye),
        ]
    }

    proptest! {
        #[test]
        fn messages_are_read_again_however_the_stream_is_cut(
            sent in prop::collection::vec(messages(), 0..8), size in 1..50usize,
        ) {
            let mut bytes = Vec::new();
            sent.iter().for_each(|message| message.encode(&mut bytes));
            let (mut framing, mut received) = (Framing::default(), Vec::new());
            for chunk in bytes.chunks(size) {
                framing.push(chunk);
                while let Some(message) = framing.pop().unwrap() {
                    received.push(message);
                }
            }
            prop_assert_eq!(received, sent);
        }

        #[test]
        fn any_bytes_are_messages_or_an_error(bytes: Vec<u8>) {
            let mut framing = Framing::default();
            framing.push(&bytes);
            let mut again = Vec::new();
            while let Ok(Some(message)) = framing.pop() {
                message.encode(&mut again);
            }
            prop_assert!(again.len() <= bytes.len() * 3);
        }
    }

    #[test]
    fn another_version_is_told_apart() {
        let mut framing = Framing::default();
        framing.push(&[0, 3, OPEN, 9, 1]);
        let error = ControlError::Invalid(DecodeError::Version(9));
        assert_eq!(framing.pop(), Err(error));
    }
}
