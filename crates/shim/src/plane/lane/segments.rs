//! TCP packets as the segments that datagrams carry.

use hawser_tun::TcpPacket;

use crate::protocol::segment::Compact;
use crate::protocol::{DatagramKind, Role};

/// Cuts a packet that the side `sender` sends into segments of at most `room` bytes, header and
/// payload, each given to `emit` with the kind of its datagram, with a compact header if the packet's
/// has that form. A packet that [`TcpPacket::segments`] does not cut may exceed `room`.
#[inline]
pub(super) fn cut(
    packet: &TcpPacket<'_>,
    sender: Role,
    room: usize,
    mut emit: impl FnMut(DatagramKind, &[u8], &[u8]),
) {
    let Some(mut compact) = Compact::encode(packet.header(), sender) else {
        for segment in packet.segments(room) {
            emit(DatagramKind::Segment, segment.header(), segment.payload());
        }
        return;
    };
    let payload = room.saturating_sub(compact.bytes().len());
    for segment in packet.segments_of(payload) {
        compact.set_segment(segment.header());
        emit(DatagramKind::Compact, compact.bytes(), segment.payload());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use hawser_tun::{MergedPacket, Merger, Packet};

    use super::*;
    use crate::protocol::segment::tests::{DATA, OPENING};
    use crate::protocol::segment::{Header, SAVED};

    const ROOM: usize = 1349;
    const FROM: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const TO: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    /// A packet as the kernel hands it over; a large one if `size`, the payload of a segment, is
    /// less than that of the packet.
    fn packet(header: &[u8], payload: &[u8], size: usize) -> Vec<u8> {
        let mut bytes = vec![1, 0, 0, 0, 0, 0, 40, 0, 16, 0];
        if payload.len() > size {
            // TCP over IPv6.
            bytes[1] = 4;
            bytes[4..6].copy_from_slice(&(size as u16).to_ne_bytes());
        }
        let length = (header.len() + payload.len()) as u16;
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([6, 64]);
        bytes.extend(FROM.octets());
        bytes.extend(TO.octets());
        bytes.extend([header, payload].concat());
        bytes
    }

    fn segments(packet: &[u8]) -> Vec<(DatagramKind, Vec<u8>, Vec<u8>)> {
        let (packet, mut found) = (Packet::parse(packet).unwrap(), Vec::new());
        let tcp = packet.tcp().unwrap();
        cut(&tcp, Role::Client, ROOM, |kind, header, payload| {
            found.push((kind, header.to_vec(), payload.to_vec()));
        });
        found
    }

    /// Bytes of which each place has its own.
    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn the_kernels_segments_fill_datagrams_and_are_merged_again() {
        // What the kernel takes as its segment's payload.
        let size = ROOM + SAVED - DATA.len();
        let payload = bytes(44 * size + 7);
        let segments = segments(&packet(&DATA, &payload, size));
        assert_eq!(segments.len(), 45);
        let mut merger = Merger::new();
        let mut merged = Vec::new();
        let mut complete = |packet: MergedPacket<'_>| merged.push(packet.bytes().to_vec());
        for (index, (kind, header, payload)) in segments.iter().enumerate() {
            assert_eq!(*kind, DatagramKind::Compact);
            assert!(index == 44 || header.len() + payload.len() == ROOM);
            let segment = [&header[..], payload].concat();
            let (header, data) = Header::decode(&segment, Role::Client).unwrap();
            assert_eq!(data, payload);
            merger
                .push_parts(FROM, TO, 0, header.bytes(), data, &mut complete)
                .unwrap();
        }
        merger.flush(&mut complete);
        assert_eq!(merged.len(), 1);
        let merged = Packet::parse(&merged[0]).unwrap().tcp().unwrap();
        assert_eq!(merged.payload(), payload);
        // Sequence number and flags.
        assert_eq!(merged.header()[4..8], DATA[4..8]);
        assert_eq!(merged.header()[13], DATA[13]);
    }

    #[test]
    fn a_packet_without_a_compact_header_is_cut_to_the_same_size() {
        let payload = bytes(ROOM + SAVED - DATA.len());
        let segments = segments(&packet(&OPENING, &payload, payload.len()));
        let kinds: Vec<_> = segments.iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(kinds, [DatagramKind::Segment; 2]);
        let (_, header, first) = &segments[0];
        assert_eq!(header.len() + first.len(), ROOM);
        assert_eq!([&first[..], &segments[1].2].concat(), payload);
    }
}
