//! The headers of packets from one host to another over one path, which are written once and copied
//! into every packet.

use std::hash::{DefaultHasher, Hash, Hasher};

use hawser_address::ScionAddr;

use crate::checksum::Checksum;
use crate::header::{COMMON_HEADER, MAX_HEADER, NewHeader, end_header};
use crate::malformed::HeaderLength;
use crate::number::{next_header, path_type};
use crate::packet::UDP_HEADER;
use crate::scmp;

/// The headers of packets from one host to another over one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// SCION header, then UDP header, with lengths and checksum zero.
    headers: Box<[u8]>,
    /// Offset of the path in `headers`.
    path_at: usize,
    /// Checksum over the fields that are equal in all packets: pseudo-header addresses, protocol
    /// and ports.
    base: Checksum,
}

impl Template {
    /// The headers of packets from `local` to `peer` over the path header `path`, which is empty
    /// inside one AS.
    ///
    /// # Errors
    /// [`HeaderLength`] when `path` is too long for a SCION header.
    pub fn new(local: ScionAddr, peer: ScionAddr, path: &[u8]) -> Result<Self, HeaderLength> {
        let mut headers = Vec::with_capacity(MAX_HEADER + UDP_HEADER);
        // One flow per path, so that routers that distribute flows keep its packets in order.
        NewHeader {
            first_line: flow(local, peer, path),
            next_header: next_header::UDP,
            path_type: match path {
                [] => path_type::EMPTY,
                _ => path_type::STANDARD,
            },
            dst: (peer.isd_as, peer.host.ip()),
            src: (local.isd_as, local.host.ip()),
        }
        .write(&mut headers);
        let path_at = headers.len();
        headers.extend_from_slice(path);
        end_header(&mut headers)?;
        headers.extend_from_slice(&local.host.port().to_be_bytes());
        headers.extend_from_slice(&peer.host.port().to_be_bytes());
        headers.extend_from_slice(&[0; 4]);
        let base = Checksum::default()
            .add_bytes(&headers[COMMON_HEADER..path_at])
            .add_upper(0, next_header::UDP)
            .add_u16(local.host.port())
            .add_u16(peer.host.port());
        Ok(Self {
            headers: headers.into(),
            path_at,
            base,
        })
    }

    /// The path header.
    pub fn path(&self) -> &[u8] {
        &self.headers[self.path_at..self.scion_header_len()]
    }

    /// The path header in a packet from [`scmp`](Self::scmp).
    pub fn path_in<'a>(&self, packet: &'a mut [u8]) -> &'a mut [u8] {
        &mut packet[self.path_at..self.scion_header_len()]
    }

    /// Length of the SCION and UDP headers, in bytes.
    pub fn overhead(&self) -> usize {
        self.headers.len()
    }

    fn scion_header_len(&self) -> usize {
        self.headers.len() - UDP_HEADER
    }

    /// Appends a packet with `payload` and the congestion mark `ecn` (two bits) to `out`.
    ///
    /// The UDP header and `payload` must have at most 65535 bytes together, the maximum of SCION's
    /// length field.
    #[inline]
    pub fn write(&self, payload: &[u8], ecn: u8, out: &mut Vec<u8>) {
        let at = out.len();
        let udp_at = at + self.scion_header_len();
        let length = (UDP_HEADER + payload.len()) as u16;
        // The checksum covers the length twice: in the pseudo header and in the UDP header.
        let checksum = self
            .base
            .add_u16(length)
            .add_u16(length)
            .add_bytes(payload)
            .finish();
        out.extend_from_slice(&self.headers);
        out[at + 1] |= (ecn & 0b11) << 4;
        out[at + 6..at + 8].copy_from_slice(&length.to_be_bytes());
        out[udp_at + 4..udp_at + 6].copy_from_slice(&length.to_be_bytes());
        out[udp_at + 6..udp_at + 8].copy_from_slice(&checksum);
        out.extend_from_slice(payload);
    }

    /// A packet with the SCMP `message` of at least four bytes, whose checksum this computes.
    pub fn scmp(&self, message: &[u8]) -> Vec<u8> {
        let header_len = self.scion_header_len();
        let mut packet = self.headers[..header_len].to_vec();
        packet[4] = next_header::SCMP;
        packet.extend_from_slice(message);
        scmp::finish(&mut packet, self.path_at, header_len);
        packet
    }
}

/// A flow label of 20 bits, never zero, which means "no flow". It only has to be well distributed,
/// not secret.
fn flow(local: ScionAddr, peer: ScionAddr, path: &[u8]) -> u32 {
    let mut hasher = DefaultHasher::new();
    (local, peer, path).hash(&mut hasher);
    ((hasher.finish() & 0xf_ffff) as u32).max(1)
}

#[cfg(test)]
mod tests;
