//! Frames of many packets (super-packets of segmentation offload), taken apart without a copy of
//! each packet.
//!
//! Before each frame stands a `struct virtio_net_hdr` (`linux/virtio_net.h`), in the byte order of
//! the machine: flags, GSO type, length of the headers, segment size, start of the checksummed part,
//! offset of the checksum in it.

use std::ops::Range;

use hawser_kernel::packet_socket::HEADER;

/// Flags of the header: the checksum covers only the pseudo header so far; it was verified.
const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;

/// GSO types.
const NONE: u8 = 0;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
/// A flag beside them: only the first segment has CWR.
const ECN: u8 = 0x80;

const FLAGS: usize = 0;
const GSO_TYPE: usize = 1;
const HEADERS_LENGTH: usize = 2;
const GSO_SIZE: usize = 4;
const CHECKSUM_START: usize = 6;
const CHECKSUM_OFFSET: usize = 8;

/// Where the IP header begins, after the Ethernet header.
const IP: usize = HEADER + 14;
const IP6_LENGTH: usize = 40;
const UDP_LENGTH: usize = 8;

/// Flags of TCP.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;
/// Where they are in the TCP header.
const TCP_FLAGS: usize = 13;

/// The parts of a frame of many packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    is_ipv6: bool,
    is_tcp: bool,
    /// Where the TCP or UDP header begins.
    transport: usize,
    /// Where the payload begins.
    payload: usize,
    /// Bytes of payload in each packet but the last.
    segment: usize,
    /// Number of packets.
    packets: usize,
}

/// The packets of a frame that are not lost, in frames of at most `batch` bytes, but of at least one
/// packet. `loses` is called once for each packet.
pub(super) fn split(frame: &[u8], batch: usize, mut loses: impl FnMut() -> bool) -> Vec<Vec<u8>> {
    let Some(layout) = Layout::of(frame) else {
        return if loses() {
            Vec::new()
        } else {
            vec![frame.to_vec()]
        };
    };
    let most = (batch / layout.packet_length()).max(1);
    let mut frames = Vec::new();
    let mut first = 0;
    for packet in 0..=layout.packets {
        let ends = packet == layout.packets;
        let lost = !ends && loses();
        if lost || ends || packet - first == most {
            match first..packet {
                whole if whole.len() == layout.packets => frames.push(frame.to_vec()),
                part if part.is_empty() => {}
                part => frames.push(layout.cut(frame, part)),
            }
            first = packet + usize::from(lost);
        }
    }
    frames
}

/// The number of packets of a frame.
pub(super) fn packets(frame: &[u8]) -> u64 {
    Layout::of(frame).map_or(1, |layout| layout.packets as u64)
}

fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    let bytes = frame.get(at..at + 2)?;
    Some(u16::from_ne_bytes([bytes[0], bytes[1]]))
}

impl Layout {
    /// The layout of a frame of several packets; `None` if it is one packet, or not of the form that
    /// the kernel makes.
    fn of(frame: &[u8]) -> Option<Self> {
        let kind = *frame.get(GSO_TYPE)?;
        let (is_ipv6, is_tcp) = match (kind & !ECN, frame.get(IP)? >> 4) {
            (TCP4, 4) => (false, true),
            (TCP6, 6) => (true, true),
            (UDP, version @ (4 | 6)) => (version == 6, false),
            _ => return None,
        };
        let segment = usize::from(u16_at(frame, GSO_SIZE)?);
        let transport = HEADER + usize::from(u16_at(frame, CHECKSUM_START)?);
        let headers = match is_ipv6 {
            true => IP6_LENGTH,
            false => usize::from(frame[IP] & 0xf) * 4,
        };
        if frame[FLAGS] & NEEDS_CHECKSUM == 0 || segment == 0 || transport < IP + headers.max(20) {
            return None;
        }
        let length = match is_tcp {
            true => usize::from(frame.get(transport + 12)? >> 4) * 4,
            false => UDP_LENGTH,
        };
        let payload = transport + length;
        let bytes = frame.len().checked_sub(payload)?;
        let packets = bytes.div_ceil(segment);
        (packets > 1 && (!is_tcp || length >= 20)).then_some(Self {
            is_ipv6,
            is_tcp,
            transport,
            payload,
            segment,
            packets,
        })
    }

