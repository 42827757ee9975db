//! The common and the address header of a SCION packet (SCION header specification).

use std::net::IpAddr;

use hawser_address::IsdAsn;

use crate::bytes::{u16_at, u64_at};
use crate::malformed::{HeaderLength, Malformed, MalformedPath};
use crate::number::next_header::{END_TO_END, HOP_BY_HOP};
use crate::path::StandardPath;

/// Length of the common header.
pub const COMMON_HEADER: usize = 12;
/// The longest SCION header: its length field counts units of four bytes.
pub const MAX_HEADER: usize = 255 * 4;
/// Offset of the destination ISD-AS.
pub const DST_AS: usize = COMMON_HEADER;
/// Offset of the source ISD-AS.
pub const SRC_AS: usize = COMMON_HEADER + 8;
/// Offset of the destination host.
pub const DST_HOST: usize = COMMON_HEADER + 16;

/// Types of host addresses: a kind, and the length in units of four bytes, minus one.
const IPV4: u8 = 0b0000;
const IPV6: u8 = 0b0011;
const SERVICE: u8 = 0b0100;

/// A host in the address header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// An IP address.
    Ip(IpAddr),
    /// A service address; the multicast bit is kept.
    Service(u16),
}

impl Host {
    /// The IP address.
    ///
    /// # Errors
    /// [`Malformed::AddressType`] when it is a service.
    #[inline]
    pub fn ip(self) -> Result<IpAddr, Malformed> {
        match self {
            Self::Ip(ip) => Ok(ip),
            Self::Service(_) => Err(Malformed::AddressType(SERVICE)),
        }
    }
}

/// The common and address headers of a packet, their lengths checked against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Length of all SCION headers in bytes: the offset of extensions or of the upper-layer header.
    pub len: usize,
    /// Offset of the path header.
    pub path: usize,
    /// Type of the path.
    pub path_type: u8,
    /// What follows the headers.
    pub next_header: u8,
    /// Length of the payload in bytes, as the common header says.
    pub payload_len: usize,
    /// The destination AS.
    pub dst_as: IsdAsn,
    /// The source AS, which is not authenticated.
    pub src_as: IsdAsn,
    dst_type: u8,
    src_type: u8,
}

impl Header {
    /// Reads the headers of `packet`. If it succeeds, `packet` has at least [`len`](Self::len)
    /// bytes. The payload may be truncated.
    ///
    /// # Errors
    /// [`Malformed`] when the headers are truncated, their lengths contradict each other, or their
    /// version is unknown.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        if packet.len() < DST_HOST + 8 {
            return Err(Malformed::Truncated);
        }
        if packet[0] >> 4 != 0 {
            return Err(Malformed::Version(packet[0] >> 4));
        }
        let len = usize::from(packet[5]) * 4;
        let (dst_type, src_type) = (packet[9] >> 4, packet[9] & 0xf);
        let path = DST_HOST + host_len(dst_type) + host_len(src_type);
        if len < path {
            return Err(Malformed::Length);
        }
        if packet.len() < len {
            return Err(Malformed::Truncated);
        }
        Ok(Self {
            len,
            path,
            path_type: packet[8],
            next_header: packet[4],
            payload_len: usize::from(u16_at(packet, 6)),
            dst_as: IsdAsn(u64_at(packet, DST_AS)),
            src_as: IsdAsn(u64_at(packet, SRC_AS)),
            dst_type,
            src_type,
        })
    }

    /// Offset of the source host.
    #[inline]
    pub fn src_host_at(&self) -> usize {
        DST_HOST + host_len(self.dst_type)
    }

    /// The destination host in `packet`, whose headers these are.
    ///
    /// # Errors
    /// [`Malformed::AddressType`] when its type is unknown.
    #[inline]
    pub fn dst_host(&self, packet: &[u8]) -> Result<Host, Malformed> {
        host(packet, DST_HOST, self.dst_type)
    }

    /// The source host in `packet`, whose headers these are.
    ///
    /// # Errors
    /// [`Malformed::AddressType`] when its type is unknown.
    #[inline]
    pub fn src_host(&self, packet: &[u8]) -> Result<Host, Malformed> {
        host(packet, self.src_host_at(), self.src_type)
    }

    /// The standard path in `packet`, whose headers these are.
    ///
    /// # Errors
    /// [`MalformedPath`] when the path does not fill the path header exactly, or its current hop is
    /// not on it.
    #[inline]
    pub fn standard_path(&self, packet: &[u8]) -> Result<StandardPath, MalformedPath> {
        let path = StandardPath::parse(packet, self.path..self.len)?;
        path.check_position()?;
        Ok(path)
    }

    /// Protocol number and offset of the upper-layer header in `packet`, after at most one
    /// hop-by-hop and one end-to-end extension, in this order. `None` if the extensions are
    /// truncated.
    #[inline]
    pub fn upper_layer(&self, packet: &[u8]) -> Option<(u8, usize)> {
        let (mut next, mut at) = (self.next_header, self.len);
        for extension in [HOP_BY_HOP, END_TO_END] {
            if next == extension {
                let length = packet.get(at + 1)?;
                next = packet[at];
                at += (usize::from(*length) + 1) * 4;
            }
        }
        (at <= packet.len() && next != HOP_BY_HOP && next != END_TO_END).then_some((next, at))
    }
}

#[inline]
fn host_len(kind: u8) -> usize {
    usize::from((kind & 3) + 1) * 4
}

