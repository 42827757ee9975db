//! SCMP messages (SCION Control Message Protocol): errors that routers and hosts report, echoes and
//! traceroute.

mod error;

use hawser_address::IsdAsn;

pub use self::error::{ScmpError, quote_at};
use crate::bytes::u16_at;
use crate::checksum::Checksum;
use crate::header::{COMMON_HEADER, set_payload_len};
use crate::malformed::Malformed;
use crate::number::{next_header, scmp_type};
use crate::packet::Packet;
use crate::quote::Quote;

/// Length of type, code and checksum, the start of every message.
pub const SCMP_HEADER: usize = 4;
/// Length of a query without its body: the header, identifier and sequence number.
pub const QUERY: usize = SCMP_HEADER + 4;
/// Length of a traceroute message.
pub const TRACEROUTE: usize = QUERY + 16;

/// An SCMP message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scmp<'a> {
    /// An error about a packet.
    Error {
        /// The error.
        error: ScmpError,
        /// The packet that caused the error; `None` if it cannot be read as a UDP packet or as an
        /// SCMP request.
        quote: Option<Quote<'a>>,
    },
    /// A request, or the reply to one.
    Query {
        /// Whether this is the reply.
        reply: bool,
        /// The identifier: the port of the requesting program.
        id: u16,
        /// The sequence number of the request.
        sequence: u16,
        /// The data of the request or reply.
        body: Body<'a>,
    },
    /// An unknown message that is not an error.
    Other {
        /// SCMP type, from 128.
        kind: u8,
    },
}

/// The data of an SCMP request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// An echo; the reply returns these bytes unchanged.
    Echo(&'a [u8]),
    /// A traceroute: the AS and interface of a router or host.
    Traceroute {
        /// The AS that replies; the wildcard in a request.
        isd_as: IsdAsn,
        /// The interface whose router replies; 0 for a host.
        interface: u16,
    },
}

impl<'a> Scmp<'a> {
    /// Reads the message inside `packet`, and verifies its checksum.
    ///
    /// # Errors
    /// [`Malformed`] when it is truncated or its checksum is wrong.
    pub fn parse(packet: &Packet<'a>) -> Result<Self, Malformed> {
        if !packet.is_scmp() {
            return Err(Malformed::NextHeader(packet.header.next_header));
        }
        let bytes = packet.payload();
        if bytes.len() < SCMP_HEADER {
            return Err(Malformed::Truncated);
        }
        if !packet.checksum_is_valid() {
            return Err(Malformed::Checksum);
        }
        let kind = bytes[0];
        let body = match kind {
            scmp_type::ECHO_REQUEST | scmp_type::ECHO_REPLY => {
                Body::Echo(bytes.get(QUERY..).ok_or(Malformed::Truncated)?)
            }
            scmp_type::TRACEROUTE_REQUEST | scmp_type::TRACEROUTE_REPLY => {
                let bytes = bytes.get(..TRACEROUTE).ok_or(Malformed::Truncated)?;
                let isd_as = error::isd_as_at(bytes, QUERY);
                let interface = error::interface_at(bytes, QUERY + 8)?;
                Body::Traceroute { isd_as, interface }
            }
            128.. => return Ok(Self::Other { kind }),
            _ => {
                let (error, quoted) = ScmpError::read(bytes)?;
                let quote = Quote::parse(quoted);
                return Ok(Self::Error { error, quote });
            }
        };
        Ok(Self::Query {
            reply: kind & 1 == 1,
            id: u16_at(bytes, SCMP_HEADER),
            sequence: u16_at(bytes, SCMP_HEADER + 2),
            body,
        })
    }

    /// Appends the message to `out`, with a checksum of zero.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Error { error, quote } => {
                error.write(out);
                out.extend_from_slice(quote.map_or(&[], |quote| quote.bytes()));
            }
            Self::Query {
                reply,
                id,
                sequence,
                body,
            } => {
                let kind = match body {
                    Body::Echo(_) => scmp_type::ECHO_REQUEST,
                    Body::Traceroute { .. } => scmp_type::TRACEROUTE_REQUEST,
                };
                out.extend([kind | u8::from(reply), 0, 0, 0]);
                out.extend(id.to_be_bytes());
                out.extend(sequence.to_be_bytes());
                match body {
                    Body::Echo(data) => out.extend_from_slice(data),
                    Body::Traceroute { isd_as, interface } => {
                        error::write_interface(isd_as, interface, out);
                    }
                }
            }
            Self::Other { kind } => out.extend([kind, 0, 0, 0]),
        }
    }

    /// The message as bytes, with a checksum of zero.
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
