use proptest::prelude::*;

use super::*;
use crate::packet::{Header, Packet, PacketKind};
use crate::sequence::FIRST_EPOCH;

fn read_all(receiver: &mut Receiver) -> Vec<u8> {
    let mut out = vec![0; receiver.readable()];
    let length = receiver.read(&mut out);
    assert_eq!(length, out.len());
    out
}

#[test]
fn packets_are_put_in_order_and_an_early_end_waits() {
    let mut receiver = Receiver::new(10, 100);
    assert_eq!(receiver.receive(13, b"", true), Arrival::Ahead);
    assert_eq!(receiver.receive(11, b"cd", false), Arrival::Ahead);
    assert_eq!(receiver.receive(11, b"cd", false), Arrival::Repeated);
    assert_eq!(receiver.selective(), [0b101, 0, 0, 0]);
    assert_eq!(receiver.receive(14, b"no", false), Arrival::Refused);
    assert_eq!(receiver.receive(10, b"ab", false), Arrival::FilledGap);
    assert_eq!(read_all(&mut receiver), b"abcd");
    assert!(!receiver.has_ended());
    assert_eq!(receiver.receive(12, b"ef", false), Arrival::FilledGap);
    assert_eq!(read_all(&mut receiver), b"ef");
    assert!(receiver.has_ended() && receiver.selective().is_empty());
    assert_eq!(receiver.receive(13, b"", true), Arrival::Repeated);
}

#[test]
fn an_end_before_what_has_arrived_is_refused() {
    let mut receiver = Receiver::new(10, 100);
    receiver.receive(12, b"x", false);
    assert_eq!(receiver.receive(11, b"", true), Arrival::Refused);
    assert_eq!(receiver.receive(10, b"", true), Arrival::Refused);
    assert_eq!(receiver.receive(10, b"a", false), Arrival::FilledGap);
}

#[test]
fn a_full_receiver_refuses_and_takes_again_what_was_refused() {
    let mut receiver = Receiver::new(10, 4);
    receiver.receive(10, b"abcd", false);
    assert_eq!((receiver.window(), receiver.room_end()), (0, 4));
    assert_eq!(receiver.receive(11, b"e", false), Arrival::Refused);
    // An end takes no room.
    assert_eq!(receiver.receive(12, b"", true), Arrival::Ahead);
    assert_eq!(read_all(&mut receiver), b"abcd");
    assert_eq!(receiver.receive(11, b"e", false), Arrival::FilledGap);
    assert!(receiver.has_ended());
    assert_eq!(read_all(&mut receiver), b"e");
}

proptest! {
    /// Whatever arrives in whatever order: what is read is a beginning of the stream, memory is bounded, and
    /// the selective acknowledgement tells exactly of what is held.
    #[test]
    fn what_is_read_is_the_stream_and_memory_is_bounded(
        arrivals in proptest::collection::vec((0..40u64, any::<bool>()), 0..200), capacity in 1..60usize,
    ) {
        let payload = |sequence: u64| vec![sequence as u8; (sequence % 5) as usize];
        let (first, end) = (FIRST_EPOCH + 65530, 30);
        let mut receiver = Receiver::new(first, capacity);
        let mut read = Vec::new();
        for (number, reads) in arrivals {
            receiver.receive(first + number, &payload(number), number == end);
            prop_assert!(receiver.kept() <= 2 * capacity + 5);
            let mut bytes = Vec::new();
            let header = Header {
                kind: PacketKind::State, connection_id: 0, timestamp: 0, timestamp_difference: 0,
                window: 0, sequence: 0, acknowledged: (receiver.next() - 1) as u16,
            };
            header.write(&receiver.selective(), &mut bytes);
            let packet = Packet::parse(&bytes).unwrap();
            let told: Vec<u64> = packet.selective.offsets().map(|it| receiver.next() - 1 + it).collect();
            let held: Vec<u64> = receiver.held.keys().copied().collect();
            prop_assert_eq!(told, held);
            if reads {
                read.extend(read_all(&mut receiver));
            }
        }
        read.extend(read_all(&mut receiver));
        let stream: Vec<u8> = (0..receiver.next() - first).flat_map(payload).collect();
        prop_assert_eq!(read, stream);
        prop_assert_eq!(receiver.has_ended(), receiver.next() > first + end);
    }
}