#[inline]
fn host(packet: &[u8], at: usize, kind: u8) -> Result<Host, Malformed> {
    let bytes = &packet[at..at + host_len(kind)];
    match (kind, bytes.first_chunk::<4>(), bytes.first_chunk::<16>()) {
        (IPV4, Some(ip), _) => Ok(Host::Ip(IpAddr::from(*ip))),
        (IPV6, _, Some(ip)) => Ok(Host::Ip(IpAddr::from(*ip))),
        (SERVICE, Some(service), _) => Ok(Host::Service(u16_at(service, 0))),
        _ => Err(Malformed::AddressType(kind)),
    }
}

/// The common and address headers of a packet to write, without its lengths.
#[derive(Debug, Clone, Copy)]
pub struct NewHeader {
    /// The packet's first four bytes: version, traffic class and flow label.
    pub first_line: u32,
    /// What follows the headers.
    pub next_header: u8,
    /// Type of the path.
    pub path_type: u8,
    /// The destination's AS and host.
    pub dst: (IsdAsn, IpAddr),
    /// The source's AS and host.
    pub src: (IsdAsn, IpAddr),
}

impl NewHeader {
    /// Replaces the contents of `out` with the headers. The caller must then append the path header
    /// and call [`end_header`].
    pub fn write(&self, out: &mut Vec<u8>) {
        let kind = |ip: IpAddr| if ip.is_ipv4() { IPV4 } else { IPV6 };
        let ((dst_as, dst), (src_as, src)) = (self.dst, self.src);
        out.clear();
        out.extend(self.first_line.to_be_bytes());
        out.extend([self.next_header, 0, 0, 0, self.path_type]);
        out.extend([kind(dst) << 4 | kind(src), 0, 0]);
        out.extend(dst_as.to_be_bytes());
        out.extend(src_as.to_be_bytes());
        for host in [dst, src] {
            match host {
                IpAddr::V4(ip) => out.extend(ip.octets()),
                IpAddr::V6(ip) => out.extend(ip.octets()),
            }
        }
    }
}

/// Sets the header length in the complete `headers` of a packet without payload, and returns it in
/// bytes.
///
/// # Errors
/// [`HeaderLength`] when the length is above 1020 bytes or not a multiple of four.
pub fn end_header(headers: &mut [u8]) -> Result<usize, HeaderLength> {
    let len = headers.len();
    if len > MAX_HEADER || !len.is_multiple_of(4) {
        return Err(HeaderLength(len));
    }
    headers[5] = (len / 4) as u8;
    Ok(len)
}

/// Sets the payload length of a complete `packet` with headers of `header_len` bytes, and returns
/// it in bytes.
#[inline]
pub fn set_payload_len(packet: &mut [u8], header_len: usize) -> u16 {
    let length = (packet.len() - header_len) as u16;
    packet[6..8].copy_from_slice(&length.to_be_bytes());
    length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_host() -> impl Strategy<Value = (IsdAsn, IpAddr)> {
        any::<(u64, IpAddr)>().prop_map(|(isd_as, ip)| (IsdAsn(isd_as), ip))
    }

    proptest! {
        #[test]
        fn headers_are_read_as_written(
            first_line in 0u32..1 << 28, next_header: u8, path_type: u8,
            (dst, src) in (any_host(), any_host()),
            path in prop::collection::vec(any::<[u8; 4]>(), 0..200), payload in 0usize..2000,
        ) {
            let mut packet = vec![0xff; 3];
            NewHeader { first_line, next_header, path_type, dst, src }.write(&mut packet);
            let path_at = packet.len();
            packet.extend(path.concat());
            let header_len = end_header(&mut packet).unwrap();
            packet.resize(header_len + payload, 0);
            prop_assert_eq!(usize::from(set_payload_len(&mut packet, header_len)), payload);
            let header = Header::parse(&packet).unwrap();
            prop_assert_eq!((header.path, header.len), (path_at, header_len));
            prop_assert_eq!((header.path_type, header.next_header), (path_type, next_header));
            prop_assert_eq!(header.payload_len, payload);
            prop_assert_eq!((header.dst_as, header.dst_host(&packet)), (dst.0, Ok(Host::Ip(dst.1))));
            prop_assert_eq!((header.src_as, header.src_host(&packet)), (src.0, Ok(Host::Ip(src.1))));
            for length in 0..header_len {
                prop_assert!(Header::parse(&packet[..length]).is_err());
            }
        }

        /// Tests any extensions, truncated at any offset.
        #[test]
        fn the_upper_layer_is_inside_the_packet(
            mut packet in prop::collection::vec(any::<u8>(), 36..300),
            extensions in prop::collection::vec(prop::sample::select(vec![HOP_BY_HOP, END_TO_END, 17]), 3),
        ) {
            (packet[0], packet[4], packet[5], packet[9]) = (0, extensions[0], 9, 0);
            for (at, next) in [36, 40].into_iter().zip(&extensions[1..]) {
                if let Some([kind, length]) = packet.get_mut(at..at + 2) {
                    (*kind, *length) = (*next, *length % 4);
                }
            }
            let header = Header::parse(&packet).unwrap();
            if let Some((next, at)) = header.upper_layer(&packet) {
                prop_assert!(header.len <= at && at <= packet.len());
                prop_assert!(![HOP_BY_HOP, END_TO_END].contains(&next));
            }
        }
    }
}
