//! Consecutive TCP segments of one connection merged into one large packet, in the manner of the
//! kernel's GRO (`tcp_gro_receive`).

#[cfg(test)]
mod tests;

use std::net::Ipv6Addr;

use hawser_packet::Checksum;

use crate::error::InvalidSegment;
use crate::ip::{self, IPV6_HEADER, set_u16};
use crate::tcp::{self, CHECKSUM, CWR, FIN, FLAGS, PSH, RST, SEQUENCE, SYN, URG};
use crate::vnet::{GSO_ECN, GSO_NONE, GSO_TCPV6, NEEDS_CSUM, VNET_HEADER, VnetHeader};

/// Connections whose packets grow at the same time: more than subflows that share a burst.
const FLOWS: usize = 16;

/// Hops after which routers drop a packet; the kernel's default (`net.ipv6.conf.all.hop_limit`).
const HOP_LIMIT: u8 = 64;

/// Where the TCP header is in a buffer.
const TCP_AT: usize = VNET_HEADER + IPV6_HEADER;
/// Bytes of TCP header and payload that a packet has room for.
const MAX_SEGMENT: usize = u16::MAX as usize;

/// Merges TCP segments into large packets for a TUN device.
///
/// Each connection has at most one packet that grows. It is complete, and given to the caller, when a
/// segment ends it (PSH, FIN, or less payload than the first one had), when a segment of the connection
/// does not continue it, when another connection needs its place, and at [`Merger::flush`]. The order
/// of a connection's segments is never changed.
#[derive(Debug)]
pub struct Merger {
    flows: Vec<Flow>,
    /// The flow that got the last segment.
    last: usize,
    /// The flow whose place was taken last, when none was free: they are taken in turn.
    evicted: usize,
}

/// A packet for [`Queue::try_write`](crate::Queue::try_write): vnet header (10 bytes), IPv6 header, TCP
/// header and payload. The kernel neither computes nor verifies its checksum.
#[derive(Debug, Clone, Copy)]
pub struct MergedPacket<'a>(&'a [u8]);

impl<'a> MergedPacket<'a> {
    /// All bytes, as a TUN device takes them.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

impl Default for Merger {
    fn default() -> Self {
        Self::new()
    }
}

impl Merger {
    /// A merger without packets. It has 16 buffers of 64 KB, each allocated at its first use.
    pub fn new() -> Self {
        Self {
            flows: vec![Flow::default(); FLOWS],
            last: 0,
            evicted: 0,
        }
    }

