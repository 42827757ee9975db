//! What holds for every packet.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use common::*;
use hawser_router::Verdict;
use proptest::prelude::*;
use sciparse::{
    core::view::View as _,
    dataplane_path::{standard::routing::*, view::ScionDpPathViewRefMut},
    packet::view::ScionRawPacketView,
};

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
    // From 6 hours, more than any age, to a day.
    let exp_times = prop::array::uniform8(63u8..);
    (any::<[u16; 3]>(), ages, exp_times).prop_map(|(segment_ids, ages, exp_times)| Fields {
        segment_ids,
        ages,
        exp_times,
    })
}

/// Has `packet` processed, and answered if it must be; nothing may panic.
fn process_and_answer(world: &World, at: u16, ingress: u16, packet: &mut [u8]) -> Verdict {
    let router = &world.routers[&at];
    let verdict = router.process(NOW.into(), ingress, packet);
    let mut out = Vec::new();
    let written = match verdict {
        Verdict::Refuse { problem, .. } => router.write_error(ingress, packet, problem, &mut out),
        Verdict::Answer(answer) => router.write_answer(ingress, packet, answer, &mut out),
        _ => return verdict,
    };
    if written.is_ok() {
        let (view, rest) = ScionRawPacketView::try_from_slice(&out).unwrap();
        assert!(rest.is_empty());
        view.try_as_scmp().unwrap();
    }
    verdict
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_never_panic(
        mut packet in prop::collection::vec(any::<u8>(), 0..1600),
        at in 1u16..=8,
        ingress in 0u16..5,
    ) {
        let world = World::new();
        let verdict = process_and_answer(&world, at, ingress, &mut packet);
        let passed = matches!(verdict, Verdict::Forward { .. } | Verdict::Deliver { .. });
        prop_assert!(!passed);
    }

    #[test]
    fn packets_changed_at_random_never_panic(
        name in name(),
        stop in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        ingress in prop::option::of(0u16..5),
    ) {
        let world = World::new();
        let (_, src, dst, path, _) = route(name);
        let mut stop = stop.get(&world.send(src, udp(src, dst, path, 60)).stops).clone();
        for (at, value) in changes {
            // Mostly in the headers.
            let headers = usize::from(stop.packet[5]) * 4;
            let at = at.index((headers + 8).min(stop.packet.len()));
            stop.packet[at] = value;
        }
        if let Some(cut) = cut {
            stop.packet.truncate(cut.index(stop.packet.len()));
        }
        process_and_answer(&world, stop.at, ingress.unwrap_or(stop.ingress), &mut stop.packet);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_valid_path_is_followed(name in name(), fields in fields()) {
        let world = World::new();
        let (_, src, dst, path, way) = route_with(name, &fields);
        let end = world.send(src, udp(src, dst, path, 20));
        let to = at(dst, DST_PORT);
        prop_assert_eq!(end.verdict, Verdict::Deliver { to });
        prop_assert_eq!(end.way, way);
    }

    /// Segment identifier, timestamp, expiry, interfaces and MAC, of each hop
    /// field that a router uses: one bit changed, and the packet ends there.
    #[test]
    fn an_altered_packet_is_never_forwarded(name in name(), fields in fields()) {
        let world = World::new();
        let (_, src, dst, path, _) = route_with(name, &fields);
        let segments: Vec<_> = path.segments.iter().map(|s| s.hop_fields.len()).collect();
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
let ended = matches!(verdict, Verdict::Refuse { .. } | Verdict::Drop(_));
                        prop_assert!(ended, "{:?}: byte {}, bit {}", verdict, byte, bit);
                    }
                }
            }
        }
    }

    /// sciparse's own advancing does not know peering.
    #[test]
    fn forwarding_agrees_with_sciparse(
        name in prop::sample::select(&NAMES[..6]),
        fields in fields(),
    ) {
        let world = World::new();
        let (_, src, dst, path, _) = route_with(name, &fields);
        let end = world.send(src, udp(src, dst, path, 20));
        for stop in &end.stops {
            let mut ours = stop.packet.clone();
            let verdict = world.routers[&stop.at].process(NOW.into(), stop.ingress, &mut ours);
            let mut theirs = stop.packet.clone();
            let egress = advance(&mut theirs, stop.at, stop.ingress == 0);
            prop_assert_eq!(&ours, &theirs);
            match verdict {
                Verdict::Forward { egress: ours } => prop_assert_eq!(Some(ours), egress),
                Verdict::Deliver { .. } => prop_assert_eq!(None, egress),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

/// sciparse's forwarding step; the egress interface, or None at the end.
fn advance(packet: &mut [u8], at: u16, from_inside: bool) -> Option<u16> {
    let (view, _) = ScionRawPacketView::try_from_mut_slice(packet).unwrap();
    let ScionDpPathViewRefMut::Standard(path) = view.header_mut().path_mut() else {
        panic!("not a standard path");
    };
    let validator = HopMacValidator { key: key(at) };
    let ingress = path.advance_ingress_with_validator(validator.clone(), from_inside);
    match ingress.unwrap().into_result().unwrap().action {
        IngressAdvanceAction::ForwardLocal => None,
        IngressAdvanceAction::ContinueEgress { egress_if } => {
            let egress = path.advance_egress_with_validator(validator);
            egress.unwrap().into_result().unwrap();
            Some(egress_if)
        }
    }
}
