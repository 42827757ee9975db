//! Ethernet frames with UDP datagrams: headers written before a payload, and read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_packet::Checksum;

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// Bytes of the largest headers.
const MAX_HEADERS: usize = ETHERNET + IPV6 + UDP;

/// `EtherType` of IPv4 and IPv6 (RFC 9542).
const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];
/// The protocol number of UDP.
const PROTOCOL_UDP: u8 = 17;
/// Hops after which routers drop a datagram; the kernel's default (`net.ipv4.ip_default_ttl`).
const HOPS: u8 = 64;
/// Never fragment, in the field of flags and fragment offset (RFC 791).
const DONT_FRAGMENT: [u8; 2] = [0x40, 0x00];
/// The other bits of that field: more fragments, offset.
const FRAGMENT: u16 = 0x3fff;

/// Bytes of the headers between the Ethernet header and the payload of a datagram from `local`.
pub(crate) fn ip_overhead(local: IpAddr) -> usize {
    UDP + if local.is_ipv4() { IPV4 } else { IPV6 }
}

/// The headers of datagrams to one host: all but lengths, checksums and the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    bytes: [u8; MAX_HEADERS],
    len: usize,
    /// The sum of the IPv4 header, its length and checksum being zero.
    header: Checksum,
    /// The sum of the pseudo header and of the source port (RFC 768, RFC 8200, 8.1).
    datagram: Checksum,
}

impl Template {
    /// The headers from `local`, whose Ethernet address is `from`, to `remote` by the neighbour `to`.
    /// Both addresses must be of one family.
    pub(crate) fn new(from: Mac, to: Mac, local: SocketAddr, remote: IpAddr) -> Self {
        let mut bytes = [0; MAX_HEADERS];
        bytes[..6].copy_from_slice(&to);
        bytes[6..12].copy_from_slice(&from);
        let port = local.port().to_be_bytes();
        let pseudo = (Checksum::default())
            .add_u16(PROTOCOL_UDP.into())
            .add_bytes(&port);
        let ip = &mut bytes[ETHERNET..];
        match (local.ip(), remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                // Version 4, five words of header.
                ip[0] = 0x45;
                ip[6..8].copy_from_slice(&DONT_FRAGMENT);
                ip[8] = HOPS;
                ip[9] = PROTOCOL_UDP;
                ip[12..16].copy_from_slice(&local.octets());
                ip[16..20].copy_from_slice(&remote.octets());
                ip[IPV4..IPV4 + 2].copy_from_slice(&port);
                let header = Checksum::default().add_bytes(&ip[..IPV4]);
                let datagram = pseudo.add_bytes(&ip[12..20]);
                bytes[12..14].copy_from_slice(&TYPE_IPV4);
                Self {
                    bytes,
                    len: ETHERNET + IPV4 + UDP,
                    header,
                    datagram,
                }
            }
            (local, remote) => {
                let octets = |ip: IpAddr| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                };
                // Version 6.
                ip[0] = 0x60;
                ip[6] = PROTOCOL_UDP;
                ip[7] = HOPS;
                ip[8..24].copy_from_slice(&octets(local));
                ip[24..40].copy_from_slice(&octets(remote));
                ip[IPV6..IPV6 + 2].copy_from_slice(&port);
                let datagram = pseudo.add_bytes(&ip[8..40]);
                bytes[12..14].copy_from_slice(&TYPE_IPV6);
                Self {
                    bytes,
                    len: MAX_HEADERS,
                    header: Checksum::default(),
                    datagram,
                }
            }
        }
    }

    /// Writes a datagram with `payload` to `port` at the beginning of `out`. Returns the frame's
    /// length; `None` when it does not fit.
    pub(crate) fn write(&self, port: u16, payload: &[u8], out: &mut [u8]) -> Option<usize> {
        let length = self.len + payload.len();
        let udp = u16::try_from(UDP + payload.len()).ok()?;
        let (headers, rest) = out.get_mut(..length)?.split_at_mut(self.len);
        headers.copy_from_slice(&self.bytes[..self.len]);
        rest.copy_from_slice(payload);
        if self.len == MAX_HEADERS {
            headers[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&udp.to_be_bytes());
        } else {
            let total = u16::try_from(length - ETHERNET).ok()?;
            headers[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&total.to_be_bytes());
            let checksum = self.header.add_u16(total).finish();
            headers[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum);
        }
        let checksum = (self.datagram)
            .add_u16(port)
            // The length is in the pseudo header and in the header.
            .add_u16(udp)
            .add_u16(udp)
            .add_bytes(payload)
            .finish();
        let header = &mut headers[self.len - UDP..];
        header[2..4].copy_from_slice(&port.to_be_bytes());
        header[4..6].copy_from_slice(&udp.to_be_bytes());
        header[6..8].copy_from_slice(&checksum);
        Some(length)
    }
}

