//! Properties of the forwarding of any packet.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use hawser_router::{Forwarder, Origin, PacketVerdict};
use proptest::prelude::*;

use self::common::*;

const NAMES: [&str; 8] = [
    "core",
    "up",
    "down",
    "up, core, down",
    "up, down at a core AS",
    "shortcut",
    "peering",
    "short peering",
];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn fields() -> impl Strategy<Value = Fields> {
    let ages = prop::array::uniform3(0..20_000u32);
    // From 6 hours, which is more than any age, to one day.
    let exp_times = prop::array::uniform8(63u8..);
    (any::<[u16; 3]>(), ages, exp_times).prop_map(|(segment_ids, ages, exp_times)| Fields {
        segment_ids,
        ages,
        exp_times,
    })
}

/// Processes `packet`, and answers it if it must be answered; nothing may panic.
fn process_and_answer(router: &Forwarder, origin: Origin, packet: &mut [u8]) -> PacketVerdict {
    let verdict = router.process(NOW.into(), origin, packet);
    let mut out = Vec::new();
    let written = match verdict {
        PacketVerdict::Refuse { error, .. } => router.write_error(origin, packet, error, &mut out),
        PacketVerdict::Answer(answer) => router.write_answer(origin, packet, answer, &mut out),
        _ => return verdict,
    };
    if written.is_some() {
        ScmpPacket::parse(&out).scmp();
    }
    verdict
}

