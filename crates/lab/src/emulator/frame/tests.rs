use hawser_emulation::Emulator;
use hawser_topology::Shape;
use proptest::prelude::*;

use super::*;

/// A frame of `payload` bytes in packets of `segment` bytes.
fn frame(is_ipv6: bool, is_tcp: bool, payload: usize, segment: usize) -> Vec<u8> {
    let ip = if is_ipv6 { 40 } else { 20 };
    let transport = if is_tcp { 32 } else { 8 };
    let headers = 14 + ip + transport;
    let kind = match (is_tcp, is_ipv6) {
        (true, false) => TCP4,
        (true, true) => TCP6,
        (false, _) => UDP,
    };
    let mut frame = vec![NEEDS_CHECKSUM, kind];
    for field in [headers, segment, 14 + ip, if is_tcp { 16 } else { 6 }] {
        frame.extend((field as u16).to_ne_bytes());
    }
    frame.extend([0x11; 12]);
    frame.extend(if is_ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] });
    let protocol = if is_tcp { 6 } else { 17 };
    let inside = (transport + payload) as u16;
    if is_ipv6 {
        frame.extend([0x60, 0, 0, 0]);
        frame.extend(inside.to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend((0..32).map(|i| 0xa0 + i));
    } else {
        frame.extend([0x45, 0]);
        frame.extend((20 + inside).to_be_bytes());
        frame.extend([0xff, 0xfe, 0x40, 0, 64, protocol, 0, 0]);
        frame.extend([10, 0, 1, 1, 10, 0, 2, 1]);
        let checksum = (!sum(0, &frame[IP..])).to_be_bytes();
        frame[IP + 10..IP + 12].copy_from_slice(&checksum);
    }
    frame.extend([0x12, 0x34, 0x56, 0x78]);
    if is_tcp {
        frame.extend(0xffff_fff0_u32.to_be_bytes());
        frame.extend([0, 0, 0, 9, 0x80, FIN | PSH | CWR | 0x10]);
        frame.extend([0; 18]);
    } else {
        frame.extend(inside.to_be_bytes());
        frame.extend([0, 0]);
    }
    assert_eq!(frame.len(), HEADER + headers);
    frame.extend((0..payload).map(|i| i as u8));
    frame
}

