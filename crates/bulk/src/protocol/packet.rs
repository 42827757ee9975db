//! Packets: content, acknowledgements and probes in sealed datagrams.

use std::ops::Range;

use hawser_endhost::lanes::{PacketFormat, Token};
use hawser_seal::{Cipher, HEADER, Kind, SECRET, SubflowId, TAG};
use thiserror::Error;

use super::ack::Ack;
use super::wire::{DecodeError, Reader};

/// Bytes of the position in a data packet.
const POSITION: usize = 8;

/// Bytes of a data packet that are not content: header, position, tag.
pub const DATA_OVERHEAD: usize = HEADER + POSITION + TAG;

const DATA: Kind = Kind::new(1).expect("1 to 7");
const ACK: Kind = Kind::new(2).expect("1 to 7");
const PROBE: Kind = Kind::new(3).expect("1 to 7");

/// The format of data and acknowledgement packets on lanes; their token is the subflow id.
///
/// Each subflow has a QUIC connection over the same path, whose packets are at least that large (RFC
/// 9000, 14).
pub const FORMAT: PacketFormat = PacketFormat {
    token: token_of,
    min_payload: 1200,
};

/// The subflow id of a packet that is one by its first byte. SCMP errors may quote other packets of
/// the socket.
fn token_of(packet: &[u8]) -> Option<Token> {
    match hawser_seal::kind(packet)? {
        DATA | ACK | PROBE => hawser_seal::subflow_id(packet),
        _ => None,
    }
}

/// Seals the packets of one direction of a subflow, and numbers them.
#[derive(Debug)]
pub struct Sealer(hawser_seal::Sealer);

impl Sealer {
    /// A sealer with the exported secret of its direction (`docs/bulk-protocol.md`, *Keys*).
    pub fn new(cipher: Cipher, secret_and_id: &[u8; SECRET]) -> Self {
        Self(hawser_seal::Sealer::new(cipher, secret_and_id))
    }

    /// The number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.0.next_number()
    }

    /// The id in all packets.
    pub fn subflow_id(&self) -> SubflowId {
        self.0.subflow_id()
    }

    /// Appends `content`, which begins at `position`, as data packets to `out`: `per_packet` bytes
    /// of content each, the last possibly fewer, one behind the other. With `ask`, the last packet
    /// asks for an answer. Returns their numbers.
    pub fn seal_data(
        &mut self,
        out: &mut Vec<u8>,
        position: u64,
        content: &[u8],
        per_packet: usize,
        ask: bool,
    ) -> Range<u64> {
        let first = self.next_number();
        let packets = content.len().div_ceil(per_packet.max(1));
        out.reserve(content.len() + packets * DATA_OVERHEAD);
        let positions = (position..).step_by(per_packet.max(1));
        let last = packets.saturating_sub(1);
        for (index, (part, position)) in
            content.chunks(per_packet.max(1)).zip(positions).enumerate()
        {
            self.0.seal(out, DATA, ask && index == last, |out| {
                out.extend_from_slice(&position.to_be_bytes());
                out.extend_from_slice(part);
            });
        }
        first..self.next_number()
    }

    /// Appends an acknowledgement packet of at most `size` bytes to `out`, with as many ranges as
    /// fit. Returns its number.
    pub fn seal_ack(&mut self, out: &mut Vec<u8>, ack: &Ack, size: usize) -> u64 {
        let limit = size.saturating_sub(HEADER + TAG);
        self.0.seal(out, ACK, false, |out| ack.encode(out, limit))
    }

    /// Appends a probe of `size` bytes to `out`, which asks for an answer. The smallest probe has
    /// header and tag alone (29 bytes). Returns its number.
    pub fn seal_probe(&mut self, out: &mut Vec<u8>, size: usize) -> u64 {
        let zeros = size.saturating_sub(HEADER + TAG);
        self.0
            .seal(out, PROBE, true, |out| out.resize(out.len() + zeros, 0))
    }
}

/// Opens the packets of one direction of a subflow.
#[derive(Debug)]
pub struct Opener {
    sealed: hawser_seal::Opener,
    malformed: u64,
}

/// An authentic packet that was not received before.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// The packet number.
    pub number: u64,
    /// The sender wants an answer at once.
    pub ask: bool,
    /// What the packet carries.
    pub payload: Payload<'a>,
}

/// What a packet carries.
#[derive(Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// At least one byte of content.
    Data {
        /// The position of the first byte in the content. With the length of the content it is at
        /// most `u64::MAX`; whether that is within the content is the sink's to check.
        position: u64,
        /// The content.
        content: &'a [u8],
    },
    /// An acknowledgement.
    Ack(Ack),
    /// Nothing.
    Probe {
        /// The size of the packet, in bytes.
        size: usize,
    },
}

/// Why a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It does not open.
    #[error(transparent)]
    Sealed(hawser_seal::Rejected),
    /// It is authentic, and its payload breaks the protocol: the peer is at fault.
    #[error("its payload is invalid: {0}")]
    Malformed(DecodeError),
}

/// How many packets were dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rejections {
    /// [`Rejected::Sealed`], by reason.
    pub sealed: hawser_seal::Rejections,
    /// [`Rejected::Malformed`].
    pub malformed: u64,
}

impl Rejections {
    /// All dropped packets.
    pub fn total(&self) -> u64 {
        self.sealed.total() + self.malformed
    }
}

impl Opener {
    /// An opener with the exported secret of the sender's direction (`docs/bulk-protocol.md`, *Keys*).
    pub fn new(cipher: Cipher, secret_and_id: &[u8; SECRET]) -> Self {
        Self {
            sealed: hawser_seal::Opener::new(cipher, secret_and_id),
            malformed: 0,
        }
    }

    /// The id in all packets.
    pub fn subflow_id(&self) -> SubflowId {
        self.sealed.subflow_id()
    }

    /// The packets that were dropped.
    pub fn rejections(&self) -> Rejections {
        Rejections {
            sealed: self.sealed.rejections(),
            malformed: self.malformed,
        }
    }

    /// Opens `packet`; `scratch` holds its content. Only packets that open change what is received
    /// later.
    ///
    /// # Errors
    /// Why the packet is dropped; it is counted.
    pub fn open<'a>(
        &mut self,
        packet: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<Opened<'a>, Rejected> {
        let opened = (self.sealed)
            .open(packet, scratch)
            .map_err(Rejected::Sealed)?;
        match decode(opened.kind, opened.payload, packet.len()) {
            Ok(payload) => Ok(Opened {
                number: opened.number,
                ask: opened.ask,
                payload,
            }),
            Err(error) => {
                self.malformed += 1;
                Err(Rejected::Malformed(error))
            }
        }
    }
}

fn decode(kind: Kind, payload: &[u8], size: usize) -> Result<Payload<'_>, DecodeError> {
    match kind {
        DATA => {
            let mut reader = Reader::new(payload);
            let position = reader.u64()?;
            let content = reader.rest();
            if content.is_empty() {
                return Err(DecodeError::Truncated);
            }
            if position.checked_add(content.len() as u64).is_none() {
                return Err(DecodeError::Invalid("position"));
            }
            Ok(Payload::Data { position, content })
        }
        ACK => Ack::decode(payload).map(Payload::Ack),
        PROBE => Ok(Payload::Probe { size }),
        other => Err(DecodeError::UnknownKind(other.number())),
    }
}

#[cfg(test)]
mod tests;
