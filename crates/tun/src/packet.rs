//! Packets read from a TUN device.

use std::net::IpAddr;
use std::slice::Chunks;

use hawser_packet::Checksum;

use crate::error::Malformed;
use crate::ip::{self, Ip, set_u16};
use crate::tcp::{self, TcpPacket};
use crate::vnet::{
    DATA_VALID, GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM, VNET_HEADER,
    VnetHeader,
};

/// Bytes of a UDP header, and where its fields are.
const UDP_HEADER: usize = 8;
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;

/// An IP packet read from a TUN device: perhaps a large one of TCP or UDP, perhaps with a checksum that
/// is not complete.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    ip: Ip<'a>,
    checksum: ChecksumState,
    large: Option<Large>,
}

/// What the kernel did about the checksum of TCP or UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChecksumState {
    /// It is in the packet; nobody verified it.
    Complete,
    /// It is in the packet, and correct.
    Valid,
    /// It is that of the pseudo header, at `start + offset` of the packet, and to be completed by all
    /// bytes from `start`.
    Partial { start: usize, offset: usize },
}

/// How a large packet is cut.
#[derive(Debug, Clone, Copy)]
struct Large {
    protocol: u8,
    /// Where the header of `protocol` begins.
    start: usize,
    /// Where its payload begins.
    headers: usize,
    /// Bytes of payload in each segment.
    size: usize,
}

impl<'a> Packet<'a> {
    /// Reads a packet as a TUN device gives and takes it: behind a vnet header of 10 bytes.
    ///
    /// # Errors
    /// [`Malformed`] if its lengths and places do not fit `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (vnet, bytes) = bytes
            .split_first_chunk::<VNET_HEADER>()
            .ok_or(Malformed::Ip)?;
        let (vnet, ip) = (VnetHeader::parse(vnet), Ip::parse(bytes)?);
        let checksum = match vnet.flags {
            flags if flags & NEEDS_CSUM != 0 => {
                let (start, offset) = (vnet.csum_start.into(), vnet.csum_offset.into());
                if start < ip.header_len || start + offset + 2 > ip.bytes.len() {
                    return Err(Malformed::Checksum);
                }
                ChecksumState::Partial { start, offset }
            }
            flags if flags & DATA_VALID != 0 => ChecksumState::Valid,
            _ => ChecksumState::Complete,
        };
        let large = Large::parse(vnet, &ip, checksum)?;
        Ok(Self {
            ip,
            checksum,
            large,
        })
    }

    /// The source address.
    pub fn source(&self) -> IpAddr {
        self.ip.source()
    }

    /// The destination address.
    pub fn destination(&self) -> IpAddr {
        self.ip.destination()
    }

    /// The protocol (IPv4) or next header (IPv6) of the IP header.
    pub fn protocol(&self) -> u8 {
        self.ip.protocol()
    }

    /// The traffic class of IPv6, or the type of service of IPv4.
    pub fn traffic_class(&self) -> u8 {
        self.ip.traffic_class()
    }

    /// The ECN bits of the traffic class (RFC 3168, 5), 0 to 3.
    pub fn ecn(&self) -> u8 {
        self.ip.traffic_class() & 3
    }

    /// The packet as read, from its IP header; its checksum may not be complete.
    pub fn bytes(&self) -> &'a [u8] {
        self.ip.bytes
    }

    /// The packet's TCP header and payload; `None` if it is something else.
    ///
    /// Something else are also fragments, packets with IPv4 options or IPv6 extension headers, and
    /// those with a wrong checksum: [`Packet::datagrams`] passes them as they are.
    pub fn tcp(&self) -> Option<TcpPacket<'a>> {
        if self.ip.protocol() != ip::TCP || self.ip.has_extras() {
            return None;
        }
        let segment = &self.ip.bytes[self.ip.header_len..];
        let (header, payload) = segment.split_at(tcp::header_len(segment)?);
        let is_usable = match self.checksum {
            ChecksumState::Valid => true,
            ChecksumState::Partial { start, offset } => {
                start == self.ip.header_len && offset == tcp::CHECKSUM
            }
            // A segment gets a new checksum at the other end, which must not make it valid.
            ChecksumState::Complete => (self.ip)
                .pseudo_header(ip::TCP, segment.len() as u16)
                .add_bytes(segment)
                .is_valid(),
        };
        is_usable.then_some(TcpPacket {
            header,
            payload,
            segment_size: self.large.map(|large| large.size),
        })
    }

    /// The packet as one IP packet or, if it is a large one, as several; all with complete checksums.
    /// None is larger than the device's MTU, which the kernel's segment size follows.
    ///
    /// They are in `scratch` unless the packet can be passed as it is.
    pub fn datagrams<'s>(&self, scratch: &'s mut Vec<u8>) -> Chunks<'s, u8>
    where
        'a: 's,
    {
        let bytes = self.ip.bytes;
        match (self.large, self.checksum) {
            (Some(large), _) => self.cut(large, scratch),
            (None, ChecksumState::Partial { start, offset }) => {
                scratch.clear();
                scratch.extend_from_slice(bytes);
                let checksum = Checksum::default().add_bytes(&bytes[start..]).finish();
                scratch[start + offset..][..2].copy_from_slice(&checksum);
                scratch.chunks(bytes.len())
            }
            (None, ChecksumState::Complete | ChecksumState::Valid) => bytes.chunks(bytes.len()),
        }
    }

    fn cut<'s>(&self, large: Large, scratch: &'s mut Vec<u8>) -> Chunks<'s, u8> {
        let Large { start, size, .. } = large;
        let (headers, payload) = self.ip.bytes.split_at(large.headers);
        let at = match large.protocol {
            ip::UDP => UDP_CHECKSUM,
            _ => tcp::CHECKSUM,
        };
        // The sum of the pseudo header is there; only its length changes.
        let whole = (self.ip.bytes.len() - start) as u16;
        let pseudo_header = Checksum::default()
            .add_bytes(&headers[start + at..][..2])
            .add_u16(!whole);
        scratch.clear();
        scratch.reserve(payload.len().div_ceil(size) * headers.len() + payload.len());
        for (index, part) in payload.chunks(size).enumerate() {
            let begin = scratch.len();
            scratch.extend_from_slice(headers);
            scratch.extend_from_slice(part);
            let packet = &mut scratch[begin..];
            ip::set_length(packet, self.ip.is_v6, self.ip.header_len, index as u16);
            let upper = &mut packet[start..];
            let length = upper.len() as u16;
            if large.protocol == ip::UDP {
                set_u16(upper, UDP_LENGTH, length);
            } else {
                let is_last = (index + 1) * size >= payload.len();
                tcp::patch(upper, (index * size) as u32, is_last);
            }
            set_u16(upper, at, 0);
            let checksum = pseudo_header.add_u16(length).add_bytes(upper).finish();
            upper[at..at + 2].copy_from_slice(&checksum);
        }
        scratch.chunks(headers.len() + size)
    }
}