    /// Length of each packet but the last, as an Ethernet frame.
    fn packet_length(&self) -> usize {
        self.payload - HEADER + self.segment
    }

    /// The frame of the packets with the numbers `range`, of which there is at least one.
    fn cut(&self, frame: &[u8], range: Range<usize>) -> Vec<u8> {
        let start = self.payload + range.start * self.segment;
        let end = (self.payload + range.end * self.segment).min(frame.len());
        let mut cut = Vec::with_capacity(self.payload + end - start);
        cut.extend_from_slice(&frame[..self.payload]);
        cut.extend_from_slice(&frame[start..end]);
        self.write_offload(&mut cut, range.len());
        self.write_network(&mut cut, range.start);
        self.write_transport(&mut cut, &range);
        cut
    }

    fn write_offload(&self, frame: &mut [u8], packets: usize) {
        let mut set = |at: usize, value: usize| {
            frame[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
        };
        set(CHECKSUM_START, self.transport - HEADER);
        set(CHECKSUM_OFFSET, if self.is_tcp { 16 } else { 6 });
        set(HEADERS_LENGTH, self.payload - HEADER);
        if packets == 1 {
            set(GSO_SIZE, 0);
            frame[GSO_TYPE] = NONE;
        }
        frame[FLAGS] = (frame[FLAGS] | NEEDS_CHECKSUM) & !DATA_VALID;
    }

    /// Writes the lengths of the IP header, and as the kernel does when it cuts a frame, counts up
    /// the identification of IPv4.
    fn write_network(&self, frame: &mut [u8], first: usize) {
        let length = frame.len() - IP;
        let mut set = |at: usize, value: u16| {
            frame[IP + at..IP + at + 2].copy_from_slice(&value.to_be_bytes());
        };
        if self.is_ipv6 {
            return set(4, (length - IP6_LENGTH) as u16);
        }
        set(2, length as u16);
        let identification = u16::from_be_bytes([frame[IP + 4], frame[IP + 5]]);
        let identification = identification.wrapping_add(first as u16);
        frame[IP + 4..IP + 6].copy_from_slice(&identification.to_be_bytes());
        frame[IP + 10..IP + 12].fill(0);
        let header = &frame[IP..IP + usize::from(frame[IP] & 0xf) * 4];
        let checksum = !sum(0, header);
        frame[IP + 10..IP + 12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn write_transport(&self, frame: &mut [u8], range: &Range<usize>) {
        let length = (frame.len() - self.transport) as u32;
        let (addresses, protocol) = match self.is_ipv6 {
            true => (IP + 8..IP + 40, frame[IP + 6]),
            false => (IP + 12..IP + 20, frame[IP + 9]),
        };
        // An extension header may stand between, which has another protocol.
        let protocol = match (self.is_ipv6, self.is_tcp) {
            (true, true) => 6,
            (true, false) => 17,
            (false, _) => protocol,
        };
        let pseudo = sum(length + u32::from(protocol), &frame[addresses]);
        let at = self.transport;
        let checksum = match self.is_tcp {
            true => {
                let number = &mut frame[at + 4..at + 8];
                let before = u32::from_be_bytes([number[0], number[1], number[2], number[3]]);
                let skipped = (range.start * self.segment) as u32;
                number.copy_from_slice(&before.wrapping_add(skipped).to_be_bytes());
                if range.start > 0 {
                    frame[at + TCP_FLAGS] &= !CWR;
                }
                if range.end < self.packets {
                    frame[at + TCP_FLAGS] &= !(FIN | PSH);
                }
                16
            }
            false => {
                frame[at + 4..at + 6].copy_from_slice(&(length as u16).to_be_bytes());
                6
            }
        };
        frame[at + checksum..at + checksum + 2].copy_from_slice(&pseudo.to_be_bytes());
    }
}

/// The sum of 16-bit words in one's complement, as of the Internet checksum (RFC 1071).
fn sum(start: u32, bytes: &[u8]) -> u16 {
    let mut sum = u64::from(start);
    for word in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests;
