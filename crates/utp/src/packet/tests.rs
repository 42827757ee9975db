use hawser_fuzz::fuzz;
use proptest::prelude::*;

use super::*;

fn header(kind: PacketKind) -> Header {
    Header {
        kind,
        connection_id: 0x1234,
        timestamp: 0x0102_0304,
        timestamp_difference: 0xfffe_fdfc,
        window: 1 << 20,
        sequence: 65535,
        acknowledged: 1,
    }
}

fn written(kind: PacketKind, selective: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    header(kind).write(selective, &mut out);
    out.extend(payload);
    out
}

#[test]
fn a_packet_has_the_bytes_of_the_bep() {
    let bytes = written(PacketKind::Syn, &[], b"");
    let expected = [
        0x41, 0, 0x12, 0x34, 1, 2, 3, 4, 0xff, 0xfe, 0xfd, 0xfc, 0, 0x10, 0, 0, 0xff, 0xff, 0, 1,
    ];
    assert_eq!(bytes, expected);
    let bytes = written(PacketKind::State, &[0b101, 0, 0, 0x80], b"");
    assert_eq!(bytes[..2], [0x21, 1]);
    assert_eq!(bytes[20..], [0, 4, 0b101, 0, 0, 0x80]);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.header, header(PacketKind::State));
    assert_eq!(packet.selective.offsets().collect::<Vec<_>>(), [2, 4, 33]);
}

#[test]
fn unknown_extensions_are_skipped_and_faults_are_named() {
    let mut bytes = written(PacketKind::Data, &[], b"");
    bytes[1] = 77;
    bytes.extend([1, 3, 9, 9, 9, 2, 4, 1, 0, 0, 0, 0, 0]);
    bytes.extend(b"content");
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.payload, b"content");
    assert_eq!(packet.selective.offsets().collect::<Vec<_>>(), [2]);
    for cut in 0..bytes.len() - b"content".len() {
        assert_eq!(Packet::parse(&bytes[..cut]), Err(PacketError::Truncated));
    }
    bytes[0] = 0x02;
    assert_eq!(Packet::parse(&bytes), Err(PacketError::Version(2)));
    bytes[0] = 0x51;
    assert_eq!(Packet::parse(&bytes), Err(PacketError::Kind(5)));
    // A message of the DHT.
    let bencode = b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe";
    assert_eq!(Packet::parse(bencode), Err(PacketError::Version(4)));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        kind in 0..5usize,
        numbers in any::<(u16, u32, u32, u32, u16, u16)>(),
        selective in proptest::collection::vec(any::<[u8; 4]>(), 0..=MAX_SELECTIVE_LENGTH / 4),
        payload in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let (connection_id, timestamp, timestamp_difference, window, sequence, acknowledged) = numbers;
        let header = Header {
            kind: PacketKind::ALL[kind],
            connection_id,
            timestamp,
            timestamp_difference,
            window,
            sequence,
            acknowledged,
        };
        let selective = selective.concat();
        let mut out = Vec::new();
        header.write(&selective, &mut out);
        out.extend(&payload);
        let expected = Packet { header, selective: SelectiveAck(&selective), payload: &payload };
        prop_assert_eq!(Packet::parse(&out), Ok(expected));
    }
}

#[test]
fn no_input_panics_and_what_is_read_lies_in_it() {
    let valid = [
        written(PacketKind::Syn, &[], b""),
        written(PacketKind::State, &[1, 2, 3, 4, 5, 6, 7, 8], b""),
        written(PacketKind::Data, &[], b"bytes of a stream"),
    ];
    fuzz(&valid, |input| {
        if let Ok(packet) = Packet::parse(input) {
            assert!(input.ends_with(packet.payload));
            assert!(
                packet
                    .selective
                    .offsets()
                    .all(|at| (2..2 + 255 * 8).contains(&at))
            );
        }
    });
}