    /// Takes a segment that arrived, its TCP header and payload, by the addresses and ECN bits (0 to 3)
    /// of its IP header. The TCP checksum is ignored. `complete` is called with each packet that this
    /// completes, two at most.
    ///
    /// # Errors
    /// [`InvalidSegment`]: the segment was dropped.
    #[inline]
    pub fn push(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        ecn: u8,
        segment: &[u8],
        complete: impl FnMut(MergedPacket<'_>),
    ) -> Result<(), InvalidSegment> {
        let header_len = tcp::header_len(segment).ok_or(InvalidSegment::Header)?;
        let (header, payload) = segment.split_at(header_len);
        self.push_parts(source, destination, ecn, header, payload, complete)
    }

    /// Like [`push`](Self::push), with the TCP header and the payload of the segment apart.
    ///
    /// # Errors
    /// [`InvalidSegment`]: the segment was dropped.
    #[inline]
    pub fn push_parts(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        ecn: u8,
        header: &[u8],
        payload: &[u8],
        mut complete: impl FnMut(MergedPacket<'_>),
    ) -> Result<(), InvalidSegment> {
        if tcp::header_len(header) != Some(header.len()) {
            return Err(InvalidSegment::Header);
        }
        if header.len() + payload.len() > MAX_SEGMENT {
            return Err(InvalidSegment::TooLarge);
        }
        let key = Key::new(source, destination, header);
        let index = self.place(&key);
        self.last = index;
        let (flow, ecn) = (&mut self.flows[index], ecn & 3);
        if flow.has(&key) && flow.is_continued_by(ecn, header, payload) {
            flow.extend(header, payload);
        } else {
            if flow.is_open {
                complete(flow.finish());
            }
            flow.begin(key, ecn, header, payload);
        }
        if flow.has_ended(payload) {
            complete(flow.finish());
        }
        Ok(())
    }

    /// Completes all packets. Call it at the end of each batch: what has not been completed waits for
    /// further segments.
    #[inline]
    pub fn flush(&mut self, mut complete: impl FnMut(MergedPacket<'_>)) {
        for flow in self.flows.iter_mut().filter(|flow| flow.is_open) {
            complete(flow.finish());
        }
    }

    /// The place of the connection's packet: where it grows, else a free place, else that of another
    /// connection.
    #[inline]
    fn place(&mut self, key: &Key) -> usize {
        if self.flows[self.last].has(key) {
            return self.last;
        }
        let free = || self.flows.iter().position(|flow| !flow.is_open);
        let found = self.flows.iter().position(|flow| flow.has(key));
        let found = found.or_else(free);
        found.unwrap_or_else(|| {
            self.evicted = (self.evicted + 1) % FLOWS;
            self.evicted
        })
    }
}

/// What tells connections apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Key {
    source: u128,
    destination: u128,
    ports: u32,
}

impl Key {
    #[inline]
    fn new(source: Ipv6Addr, destination: Ipv6Addr, header: &[u8]) -> Self {
        Self {
            source: source.to_bits(),
            destination: destination.to_bits(),
            ports: u32::from_be_bytes([header[0], header[1], header[2], header[3]]),
        }
    }
}

/// A packet of one connection that grows.
#[derive(Debug, Clone, Default)]
struct Flow {
    key: Key,
    ecn: u8,
    /// Bytes of the TCP header.
    header_len: usize,
    /// Bytes of payload of the first segment, and so of all but the last.
    size: usize,
    /// The sequence number that continues it.
    next: u32,
    /// Whether a packet grows. Else `buffer` has the last one that was completed.
    is_open: bool,
    /// The packet as a TUN device takes it.
    buffer: Vec<u8>,
}

impl Flow {
    /// Whether the connection's packet grows here.
    #[inline]
    fn has(&self, key: &Key) -> bool {
        self.is_open && self.key == *key
    }

    /// Begins a packet with a segment.
    #[inline]
    fn begin(&mut self, key: Key, ecn: u8, header: &[u8], payload: &[u8]) {
        self.key = key;
        self.ecn = ecn;
        self.header_len = header.len();
        self.size = payload.len();
        self.next = tcp::sequence(header).wrapping_add(payload.len() as u32);
        self.is_open = true;
        self.buffer.clear();
        // For the largest packet: growing it moves no bytes.
        self.buffer.reserve(TCP_AT + MAX_SEGMENT);
        // Version 6, traffic class; the rest is written when the packet is complete.
        let mut ip = [0; TCP_AT];
        ip[VNET_HEADER..][..2].copy_from_slice(&[0x60, ecn << 4]);
        ip[VNET_HEADER + 6..][..2].copy_from_slice(&[ip::TCP, HOP_LIMIT]);
        ip[VNET_HEADER + 8..][..16].copy_from_slice(&key.source.to_be_bytes());
        ip[VNET_HEADER + 24..][..16].copy_from_slice(&key.destination.to_be_bytes());
        self.buffer.extend_from_slice(&ip);
        self.buffer.extend_from_slice(header);
        self.buffer.extend_from_slice(payload);
    }

    /// Whether the packet stays one of equal segments with this one at its end. It then differs from
    /// the first by sequence number, checksum, and flags that only a first or a last segment has.
    #[inline]
    fn is_continued_by(&self, ecn: u8, header: &[u8], payload: &[u8]) -> bool {
        const ENDS: u8 = PSH | FIN;
        let first = &self.buffer[TCP_AT..][..self.header_len];
        let between = SEQUENCE + 4..FLAGS;
        tcp::sequence(header) == self.next
            && header.len() == first.len()
            && ecn == self.ecn
            && (1..=self.size).contains(&payload.len())
            && self.buffer.len() - TCP_AT + payload.len() <= MAX_SEGMENT
            // Acknowledgement, header length; window; urgent pointer and options.
            && header[between.clone()] == first[between]
            && header[FLAGS] & !ENDS == first[FLAGS] & !CWR
            && header[FLAGS + 1..CHECKSUM] == first[FLAGS + 1..CHECKSUM]
            && header[CHECKSUM + 2..] == first[CHECKSUM + 2..]
    }

    /// Appends a segment.
    #[inline]
    fn extend(&mut self, header: &[u8], payload: &[u8]) {
        self.buffer[TCP_AT + FLAGS] |= header[FLAGS];
        self.buffer.extend_from_slice(payload);
        self.next = self.next.wrapping_add(payload.len() as u32);
    }

    /// Whether no segment may follow the last one, which had `payload`.
    #[inline]
    fn has_ended(&self, payload: &[u8]) -> bool {
        const LAST: u8 = PSH | FIN | SYN | RST | URG;
        self.buffer[TCP_AT + FLAGS] & LAST != 0 || payload.len() < self.size || payload.is_empty()
    }

    /// Completes the packet's headers.
    #[inline]
    fn finish(&mut self) -> MergedPacket<'_> {
        self.is_open = false;
        let headers = IPV6_HEADER + self.header_len;
        let length = (self.buffer.len() - TCP_AT) as u16;
        let is_large = usize::from(length) - self.header_len > self.size;
        let gso_type = match self.buffer[TCP_AT + FLAGS] & CWR {
            _ if !is_large => GSO_NONE,
            0 => GSO_TCPV6,
            _ => GSO_TCPV6 | GSO_ECN,
        };
        let vnet = VnetHeader {
            flags: NEEDS_CSUM,
            gso_type,
            hdr_len: headers as u16,
            gso_size: if is_large { self.size as u16 } else { 0 },
            csum_start: IPV6_HEADER as u16,
            csum_offset: CHECKSUM as u16,
        };
        let (ip, tcp) = self.buffer.split_at_mut(TCP_AT);
        ip[..VNET_HEADER].copy_from_slice(&vnet.to_bytes());
        set_u16(ip, VNET_HEADER + 4, length);
        let pseudo_header = Checksum::default()
            .add_bytes(&ip[VNET_HEADER + 8..])
            .add_u16(u16::from(ip::TCP))
            .add_u16(length)
            .finish();
        // Not inverted: the sum that the rest is to be added to.
        tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&pseudo_header.map(|byte| !byte));
        MergedPacket(&self.buffer)
    }
}
