//! SCMP messages: what routers and hosts tell about packets that did not get through, and echoes.

use std::fmt;

use sciparse::identifier::isd_asn::IsdAsn;

use super::{Malformed, Packet, Quote};

/// Bytes of type, code and checksum.
pub(super) const HEADER: usize = 4;
/// SCMP types.
const DESTINATION_UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const PARAMETER_PROBLEM: u8 = 4;
const EXTERNAL_INTERFACE_DOWN: u8 = 5;
const INTERNAL_CONNECTIVITY_DOWN: u8 = 6;
pub(super) const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
pub(super) const TRACEROUTE_REQUEST: u8 = 130;
const TRACEROUTE_REPLY: u8 = 131;

/// What went wrong with a packet, as an SCMP error says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScmpError {
    /// The packet cannot be delivered; `code` as in the SCMP specification.
    DestinationUnreachable {
        /// Why: 0 no route, 1 denied, 3 no such host, 4 nobody at that port…
        code: u8,
    },
    /// A link takes only smaller packets.
    PacketTooBig {
        /// The largest SCION packet it takes, in bytes.
        mtu: u16,
    },
    /// A router does not accept the packet's header.
    ParameterProblem {
        /// Why: 48 invalid path, 51 wrong MAC, 52 expired…
        code: u8,
        /// The offending byte of the packet.
        pointer: u16,
    },
    /// The link at an interface is down.
    ExternalInterfaceDown {
        /// The AS that says so.
        isd_as: IsdAsn,
        /// Its interface.
        interface: u16,
    },
    /// Two interfaces of an AS cannot reach each other.
    InternalConnectivityDown {
        /// The AS that says so.
        isd_as: IsdAsn,
        /// Where packets come in.
        ingress: u16,
        /// Where they should go out.
        egress: u16,
    },
    /// An error this program does not know.
    Other {
        /// SCMP type, below 128.
        kind: u8,
        /// SCMP code.
        code: u8,
    },
}

impl fmt::Display for ScmpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::DestinationUnreachable { code } => {
                let why = match code {
                    0 => "no route",
                    1 => "denied by policy",
                    2 => "beyond the scope of the source address",
                    3 => "no such host",
                    4 => "nobody listens at the port",
                    5 => "the source address failed a policy",
                    6 => "route rejected",
                    _ => return write!(f, "destination unreachable (code {code})"),
                };
                write!(f, "destination unreachable: {why}")
            }
            Self::PacketTooBig { mtu } => {
                write!(f, "a link on the path takes packets of at most {mtu} bytes")
            }
            Self::ParameterProblem { code, pointer } => {
                let why = match code {
                    48 => "invalid path",
                    49 | 50 => "unknown interface in the path",
                    51 => "wrong hop-field MAC",
                    52 => "the path expired",
                    53 => "invalid change of segments",
                    _ => {
                        return write!(
                            f,
                            "a router refuses the header (code {code}, byte {pointer})"
                        );
                    }
                };
                write!(f, "a router refuses the path: {why}")
            }
            Self::ExternalInterfaceDown { isd_as, interface } => {
                write!(f, "interface {isd_as}#{interface} is down")
            }
            Self::InternalConnectivityDown {
                isd_as,
                ingress,
                egress,
            } => write!(f, "{isd_as} is cut between #{ingress} and #{egress}"),
            Self::Other { kind, code } => write!(f, "SCMP error {kind}, code {code}"),
        }
    }
}

