use proptest::prelude::*;

use super::*;
use crate::packet::{Header, Packet, PacketKind};
use crate::sequence::FIRST_EPOCH;

const PAYLOAD: usize = 10;

const LIMITS: Limits = Limits {
    payload: PAYLOAD,
    congestion: 1000,
    peer: 1000,
    probes: false,
};

fn sender() -> Sender {
    Sender::new(FIRST_EPOCH, 10_000)
}

/// Sends one segment, if it may. Returns its number and its bytes.
fn send(sender: &mut Sender, limits: &Limits, now: Instant) -> Option<(u64, Vec<u8>)> {
    let outgoing = sender.outgoing(limits)?;
    let mut out = Vec::new();
    sender.send(&outgoing, &mut out, now);
    assert_eq!(out.len(), outgoing.length);
    Some((outgoing.sequence - FIRST_EPOCH, out))
}

fn send_all(sender: &mut Sender, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| send(sender, &LIMITS, now).map(|it| it.0)).collect()
}

/// Acknowledges all up to `acknowledged`, and the packets `arrived` behind it.
fn acknowledge(sender: &mut Sender, acknowledged: i64, arrived: &[u64], now: Instant) -> Acked {
    let mut selective = vec![0u8; 4];
    for number in arrived {
        let bit = (*number as i64 - acknowledged - 2) as usize;
        selective[bit / 8] |= 1 << (bit % 8);
    }
    if arrived.is_empty() {
        selective.clear();
    }
    acknowledge_bits(sender, acknowledged, &selective, now)
}

/// Acknowledges all up to `acknowledged`, with these bits of a selective acknowledgement.
fn acknowledge_bits(
    sender: &mut Sender,
    acknowledged: i64,
    selective: &[u8],
    now: Instant,
) -> Acked {
    let header = Header {
        kind: PacketKind::State,
        connection_id: 0,
        timestamp: 0,
        timestamp_difference: 0,
        window: 0,
        sequence: 0,
        acknowledged: 0,
    };
    let mut bytes = Vec::new();
    header.write(selective, &mut bytes);
    let packet = Packet::parse(&bytes).unwrap();
    let acknowledged = FIRST_EPOCH.wrapping_add_signed(acknowledged);
    sender.acknowledge(acknowledged, &packet.selective, true, now)
}

#[test]
fn segments_are_cut_sent_again_as_they_were_and_forgotten() {
    let (mut sender, now) = (sender(), Instant::now());
    assert_eq!(sender.write(b"0123456789abcde"), 15);
    assert_eq!(
        send(&mut sender, &LIMITS, now),
        Some((0, b"0123456789".to_vec()))
    );
    assert_eq!(
        send(&mut sender, &LIMITS, now),
        Some((1, b"abcde".to_vec()))
    );
    sender.write(b"fgh");
    sender.finish();
    assert_eq!(send(&mut sender, &LIMITS, now), Some((2, b"fgh".to_vec())));
    assert_eq!(send(&mut sender, &LIMITS, now), Some((3, Vec::new())));
    assert_eq!(send(&mut sender, &LIMITS, now), None);
    sender.on_timeout();
    // Although a segment may be larger now.
    let large = Limits {
        payload: 100,
        ..LIMITS
    };
    assert_eq!(
        send(&mut sender, &large, now),
        Some((0, b"0123456789".to_vec()))
    );
    assert_eq!(send(&mut sender, &large, now), Some((1, b"abcde".to_vec())));
    let acked = acknowledge(&mut sender, 1, &[], now + Duration::from_millis(5));
    // Both were sent twice: which one arrived is not known.
    assert_eq!((acked.bytes, acked.rtt), (15, None));
    assert_eq!(send(&mut sender, &large, now), Some((2, b"fgh".to_vec())));
    assert_eq!(send(&mut sender, &large, now), Some((3, Vec::new())));
    assert!(!sender.is_done());
    acknowledge(&mut sender, 3, &[], now);
    assert!(sender.is_done() && sender.kept() == 0 && sender.in_flight == 0);
}

#[test]
fn what_three_later_packets_overtook_is_lost_once_in_a_round_trip() {
    let (mut sender, now) = (sender(), Instant::now());
    sender.write(&[7; 100]);
    assert_eq!(send_all(&mut sender, now), (0..10).collect::<Vec<_>>());
    let acked = acknowledge(&mut sender, 0, &[2, 3], now);
    assert_eq!((acked.segments, acked.is_congestion), (3, false));
    let acked = acknowledge(&mut sender, 0, &[2, 3, 4], now);
    assert!(acked.is_congestion);
    assert_eq!(sender.in_flight, 50);
    sender.write(&[7; 30]);
    assert_eq!(send_all(&mut sender, now), [1, 10, 11, 12]);
    // 5 was sent before the loss was known: it belongs to it.
    let acked = acknowledge(&mut sender, 0, &[2, 3, 4, 6, 7, 8], now);
    assert!(!acked.is_congestion);
    assert_eq!(send_all(&mut sender, now), [5]);
    // 1 was sent again, and three sent after it arrived: lost again, which is new.
    let acked = acknowledge(&mut sender, 0, &[2, 3, 4, 6, 7, 8, 10, 11, 12], now);
    assert!(acked.is_congestion);
    assert_eq!(send_all(&mut sender, now), [1, 9]);
}

