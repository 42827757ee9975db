//! Properties of cutting and merging together.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::testing::{
    Bytes, DESTINATION, SOURCE, Sample, data, has_valid_checksum, merge, samples,
};
use crate::{MergedPacket, Merger, Packet, tcp};

/// What one connection sent, however it was cut: runs of consecutive bytes, and segments without
/// payload.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Bytes(u32, Bytes),
    Empty(u32, u8),
}

fn sent<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> BTreeMap<u16, Vec<Sent>> {
    let mut connections: BTreeMap<_, Vec<Sent>> = BTreeMap::new();
    for sample in samples {
        let all = connections.entry(sample.port).or_default();
        match (all.last_mut(), &sample.payload.0[..]) {
            (_, []) => all.push(Sent::Empty(sample.sequence, sample.flags)),
            (Some(Sent::Bytes(start, bytes)), more)
                if start.wrapping_add(bytes.0.len() as u32) == sample.sequence =>
            {
                bytes.0.extend(more);
            }
            (_, bytes) => all.push(Sent::Bytes(sample.sequence, Bytes(bytes.to_vec()))),
        }
    }
    connections
}

/// The segments of a packet as the kernel hands it over.
fn cut(packet: &Sample, size: Option<u16>, max: usize) -> Vec<Sample> {
    let bytes = packet.packet(size);
    let read = Packet::parse(&bytes).unwrap();
    assert_eq!(read.ecn(), packet.ecn);
    let segments = read.tcp().unwrap().segments(max);
    let (count, mut samples) = (segments.len(), Vec::new());
    for segment in segments {
        assert_eq!(segment.header()[16..18], [0, 0]);
        let sample = Sample::of(segment.header(), segment.payload());
        samples.push(Sample {
            ecn: packet.ecn,
            ..sample
        });
    }
    assert_eq!(count, samples.len());
    samples
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_packet_cut_and_merged_is_the_same(
        packet in samples(65_000),
        size in prop::option::of(500..9000_u16),
        max in prop_oneof![561..2000_usize, 561..9000_usize, Just(usize::MAX)],
    ) {
        let segments = cut(&packet, size, max);
        let header = 20 + packet.options.len();
        let room = size.map_or(usize::MAX, usize::from).min(max - header);
        for (index, segment) in segments.iter().enumerate() {
            let is_last = index + 1 == segments.len();
            prop_assert!(is_last || segment.payload.0.len() == room);
            prop_assert!(segment.payload.0.len() <= room);
            let mut flags = packet.flags & !tcp::URG;
            if index > 0 {
                flags &= !tcp::CWR;
            }
            if !is_last {
                flags &= !(tcp::FIN | tcp::PSH);
            }
            prop_assert_eq!(segment.flags & !tcp::URG, flags);
            prop_assert_eq!(segment.ack, packet.ack);
            prop_assert_eq!(segment.window, packet.window);
            prop_assert_eq!(&segment.options, &packet.options);
            // The urgent pointer, if any, shows to the same byte.
            if segment.flags & tcp::URG != 0 && index > 0 {
                let shown = segment.sequence.wrapping_add(segment.urgent.into());
                prop_assert_eq!(shown, packet.sequence.wrapping_add(packet.urgent.into()));
            }
        }
        prop_assert_eq!(sent(&segments), sent([&packet]));

        let merged = merge(&segments);
        prop_assert_eq!(sent(&merged), sent([&packet]));
        if packet.flags & tcp::URG == 0 {
            // Whole again, in one packet.
            let urgent = merged[0].urgent;
            prop_assert_eq!(merged, [Sample { urgent, ..packet }]);
        }
    }

    #[test]
    fn segments_of_several_connections_stay_in_order(
        mut segments in prop::collection::vec(samples(900), 1..60),
        follows in prop::collection::vec(prop::bool::weighted(0.8), 60),
    ) {
        // Most continue their connection with the header they would have.
        let mut last: BTreeMap<u16, Sample> = BTreeMap::new();
        for (segment, follows) in segments.iter_mut().zip(follows) {
            if let Some(last) = last.get(&segment.port).filter(|_| follows) {
                let length = last.payload.0.len() as u32;
                segment.sequence = last.sequence.wrapping_add(length);
                segment.options.clone_from(&last.options);
                (segment.ack, segment.window, segment.urgent) = (last.ack, last.window, last.urgent);
                (segment.ecn, segment.flags) = (last.ecn, segment.flags & 0x18);
            }
            last.insert(segment.port, segment.clone());
        }
        prop_assert_eq!(sent(&merge(&segments)), sent(&segments));
    }

    #[test]
    fn more_connections_than_places_stay_in_order(
        ports in prop::collection::vec(0..40_u16, 1..400),
    ) {
        let mut next = [0_u32; 40];
        let segments: Vec<_> = ports.into_iter().map(|port| {
            let sequence = &mut next[usize::from(port)];
            *sequence += 100;
            Sample { port, ..data(*sequence - 100, 100) }
        }).collect();
        prop_assert_eq!(sent(&merge(&segments)), sent(&segments));
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        packet in samples(3000),
        size in prop::option::of(any::<u16>()),
        changes in prop::collection::vec((0..80_usize, any::<u8>()), 0..6),
        length in prop_oneof![0..120_usize, Just(usize::MAX)],
        max in 0..4000_usize,
    ) {
        let mut bytes = packet.packet(size);
        for (at, byte) in changes {
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
        }
        bytes.truncate(length);
        check_any(&bytes, max)?;
    }

    #[test]
    fn garbage_is_read_without_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in prop::option::of(prop_oneof![Just(0x45), Just(0x60)]),
        max in 0..300_usize,
    ) {
        if let (Some(version), Some(byte)) = (version, bytes.get_mut(10)) {
            *byte = version;
        }
        check_any(&bytes, max)?;
    }

    #[test]
    fn any_segment_is_merged_or_refused(
        segments in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..80), 0..16_u8, any::<u8>()), 0..20,
        ),
    ) {
        let (mut merger, mut accepted, mut merged) = (Merger::new(), 0, 0);
        let mut complete = |packet: MergedPacket<'_>| {
            let packet = Packet::parse(packet.bytes()).unwrap();
            merged += packet.tcp().unwrap().payload().len();
        };
        for (mut bytes, words, ecn) in segments {
            if let Some(byte) = bytes.get_mut(12) {
                *byte = words << 4;
            }
            if merger.push(SOURCE, DESTINATION, ecn, &bytes, &mut complete).is_ok() {
                accepted += bytes.len() - usize::from(words) * 4;
            }
        }
        merger.flush(&mut complete);
        prop_assert_eq!(accepted, merged);
    }
}

