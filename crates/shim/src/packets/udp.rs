//! UDP datagrams (RFC 768).

use etherparse::UdpSlice;

use super::ip::{Ends, UDP};

/// Bytes of the header.
const HEADER: usize = 8;

/// A datagram with its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub source: u16,
    pub destination: u16,
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads the datagram of a packet; `None` if it or its checksum is wrong.
    pub(crate) fn parse(ends: Ends, bytes: &'a [u8]) -> Option<Self> {
        let udp = UdpSlice::from_slice(bytes).ok()?;
        let length = u16::try_from(udp.slice().len()).ok()?;
        let sum = ends.pseudo_header(UDP, length).add_bytes(udp.slice());
        let is_valid = match udp.checksum() {
            // Only IPv4 has datagrams without one.
            0 => ends.source.is_ipv4(),
            _ => sum.is_valid(),
        };
        is_valid.then_some(Self {
            source: udp.source_port(),
            destination: udp.destination_port(),
            payload: udp.payload(),
        })
    }

    /// The bytes of the datagram between `ends`; `None` if it is too long.
    pub(crate) fn encode(&self, ends: Ends) -> Option<Vec<u8>> {
        let length = u16::try_from(HEADER + self.payload.len()).ok()?;
        let mut bytes = Vec::with_capacity(length.into());
        for field in [self.source, self.destination, length, 0] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.extend_from_slice(self.payload);
        let checksum = ends.pseudo_header(UDP, length).add_bytes(&bytes).finish();
        bytes[6..HEADER].copy_from_slice(&checksum);
        Some(bytes)
    }
}
