//! What the tests share: TCP segments made and read.

use std::fmt;
use std::net::Ipv6Addr;

use hawser_packet::Checksum;
use proptest::prelude::*;

use crate::vnet::{GSO_ECN, GSO_NONE, GSO_TCPV6, NEEDS_CSUM, VnetHeader};
use crate::{MergedPacket, Merger, Packet, tcp};

pub(crate) const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
pub(crate) const DESTINATION: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

/// Bytes of which a failed test prints no more than the number and the first ones.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl FromIterator<u8> for Bytes {
    fn from_iter<T: IntoIterator<Item = u8>>(bytes: T) -> Self {
        Self(bytes.into_iter().collect())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.0[..self.0.len().min(4)];
        write!(f, "{} bytes: {first:?}", self.0.len())
    }
}

/// A TCP segment, or a large packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) port: u16,
    pub(crate) ecn: u8,
    pub(crate) sequence: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    /// Up to 40 bytes, a multiple of 4.
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Bytes,
}

/// A data segment with the flag ACK.
pub(crate) fn data(sequence: u32, payload: usize) -> Sample {
    Sample {
        port: 1,
        ecn: 0,
        sequence,
        ack: 77,
        flags: 0x10,
        window: 500,
        urgent: 0,
        options: vec![1; 12],
        payload: (0..payload)
            .map(|i| (sequence as usize + i) as u8)
            .collect(),
    }
}

impl Sample {
    /// TCP header and payload, with a checksum that nobody may read.
    pub(crate) fn segment(&self) -> Vec<u8> {
        let mut bytes = self.port.to_be_bytes().to_vec();
        bytes.extend(443_u16.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.push((5 + self.options.len() as u8 / 4) << 4);
        bytes.push(self.flags);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0xab, 0xcd]);
        bytes.extend(self.urgent.to_be_bytes());
        bytes.extend(&self.options);
        bytes.extend(&self.payload.0);
        bytes
    }

    /// As the kernel hands it over, to be cut into segments of `size` bytes of payload.
    pub(crate) fn packet(&self, size: Option<u16>) -> Vec<u8> {
        let mut segment = self.segment();
        let length = segment.len() as u16;
        let mut ip = vec![0x60, self.ecn << 4, 0, 0];
        ip.extend(length.to_be_bytes());
        ip.extend([6, 64]);
        ip.extend(SOURCE.octets());
        ip.extend(DESTINATION.octets());
        let pseudo_header = Checksum::default().add_bytes(&ip[8..]).add_u16(6);
        let sum = pseudo_header.add_u16(length).finish().map(|byte| !byte);
        segment[16..18].copy_from_slice(&sum);
        let large = size.filter(|&size| self.payload.0.len() > size.into());
        let vnet = VnetHeader {
            flags: NEEDS_CSUM,
            gso_type: match large {
                Some(_) if self.flags & tcp::CWR != 0 => GSO_TCPV6 | GSO_ECN,
                Some(_) => GSO_TCPV6,
                None => GSO_NONE,
            },
            hdr_len: 0,
            gso_size: large.unwrap_or_default(),
            csum_start: 40,
            csum_offset: 16,
        };
        [vnet.to_bytes().to_vec(), ip, segment].concat()
    }

    /// Reads a packet as the kernel would take it.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let packet = Packet::parse(bytes).unwrap();
        assert_eq!(packet.source(), SOURCE);
        assert_eq!(packet.destination(), DESTINATION);
        let tcp = packet.tcp().unwrap();
        Self {
            ecn: packet.ecn(),
            ..Self::of(tcp.header(), tcp.payload())
        }
    }

    pub(crate) fn of(header: &[u8], payload: &[u8]) -> Self {
        let two = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let four = |at: usize| u32::from(two(at)) << 16 | u32::from(two(at + 2));
        assert_eq!(two(2), 443);
        Self {
            port: two(0),
            ecn: 0,
            sequence: four(4),
            ack: four(8),
            flags: header[13],
            window: two(14),
            urgent: two(18),
            options: header[20..].to_vec(),
            payload: Bytes(payload.to_vec()),
        }
    }
}

/// Whether the TCP checksum of an IPv6 packet without extension headers is correct.
pub(crate) fn has_valid_checksum(packet: &[u8]) -> bool {
    Checksum::default()
        .add_bytes(&packet[8..])
        .add_u16(packet[6].into())
        .add_u16((packet.len() - 40) as u16)
        .is_valid()
}

/// What becomes of segments, with a flush at the end.
pub(crate) fn merge(segments: &[Sample]) -> Vec<Sample> {
    let (mut merger, mut merged) = (Merger::new(), Vec::new());
    let mut scratch = Vec::new();
    let mut complete = |packet: MergedPacket<'_>| {
        merged.push(Sample::read(packet.bytes()));
        let packet = Packet::parse(packet.bytes()).unwrap();
        let mut completed = packet.datagrams(&mut scratch);
        assert!(completed.all(has_valid_checksum));
    };
    for segment in segments {
        let bytes = segment.segment();
        merger
            .push(SOURCE, DESTINATION, segment.ecn, &bytes, &mut complete)
            .unwrap();
    }
    merger.flush(&mut complete);
    merger.flush(|packet| panic!("{packet:?} was complete already"));
    merged
}

/// Segments and large packets of any content, with at most `most` bytes of payload.
pub(crate) fn samples(most: usize) -> impl Strategy<Value = Sample> {
    let payload = prop_oneof![Just(0), 0..=most, Just(most)];
    let payload = (payload, any::<u8>()).prop_map(|(length, first)| {
        let bytes = (0..length).map(|i| first.wrapping_add((i % 251) as u8));
        bytes.collect::<Bytes>()
    });
    // Any flags but SYN and RST; most often those of data.
    let flags = prop_oneof![Just(0x10), Just(0x18), any::<u8>().prop_map(|f| f & !6)];
    let options = prop::collection::vec(any::<[u8; 4]>(), 0..=10).prop_map(|words| words.concat());
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>());
    (0..4_u16, 0..4_u8, numbers, flags, options, payload).prop_map(
        |(port, ecn, (sequence, ack, window, urgent), flags, options, payload)| Sample {
            port,
            ecn,
            sequence,
            ack,
            flags,
            window,
            urgent,
            options,
            payload,
        },
    )
}
