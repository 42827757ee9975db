//! Fields of IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_packet::Checksum;

use crate::error::Malformed;

/// Bytes of an IPv4 header without options.
pub(crate) const IPV4_HEADER: usize = 20;
/// Bytes of an IPv6 header.
pub(crate) const IPV6_HEADER: usize = 40;

/// Protocol numbers.
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// Bits of the IPv4 field of flags and offset that only fragments have: more fragments, offset.
const FRAGMENT: u16 = 0x3fff;

/// A 16-bit number in the byte order of packets. The caller has checked that it is inside.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes a 16-bit number.
#[inline]
pub(crate) fn set_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// An IP packet whose header is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ip<'a> {
    /// The packet, without padding behind it.
    pub(crate) bytes: &'a [u8],
    /// Bytes of its IPv4 header, or of its IPv6 header without extensions.
    pub(crate) header_len: usize,
    pub(crate) is_v6: bool,
}

impl<'a> Ip<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let version = bytes.first().ok_or(Malformed::Ip)? >> 4;
        let (header_len, total) = match version {
            4 if bytes.len() >= IPV4_HEADER => {
                let header_len = usize::from(bytes[0] & 0xf) * 4;
                (header_len, usize::from(u16_at(bytes, 2)))
            }
            6 if bytes.len() >= IPV6_HEADER => {
                (IPV6_HEADER, IPV6_HEADER + usize::from(u16_at(bytes, 4)))
            }
            _ => return Err(Malformed::Ip),
        };
        if version == 4 && header_len < IPV4_HEADER || total < header_len {
            return Err(Malformed::Ip);
        }
        Ok(Self {
            bytes: bytes.get(..total).ok_or(Malformed::Ip)?,
            header_len,
            is_v6: version == 6,
        })
    }

    pub(crate) fn source(&self) -> IpAddr {
        let bytes = self.bytes;
        match self.is_v6 {
            false => Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]).into(),
            true => ipv6_at(bytes, 8).into(),
        }
    }

    pub(crate) fn destination(&self) -> IpAddr {
        let bytes = self.bytes;
        match self.is_v6 {
            false => Ipv4Addr::new(bytes[16], bytes[17], bytes[18], bytes[19]).into(),
            true => ipv6_at(bytes, 24).into(),
        }
    }

    pub(crate) fn protocol(&self) -> u8 {
        self.bytes[if self.is_v6 { 6 } else { 9 }]
    }

    pub(crate) fn traffic_class(&self) -> u8 {
        match self.is_v6 {
            false => self.bytes[1],
            true => self.bytes[0] << 4 | self.bytes[1] >> 4,
        }
    }

    /// Whether it is a fragment, or has IPv4 options. (Extension headers of IPv6 have protocol numbers
    /// of their own.)
    pub(crate) fn has_extras(&self) -> bool {
        !self.is_v6 && (self.header_len != IPV4_HEADER || u16_at(self.bytes, 6) & FRAGMENT != 0)
    }

    /// The sum of the pseudo header for `length` bytes of `protocol` (RFC 9293, 3.1; RFC 8200, 8.1).
    pub(crate) fn pseudo_header(&self, protocol: u8, length: u16) -> Checksum {
        let addresses = match self.is_v6 {
            false => &self.bytes[12..20],
            true => &self.bytes[8..40],
        };
        Checksum::default()
            .add_bytes(addresses)
            .add_u16(u16::from(protocol))
            .add_u16(length)
    }
}

fn ipv6_at(bytes: &[u8], at: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[at..at + 16]);
    octets.into()
}

/// Sets the lengths of an IP header, at the beginning of `packet`, to those of the packet; in IPv4 also
/// adds `index` to the identification and computes the checksum.
pub(crate) fn set_length(packet: &mut [u8], is_v6: bool, header_len: usize, index: u16) {
    // Part of a packet of at most 65535 bytes behind the fixed header.
    let length = packet.len() as u16;
    if is_v6 {
        set_u16(packet, 4, length.wrapping_sub(IPV6_HEADER as u16));
        return;
    }
    set_u16(packet, 2, length);
    set_u16(packet, 4, u16_at(packet, 4).wrapping_add(index));
    set_u16(packet, 10, 0);
    let checksum = Checksum::default().add_bytes(&packet[..header_len]);
    packet[10..12].copy_from_slice(&checksum.finish());
}
