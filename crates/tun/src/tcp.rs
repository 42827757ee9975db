//! TCP packets cut into segments (RFC 9293).

use std::iter::FusedIterator;

use crate::ip::{set_u16, u16_at};

/// Bytes of the smallest and of the largest header.
pub(crate) const MIN_HEADER: usize = 20;
const MAX_HEADER: usize = 60;

/// Where fields are in the header.
pub(crate) const SEQUENCE: usize = 4;
pub(crate) const FLAGS: usize = 13;
pub(crate) const CHECKSUM: usize = 16;
const URGENT_POINTER: usize = 18;

/// Flags.
pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const URG: u8 = 0x20;
pub(crate) const CWR: u8 = 0x80;

/// Bytes of the header that `segment` begins with; `None` if they do not fit.
#[inline]
pub(crate) fn header_len(segment: &[u8]) -> Option<usize> {
    let length = usize::from(segment.get(12)? >> 4) * 4;
    (MIN_HEADER..=segment.len())
        .contains(&length)
        .then_some(length)
}

/// The sequence number of a header.
#[inline]
pub(crate) fn sequence(header: &[u8]) -> u32 {
    let at = SEQUENCE;
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Makes the header of a whole packet that of its segment whose payload begins at `offset`.
///
/// FIN and PSH belong to the last byte. CWR answers one congestion mark, so that only the first
/// segment has it (RFC 3168, 6.1.2). The urgent pointer counts from the sequence number.
#[inline]
pub(crate) fn patch(header: &mut [u8], offset: u32, is_last: bool) {
    if !is_last {
        header[FLAGS] &= !(FIN | PSH);
    }
    if offset == 0 {
        return;
    }
    let sequence = sequence(header).wrapping_add(offset);
    header[SEQUENCE..SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
    header[FLAGS] &= !CWR;
    if header[FLAGS] & URG != 0 {
        let pointer = u32::from(u16_at(header, URGENT_POINTER)).saturating_sub(offset);
        if pointer == 0 {
            header[FLAGS] &= !URG;
        }
        set_u16(header, URGENT_POINTER, pointer as u16);
    }
}

/// A TCP packet without its IP header, perhaps larger than what one segment may carry.
#[derive(Debug, Clone, Copy)]
pub struct TcpPacket<'a> {
    pub(crate) header: &'a [u8],
    pub(crate) payload: &'a [u8],
    /// Bytes of payload in each segment by the kernel's count; `None` if it counts the packet as one.
    pub(crate) segment_size: Option<usize>,
}

impl<'a> TcpPacket<'a> {
    /// The header, 20 to 60 bytes, as read: its checksum is not complete.
    pub fn header(&self) -> &'a [u8] {
        self.header
    }

    /// The payload, up to about 64 KB.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The packet cut into segments of at most `max` bytes, which count the TCP header and the payload,
    /// but never of more payload than the kernel counts as one segment. At least one.
    ///
    /// Packets with SYN or RST are one segment of any size, packets without payload too. Each segment
    /// carries at least a byte of payload, even if `max` leaves no room for it.
    ///
    /// Every segment repeats all options. An option that describes the payload of the whole packet, as
    /// MPTCP's data sequence mapping (RFC 8684, 3.3.1), may be repeated.
    #[inline]
    pub fn segments(&self, max: usize) -> Segments<'a> {
        self.segments_of(max.saturating_sub(self.header.len()))
    }

    /// Like [`segments`](Self::segments), but each with at most `payload` bytes of payload, whatever
    /// its header: for a header that is sent in another form.
    #[inline]
    pub fn segments_of(&self, payload: usize) -> Segments<'a> {
        let mut header = [0; MAX_HEADER];
        header[..self.header.len()].copy_from_slice(self.header);
        set_u16(&mut header, CHECKSUM, 0);
        let room = match header[FLAGS] & (SYN | RST) {
            0 => payload,
            _ => self.payload.len(),
        };
        let size = room.min(self.segment_size.unwrap_or(usize::MAX)).max(1);
        Segments {
            header,
            header_len: self.header.len(),
            rest: self.payload,
            offset: 0,
            size,
            left: self.payload.len().div_ceil(size).max(1),
        }
    }
}

