//! A SCION packet in an Ethernet frame on a link.

use std::ops::Range;

use fastrand::Rng;
use hawser_packet::header::{DST_AS, SRC_AS, set_payload_len};
use hawser_packet::number::{next_header, path_type};
use hawser_packet::path::{HOP, INFO};
use hawser_packet::{Checksum, Header, Packet, UDP_HEADER};

use super::Mend;

/// Lengths of the Ethernet header, and of an IPv4 header without options.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
/// Offset of the SCION packet.
const PACKET: usize = ETHERNET + IPV4 + UDP_HEADER;
/// The bits for a long header and against other protocols in QUIC's first byte (RFC 9000, 17); a
/// datagram of bulk transfer has neither.
const QUIC: u8 = 0xc0;

/// A frame with a SCION/UDP packet of a host.
#[derive(Clone)]
pub struct Frame {
    bytes: Vec<u8>,
    /// The packet's headers as they were.
    header: Header,
}

impl Frame {
    /// Reads a frame; `None` when it has something else than a SCION/UDP packet over IPv4.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // Ethernet type IPv4; header of 20 bytes; UDP.
        if bytes.len() < PACKET || bytes[12..15] != [8, 0, 0x45] || bytes[23] != 17 {
            return None;
        }
        let packet = Packet::parse(&bytes[PACKET..]).ok()?;
        let header = packet.header;
        let is_udp = header.path_type == path_type::STANDARD && packet.udp_quoted().is_ok();
        is_udp.then(|| Self {
            bytes: bytes.to_vec(),
            header,
        })
    }

    fn udp_at(&self) -> usize {
        PACKET + self.header.len
    }

    fn payload_at(&self) -> usize {
        self.udp_at() + UDP_HEADER
    }

    /// Length of the UDP payload, in bytes.
    pub fn length(&self) -> usize {
        self.bytes.len() - self.payload_at()
    }

    /// Whether it is a packet of QUIC; otherwise it is a datagram of bulk transfer.
    pub fn is_quic(&self) -> bool {
        let first = self.bytes.get(self.payload_at());
        first.is_some_and(|first| first & QUIC != 0)
    }

    /// The destination's UDP port.
    pub fn port(&self) -> [u8; 2] {
        let at = self.udp_at() + 2;
        [self.bytes[at], self.bytes[at + 1]]
    }

    /// Sets the destination's UDP port.
    pub fn set_port(&mut self, port: [u8; 2]) {
        let at = self.udp_at() + 2;
        self.bytes[at..at + 2].copy_from_slice(&port);
    }

    /// Flips a bit of a part of the UDP payload, as far as there is such a part.
    pub fn flip(&mut self, part: Range<usize>, rng: &mut Rng) {
        let at = self.payload_at();
        self.flip_at(at + part.start..(at + part.end).min(self.bytes.len()), rng);
    }

    fn flip_at(&mut self, part: Range<usize>, rng: &mut Rng) {
        if !part.is_empty() {
            self.bytes[rng.usize(part)] ^= 1 << rng.u8(0..8);
        }
    }

    /// Makes the UDP payload random from `from` on.
    pub fn fill(&mut self, from: usize, rng: &mut Rng) {
        let at = self.payload_at();
        if let Some(rest) = self.bytes.get_mut(at + from..) {
            rng.fill(rest);
        }
    }

    /// Cuts the UDP payload, or lengthens it with random bytes.
    pub fn resize(&mut self, length: usize, rng: &mut Rng) {
        let (at, old) = (self.payload_at(), self.length());
        self.bytes.resize(at + length, 0);
        self.fill(old, rng);
    }

    /// Flips a bit of the SCION header.
    pub fn flip_header(&mut self, rng: &mut Rng) {
        self.flip_at(PACKET..self.udp_at(), rng);
    }

    /// Sets another AS as the source: the destination's, or any.
    pub fn change_source_as(&mut self, rng: &mut Rng) {
        let (src, dst) = (PACKET + SRC_AS, PACKET + DST_AS);
        match rng.bool() {
            true => self.bytes.copy_within(dst..dst + 8, src),
            false => self.flip_at(src..src + 8, rng),
        }
    }

    /// Sets another source host.
    pub fn change_source_host(&mut self, rng: &mut Rng) {
        let at = PACKET + self.header.src_host_at();
        self.flip_at(at..at + 4, rng);
    }

    /// Sets another source port.
    pub fn change_source_port(&mut self, rng: &mut Rng) {
        let at = self.udp_at();
        self.flip_at(at..at + 2, rng);
    }

    /// Flips a bit of `part` of the hop field that is `distance` from the current one.
    pub fn change_hop(&mut self, distance: isize, part: Range<usize>, rng: &mut Rng) {
        let path = self.header.standard_path(&self.bytes[PACKET..]).unwrap();
        let hop = path.current_hop.checked_add_signed(distance).unwrap();
        assert!(hop < path.hops && part.end <= HOP);
        let at = PACKET + path.hop_at(hop);
        self.flip_at(at + part.start..at + part.end, rng);
    }

    /// Flips a bit of the current info field.
    pub fn change_info(&mut self, rng: &mut Rng) {
        let path = self.header.standard_path(&self.bytes[PACKET..]).unwrap();
        let at = PACKET + path.info_at(path.current_info);
        self.flip_at(at..at + INFO, rng);
    }

    /// The frame, mended.
    pub fn bytes(&self, mend: Mend) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if mend == Mend::All {
            let packet = &mut bytes[PACKET..];
            let length = set_payload_len(packet, self.header.len);
            let udp = self.header.len;
            packet[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
            packet[udp + 6..udp + 8].fill(0);
            let checksum = Checksum::default()
                .add_bytes(&packet[DST_AS..self.header.path])
                .add_upper(length, next_header::UDP)
                .add_bytes(&packet[udp..])
                .finish();
            packet[udp + 6..udp + 8].copy_from_slice(&checksum);
        }
        if mend != Mend::Nothing {
            let length = |from: usize| ((bytes.len() - from) as u16).to_be_bytes();
            let (ip, udp) = (length(ETHERNET), length(ETHERNET + IPV4));
            bytes[16..18].copy_from_slice(&ip);
            bytes[24..26].fill(0);
            let checksum = Checksum::default().add_bytes(&bytes[ETHERNET..ETHERNET + IPV4]);
            bytes[24..26].copy_from_slice(&checksum.finish());
            let at = ETHERNET + IPV4;
            bytes[at + 4..at + 6].copy_from_slice(&udp);
            // No checksum (RFC 768): the kernel leaves it to network cards, so that what is captured
            // is not one.
            bytes[at + 6..at + 8].fill(0);
        }
        bytes
    }
}
