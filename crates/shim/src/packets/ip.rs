//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use std::net::IpAddr;

use etherparse::{
    IpFragOffset, IpNumber, IpSlice, Ipv4Header, Ipv6ExtensionSlice, Ipv6FragmentHeader, Ipv6Header,
};
use hawser_packet::Checksum;

/// Protocol numbers (IANA).
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP6: u8 = 58;

/// Routers that a packet may pass before it reaches its destination, on this side of the shim.
const HOPS: u8 = 64;

/// The addresses of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    pub source: IpAddr,
    pub destination: IpAddr,
}

/// A packet that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a> {
    pub ends: Ends,
    /// The protocol of the payload, behind all extension headers.
    pub protocol: u8,
    /// What is behind all IP headers.
    pub payload: &'a [u8],
    pub fragment: Option<Fragment>,
    /// Whether routers may cut it into fragments.
    pub may_be_cut: bool,
}

/// The part that a fragment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The same for all fragments of a packet.
    pub id: u32,
    pub offset: IpFragOffset,
    pub has_more: bool,
}

impl Ends {
    /// Those of the answer.
    pub(crate) fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }

    /// The sum of the pseudo header for `length` bytes of `protocol`.
    pub(crate) fn pseudo_header(self, protocol: u8, length: u16) -> Checksum {
        let add = |sum: Checksum, ip| match ip {
            IpAddr::V4(ip) => sum.add_bytes(&ip.octets()),
            IpAddr::V6(ip) => sum.add_bytes(&ip.octets()),
        };
        let sum = add(add(Checksum::default(), self.source), self.destination);
        sum.add_upper(length, protocol)
    }
}

impl<'a> Received<'a> {
    /// Reads a packet; `None` if it is no valid one.
    pub(crate) fn parse(packet: &'a [u8]) -> Option<Self> {
        let ip = IpSlice::from_slice(packet).ok()?;
        let (fragment, may_be_cut) = match &ip {
            IpSlice::Ipv4(ip) => {
                let header = ip.header();
                let fragment = Fragment {
                    id: header.identification().into(),
                    offset: header.fragments_offset(),
                    has_more: header.more_fragments(),
                };
                let is_one = header.is_fragmenting_payload();
                (is_one.then_some(fragment), !header.dont_fragment())
            }
            IpSlice::Ipv6(ip) => {
                let mut extensions = ip.extensions().clone().into_iter();
                let fragment = extensions.find_map(|extension| match extension {
                    Ipv6ExtensionSlice::Fragment(header) if header.is_fragmenting_payload() => {
                        Some(Fragment {
                            id: header.identification(),
                            offset: header.fragment_offset(),
                            has_more: header.more_fragments(),
                        })
                    }
                    _ => None,
                });
                (fragment, false)
            }
        };
        let payload = ip.payload();
        Some(Self {
            ends: Ends {
                source: ip.source_addr(),
                destination: ip.destination_addr(),
            },
            protocol: payload.ip_number.0,
            payload: payload.payload,
            fragment,
            may_be_cut,
        })
    }
}

/// Writes a packet, in fragments if it is larger than `mtu` bytes, and hands each over. `id` tells its
/// fragments from those of others. What cannot be a packet, for its length or as its addresses are of
/// two families, is dropped.
pub(crate) fn write(
    ends: Ends,
    protocol: u8,
    payload: &[u8],
    mtu: usize,
    id: u32,
    mut each: impl FnMut(&[u8]),
) {
    let header = |offset: usize, length: usize, is_cut: bool, has_more: bool| {
        let offset = IpFragOffset::try_new(u16::try_from(offset / 8).ok()?).ok()?;
        let protocol = IpNumber(protocol);
        let mut bytes = Vec::with_capacity(Ipv6Header::LEN + Ipv6FragmentHeader::LEN + length);
        match (ends.source, ends.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let length = u16::try_from(length).ok()?;
                let (source, destination) = (source.octets(), destination.octets());
                let header = Ipv4Header::new(length, HOPS, protocol, source, destination);
                let mut header = header.ok()?;
                header.identification = id as u16;
                header.dont_fragment = false;
                header.fragment_offset = offset;
                header.more_fragments = has_more;
                header.header_checksum = header.calc_header_checksum();
                bytes.extend_from_slice(&header.to_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let extra = if is_cut { Ipv6FragmentHeader::LEN } else { 0 };
                let header = Ipv6Header {
                    payload_length: u16::try_from(length + extra).ok()?,
                    next_header: if is_cut {
                        IpNumber::IPV6_FRAGMENTATION_HEADER
                    } else {
                        protocol
                    },
                    hop_limit: HOPS,
                    source: source.octets(),
                    destination: destination.octets(),
                    ..Ipv6Header::default()
                };
                bytes.extend_from_slice(&header.to_bytes());
                if is_cut {
                    let header = Ipv6FragmentHeader::new(protocol, offset, has_more, id);
                    bytes.extend_from_slice(&header.to_bytes());
                }
            }
            _ => return None,
        }
        Some(bytes)
    };
    let headers = match ends.source {
        IpAddr::V4(_) => Ipv4Header::MIN_LEN,
        IpAddr::V6(_) => Ipv6Header::LEN,
    };
    if headers + payload.len() <= mtu {
        if let Some(mut packet) = header(0, payload.len(), false, false) {
            packet.extend_from_slice(payload);
            each(&packet);
        }
        return;
    }
    let headers = match ends.source {
        IpAddr::V4(_) => headers,
        IpAddr::V6(_) => headers + Ipv6FragmentHeader::LEN,
    };
    // Offsets count eight bytes.
    let size = (mtu.saturating_sub(headers) / 8 * 8).max(8);
    for (index, part) in payload.chunks(size).enumerate() {
        let offset = index * size;
        let has_more = offset + part.len() < payload.len();
        if let Some(mut packet) = header(offset, part.len(), true, has_more) {
            packet.extend_from_slice(part);
            each(&packet);
        }
    }
}