/// The segments of a packet, in order.
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    header: [u8; MAX_HEADER],
    header_len: usize,
    /// What is not cut yet.
    rest: &'a [u8],
    /// Bytes of payload that are.
    offset: u32,
    /// Bytes of payload of each segment but the last.
    size: usize,
    /// Segments not cut yet.
    left: usize,
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    #[inline]
    fn next(&mut self) -> Option<Segment<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (payload, rest) = self.rest.split_at(self.size.min(self.rest.len()));
        let mut header = self.header;
        patch(&mut header, self.offset, rest.is_empty());
        self.rest = rest;
        self.offset += payload.len() as u32;
        Some(Segment {
            header,
            header_len: self.header_len,
            payload,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Segments<'_> {}
impl FusedIterator for Segments<'_> {}

/// A TCP segment without its IP header.
#[derive(Debug, Clone)]
pub struct Segment<'a> {
    header: [u8; MAX_HEADER],
    header_len: usize,
    payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// The header, 20 to 60 bytes, with a checksum of zero.
    #[inline]
    pub fn header(&self) -> &[u8] {
        &self.header[..self.header_len]
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::testing::{Bytes, Sample, data};

    /// The segments of a packet that the kernel counts as one.
    fn segments(packet: &Sample, max: usize) -> Vec<Sample> {
        let bytes = packet.segment();
        let (header, payload) = bytes.split_at(header_len(&bytes).unwrap());
        let tcp = TcpPacket {
            header,
            payload,
            segment_size: None,
        };
        let read = |segment: Segment<'_>| Sample::of(segment.header(), segment.payload());
        tcp.segments(max).map(read).collect()
    }

    #[test]
    fn a_small_packet_that_exceeds_the_path_is_cut_too() {
        let packet = Sample {
            flags: 0x10 | CWR | PSH | FIN,
            ..data(u32::MAX - 500, 1400)
        };
        let found = segments(&packet, 1032);
        let part = |sequence, flags, range: Range<usize>| Sample {
            sequence,
            flags,
            payload: Bytes(packet.payload.0[range].to_vec()),
            ..packet.clone()
        };
        let first = part(packet.sequence, 0x10 | CWR, 0..1000);
        // Sequence numbers wrap.
        let second = part(499, 0x10 | PSH | FIN, 1000..1400);
        assert_eq!(found, [first, second]);
        assert_eq!(segments(&packet, 1432), [packet]);
    }

    #[test]
    fn some_packets_are_one_segment_of_any_size() {
        for flags in [SYN, RST, SYN | 0x10] {
            let packet = Sample {
                flags,
                ..data(1, 1400)
            };
            assert_eq!(segments(&packet, 500), [packet]);
        }
        let empty = data(1, 0);
        assert_eq!(segments(&empty, 20), [empty]);
    }

    #[test]
    fn the_urgent_pointer_shows_to_the_same_byte() {
        let packet = Sample {
            flags: 0x10 | URG,
            urgent: 150,
            ..data(1, 300)
        };
        let found = segments(&packet, 132);
        let urgent: Vec<_> = found.iter().map(|s| (s.flags & URG, s.urgent)).collect();
        assert_eq!(urgent, [(URG, 150), (URG, 50), (0, 0)]);
    }

    #[test]
    fn a_maximum_without_room_leaves_a_byte() {
        assert_eq!(segments(&data(1, 5), 0).len(), 5);
    }

    #[test]
    fn headers_must_fit() {
        let mut segment = data(1, 0).segment();
        assert_eq!(header_len(&segment), Some(32));
        assert_eq!(header_len(&segment[..31]), None);
        assert_eq!(header_len(&segment[..12]), None);
        segment[12] = 0x40;
        assert_eq!(header_len(&segment), None);
    }
}
