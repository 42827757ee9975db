//! SCMP messages (SCION Control Message Protocol): errors that routers and hosts report, echoes and
//! traceroute.

mod error;

use sciparse::identifier::isd_asn::IsdAsn;

pub use self::error::{ScmpError, quote_at};
use crate::checksum::Checksum;
use crate::header::{COMMON_HEADER, set_payload_len};
use crate::malformed::Malformed;
use crate::number::{next_header, scmp_type};
use crate::packet::Packet;
use crate::quote::Quote;

/// Length of type, code and checksum, which begin a message.
pub const SCMP_HEADER: usize = 4;
/// Length of a traceroute message.
pub const TRACEROUTE: usize = SCMP_HEADER + 20;

/// An SCMP message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scmp<'a> {
    /// A packet did not get through.
    Error {
        /// What went wrong.
        error: ScmpError,
        /// The packet it is about; `None` where it cannot be read as a UDP or echo packet.
        quote: Option<Quote<'a>>,
    },
    /// Asks for an echo, or is one.
    Echo {
        /// Whether it is the answer.
        reply: bool,
        /// Which program asked: its port.
        id: u16,
        /// Which echo of that program.
        sequence: u16,
        /// Sent back unchanged.
        data: &'a [u8],
    },
    /// Asks a router, or a host, for its AS and interface, or answers that.
    Traceroute {
        /// Whether it is the answer.
        reply: bool,
        /// Which program asked: its port.
        id: u16,
        /// Which question of that program.
        sequence: u16,
        /// The AS that answers; the wildcard in a question.
        isd_as: IsdAsn,
        /// The interface whose router answers, 0 for a host.
        interface: u16,
    },
    /// An unknown message that is not an error.
    Other {
        /// SCMP type, from 128.
        kind: u8,
    },
}

impl<'a> Scmp<'a> {
    /// Reads the message inside `packet`, whose checksum must be right.
    ///
    /// # Errors
    /// [`Malformed`] when it is cut short or its checksum is wrong.
    pub fn parse(packet: &Packet<'a>) -> Result<Self, Malformed> {
        if !packet.is_scmp() {
            return Err(Malformed::NextHeader(packet.next_header()));
        }
        let bytes = packet.payload();
        if bytes.len() < SCMP_HEADER {
            return Err(Malformed::Truncated);
        }
        if !packet.checksum_is_valid() {
            return Err(Malformed::Checksum);
        }
        let (kind, body) = (bytes[0], &bytes[SCMP_HEADER..]);
        match kind {
            scmp_type::ECHO_REQUEST | scmp_type::ECHO_REPLY => Ok(Self::Echo {
                reply: kind == scmp_type::ECHO_REPLY,
                id: error::u16_at(body, 0)?,
                sequence: error::u16_at(body, 2)?,
                data: &body[4..],
            }),
            scmp_type::TRACEROUTE_REQUEST | scmp_type::TRACEROUTE_REPLY => Ok(Self::Traceroute {
                reply: kind == scmp_type::TRACEROUTE_REPLY,
                id: error::u16_at(body, 0)?,
                sequence: error::u16_at(body, 2)?,
                isd_as: error::isd_as_at(body, 4)?,
                interface: error::interface_at(body, 12)?,
            }),
            128.. => Ok(Self::Other { kind }),
            _ => {
                let (error, quoted) = ScmpError::read(bytes)?;
                let quote = Quote::parse(quoted);
                Ok(Self::Error { error, quote })
            }
        }
    }

    /// Appends the message to `out`, its checksum zero.
    pub fn write(&self, out: &mut Vec<u8>) {
        let begin = |out: &mut Vec<u8>, kind, id: u16, sequence: u16| {
            out.extend([kind, 0, 0, 0]);
            out.extend(id.to_be_bytes());
            out.extend(sequence.to_be_bytes());
        };
        match *self {
            Self::Error { error, quote } => {
                error.write(out);
                out.extend_from_slice(quote.map_or(&[], |quote| quote.bytes()));
            }
            Self::Echo {
                reply,
                id,
                sequence,
                data,
            } => {
                let kind = scmp_type::ECHO_REQUEST | u8::from(reply);
                begin(out, kind, id, sequence);
                out.extend_from_slice(data);
            }
            Self::Traceroute {
                reply,
                id,
                sequence,
                isd_as,
                interface,
            } => {
                let kind = scmp_type::TRACEROUTE_REQUEST | u8::from(reply);
                begin(out, kind, id, sequence);
                error::write_interface(isd_as, interface, out);
            }
            Self::Other { kind } => out.extend([kind, 0, 0, 0]),
        }
    }

    /// The message, its checksum zero.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }
}

/// Completes a `packet` with the address header up to `path_at` and an SCMP message from
/// `message_at`: writes the payload length, and the checksum over pseudo header and message.
pub fn finish(packet: &mut [u8], path_at: usize, message_at: usize) {
    let length = set_payload_len(packet, message_at);
    let checksum = message_at + 2..message_at + 4;
    packet[checksum.clone()].fill(0);
    let sum = Checksum::default()
        .add_bytes(&packet[COMMON_HEADER..path_at])
        .add_upper(length, next_header::SCMP)
        .add_bytes(&packet[message_at..]);
    packet[checksum].copy_from_slice(&sum.finish());
}

#[cfg(test)]
mod tests;
