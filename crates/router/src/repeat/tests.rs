use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::testing::{KEY, packet};

const NOW: u64 = 1_000_000;

/// A packet from a host of `1-1` over its interface 4, and the router of `1-1`.
fn leaving(payload: usize, port: u16) -> (Forwarder, Vec<u8>) {
    use crate::forwarder::ExternalInterface;
    use hawser_topology::LinkTo;
    let ends = ["1-1,10.0.1.1:31000", &format!("1-2,10.0.2.1:{port}")];
    let packet = packet(ends, true, NOW as u32, &vec![1; payload]);
    let external = ExternalInterface {
        neighbour: "1-2".parse().unwrap(),
        link_to: LinkTo::Child,
        max_packet: Some(1472),
        up: true,
    };
    let host = IpAddr::from([10, 0, 1, 254]);
    let forwarder = Forwarder::new("1-1".parse().unwrap(), &KEY, host);
    (forwarder.with_interface(4, external), packet)
}

#[test]
fn equal_headers_are_processed_once() {
    let (forwarder, packet) = leaving(100, 31001);
    let mut repeat = Repeat::default();
    let mut first = packet.clone();
    assert!(!repeat.apply(Origin::Host, &mut first), "nothing to repeat");
    let verdict = repeat.process(&forwarder, NOW, Origin::Host, &mut first);
    assert_eq!(verdict, PacketVerdict::Forward { egress: 4 });

    let mut second = packet.clone();
    // Payload and checksum may differ.
    *second.last_mut().unwrap() ^= 1;
    let payload = second.len() - 100;
    second[payload - 1] ^= 1;
    assert!(repeat.apply(Origin::Host, &mut second));
    assert_eq!(second[..payload - 2], first[..payload - 2]);

    assert!(!repeat.apply(Origin::Interface(4), &mut packet.clone()));
    let mut longer = packet.clone();
    longer.push(0);
    assert!(!repeat.apply(Origin::Host, &mut longer));
    repeat.clear();
    assert!(!repeat.apply(Origin::Host, &mut packet.clone()));
}

proptest! {
    /// Whatever differs between two packets, the second is treated as if it came alone.
    #[test]
    fn a_repeated_packet_gets_the_verdict_and_bytes_of_its_own(
        changes in prop::collection::vec((0usize..180, 0u8..8), 0..3), cut in 0usize..3,
        other_port: bool,
    ) {
        let (forwarder, packet) = leaving(90, 31001);
        let mut repeat = Repeat::default();
        repeat.process(&forwarder, NOW, Origin::Host, &mut packet.clone());
        let mut second = if other_port { leaving(90, 31002).1 } else { packet };
        for (at, bit) in changes {
            if let Some(byte) = second.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        second.truncate(second.len() - cut);
        let mut alone = second.clone();
        let verdict = forwarder.process(NOW, Origin::Host, &mut alone);
        if repeat.apply(Origin::Host, &mut second) {
            prop_assert_eq!(verdict, PacketVerdict::Forward { egress: 4 });
            prop_assert_eq!(second, alone);
        }
    }
}