#[test]
fn three_bare_duplicates_are_a_loss_also_without_selective_acknowledgements() {
    let (mut sender, now) = (sender(), Instant::now());
    sender.write(&[7; 50]);
    send_all(&mut sender, now);
    acknowledge(&mut sender, 1, &[], now);
    for _ in 0..2 {
        assert!(!acknowledge(&mut sender, 1, &[], now).is_congestion);
    }
    assert!(acknowledge(&mut sender, 1, &[], now).is_congestion);
    assert_eq!(send_all(&mut sender, now), [2]);
    assert!(!acknowledge(&mut sender, 1, &[], now).is_congestion);
    assert_eq!(send_all(&mut sender, now), [0; 0]);
}

/// As libutp says it, which sends no more than 32 bits.
#[test]
fn more_missing_packets_than_a_selective_acknowledgement_has_bits_for_are_lost() {
    let (mut sender, now) = (sender(), Instant::now());
    sender.write(&[7; 400]);
    assert_eq!(send_all(&mut sender, now), (0..40).collect::<Vec<_>>());
    acknowledge(&mut sender, 1, &[], now);
    let acked = acknowledge_bits(&mut sender, 1, &[0; 4], now);
    assert!(acked.is_congestion);
    // But for two, which the one that arrived may only have overtaken.
    assert_eq!(send_all(&mut sender, now), (2..33).collect::<Vec<_>>());
    // What was repeated is under way.
    assert!(!acknowledge_bits(&mut sender, 1, &[0; 4], now).is_congestion);
    assert_eq!(send_all(&mut sender, now), [0; 0]);
    // Nothing was sent behind those that it has bits for: it is false.
    assert!(!acknowledge_bits(&mut sender, 34, &[0; 4], now).is_congestion);
    assert_eq!(send_all(&mut sender, now), [0; 0]);
}

#[test]
fn packets_that_waited_for_a_repeated_one_have_no_round_trip() {
    let (mut sender, now) = (sender(), Instant::now());
    sender.write(&[7; 50]);
    send_all(&mut sender, now);
    sender.on_timeout();
    let later = now + Duration::from_millis(500);
    assert_eq!(send(&mut sender, &LIMITS, later).map(|it| it.0), Some(0));
    let acked = acknowledge(&mut sender, 2, &[], later + Duration::from_millis(1));
    assert_eq!((acked.segments, acked.rtt), (3, None));
    // One that was sent after the repeated one has.
    sender.write(&[7; 10]);
    let begin = later + Duration::from_millis(10);
    assert_eq!(send_all(&mut sender, begin), [3, 4, 5]);
    let acked = acknowledge(&mut sender, 5, &[], begin + Duration::from_millis(7));
    assert_eq!(acked.rtt, Some(Duration::from_millis(7)));
}

#[test]
fn limits_bound_what_is_sent_and_a_peer_without_room_is_asked_by_one_byte() {
    let (mut sender, now) = (sender(), Instant::now());
    sender.write(&[7; 100]);
    let narrow = Limits {
        congestion: 25,
        ..LIMITS
    };
    assert!(send(&mut sender, &narrow, now).is_some());
    assert!(send(&mut sender, &narrow, now).is_some());
    assert_eq!(send(&mut sender, &narrow, now), None);
    let full = Limits { peer: 25, ..LIMITS };
    // Two were sent; 5 bytes of room are not worth a packet while an answer is to come.
    assert_eq!(send(&mut sender, &full, now), None);
    acknowledge(&mut sender, 1, &[], now);
    let little = Limits { peer: 5, ..LIMITS };
    assert_eq!(send(&mut sender, &little, now).unwrap().1.len(), 5);
    acknowledge(&mut sender, 2, &[], now);
    let none = Limits { peer: 0, ..LIMITS };
    assert_eq!(send(&mut sender, &none, now), None);
    let probes = Limits {
        probes: true,
        ..none
    };
    assert_eq!(send(&mut sender, &probes, now).unwrap().1.len(), 1);
    assert_eq!(send(&mut sender, &probes, now), None);
}

proptest! {
    /// Whatever is written, acknowledged, lost: counts agree, and bounds hold.
    #[test]
    fn counts_agree(
        steps in proptest::collection::vec((0..6u8, 0..40i64, any::<u32>()), 0..200),
    ) {
        let (mut sender, mut now) = (Sender::new(FIRST_EPOCH, 300), Instant::now());
        let limits = Limits { congestion: 120, peer: 200, ..LIMITS };
        let (mut written, mut acked) = (0, 0);
        for (kind, number, bits) in steps {
            now += Duration::from_millis(1);
            match kind {
                0 => written += sender.write(&vec![1; number as usize]),
                1 => while send(&mut sender, &limits, now).is_some() {},
                2 => sender.on_timeout(),
                3 => drop(send(&mut sender, &limits, now)),
                _ => {
                    let last = (sender.next() - FIRST_EPOCH) as i64 - 1;
                    let upto = (last - number).max(-1).min(last);
                    let arrived: Vec<u64> = (0..32)
                        .filter(|bit| bits >> bit & 1 == 1)
                        .map(|bit| (upto + 2 + bit) as u64)
                        .collect();
                    acked += acknowledge(&mut sender, upto, &arrived, now).bytes;
                }
            }
            let count = |status| sender.segments.iter().filter(move |it| it.status == status);
            let in_flight: usize = count(Status::InFlight).map(|it| it.length).sum();
            prop_assert_eq!(sender.in_flight, in_flight);
            prop_assert!(in_flight <= 120);
            prop_assert_eq!(sender.lost, count(Status::Lost).count());
            let arrived: usize = count(Status::Arrived).map(|it| it.length).sum();
            prop_assert_eq!(acked, sender.start as usize + arrived);
            prop_assert!(sender.outstanding() <= 200 && sender.kept() <= 300);
            prop_assert_eq!(written, sender.start as usize + sender.kept());
        }
    }
}