fn be16(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

/// What the network card would write into the checksum field of a cut frame of one packet, checked
/// as a receiver does.
fn checksum_is_right(frame: &[u8], is_ipv6: bool) -> bool {
    let start = HEADER + usize::from(u16_at(frame, CHECKSUM_START).unwrap());
    let field = start + usize::from(u16_at(frame, CHECKSUM_OFFSET).unwrap());
    let mut done = frame.to_vec();
    let checksum = !sum(0, &done[start..]);
    done[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    let (addresses, protocol) = match is_ipv6 {
        true => (IP + 8..IP + 40, frame[IP + 6]),
        false => (IP + 12..IP + 20, frame[IP + 9]),
    };
    let length = (frame.len() - start) as u32;
    let pseudo = sum(u32::from(protocol) + length, &frame[addresses]);
    sum(pseudo.into(), &done[start..]) == 0xffff
}

#[test]
fn a_packet_of_its_own_is_no_frame_of_many() {
    for (payload, segment) in [(1000, 1448), (1448, 1448), (0, 1448)] {
        assert_eq!(Layout::of(&frame(false, true, payload, segment)), None);
    }
    let mut plain = frame(false, true, 5000, 1000);
    plain[GSO_TYPE] = NONE;
    assert_eq!(Layout::of(&plain), None);
}

#[test]
fn a_frame_is_cut_into_correct_packets() {
    for (is_ipv6, is_tcp) in [(false, true), (true, true), (false, false), (true, false)] {
        let whole = frame(is_ipv6, is_tcp, 2500, 1000);
        let layout = Layout::of(&whole).unwrap();
        assert_eq!(layout.packets, 3);
        assert_eq!(layout.packet_length(), layout.payload - HEADER + 1000);
        for (i, bytes) in [1000, 1000, 500].into_iter().enumerate() {
            let packet = layout.cut(&whole, i..i + 1);
            assert_eq!(Layout::of(&packet), None);
            assert_eq!(packet[GSO_TYPE], NONE);
            assert_eq!(packet.len(), layout.payload + bytes);
            let at = layout.payload + i * 1000;
            assert_eq!(packet[layout.payload..], whole[at..at + bytes]);
            assert!(checksum_is_right(&packet, is_ipv6));
            let inside = packet.len() - IP;
            if is_ipv6 {
                assert_eq!(usize::from(be16(&packet, IP + 4)), inside - 40);
            } else {
                assert_eq!(usize::from(be16(&packet, IP + 2)), inside);
                assert_eq!(sum(0, &packet[IP..IP + 20]), 0xffff);
                let identification = 0xfffe_u16.wrapping_add(i as u16);
                assert_eq!(be16(&packet, IP + 4), identification);
            }
            let at = layout.transport;
            if is_tcp {
                let number = &packet[at + 4..at + 8];
                let expected = 0xffff_fff0_u32.wrapping_add(i as u32 * 1000);
                assert_eq!(number, expected.to_be_bytes());
                let flags = [CWR | 0x10, 0x10, FIN | PSH | 0x10][i];
                assert_eq!(packet[at + TCP_FLAGS], flags);
            } else {
                assert_eq!(usize::from(be16(&packet, at + 4)), 8 + bytes);
            }
        }
    }
}

#[test]
fn several_packets_stay_one_frame() {
    let whole = frame(false, true, 4500, 1000);
    let layout = Layout::of(&whole).unwrap();
    let cut = layout.cut(&whole, 1..4);
    let expected = Layout {
        packets: 3,
        ..layout
    };
    assert_eq!(Layout::of(&cut), Some(expected));
    assert_eq!(u16_at(&cut, HEADERS_LENGTH), Some(14 + 20 + 32));
    // Cut again, its packets are those of the whole.
    let again = Layout::of(&cut).unwrap().cut(&cut, 2..3);
    assert_eq!(again, layout.cut(&whole, 3..4));
}

#[test]
fn a_frame_stays_whole_unless_it_is_too_large_or_loses_packets() {
    let whole = frame(false, true, 9500, 1000);
    assert_eq!(
        split(&whole, usize::MAX, || false),
        std::slice::from_ref(&whole)
    );
    let single = frame(false, true, 100, 1000);
    assert_eq!(split(&single, 1, || false), std::slice::from_ref(&single));
    assert!(split(&single, 1, || true).is_empty());
    let counts = |batch, lost: &[usize]| {
        let mut number = 0..;
        let frames = split(&whole, batch, || lost.contains(&number.next().unwrap()));
        frames
            .iter()
            .map(|frame| packets(frame))
            .collect::<Vec<_>>()
    };
    // Three packets with their headers are 3198 bytes.
    assert_eq!(counts(3300, &[]), [3, 3, 3, 1]);
    assert_eq!(counts(1, &[]), [1; 10]);
    assert_eq!(counts(usize::MAX, &[0, 4, 5, 9]), [3, 3]);
    assert_eq!(counts(3300, &[0, 4, 5]), [3, 3, 1]);
    assert_eq!(counts(3300, &[1, 2]), [1, 3, 3, 1]);
    assert!(counts(3300, &(0..10).collect::<Vec<_>>()).is_empty());
}

#[test]
fn packets_are_lost_one_by_one_at_the_rate_of_the_link() {
    const FRAMES: u64 = 2000;
    let shape = Shape {
        loss: 0.01,
        ..Shape::default()
    };
    let mut emulator = Emulator::<()>::new(shape, 7);
    let whole = frame(false, true, 44_000, 1000);
    let lost = (0..FRAMES).map(|_| {
        let kept = split(&whole, usize::MAX, || emulator.loses());
        44 - kept.iter().map(|frame| packets(frame)).sum::<u64>()
    });
    let lost: Vec<u64> = lost.collect();
    // The bounds are five standard deviations, of the seed's draws only.
    let all: u64 = lost.iter().sum();
    assert!((732..=1028).contains(&all), "{all} of {}", 44 * FRAMES);
    let untouched = lost.iter().filter(|lost| **lost == 0).count();
    assert!(
        (1173..=1397).contains(&untouched),
        "{untouched} frames without loss"
    );
}

proptest! {
    #[test]
    fn taking_any_frame_apart_never_panics(
        mut bytes in prop::collection::vec(any::<u8>(), 0..256),
        kind in prop::sample::select(vec![NONE, TCP4, TCP6, UDP, 0x81]),
        start in 0..120_u16,
        segment in 0..64_u16,
    ) {
        if bytes.len() > IP {
            (bytes[FLAGS], bytes[GSO_TYPE]) = (NEEDS_CHECKSUM, kind);
            bytes[GSO_SIZE..GSO_SIZE + 2].copy_from_slice(&segment.to_ne_bytes());
            bytes[CHECKSUM_START..CHECKSUM_START + 2].copy_from_slice(&start.to_ne_bytes());
            bytes[IP] = if kind == TCP6 { 0x65 } else { 0x45 };
        }
        let (mut number, count) = (0, packets(&bytes));
        split(&bytes, 100, || {
            number += 1;
            number % 3 == 0
        });
        prop_assert_eq!(number, count);
    }

    #[test]
    fn the_pieces_of_a_frame_have_its_payload(
        payload in 1..5000_usize,
        segment in 1..1500_usize,
        cuts in prop::collection::vec(1..40_usize, 0..6),
    ) {
        let whole = frame(false, true, payload, segment);
        if let Some(layout) = Layout::of(&whole) {
            let mut found = Vec::new();
            let mut first = 0_usize;
            for end in cuts.into_iter().chain([usize::MAX]) {
                let end = first.max(1).saturating_add(end).min(layout.packets);
                if first < end {
                    found.extend_from_slice(&layout.cut(&whole, first..end)[layout.payload..]);
                }
                first = end;
            }
            prop_assert_eq!(&found, &whole[layout.payload..]);
        }
    }
}
