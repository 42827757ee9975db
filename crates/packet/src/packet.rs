//! Reading a SCION packet.

use std::net::IpAddr;

use crate::bytes::{u16_at, u32_at};
use crate::checksum::Checksum;
use crate::header::{COMMON_HEADER, Header};
use crate::malformed::{Malformed, MalformedPath};
use crate::number::{next_header, path_type};
use crate::path;

/// Length of a UDP header.
pub const UDP_HEADER: usize = 8;

/// A SCION packet with consistent lengths. Its other fields are not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    /// Its common and address headers.
    pub header: Header,
}

/// A UDP datagram inside a SCION packet.
#[derive(Debug, Clone, Copy)]
pub struct Udp<'a> {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a complete packet, which must be exactly as long as its header says.
    ///
    /// # Errors
    /// [`Malformed`] when the headers are invalid or the length differs.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let packet = Self::parse_quoted(bytes)?;
        if packet.payload().len() == packet.header.payload_len {
            Ok(packet)
        } else {
            Err(Malformed::Length)
        }
    }

    /// Reads a packet whose payload may be truncated, as in the quote of an SCMP error.
    ///
    /// # Errors
    /// [`Malformed`] when its headers are invalid or truncated.
    #[inline]
    pub fn parse_quoted(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let header = Header::parse(bytes)?;
        Ok(Self { bytes, header })
    }

    /// All bytes of the packet.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The congestion mark (RFC 3168) of the traffic class.
    #[inline]
    pub fn ecn(&self) -> u8 {
        (self.bytes[1] >> 4) & 0b11
    }

    /// The flow label, the other fields of the common header that no router changes, and the address header.
    #[inline]
    pub(crate) fn end_to_end(&self) -> (u32, &'a [u8], &'a [u8]) {
        let flow = u32_at(self.bytes, 0) & 0xf_ffff;
        (flow, &self.bytes[4..10], self.addresses())
    }

    /// The address header.
    #[inline]
    fn addresses(&self) -> &'a [u8] {
        &self.bytes[COMMON_HEADER..self.header.path]
    }

    /// The path header, in its current state.
    #[inline]
    pub fn path(&self) -> &'a [u8] {
        &self.bytes[self.header.path..self.header.len]
    }

    /// The path header for an answer to this packet, which is the reverse of its own.
    ///
    /// # Errors
    /// [`MalformedPath`] when the path is neither empty nor a valid standard path with a valid
    /// current hop.
    pub fn reversed_path(&self) -> Result<Vec<u8>, MalformedPath> {
        match (self.header.path_type, self.path()) {
            (path_type::EMPTY, []) => Ok(Vec::new()),
            (path_type::STANDARD, raw) => path::reverse(raw),
            (kind, _) => Err(MalformedPath::Type(kind)),
        }
    }

    /// The header bytes that all packets from one host to another over one path share: address
    /// types, addresses and path.
    #[inline]
    pub fn route_bytes(&self) -> &'a [u8] {
        &self.bytes[8..self.header.len]
    }

    /// The bytes after the headers: extensions, upper-layer header and data.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header.len..]
    }

    /// The destination host.
    ///
    /// # Errors
    /// [`Malformed::AddressType`] when it is not an IP address.
    #[inline]
    pub fn dst_host(&self) -> Result<IpAddr, Malformed> {
        self.header.dst_host(self.bytes)?.ip()
    }

    /// The source host, which is not authenticated.
    ///
    /// # Errors
    /// [`Malformed::AddressType`] when it is not an IP address.
    #[inline]
    pub fn src_host(&self) -> Result<IpAddr, Malformed> {
        self.header.src_host(self.bytes)?.ip()
    }

    /// Whether the checksum over pseudo header and payload is valid. The pseudo header is the
    /// address header, the payload's length and the protocol.
    #[inline]
    pub fn checksum_is_valid(&self) -> bool {
        Checksum::default()
            .add_bytes(self.addresses())
            .add_upper(self.header.payload_len as u16, self.header.next_header)
            .add_bytes(self.payload())
            .is_valid()
    }

    /// The UDP datagram inside, after a check of its checksum.
    ///
    /// # Errors
    /// [`Malformed`] when the datagram is missing or truncated, or its checksum is wrong.
    #[inline]
    pub fn udp(&self) -> Result<Udp<'a>, Malformed> {
        let udp = self.udp_quoted()?;
        let bytes = self.payload();
        if usize::from(u16_at(bytes, 4)) != bytes.len() {
            return Err(Malformed::Length);
        }
        if !self.checksum_is_valid() {
            return Err(Malformed::Checksum);
        }
        Ok(udp)
    }

    /// The UDP datagram inside a quoted packet, which may be truncated. Its checksum is not
    /// checked.
    ///
    /// # Errors
    /// [`Malformed`] when there is no UDP header.
    #[inline]
    pub fn udp_quoted(&self) -> Result<Udp<'a>, Malformed> {
        if self.header.next_header != next_header::UDP {
            return Err(Malformed::NextHeader(self.header.next_header));
        }
        let Some((header, payload)) = self.payload().split_first_chunk::<UDP_HEADER>() else {
            return Err(Malformed::Truncated);
        };
        Ok(Udp {
            src_port: u16_at(header, 0),
            dst_port: u16_at(header, 2),
            payload,
        })
    }

    /// Whether the packet contains an SCMP message.
    #[inline]
    pub fn is_scmp(&self) -> bool {
        self.header.next_header == next_header::SCMP
    }
}