fn origin() -> impl Strategy<Value = Origin> {
    prop_oneof![
        (0u16..5).prop_map(Origin::from),
        (0u8..2).prop_map(Origin::Sibling)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_never_panic(
        mut packet in prop::collection::vec(any::<u8>(), 0..1600),
        at in 1u16..=8,
        origin in origin(),
        path_type in 0u8..4,
    ) {
        if let Some(byte) = packet.get_mut(8) {
            *byte = path_type;
        }
        let [router, _] = World::new().split(at, 1);
        let verdict = process_and_answer(&router, origin, &mut packet);
        let passed = matches!(
            verdict,
            PacketVerdict::Forward { .. } | PacketVerdict::Deliver { .. } | PacketVerdict::Transit { .. }
        );
        prop_assert!(!passed);
    }

    /// Whatever else a STUN message has: the bytes that are a SCION path type, path and addresses are
    /// those of its transaction ID and attributes.
    #[test]
    fn stun_messages_of_hosts_are_told_apart(
        kind in 0u16..0x4000,
        rest in prop::collection::vec(any::<u8>(), 12..1224),
        path_type in prop::option::of(0u8..4),
        at in 1u16..=8,
        origin in origin(),
    ) {
        let length = (rest.len() - 12) as u16;
        let head = [kind.to_be_bytes(), length.to_be_bytes()].concat();
        let mut packet = [head, vec![0x21, 0x12, 0xa4, 0x42], rest].concat();
        packet[8] = path_type.unwrap_or(packet[8]);
        let before = packet.clone();
        let [router, _] = World::new().split(at, 1);
        let verdict = router.process(NOW.into(), origin, &mut packet);
        prop_assert_eq!(verdict == PacketVerdict::Stun, origin == Origin::Host);
        let ends = matches!(verdict, PacketVerdict::Stun | PacketVerdict::Drop(_) | PacketVerdict::Refuse { .. });
        prop_assert!(ends, "{:?}", verdict);
        prop_assert_eq!(packet, before);
    }

    #[test]
    fn packets_changed_at_random_never_panic(
        name in name(),
        stop in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        origin in prop::option::of(origin()),
    ) {
        let world = World::new();
        let (_, src, dst, path, _) = path_case(name);
        let mut stop = stop.get(&world.send(src, udp(src, dst, path, 60)).stops).clone();
        for (at, value) in changes {
            // Changes a byte in the headers or the first 8 bytes after them.
            let headers = usize::from(stop.packet[5]) * 4;
            let at = at.index((headers + 8).min(stop.packet.len()));
            stop.packet[at] = value;
        }
        if let Some(cut) = cut {
            stop.packet.truncate(cut.index(stop.packet.len()));
        }
        let origin = origin.unwrap_or(stop.ingress.into());
        for router in world.split(stop.at, stop.ingress) {
            process_and_answer(&router, origin, &mut stop.packet.clone());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_valid_path_is_followed(name in name(), fields in fields()) {
        let world = World::new();
        let (_, src, dst, path, egresses) = path_case_with(name, &fields);
        let end = world.send(src, udp(src, dst, path, 20));
        let to = at(dst, DST_PORT);
        prop_assert_eq!(end.verdict, PacketVerdict::Deliver { to });
        prop_assert_eq!(end.egresses, egresses);
    }

    /// Two routers of an AS together do the same as one, and their errors take the same return
    /// path.
    #[test]
    fn two_routers_of_an_as_forward_like_one(name in name(), fields in fields()) {
        let world = World::new();
        let (_, src, dst, path, _) = path_case_with(name, &fields);
        for stop in world.send(src, udp(src, dst, path, 20)).stops {
            let whole = &world.routers[&stop.at];
            let mut expected = stop.packet.clone();
            let verdict = whole.process(NOW.into(), stop.ingress, &mut expected);
            let PacketVerdict::Forward { egress } = verdict else { continue };
            if stop.ingress == 0 {
                continue;
            }
            let [near, mut far] = world.split(stop.at, stop.ingress);
            let mut packet = stop.packet.clone();
            let to = at(stop.at, 30042);
            let between = near.process(NOW.into(), stop.ingress, &mut packet);
            prop_assert_eq!(between, PacketVerdict::Transit { to });
            let mut out = packet.clone();
            prop_assert_eq!(far.process(NOW.into(), Origin::Sibling(0), &mut out), verdict);
            prop_assert_eq!(&out, &expected);

            let down = |router: &Forwarder, origin: Origin, packet: &[u8]| {
                let verdict = router.process(NOW.into(), origin, &mut packet.to_vec());
                let PacketVerdict::Refuse { error, .. } = verdict else {
                    panic!("{verdict:?}")
                };
                let mut message = Vec::new();
                router.write_error(origin, packet, error, &mut message).unwrap();
                message
            };
            far.set_up(egress, false);
            let mut message = down(&far, Origin::Sibling(0), &packet);
            let back = near.process(NOW.into(), Origin::Sibling(0), &mut message);
            prop_assert_eq!(back, PacketVerdict::Forward { egress: stop.ingress });
            let mut whole = whole.clone();
            whole.set_up(egress, false);
            let expected = down(&whole, stop.ingress.into(), &stop.packet);
            // The quotes differ: each router quotes the packet as it received it.
            let headers = usize::from(expected[5]) * 4;
            prop_assert_eq!(&message[..headers], &expected[..headers]);
        }
    }

    /// A changed bit of the segment identifier, timestamp, expiry, interfaces or MAC of a hop field
    /// that a router uses makes it drop the packet.
    #[test]
    fn an_altered_packet_is_never_forwarded(name in name(), fields in fields()) {
        let world = World::new();
        let (_, src, dst, path, _) = path_case_with(name, &fields);
        let segments: Vec<_> = path.segments.iter().map(|s| s.hops.len()).collect();
        let peering = name.contains("peering");
        let end = world.send(src, udp(src, dst, path, 20));
        for stop in &end.stops {
            let current = usize::from(stop.packet[36] & 0x3f);
            let segment_of = |hop: usize| {
                let ends = segments.iter().scan(0, |end, length| { *end += length; Some(*end) });
                ends.take_while(|end| *end <= hop).count()
            };
            let mut used = vec![current];
            if !peering && current + 1 < segments.iter().sum()
                && segment_of(current) != segment_of(current + 1)
            {
                used.push(current + 1);
            }
            for hop in used {
                let info = 36 + 4 + 8 * segment_of(hop);
                let field = 36 + 4 + 8 * segments.len() + 12 * hop;
                for byte in (info + 2..info + 8).chain(field + 1..field + 12) {
                    for bit in 0..8 {
                        let mut packet = stop.packet.clone();
                        packet[byte] ^= 1 << bit;
                        let router = &world.routers[&stop.at];
                        let verdict = router.process(NOW.into(), stop.ingress, &mut packet);
                        let ended = matches!(verdict, PacketVerdict::Refuse { .. } | PacketVerdict::Drop(_));
                        prop_assert!(ended, "{:?}: byte {}, bit {}", verdict, byte, bit);
                    }
                }
            }
        }
    }
}