/// The sender and payload of a frame with a UDP datagram to `local`; `None` for any other frame.
///
/// The checksum of UDP is not verified: of a packet that another program of the same machine sent it
/// is not filled in, and of others many cards have verified it. Users of this crate have a checksum
/// of their own inside.
pub(crate) fn read(frame: &[u8], local: SocketAddr) -> Option<(SocketAddr, &[u8])> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET)?;
    let (from, to, datagram): (IpAddr, IpAddr, _) = match [ethernet[12], ethernet[13]] {
        TYPE_IPV4 => {
            let (header, rest) = packet.split_first_chunk::<IPV4>()?;
            let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let fragment = u16::from_be_bytes([header[6], header[7]]) & FRAGMENT != 0;
            let valid = Checksum::default().add_bytes(header).is_valid();
            if header[0] != 0x45 || fragment || header[9] != PROTOCOL_UDP || !valid {
                return None;
            }
            let address = |at: usize| -> Option<IpAddr> {
                let bytes: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
                Some(Ipv4Addr::from(bytes).into())
            };
            // Short frames are padded.
            let datagram = rest.get(..total.checked_sub(IPV4)?)?;
            (address(12)?, address(16)?, datagram)
        }
        TYPE_IPV6 => {
            let (header, rest) = packet.split_first_chunk::<IPV6>()?;
            let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
            if header[0] >> 4 != 6 || header[6] != PROTOCOL_UDP {
                return None;
            }
            let address = |at: usize| -> Option<IpAddr> {
                let bytes: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from(bytes).into())
            };
            (address(8)?, address(24)?, rest.get(..length)?)
        }
        _ => return None,
    };
    let (header, payload) = datagram.split_first_chunk::<UDP>()?;
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let length = usize::from(field(4)).checked_sub(UDP)?;
    if to != local.ip() || field(2) != local.port() {
        return None;
    }
    Some((SocketAddr::new(from, field(0)), payload.get(..length)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HERE: Mac = [2, 0, 0, 0, 0, 1];
    const THERE: Mac = [2, 0, 0, 0, 0, 2];

    fn pair(v6: bool) -> (SocketAddr, SocketAddr) {
        let parse = |text: &str| text.parse().unwrap();
        match v6 {
            false => (parse("10.0.1.1:31000"), parse("10.0.1.254:30042")),
            true => (parse("[fd00::1]:31000"), parse("[fd00::fe]:30042")),
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(payload in prop::collection::vec(any::<u8>(), 0..2000), v6: bool) {
            let (local, remote) = pair(v6);
            let template = Template::new(HERE, THERE, local, remote.ip());
            let mut frame = vec![0xaa; 4096];
            let length = template.write(remote.port(), &payload, &mut frame).unwrap();
            prop_assert_eq!(length, ETHERNET + ip_overhead(local.ip()) + payload.len());
            prop_assert_eq!(&frame[..12], [THERE, HERE].concat());
            // Padding behind the packet does not count.
            prop_assert_eq!(read(&frame, remote), Some((local, &payload[..])));
            prop_assert_eq!(read(&frame[..length], remote), Some((local, &payload[..])));
            prop_assert_eq!(read(&frame[..length - 1], remote), None);
            prop_assert_eq!(read(&frame[..length], local), None);
            // The checksum of UDP is that of RFC 768: the sum over pseudo header and datagram.
            let ip = ETHERNET + if v6 { IPV6 } else { IPV4 };
            let addresses = if v6 { ip - 32..ip } else { ip - 8..ip };
            let sum = Checksum::default()
                .add_bytes(&frame[addresses])
                .add_u16(17)
                .add_u16((length - ip) as u16)
                .add_bytes(&frame[ip..length]);
            prop_assert!(sum.is_valid());
        }

        #[test]
        fn any_bytes_are_read_without_panic(
            mut frame in prop::collection::vec(any::<u8>(), 0..128), kind in 0..3, v6: bool,
        ) {
            let (local, _) = pair(v6);
            // Headers that look right let more of the parser be reached.
            if let Some(start) = frame.get_mut(12..15) {
                match kind {
                    0 => start.copy_from_slice(&[0x08, 0x00, 0x45]),
                    1 => start.copy_from_slice(&[0x86, 0xdd, 0x60]),
                    _ => {}
                }
            }
            if let Some((_, payload)) = read(&frame, local) {
                prop_assert!(payload.len() < frame.len());
            }
        }

        #[test]
        fn a_changed_header_is_refused_or_read_as_it_is(
            at in 0usize..62, bit in 0u8..8, v6: bool,
        ) {
            let (local, remote) = pair(v6);
            let mut frame = vec![0; 200];
            let template = Template::new(HERE, THERE, local, remote.ip());
            let length = template.write(remote.port(), &[7; 100], &mut frame).unwrap();
            frame.truncate(length);
            frame[at] ^= 1 << bit;
            if let Some((_, payload)) = read(&frame, remote) {
                prop_assert!(payload.len() <= 100);
                // The checksum protects every bit of an IPv4 header.
                prop_assert!(v6 || !(ETHERNET..ETHERNET + IPV4).contains(&at));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let (local, remote) = pair(false);
        let template = Template::new(HERE, THERE, local, remote.ip());
        assert_eq!(template.write(1, &[0; 100], &mut [0; 141]), None);
        assert_eq!(template.write(1, &[0; 100], &mut [0; 142]), Some(142));
        assert_eq!(template.write(1, &[0; 65536], &mut [0; 70000]), None);
    }
}