/// An SCMP message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scmp<'a> {
    /// A packet did not get through.
    Error {
        /// What went wrong.
        error: ScmpError,
        /// The packet it is about; none where it cannot be read as a UDP or echo packet.
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
        /// To be sent back as it is.
        data: &'a [u8],
    },
    /// Asks who is there, or answers.
    Traceroute {
        /// Whether it is the answer.
        reply: bool,
        /// Which program asked: its port.
        id: u16,
        /// Which question of that program.
        sequence: u16,
        /// The AS that answers; nothing in a question.
        isd_as: IsdAsn,
        /// The interface whose router answers, 0 for a host.
        interface: u16,
    },
    /// Something this program does not know, not an error.
    Other {
        /// SCMP type, from 128.
        kind: u8,
    },
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Malformed> {
    match bytes.get(at..at + 2) {
        Some(value) => Ok(u16::from_be_bytes([value[0], value[1]])),
        None => Err(Malformed::Truncated),
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, Malformed> {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<8>());
    bytes
        .map(|value| u64::from_be_bytes(*value))
        .ok_or(Malformed::Truncated)
}

/// An interface id, which SCMP carries in 64 bits.
fn interface_at(bytes: &[u8], at: usize) -> Result<u16, Malformed> {
    u16::try_from(u64_at(bytes, at)?).map_err(|_| Malformed::Length)
}

impl<'a> Scmp<'a> {
    /// Reads the message inside `packet`, whose checksum must hold.
    ///
    /// # Errors
    /// [`Malformed`] when it is cut short or its checksum is wrong.
    pub fn parse(packet: &Packet<'a>) -> Result<Self, Malformed> {
        if !packet.is_scmp() {
            return Err(Malformed::NextHeader(packet.next_header()));
        }
        let bytes = packet.payload();
        if bytes.len() < HEADER {
            return Err(Malformed::Truncated);
        }
        if !packet.checksum_holds() {
            return Err(Malformed::Checksum);
        }
        let (kind, code, body) = (bytes[0], bytes[1], &bytes[HEADER..]);
        let (error, quote_at) = match kind {
            DESTINATION_UNREACHABLE => (ScmpError::DestinationUnreachable { code }, 4),
            PACKET_TOO_BIG => {
                let mtu = u16_at(body, 2)?;
                (ScmpError::PacketTooBig { mtu }, 4)
            }
            PARAMETER_PROBLEM => {
                let pointer = u16_at(body, 2)?;
                (ScmpError::ParameterProblem { code, pointer }, 4)
            }
            EXTERNAL_INTERFACE_DOWN => {
                let isd_as = IsdAsn::from_u64(u64_at(body, 0)?);
                let interface = interface_at(body, 8)?;
                (ScmpError::ExternalInterfaceDown { isd_as, interface }, 16)
            }
            INTERNAL_CONNECTIVITY_DOWN => {
                let error = ScmpError::InternalConnectivityDown {
                    isd_as: IsdAsn::from_u64(u64_at(body, 0)?),
                    ingress: interface_at(body, 8)?,
                    egress: interface_at(body, 16)?,
                };
                (error, 24)
            }
            ECHO_REQUEST | ECHO_REPLY => {
                return Ok(Self::Echo {
                    reply: kind == ECHO_REPLY,
                    id: u16_at(body, 0)?,
                    sequence: u16_at(body, 2)?,
                    data: &body[4..],
                });
            }
            TRACEROUTE_REQUEST | TRACEROUTE_REPLY => {
                return Ok(Self::Traceroute {
                    reply: kind == TRACEROUTE_REPLY,
                    id: u16_at(body, 0)?,
                    sequence: u16_at(body, 2)?,
                    isd_as: IsdAsn::from_u64(u64_at(body, 4)?),
                    interface: interface_at(body, 12)?,
                });
            }
            128.. => return Ok(Self::Other { kind }),
            _ => (ScmpError::Other { kind, code }, body.len()),
        };
        let quote = Quote::parse(body.get(quote_at..).unwrap_or_default());
        Ok(Self::Error { error, quote })
    }
}

/// An echo request or reply, to be put into a packet.
pub(crate) fn echo(reply: bool, id: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    let kind = if reply { ECHO_REPLY } else { ECHO_REQUEST };
    let mut message = vec![kind, 0, 0, 0];
    message.extend_from_slice(&id.to_be_bytes());
    message.extend_from_slice(&sequence.to_be_bytes());
    message.extend_from_slice(data);
    message
}

/// Asks the router, whose alert is set in the path's hop field, who it is.
pub(crate) fn traceroute_request(id: u16, sequence: u16) -> Vec<u8> {
    let mut message = traceroute_reply(id, sequence, IsdAsn::from_u64(0));
    message[0] = TRACEROUTE_REQUEST;
    message
}

/// A host's answer to a traceroute request: its AS, and no interface.
pub(crate) fn traceroute_reply(id: u16, sequence: u16, isd_as: IsdAsn) -> Vec<u8> {
    let mut message = vec![TRACEROUTE_REPLY, 0, 0, 0];
    message.extend_from_slice(&id.to_be_bytes());
    message.extend_from_slice(&sequence.to_be_bytes());
    message.extend_from_slice(&isd_as.to_be_bytes());
    message.extend_from_slice(&[0; 8]);
    message
}

#[cfg(test)]
mod tests;