/// Whatever is made of the packet lies inside it.
fn check_any(bytes: &[u8], max: usize) -> Result<(), TestCaseError> {
    let Ok(packet) = Packet::parse(bytes) else {
        return Ok(());
    };
    prop_assert!(bytes[10..].starts_with(packet.bytes()));
    let _ = (
        packet.source(),
        packet.destination(),
        packet.traffic_class(),
    );
    let mut scratch = vec![1; 7];
    let datagrams: Vec<_> = packet.datagrams(&mut scratch).collect();
    prop_assert!(!datagrams.is_empty());
    for datagram in &datagrams {
        // Complete in itself: a header whose length is valid.
        let whole = [&[0; 10], *datagram].concat();
        prop_assert_eq!(Packet::parse(&whole).unwrap().bytes(), *datagram);
    }
    if let Some(tcp) = packet.tcp() {
        let rest = [tcp.header(), tcp.payload()].concat();
        prop_assert!(packet.bytes().ends_with(&rest));
        let segments = tcp.segments(max);
        prop_assert!(segments.len() > 0);
        let payload: Vec<_> = segments.flat_map(|s| s.payload().to_vec()).collect();
        prop_assert_eq!(payload, tcp.payload());
    }
    Ok(())
}

#[test]
fn a_large_packet_is_also_cut_into_whole_packets() {
    let packet = Sample {
        flags: 0x99,
        ..data(u32::MAX - 1000, 10_000)
    };
    let bytes = packet.packet(Some(1300));
    let (read, mut scratch) = (Packet::parse(&bytes).unwrap(), Vec::new());
    let mut segments = Vec::new();
    for datagram in read.datagrams(&mut scratch) {
        assert!(has_valid_checksum(datagram));
        // Without a vnet header's flags the checksum is verified.
        segments.push(Sample::read(&[&[0; 10], datagram].concat()));
    }
    assert_eq!(segments, cut(&packet, Some(1300), usize::MAX));
    assert_eq!(segments.len(), 8);
}
