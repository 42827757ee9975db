//! Reading a SCION packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;

use super::{COMMON_HEADER, SCMP, Sum, UDP, UDP_HEADER};

/// Why bytes are no SCION packet a host can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Shorter than its headers say.
    #[error("the packet is cut short")]
    Truncated,
    /// Version 0 is the only one there is.
    #[error("SCION version {0} is unknown")]
    Version(u8),
    /// The lengths in its headers contradict each other.
    #[error("the packet's lengths contradict each other")]
    Length,
    /// The host address is neither IPv4 nor IPv6.
    #[error("the address type {0:#x} is unknown")]
    AddressType(u8),
    /// The checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// Not the protocol asked for.
    #[error("next header {0} is not what was expected")]
    NextHeader(u8),
}

/// A SCION packet whose lengths are consistent. Nothing else is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    /// Where the address header ends and the path begins.
    path_at: usize,
    /// Where the headers end and the payload begins.
    payload_at: usize,
}

/// A UDP datagram inside a SCION packet, its checksum verified.
#[derive(Debug, Clone, Copy)]
pub struct Udp<'a> {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// What was sent.
    pub payload: &'a [u8],
}

/// The bytes of a host address by its type and length (four bits of the common header).
const fn host_len(kind: u8) -> usize {
    4 * ((kind & 0b11) as usize + 1)
}