impl Large {
    fn parse(
        vnet: VnetHeader,
        ip: &Ip<'_>,
        checksum: ChecksumState,
    ) -> Result<Option<Self>, Malformed> {
        let protocol = match vnet.gso_type & !GSO_ECN {
            GSO_NONE => return Ok(None),
            GSO_TCPV4 if !ip.is_v6 => ip::TCP,
            GSO_TCPV6 if ip.is_v6 => ip::TCP,
            GSO_UDP_L4 => ip::UDP,
            _ => return Err(Malformed::Offload),
        };
        let ChecksumState::Partial { start, offset } = checksum else {
            return Err(Malformed::Offload);
        };
        let upper = &ip.bytes[start..];
        let (header, at) = match protocol {
            ip::UDP => (Some(UDP_HEADER), UDP_CHECKSUM),
            _ => (tcp::header_len(upper), tcp::CHECKSUM),
        };
        let header = header.filter(|&header| header < upper.len());
        let header = header.ok_or(Malformed::Offload)?;
        // Without extension headers the protocol is known.
        let is_other = start == ip.header_len && ip.protocol() != protocol;
        let size = usize::from(vnet.gso_size);
        if at != offset || is_other || size == 0 {
            return Err(Malformed::Offload);
        }
        Ok(Some(Self {
            protocol,
            start,
            headers: start + header,
            size,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{DESTINATION, SOURCE, Sample, data, has_valid_checksum};

    #[test]
    fn fields_are_those_of_the_header() {
        let bytes = Sample {
            ecn: 3,
            ..data(1, 2)
        }
        .packet(None);
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(packet.source(), SOURCE);
        assert_eq!(packet.destination(), DESTINATION);
        assert_eq!((packet.protocol(), packet.traffic_class()), (6, 3));
        assert_eq!(packet.bytes(), &bytes[VNET_HEADER..]);
        assert_eq!(packet.tcp().unwrap().payload(), [1, 2]);
    }

    #[test]
    fn a_complete_checksum_must_be_right_to_be_replaced() {
        let (bytes, mut scratch) = (data(1, 1000).packet(None), Vec::new());
        let packet = Packet::parse(&bytes).unwrap();
        let complete = packet.datagrams(&mut scratch).next().unwrap();
        assert!(has_valid_checksum(complete));
        let mut bytes = [&[0; VNET_HEADER], complete].concat();
        assert!(Packet::parse(&bytes).unwrap().tcp().is_some());
        bytes[500] ^= 1;
        let packet = Packet::parse(&bytes).unwrap();
        assert!(packet.tcp().is_none());
        // It is passed as it is, for the receiver to refuse.
        let datagrams: Vec<_> = packet.datagrams(&mut scratch).collect();
        assert_eq!(datagrams, [&bytes[VNET_HEADER..]]);
        // Unless somebody else vouches for it.
        bytes[0] = DATA_VALID;
        assert!(Packet::parse(&bytes).unwrap().tcp().is_some());
    }

    #[test]
    fn fragments_and_packets_with_options_are_not_tcp() {
        let segment = data(1, 100).segment();
        let mut ip = vec![0x46, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
        ip.extend([10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1]);
        let total = (ip.len() + segment.len()) as u16;
        set_u16(&mut ip, 2, total);
        let vnet = [DATA_VALID, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let with_options = [&vnet[..], &ip, &segment].concat();
        let packet = Packet::parse(&with_options).unwrap();
        assert_eq!((packet.protocol(), packet.tcp().is_none()), (6, true));
        ip[0] = 0x45;
        ip.truncate(ip::IPV4_HEADER);
        set_u16(&mut ip, 2, total - 4);
        for (fragment, is_tcp) in [(0x4000, true), (0x2000, false), (0x0001, false)] {
            set_u16(&mut ip, 6, fragment);
            let bytes = [&vnet[..], &ip, &segment].concat();
            let packet = Packet::parse(&bytes).unwrap();
            assert_eq!(packet.tcp().is_some(), is_tcp, "{fragment:x}");
        }
    }

    #[test]
    fn wrong_vnet_headers_are_refused() {
        let good = data(1, 3000).packet(Some(1000));
        assert!(Packet::parse(&good).is_ok());
        let with = |change: fn(&mut VnetHeader)| {
            let (header, rest) = good.split_first_chunk().unwrap();
            let mut header = VnetHeader::parse(header);
            change(&mut header);
            let bytes = [&header.to_bytes(), rest].concat();
            Packet::parse(&bytes).map(|_| ()).unwrap_err()
        };
        assert_eq!(with(|h| h.csum_start = 39), Malformed::Checksum);
        assert_eq!(with(|h| h.csum_start = u16::MAX), Malformed::Checksum);
        assert_eq!(with(|h| h.csum_offset = 3500), Malformed::Checksum);
        assert_eq!(with(|h| h.csum_offset = 6), Malformed::Offload);
        assert_eq!(with(|h| h.gso_size = 0), Malformed::Offload);
        assert_eq!(with(|h| h.flags = 0), Malformed::Offload);
        assert_eq!(with(|h| h.gso_type = GSO_TCPV4), Malformed::Offload);
        assert_eq!(with(|h| h.gso_type = 3), Malformed::Offload);
        let udp = with(|h| (h.gso_type, h.csum_offset) = (GSO_UDP_L4, 6));
        assert_eq!(udp, Malformed::Offload);
        for length in [0, 9, 10, 30, 49, good.len() - 1] {
            let error = Packet::parse(&good[..length]).unwrap_err();
            assert_eq!(error, Malformed::Ip, "{length}");
        }
    }
}
