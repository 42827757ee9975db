//! Packets as they are written, read again; and any bytes.

use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn ends() -> impl Strategy<Value = Ends> {
    let v4 = any::<[u8; 4]>().prop_map(IpAddr::from);
    let v6 = any::<[u8; 16]>().prop_map(IpAddr::from);
    let both = |ip: BoxedStrategy<IpAddr>| (ip.clone(), ip);
    prop_oneof![both(v4.boxed()), both(v6.boxed())].prop_map(|(source, destination)| Ends {
        source,
        destination,
    })
}

fn packets(ends: Ends, protocol: u8, payload: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    write(ends, protocol, payload, mtu, 7, |packet| {
        packets.push(packet.to_vec());
    });
    packets
}

/// The payload of a packet in fragments, in any order.
fn together(packets: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut fragments = Fragments::default();
    let mut whole = None;
    for packet in packets {
        let received = Received::parse(packet).unwrap();
        if received.fragment.is_none() {
            return Some(received.payload.to_vec());
        }
        whole = whole.or(fragments.add(&received, Duration::ZERO));
    }
    whole
}

proptest! {
    #[test]
    fn what_is_cut_is_put_together(
        ends in ends(),
        payload in prop::collection::vec(any::<u8>(), 0..5000),
        mtu in 100..2000usize,
        backwards: bool,
    ) {
        let mut packets = packets(ends, UDP, &payload, mtu);
        for packet in &packets {
            prop_assert!(packet.len() <= mtu);
            let received = Received::parse(packet).unwrap();
            prop_assert_eq!((received.ends, received.protocol), (ends, UDP));
        }
        if backwards {
            packets.reverse();
        }
        prop_assert_eq!(together(&packets), Some(payload));
    }

    #[test]
    fn datagrams_are_read_as_they_are_written(
        ends in ends(), source: u16, destination: u16, payload: Vec<u8>, at: prop::sample::Index,
    ) {
        let datagram = Datagram { source, destination, payload: &payload };
        let mut bytes = datagram.encode(ends).unwrap();
        prop_assert_eq!(Datagram::parse(ends, &bytes), Some(datagram));
        let at = at.index(bytes.len());
        bytes[at] ^= 1;
        prop_assert_ne!(Datagram::parse(ends, &bytes), Some(datagram));
    }

    #[test]
    fn echoes_are_read_as_they_are_written(
        ends in ends(), is_request: bool, id: u16, rest in prop::collection::vec(any::<u8>(), 2..100),
    ) {
        let echo = Echo { is_request, id, rest: &rest };
        let bytes = echo.encode(ends);
        prop_assert_eq!(Echo::parse(ends, &bytes), Some(echo));
    }

    #[test]
    fn any_bytes_are_read_or_refused(ends in ends(), bytes: Vec<u8>, version in 4..7u8) {
        let mut packet = bytes.clone();
        if let Some(first) = packet.first_mut() {
            *first = version << 4 | 5;
        }
        for bytes in [bytes, packet] {
            if let Some(received) = Received::parse(&bytes) {
                let mut fragments = Fragments::default();
                fragments.add(&received, Duration::ZERO);
            }
            let _ = error(Problem::Port, &bytes);
            Datagram::parse(ends, &bytes);
            Echo::parse(ends, &bytes);
        }
    }

    #[test]
    fn errors_go_back_and_quote_what_was_sent(ends in ends(), payload: Vec<u8>) {
        let datagram = Datagram { source: 9, destination: 53, payload: &payload };
        let sent = packets(ends, UDP, &datagram.encode(ends).unwrap(), 65_535).remove(0);
        let wanted = !ends.destination.is_multicast() && !ends.source.is_unspecified();
        let answer = error(Problem::Port, &sent);
        prop_assert_eq!(answer.is_some(), wanted);
        if let Some(answer) = answer {
            let received = Received::parse(&answer).unwrap();
            prop_assert_eq!(received.ends, ends.reversed());
            let quote = &received.payload[8..];
            prop_assert!(sent.starts_with(quote) && quote.len() >= sent.len().min(500));
            // No error about an error.
            prop_assert_eq!(error(Problem::Host, &answer), None);
        }
    }
}

#[test]
fn fragments_of_many_packets_are_not_kept() {
    let ends = Ends {
        source: "10.0.0.1".parse().unwrap(),
        destination: "10.0.0.2".parse().unwrap(),
    };
    let mut fragments = Fragments::default();
    let mut first_of = |id: u32| {
        let mut parts = Vec::new();
        write(ends, UDP, &[1; 3000], 1500, id, |packet| {
            parts.push(packet.to_vec());
        });
        let now = Duration::from_millis(id.into());
        let whole = fragments.add(&Received::parse(&parts[0]).unwrap(), now);
        assert_eq!(whole, None);
        parts
    };
    let all: Vec<_> = (0..17).map(&mut first_of).collect();
    let mut rest = |parts: &[Vec<u8>], now| {
        let add = |part: &Vec<u8>| fragments.add(&Received::parse(part).unwrap(), now);
        parts[1..].iter().filter_map(add).next().is_some()
    };
    let soon = Duration::from_millis(20);
    assert!(!rest(&all[0], soon) && rest(&all[16], soon));
    assert!(!rest(&all[15], Duration::from_secs(31)));
}

#[test]
fn a_packet_too_large_names_the_limit() {
    let ends = Ends {
        source: "fd00::1".parse().unwrap(),
        destination: "fd00::2".parse().unwrap(),
    };
    let sent = packets(ends, UDP, &[0; 1200], 1500).remove(0);
    let answer = error(Problem::TooLarge(1100), &sent).unwrap();
    let message = &answer[40..];
    assert_eq!(message[..2], [2, 0]);
    assert_eq!(message[4..8], 1100u32.to_be_bytes());
}