impl<'a> Packet<'a> {
    /// Reads a whole packet: exactly as long as its header says.
    ///
    /// # Errors
    /// [`Malformed`] when it is not.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let packet = Self::parse_quoted(bytes)?;
        if packet.payload().len() == packet.claimed_payload_len() {
            Ok(packet)
        } else {
            Err(Malformed::Length)
        }
    }

    /// Reads a packet whose payload may be cut short, as SCMP errors quote it.
    ///
    /// # Errors
    /// [`Malformed`] when its headers are not whole.
    #[inline]
    pub fn parse_quoted(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let Some(common) = bytes.first_chunk::<COMMON_HEADER>() else {
            return Err(Malformed::Truncated);
        };
        if common[0] >> 4 != 0 {
            return Err(Malformed::Version(common[0] >> 4));
        }
        let payload_at = usize::from(common[5]) * 4;
        let path_at = COMMON_HEADER + 16 + host_len(common[9] >> 4) + host_len(common[9] & 0b1111);
        if path_at > payload_at {
            return Err(Malformed::Length);
        }
        if payload_at > bytes.len() {
            return Err(Malformed::Truncated);
        }
        Ok(Self {
            bytes,
            path_at,
            payload_at,
        })
    }

    /// The whole packet.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn claimed_payload_len(&self) -> usize {
        usize::from(u16::from_be_bytes([self.bytes[6], self.bytes[7]]))
    }

    /// The number of the protocol inside.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.bytes[4]
    }

    /// The congestion mark (RFC 3168) of the traffic class.
    #[inline]
    pub fn ecn(&self) -> u8 {
        (self.bytes[1] >> 4) & 0b11
    }

    /// The flow label, 20 bits.
    #[inline]
    pub fn flow(&self) -> u32 {
        u32::from_be_bytes([0, self.bytes[1] & 0x0f, self.bytes[2], self.bytes[3]])
    }

    /// The packet's whole length, as its header says: of a quoted packet more than is quoted.
    #[inline]
    pub fn claimed_len(&self) -> usize {
        self.payload_at + self.claimed_payload_len()
    }

    /// The fields of the common header that every router leaves alone, and the address header.
    #[inline]
    pub(crate) fn end_to_end(&self) -> (u32, &'a [u8], &'a [u8]) {
        let (common, addresses) = (4..10, COMMON_HEADER..self.path_at);
        (self.flow(), &self.bytes[common], &self.bytes[addresses])
    }

    /// The path type: 0 is empty, 1 a standard path.
    #[inline]
    pub fn path_type(&self) -> u8 {
        self.bytes[8]
    }

    /// The path header, as the packet has it here.
    #[inline]
    pub fn path(&self) -> &'a [u8] {
        &self.bytes[self.path_at..self.payload_at]
    }

    /// What all packets from one host to another over one path have in common: address types,
    /// addresses and path, as they stand in the header.
    #[inline]
    pub fn route_bytes(&self) -> &'a [u8] {
        &self.bytes[8..self.payload_at]
    }

    /// What follows the headers.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.payload_at..]
    }

    #[inline]
    fn isd_as_at(&self, at: usize) -> IsdAsn {
        let mut id = [0; 8];
        id.copy_from_slice(&self.bytes[at..at + 8]);
        IsdAsn::from_u64(u64::from_be_bytes(id))
    }

    /// The AS the packet is for.
    #[inline]
    pub fn dst_as(&self) -> IsdAsn {
        self.isd_as_at(COMMON_HEADER)
    }

    /// The AS the packet says it is from.
    #[inline]
    pub fn src_as(&self) -> IsdAsn {
        self.isd_as_at(COMMON_HEADER + 8)
    }

    /// The host the packet is for.
    ///
    /// # Errors
    /// [`Malformed::AddressType`] when it is no IP address.
    #[inline]
    pub fn dst_host(&self) -> Result<IpAddr, Malformed> {
        let kind = self.bytes[9] >> 4;
        host(kind, &self.bytes[COMMON_HEADER + 16..])
    }

    /// The host the packet says it is from.
    ///
    /// # Errors
    /// [`Malformed::AddressType`] when it is no IP address.
    #[inline]
    pub fn src_host(&self) -> Result<IpAddr, Malformed> {
        let kind = self.bytes[9] & 0b1111;
        host(kind, &self.bytes[self.path_at - host_len(kind)..])
    }

    /// Whether the checksum over pseudo-header and payload holds. The pseudo-header is the address
    /// header, the payload's length and the protocol.
    #[inline]
    pub fn checksum_holds(&self) -> bool {
        let payload = self.payload();
        Sum::default()
            .add(&self.bytes[COMMON_HEADER..self.path_at])
            .add_upper(self.claimed_payload_len() as u16, self.next_header())
            .add(payload)
            .holds()
    }

    /// The UDP datagram inside, its checksum verified.
    ///
    /// # Errors
    /// [`Malformed`] when there is no whole datagram, or its checksum is wrong.
    #[inline]
    pub fn udp(&self) -> Result<Udp<'a>, Malformed> {
        let udp = self.udp_quoted()?;
        let bytes = self.payload();
        if usize::from(u16::from_be_bytes([bytes[4], bytes[5]])) != bytes.len() {
            return Err(Malformed::Length);
        }
        if !self.checksum_holds() {
            return Err(Malformed::Checksum);
        }
        Ok(udp)
    }

    /// The UDP datagram inside a quoted packet, which may be cut short.
    ///
    /// # Errors
    /// [`Malformed`] when there is no UDP header.
    #[inline]
    pub fn udp_quoted(&self) -> Result<Udp<'a>, Malformed> {
        if self.next_header() != UDP {
            return Err(Malformed::NextHeader(self.next_header()));
        }
        let Some((header, payload)) = self.payload().split_first_chunk::<UDP_HEADER>() else {
            return Err(Malformed::Truncated);
        };
        Ok(Udp {
            src_port: u16::from_be_bytes([header[0], header[1]]),
            dst_port: u16::from_be_bytes([header[2], header[3]]),
            payload,
        })
    }

    /// Whether an SCMP message is inside.
    #[inline]
    pub fn is_scmp(&self) -> bool {
        self.next_header() == SCMP
    }
}

/// Reads the host address at the beginning of `bytes`.
#[inline]
fn host(kind: u8, bytes: &[u8]) -> Result<IpAddr, Malformed> {
    match kind {
        0b0000 => match bytes.first_chunk::<4>() {
            Some(ip) => Ok(Ipv4Addr::from(*ip).into()),
            None => Err(Malformed::Truncated),
        },
        0b0011 => match bytes.first_chunk::<16>() {
            Some(ip) => Ok(Ipv6Addr::from(*ip).into()),
            None => Err(Malformed::Truncated),
        },
        _ => Err(Malformed::AddressType(kind)),
    }
}
