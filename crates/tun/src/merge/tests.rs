use super::*;
use crate::testing::{DESTINATION, SOURCE, Sample, data, merge};

/// Bytes of payload of the packets that become of segments.
fn lengths(segments: &[Sample]) -> Vec<usize> {
    let merged = merge(segments);
    merged.iter().map(|sample| sample.payload.0.len()).collect()
}

#[test]
fn consecutive_segments_become_one_packet() {
    let segments = [data(0, 100), data(100, 100), data(200, 100), data(300, 40)];
    assert_eq!(merge(&segments), [data(0, 340)]);
    // The last one was shorter.
    let more = [&segments[..], &[data(340, 40)]].concat();
    assert_eq!(lengths(&more), [340, 40]);
}

#[test]
fn what_differs_is_not_merged() {
    let changes: [fn(&mut Sample); 12] = [
        |s| s.sequence += 1,
        |s| s.sequence -= 1,
        |s| s.ack += 1,
        |s| s.window += 1,
        |s| s.urgent += 1,
        |s| s.options[11] += 1,
        |s| s.options.truncate(8),
        |s| s.ecn = 3,
        |s| s.flags |= CWR,
        |s| s.flags |= URG,
        |s| s.flags |= RST,
        |s| s.payload.0.push(1),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut second = data(100, 100);
        assert_eq!(merge(&[data(0, 100), second.clone()]).len(), 1);
        change(&mut second);
        let segments = [data(0, 100), second];
        assert_eq!(merge(&segments), segments, "{index}");
    }
}

#[test]
fn flags_end_a_packet() {
    for flag in [PSH, FIN, PSH | FIN] {
        let last = Sample {
            flags: 0x10 | flag,
            ..data(100, 100)
        };
        let merged = merge(&[data(0, 100), last.clone(), data(200, 100)]);
        let whole = Sample {
            flags: 0x10 | flag,
            ..data(0, 200)
        };
        assert_eq!(merged, [whole, data(200, 100)]);
        // Also when it is the first one.
        assert_eq!(lengths(&[last, data(200, 100)]), [100, 100]);
    }
    for flag in [SYN, RST, URG] {
        let alone = Sample {
            flags: 0x10 | flag,
            ..data(0, 100)
        };
        assert_eq!(lengths(&[alone, data(100, 100)]), [100, 100]);
    }
}

#[test]
fn only_the_first_segment_has_cwr() {
    let first = Sample {
        flags: 0x10 | CWR,
        ..data(0, 100)
    };
    let whole = Sample {
        flags: 0x10 | CWR,
        ..data(0, 200)
    };
    assert_eq!(merge(&[first, data(100, 100)]), [whole]);
}

#[test]
fn acknowledgements_stay_in_order_with_data() {
    let segments = [data(0, 100), data(100, 0), data(100, 100), data(200, 100)];
    assert_eq!(lengths(&segments), [100, 0, 200]);
}

#[test]
fn a_packet_has_at_most_what_ipv6_carries() {
    let segments: Vec<_> = (0..100).map(|i| data(i * 1000, 1000)).collect();
    assert_eq!(lengths(&segments), [65_000, 35_000]);
    assert_eq!(lengths(&[data(0, MAX_SEGMENT - 32)]), [MAX_SEGMENT - 32]);
    let (mut merger, segment) = (Merger::new(), data(0, MAX_SEGMENT - 31).segment());
    let refused = merger.push(SOURCE, DESTINATION, 0, &segment, |_| {
        panic!("it was merged")
    });
    assert_eq!(refused, Err(InvalidSegment::TooLarge));
}

#[test]
fn segments_of_no_header_are_refused() {
    let (mut merger, mut segment) = (Merger::new(), data(0, 10).segment());
    segment[12] = 0xf0;
    let refused = merger.push(SOURCE, DESTINATION, 0, &segment, |_| {
        panic!("it was merged")
    });
    assert_eq!(refused, Err(InvalidSegment::Header));
    // A header apart from its payload must be all of it, and no more.
    let segment = data(0, 10).segment();
    for length in [31, 33] {
        let (header, payload) = segment.split_at(length);
        let refused = merger.push_parts(SOURCE, DESTINATION, 0, header, payload, |_| {
            panic!("it was merged")
        });
        assert_eq!(refused, Err(InvalidSegment::Header));
    }
}

#[test]
fn connections_grow_beside_each_other() {
    let of = |port: u16, sequence| Sample {
        port,
        ..data(sequence, 100)
    };
    let ports = 0..FLOWS as u16;
    let segments = (0..50).flat_map(|i| ports.clone().map(move |port| of(port, i * 100)));
    let merged = merge(&segments.collect::<Vec<_>>());
    let whole = ports.map(|port| Sample {
        port,
        ..data(0, 5000)
    });
    assert_eq!(merged, whole.collect::<Vec<_>>());
}

#[test]
fn the_kernel_learns_how_to_cut_and_complete_a_packet() {
    let mut headers = Vec::new();
    let mut merger = Merger::new();
    let mut complete = |packet: MergedPacket<'_>| {
        let (vnet, _) = packet.bytes().split_first_chunk().unwrap();
        headers.push(VnetHeader::parse(vnet));
    };
    let first = Sample {
        flags: 0x10 | CWR,
        ..data(0, 100)
    };
    for segment in [
        first,
        data(100, 30),
        data(130, 100),
        data(230, 100),
        data(330, 0),
    ] {
        let bytes = segment.segment();
        let pushed = merger.push(SOURCE, DESTINATION, 0, &bytes, &mut complete);
        pushed.unwrap();
    }
    let small = VnetHeader {
        flags: NEEDS_CSUM,
        gso_type: GSO_NONE,
        hdr_len: 72,
        gso_size: 0,
        csum_start: 40,
        csum_offset: 16,
    };
    let large = VnetHeader {
        gso_type: GSO_TCPV6,
        gso_size: 100,
        ..small
    };
    let with_cwr = VnetHeader {
        gso_type: GSO_TCPV6 | GSO_ECN,
        ..large
    };
    assert_eq!(headers, [with_cwr, large, small]);
}
