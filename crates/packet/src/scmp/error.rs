//! SCMP errors.

use std::fmt;

use hawser_address::IsdAsn;

use crate::bytes::{u16_at, u64_at};
use crate::malformed::Malformed;
use crate::number::{parameter, scmp_type};

/// An SCMP error about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScmpError {
    /// The packet cannot be delivered.
    DestinationUnreachable {
        /// The reason, for example 4 if no program listens at the port.
        code: u8,
    },
    /// The packet is larger than the MTU of a link.
    PacketTooBig {
        /// The MTU of the link: the largest SCION packet, in bytes.
        mtu: u16,
    },
    /// A field of the packet's header is invalid.
    ParameterProblem {
        /// One of [`parameter`](crate::number::parameter).
        code: u8,
        /// Offset of the offending field in the packet.
        pointer: u16,
    },
    /// The link at an interface is down.
    ExternalInterfaceDown {
        /// The AS that reports it.
        isd_as: IsdAsn,
        /// Its interface.
        interface: u16,
    },
    /// Two interfaces of an AS cannot reach each other.
    InternalConnectivityDown {
        /// The AS that reports it.
        isd_as: IsdAsn,
        /// The ingress interface; 0 for a host of the AS.
        ingress: u16,
        /// The egress interface.
        egress: u16,
    },
    /// An unknown error.
    Other {
        /// SCMP type, below 128.
        kind: u8,
        /// SCMP code.
        code: u8,
    },
}

/// The meanings of the codes of "destination unreachable", by code.
const UNREACHABLE: [&str; 7] = [
    "no route",
    "denied by policy",
    "beyond the scope of the source address",
    "no such host",
    "nobody listens at the port",
    "the source address failed a policy",
    "route rejected",
];

impl fmt::Display for ScmpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::DestinationUnreachable { code } => match UNREACHABLE.get(usize::from(code)) {
                Some(reason) => write!(f, "destination unreachable: {reason}"),
                None => write!(f, "destination unreachable (code {code})"),
            },
            Self::PacketTooBig { mtu } => {
                write!(f, "a link on the path takes packets of at most {mtu} bytes")
            }
            Self::ParameterProblem { code, pointer } => {
                let why = match code {
                    parameter::INVALID_PATH => "invalid path",
                    parameter::UNKNOWN_CONS_INGRESS | parameter::UNKNOWN_CONS_EGRESS => {
                        "unknown interface in the path"
                    }
                    parameter::INVALID_MAC => "wrong hop-field MAC",
                    parameter::PATH_EXPIRED => "the path expired",
                    parameter::INVALID_SEGMENT_CHANGE => "invalid change of segments",
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

/// Offset of the quoted packet in an error of type `kind`; `None` for other messages.
pub fn quote_at(kind: u8) -> Option<usize> {
    match kind {
        scmp_type::DESTINATION_UNREACHABLE
        | scmp_type::PACKET_TOO_BIG
        | scmp_type::PARAMETER_PROBLEM => Some(8),
        scmp_type::EXTERNAL_INTERFACE_DOWN => Some(20),
        scmp_type::INTERNAL_CONNECTIVITY_DOWN => Some(28),
        _ => None,
    }
}

impl ScmpError {
    /// Reads the error in the SCMP message `bytes`, which is not empty, and the packet it quotes.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (kind, code) = (bytes[0], bytes[1]);
        let quoted = quote_at(kind).and_then(|at| bytes.get(at..));
        let error = match kind {
            // The fields before the quoted packet are unused.
            scmp_type::DESTINATION_UNREACHABLE => Self::DestinationUnreachable { code },
            _ if quote_at(kind).is_some() && quoted.is_none() => return Err(Malformed::Truncated),
            scmp_type::PACKET_TOO_BIG => Self::PacketTooBig {
                mtu: u16_at(bytes, 6),
            },
            scmp_type::PARAMETER_PROBLEM => Self::ParameterProblem {
                code,
                pointer: u16_at(bytes, 6),
            },
            scmp_type::EXTERNAL_INTERFACE_DOWN => Self::ExternalInterfaceDown {
                isd_as: isd_as_at(bytes, 4),
                interface: interface_at(bytes, 12)?,
            },
            scmp_type::INTERNAL_CONNECTIVITY_DOWN => Self::InternalConnectivityDown {
                isd_as: isd_as_at(bytes, 4),
                ingress: interface_at(bytes, 12)?,
                egress: interface_at(bytes, 20)?,
            },
            _ => Self::Other { kind, code },
        };
        Ok((error, quoted.unwrap_or_default()))
    }

    /// Appends the message to `out` up to the quoted packet, which the caller must append; the
    /// checksum is zero.
    pub fn write(&self, out: &mut Vec<u8>) {
        let begin = |out: &mut Vec<u8>, kind, code| out.extend([kind, code, 0, 0]);
        let number = |out: &mut Vec<u8>, number: u16| out.extend(u32::from(number).to_be_bytes());
        match *self {
            Self::DestinationUnreachable { code } => {
                begin(out, scmp_type::DESTINATION_UNREACHABLE, code);
                number(out, 0);
            }
            Self::PacketTooBig { mtu } => {
                begin(out, scmp_type::PACKET_TOO_BIG, 0);
                number(out, mtu);
            }
            Self::ParameterProblem { code, pointer } => {
                begin(out, scmp_type::PARAMETER_PROBLEM, code);
                number(out, pointer);
            }
            Self::ExternalInterfaceDown { isd_as, interface } => {
                begin(out, scmp_type::EXTERNAL_INTERFACE_DOWN, 0);
                write_interface(isd_as, interface, out);
            }
            Self::InternalConnectivityDown {
                isd_as,
                ingress,
                egress,
            } => {
                begin(out, scmp_type::INTERNAL_CONNECTIVITY_DOWN, 0);
                write_interface(isd_as, ingress, out);
                out.extend(u64::from(egress).to_be_bytes());
            }
            Self::Other { kind, code } => begin(out, kind, code),
        }
    }
}

/// Appends an AS and an interface, which SCMP carries in 64 bits.
pub(super) fn write_interface(isd_as: IsdAsn, interface: u16, out: &mut Vec<u8>) {
    out.extend(isd_as.to_be_bytes());
    out.extend(u64::from(interface).to_be_bytes());
}

/// The AS at offset `at`.
pub(super) fn isd_as_at(bytes: &[u8], at: usize) -> IsdAsn {
    IsdAsn(u64_at(bytes, at))
}

/// The interface at offset `at`, which SCMP carries in 64 bits.
pub(super) fn interface_at(bytes: &[u8], at: usize) -> Result<u16, Malformed> {
    u16::try_from(u64_at(bytes, at)).map_err(|_| Malformed::Length)
}
