//! The header before each packet of a TUN device with `IFF_VNET_HDR`: `struct virtio_net_hdr` of
//! `linux/virtio_net.h`, in the machine's byte order.

/// Its bytes.
pub(crate) const VNET_HEADER: usize = 10;

/// Flag: the checksum is that of the pseudo header, and must be completed.
pub(crate) const NEEDS_CSUM: u8 = 1;
/// Flag: the checksum was verified.
pub(crate) const DATA_VALID: u8 = 2;

/// Kinds of large packets.
pub(crate) const GSO_NONE: u8 = 0;
pub(crate) const GSO_TCPV4: u8 = 1;
pub(crate) const GSO_TCPV6: u8 = 4;
pub(crate) const GSO_UDP_L4: u8 = 5;
/// Bit beside the kind: only the first segment has the flag CWR.
pub(crate) const GSO_ECN: u8 = 0x80;

/// The fields of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    pub(crate) flags: u8,
    pub(crate) gso_type: u8,
    /// Bytes of all headers; a hint.
    pub(crate) hdr_len: u16,
    /// Bytes of payload of each segment.
    pub(crate) gso_size: u16,
    /// Where the checksummed part begins.
    pub(crate) csum_start: u16,
    /// Where in that part the checksum is.
    pub(crate) csum_offset: u16,
}

impl VnetHeader {
    #[inline]
    pub(crate) fn parse(bytes: &[u8; VNET_HEADER]) -> Self {
        let field = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: field(2),
            gso_size: field(4),
            csum_start: field(6),
            csum_offset: field(8),
        }
    }

    #[inline]
    pub(crate) fn to_bytes(self) -> [u8; VNET_HEADER] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&self.hdr_len.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.gso_size.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.csum_start.to_ne_bytes());
        bytes[8..10].copy_from_slice(&self.csum_offset.to_ne_bytes());
        bytes
    }
}
