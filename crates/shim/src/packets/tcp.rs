//! TCP segments (RFC 9293) that are refused.

use etherparse::TcpSlice;

use super::ip::{Ends, Received, TCP, write};

/// The packet that ends the connection of a packet, in the name of its destination (RFC 9293, 3.10.7.1);
/// `None` for fragments, and for what is no segment or ends a connection itself.
pub(crate) fn reset(received: &Received<'_>) -> Option<Vec<u8>> {
    if received.fragment.is_some() {
        return None;
    }
    let tcp = TcpSlice::from_slice(received.payload).ok()?;
    if tcp.rst() {
        return None;
    }
    let length = tcp.payload().len() as u32 + u32::from(tcp.syn()) + u32::from(tcp.fin());
    let (sequence, acknowledged, flags) = match tcp.ack() {
        true => (tcp.acknowledgment_number(), 0, RST),
        false => (0, tcp.sequence_number().wrapping_add(length), RST | ACK),
    };
    let mut segment = Vec::with_capacity(HEADER);
    segment.extend_from_slice(&tcp.destination_port().to_be_bytes());
    segment.extend_from_slice(&tcp.source_port().to_be_bytes());
    segment.extend_from_slice(&sequence.to_be_bytes());
    segment.extend_from_slice(&acknowledged.to_be_bytes());
    // The header's length in words of four bytes; no window, checksum and urgent pointer yet.
    segment.extend_from_slice(&[5 << 4, flags, 0, 0, 0, 0, 0, 0]);
    let ends: Ends = received.ends.reversed();
    let sum = ends.pseudo_header(TCP, HEADER as u16).add_bytes(&segment);
    segment[16..18].copy_from_slice(&sum.finish());
    let mut packet = None;
    write(ends, TCP, &segment, usize::MAX, 0, |bytes| {
        packet = Some(bytes.to_vec());
    });
    packet
}

/// Bytes of a header without options.
const HEADER: usize = 20;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
