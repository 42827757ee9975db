//! Packets through a network of routers, without sockets.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use std::net::IpAddr;

use hawser_packet::ScmpError;
use hawser_router::{CLOCK_SKEW, DropReason, ExternalInterface, PacketVerdict};
use hawser_topology::LinkTo;

use self::common::*;

/// Offset of the path in packets between IPv4 hosts.
const PATH: u16 = 12 + 16 + 8;

fn info_at(info: u16) -> u16 {
    PATH + 4 + 8 * info
}

fn hop_at(infos: u16, hop: u16) -> u16 {
    PATH + 4 + 8 * infos + 12 * hop
}

fn parameter(code: u8, pointer: u16) -> ScmpError {
    ScmpError::ParameterProblem { code, pointer }
}

/// Sends a packet over the path and returns where and why it was refused.
fn refusal(world: &World, case: PathCase) -> (u16, DropReason, ScmpError) {
    let (_, src, dst, path, _) = case;
    let end = world.send(src, udp(src, dst, path, 100));
    match end.verdict {
        PacketVerdict::Refuse { reason, error } => (end.at, reason, error),
        other => panic!("{other:?} at {}", end.at),
    }
}

/// The path case `name` with `change` made to its path.
fn changed(name: &str, change: impl FnOnce(&mut TestPath)) -> PathCase {
    let mut case = path_case(name);
    change(&mut case.3);
    case
}

#[test]
fn paths_of_every_kind_are_followed_in_both_directions() {
    let world = World::new();
    for (name, src, dst, path, egresses) in path_cases() {
        let there = world.send(src, udp(src, dst, path, 100));
        let to = at(dst, DST_PORT);
        assert_eq!(there.verdict, PacketVerdict::Deliver { to }, "{name}");
        assert_eq!((there.at, &there.egresses[..]), (dst, egresses), "{name}");

        // The receiver reverses the path.
        let path = reversed_path(&there.packet);
        let back = world.send(dst, udp(dst, src, path, 100));
        let to = at(src, DST_PORT);
        assert_eq!(back.verdict, PacketVerdict::Deliver { to }, "{name}");
        let expected: Vec<_> = egresses
            .iter()
            .rev()
            .map(|end| world.across(*end))
            .collect();
        assert_eq!(back.egresses, expected, "{name}");
    }
}

/// `recorded/sciparse.txt` says where the paths were recorded.
#[test]
fn paths_are_changed_as_by_another_implementation() {
    let world = World::new();
    let number = |text: &str| text.parse::<u16>().unwrap();
    let bytes = |hex: &str| -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    };
    let lines = include_str!("recorded/sciparse.txt").lines();
    let lines: Vec<_> = lines.filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 84, "recorded steps");
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        let [src, dst, router, ingress, egress, before, after] = words[..] else {
            panic!("{line}")
        };
        let (src, dst) = (number(src), number(dst));
        let mut packet = udp(src, dst, bytes(before), 20);
        let router = &world.routers[&number(router)];
        let verdict = router.process(NOW.into(), number(ingress), &mut packet);
        let expected = match egress {
            "-" => PacketVerdict::Deliver {
                to: at(dst, DST_PORT),
            },
            egress => PacketVerdict::Forward {
                egress: number(egress),
            },
        };
        assert_eq!(verdict, expected, "{line}");
        assert_eq!(packet, udp(src, dst, bytes(after), 20), "{line}");
    }
}

#[test]
fn a_wrong_mac_is_refused_by_the_router_that_checks_it() {
    let world = World::new();
    let mut refused = 0;
    for (name, src, dst, path, _) in path_cases() {
        let hops = path.clone().hops().count();
        for hop in 0..hops {
            let mut path = path.clone();
            path.hops().nth(hop).unwrap().mac[5] ^= 1;
            let infos = path.segments.len() as u16;
            let (_, reason, error) = refusal(&world, (name, src, dst, path, &[]));
            assert_eq!(reason, DropReason::InvalidMac, "{name}");
            assert_eq!(error, parameter(51, hop_at(infos, hop as u16)), "{name}");
            refused += 1;
        }
    }
    assert_eq!(refused, 31);
}

#[test]
fn a_hop_is_valid_from_the_timestamp_until_it_expires() {
    let world = World::new();
    let (_, src, dst, path, _) = path_case("up, core, down");
    let start = u64::from(NOW) - 60;
    // 256 units of 337.5 s.
    let end = start + 24 * 3600;
    for (now, expected) in [
        (start - CLOCK_SKEW - 1, Some(DropReason::NotYetValid)),
        (start - CLOCK_SKEW, None),
        (start, None),
        (end, None),
        (end + 1, Some(DropReason::ExpiredHop)),
    ] {
        let mut packet = udp(src, dst, path.clone(), 10);
        match (world.routers[&src].process(now, 0, &mut packet), expected) {
            (PacketVerdict::Forward { .. }, None) => {}
            (PacketVerdict::Refuse { reason, error }, Some(expected)) => {
                assert_eq!(reason, expected);
                let expected = match reason {
                    DropReason::ExpiredHop => parameter(52, hop_at(3, 0)),
                    _ => parameter(48, info_at(0)),
                };
                assert_eq!(error, expected);
            }
            (verdict, _) => panic!("{verdict:?} at {now}"),
        }
    }
}

#[test]
fn the_shortest_hop_lifetime_is_337_and_a_half_seconds() {
    let world = World::new();
    let mut path = path_case("core").3;
    path.segments[0].hops[0].exp_time = 0;
    path.segments[0].sign(0, &[key(1), key(2)]);
    let start = u64::from(NOW) - 60;
    for (now, valid) in [(start + 337, true), (start + 338, false)] {
        let verdict = world.routers[&1].process(now, 0, &mut udp(1, 2, path.clone(), 0));
        assert_eq!(
            matches!(verdict, PacketVerdict::Forward { .. }),
            valid,
            "{verdict:?}"
        );
    }
}

#[test]
fn both_hops_of_a_segment_change_must_be_valid() {
    let world = World::new();
    for (segment, router, hop) in [(1, 1, 3), (2, 2, 5)] {
        let case = changed("up, core, down", |path| {
            path.segments[segment].info.timestamp = NOW - 100_000;
        });
        assert_eq!(
            refusal(&world, case),
            (
                router,
                DropReason::ExpiredHop,
                parameter(52, hop_at(3, hop))
            )
        );
    }
}

#[test]
fn the_ingress_interface_must_match_the_hop_field() {
    let world = World::new();
    let end = world.send(5, udp(5, 8, path_case("up, core, down").3, 10));
    // In construction direction, and against it.
    for (stop, wrong, code, hop) in [(1, 3, 50, 1), (4, 2, 49, 6)] {
        let stop = &end.stops[stop];
        let mut packet = stop.packet.clone();
        let verdict = world.routers[&stop.at].process(NOW.into(), wrong, &mut packet);
        let error = parameter(code, hop_at(3, hop));
        let reason = DropReason::WrongIngress;
        assert_eq!(verdict, PacketVerdict::Refuse { reason, error });
    }
}

#[test]
fn the_egress_interface_must_exist() {
    let world = World::new();
    let unknown = segments(&[(5, 0, 99), (3, 2, 1), (1, 2, 0)], &[], &[]);
    assert_eq!(
        refusal(&world, ("", 5, 1, unknown, &[])),
        (5, DropReason::UnknownEgress, parameter(49, hop_at(1, 0)))
    );
    let unknown = segments(&[], &[(1, 0, 99), (2, 1, 0)], &[]);
    assert_eq!(
        refusal(&world, ("", 1, 2, unknown, &[])),
        (1, DropReason::UnknownEgress, parameter(50, hop_at(1, 0)))
    );
}

/// The verdict of a router on a packet between links of the types `ingress` and `egress`, with or
/// without a change of segments.
fn through(ingress: LinkTo, egress: LinkTo, crossing: bool) -> PacketVerdict {
    let interface = |link_to| ExternalInterface {
        neighbour: ia(9),
        link_to,
        max_packet: Some(MTU),
        up: true,
    };
    let router = hawser_router::Forwarder::new(ia(1), &key(1), router_host(1))
        .with_interface(1, interface(ingress))
        .with_interface(2, interface(egress));
    let path = if crossing {
        segments(&[(8, 0, 9), (1, 1, 7)], &[], &[(1, 6, 2), (9, 9, 0)])
    } else {
        segments(&[], &[(8, 0, 9), (1, 1, 2), (9, 9, 0)], &[])
    };
    let mut packet = udp(8, 9, path, 10);
    // The state that the previous router leaves the packet in.
    let hops = if crossing { 2 } else { 1 };
    let first = usize::from(hop_at(hops, 0));
    let mac = [packet[first + 6], packet[first + 7]];
    packet[usize::from(PATH)] = 1;
    if !crossing {
        let segment_id = usize::from(info_at(0)) + 2;
        packet[segment_id] ^= mac[0];
        packet[segment_id + 1] ^= mac[1];
    }
    router.process(NOW.into(), 1, &mut packet)
}

#[test]
fn link_types_must_be_allowed_together() {
    use LinkTo::{Child, Core, Parent, Peer};
    let kinds = [Core, Parent, Child, Peer];
    let within = [
        (Core, Core),
        (Child, Parent),
        (Parent, Child),
        (Child, Peer),
        (Peer, Child),
    ];
    let across = [(Core, Child), (Child, Core), (Child, Child)];
    for ingress in kinds {
        for egress in kinds {
            let pair = (ingress, egress);
            let expected = if within.contains(&pair) {
                PacketVerdict::Forward { egress: 2 }
            } else {
                PacketVerdict::Refuse {
                    reason: DropReason::InvalidPath,
                    error: parameter(48, hop_at(1, 1)),
                }
            };
            assert_eq!(through(ingress, egress, false), expected, "{pair:?}");
            let expected = if across.contains(&pair) {
                PacketVerdict::Forward { egress: 2 }
            } else {
                PacketVerdict::Refuse {
                    reason: DropReason::InvalidSegmentChange,
                    error: parameter(53, info_at(1)),
                }
            };
            assert_eq!(
                through(ingress, egress, true),
                expected,
                "{pair:?} crossing"
            );
        }
    }
}

#[test]
fn impossible_sources_and_destinations_are_refused() {
    let world = World::new();
    let (_, src, dst, path, _) = path_case("up, core, down");
    let source = parameter(33, 12 + 8);
    let destination = parameter(34, 12);
    let at = |number: u16, from: u16, to: u16| {
        let packet = udp(from, to, path.clone(), 10);
        let end = world.send(src, udp(src, dst, path.clone(), 10));
        let stop = end.stops.iter().find(|stop| stop.at == number).unwrap();
        let mut changed = stop.packet.clone();
        changed[12..28].copy_from_slice(&packet[12..28]);
        match world.routers[&number].process(NOW.into(), stop.ingress, &mut changed) {
            PacketVerdict::Refuse { error, .. } => Some(error),
            PacketVerdict::Forward { .. } | PacketVerdict::Deliver { .. } => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(at(5, 5, 8), None);
    assert_eq!(at(5, 6, 8), Some(source), "another AS's source from inside");
    assert_eq!(at(5, 5, 5), Some(destination), "to the AS it comes from");
    assert_eq!(at(3, 3, 8), Some(source), "this AS's source from outside");
    assert_eq!(at(3, 5, 3), Some(destination), "to this AS in mid-path");
    assert_eq!(at(8, 5, 4), Some(destination), "to another AS at the end");
    assert_eq!(at(8, 5, 8), None);
}

#[test]
fn packets_from_inside_must_be_at_the_start_of_their_path() {
    let world = World::new();
    let end = world.send(5, udp(5, 8, path_case("up, core, down").3, 10));
    let mut packet = end.stops[1].packet.clone();
    assert_eq!(
        world.routers[&3].process(NOW.into(), 0, &mut packet),
        PacketVerdict::Drop(DropReason::TransitFromInside)
    );
}

#[test]
fn packets_from_outside_must_not_be_at_the_start_of_their_path() {
    let world = World::new();
    // The first hop of 1-5 names an ingress interface, as if the packet came from outside.
    let path = segments(&[(5, 1, 1), (3, 2, 1), (1, 2, 0)], &[], &[]);
    let mut packet = udp(9, 1, path, 10);
    assert_eq!(
        world.routers[&5].process(NOW.into(), 1, &mut packet),
        PacketVerdict::Drop(DropReason::MalformedPath)
    );
}

#[test]
fn a_neighbour_must_not_change_segments_for_this_as() {
    let world = World::new();
    let end = world.send(5, udp(5, 6, path_case("shortcut").3, 10));
    let mut packet = end.stops[1].packet.clone();
    // The second of the two hops at 1-3, received from its parent.
    packet[usize::from(PATH)] = 1 << 6 | 2;
    assert_eq!(
        world.routers[&3].process(NOW.into(), 1, &mut packet),
        PacketVerdict::Drop(DropReason::MalformedPath)
    );
}

#[test]
fn links_that_are_down_or_too_small_are_reported() {
    let mut world = World::new();
    let (name, src, dst, path, egresses) = path_case("up, core, down");
    let fits = usize::from(MTU) - udp(src, dst, path.clone(), 0).len();
    let end = world.send(src, udp(src, dst, path.clone(), fits));
    assert_eq!(end.at, dst, "{name}");
    let end = world.send(src, udp(src, dst, path.clone(), fits + 1));
    let reason = DropReason::PacketTooBig;
    let error = ScmpError::PacketTooBig { mtu: MTU };
    assert_eq!(
        (end.at, end.verdict),
        (src, PacketVerdict::Refuse { reason, error })
    );

    for (number, id) in egresses {
        assert!(world.routers.get_mut(number).unwrap().set_up(*id, false));
        let end = world.send(src, udp(src, dst, path.clone(), 10));
        let reason = DropReason::InterfaceDown;
        let error = ScmpError::ExternalInterfaceDown {
            isd_as: ia(*number),
            interface: *id,
        };
        assert_eq!(
            (end.at, end.verdict),
            (*number, PacketVerdict::Refuse { reason, error })
        );
        assert!(world.routers.get_mut(number).unwrap().set_up(*id, true));
    }
    assert!(!world.routers.get_mut(&1).unwrap().set_up(77, false));
}

#[test]
fn the_header_must_be_consistent() {
    let world = World::new();
    let packet = udp(5, 8, path_case("up, core, down").3, 10);
    let process = |packet: &[u8]| world.routers[&5].process(NOW.into(), 0, &mut packet.to_vec());
    assert!(matches!(process(&packet), PacketVerdict::Forward { .. }));
    for length in 0..packet.len() {
        let verdict = process(&packet[..length]);
        if length < usize::from(packet[5]) * 4 {
            assert_eq!(
                verdict,
                PacketVerdict::Drop(DropReason::Malformed),
                "{length}"
            );
        } else {
            let reason = DropReason::PacketSize;
            let error = parameter(19, 0);
            assert_eq!(verdict, PacketVerdict::Refuse { reason, error });
        }
    }
    let with = |changes: &[(usize, u8)]| {
        let mut packet = packet.clone();
        for (at, value) in changes {
            packet[*at] = *value;
        }
        match process(&packet) {
            PacketVerdict::Drop(reason) => reason,
            other => panic!("{other:?} after {changes:?}"),
        }
    };
    let path = usize::from(PATH);
    assert_eq!(with(&[(0, 0x10)]), DropReason::UnknownVersion);
    assert_eq!(
        with(&[(5, packet[5] - 1)]),
        DropReason::MalformedPath,
        "a header too short"
    );
    assert_eq!(
        with(&[(5, packet[5] + 1)]),
        DropReason::MalformedPath,
        "a header too long"
    );
    assert_eq!(
        with(&[(5, 8)]),
        DropReason::Malformed,
        "no room for addresses"
    );
    assert_eq!(
        with(&[(5, 9)]),
        DropReason::MalformedPath,
        "no room for a path"
    );
    assert_eq!(with(&[(8, 0)]), DropReason::EmptyPath);
    assert_eq!(
        with(&[(8, 2)]),
        DropReason::MalformedPath,
        "no one-hop path"
    );
    for kind in [3, 4, 255] {
        assert_eq!(with(&[(8, kind)]), DropReason::UnsupportedPathType);
    }
    assert_eq!(
        with(&[(path, 1 << 6)]),
        DropReason::MalformedPath,
        "info of another hop"
    );
    assert_eq!(
        with(&[(path, 3 << 6 | 9)]),
        DropReason::MalformedPath,
        "a hop too many"
    );
    let segments = |lengths: [u32; 3]| {
        let meta = lengths.iter().fold(0, |meta, length| meta << 6 | length);
        let [_, a, b, c] = meta.to_be_bytes();
        with(&[(path + 1, a), (path + 2, b), (path + 3, c)])
    };
    for lengths in [
        [3, 2, 4],
        [3, 2, 2],
        [3, 5, 0],
        [0, 3, 5],
        [3, 0, 5],
        [0, 0, 0],
    ] {
        assert_eq!(segments(lengths), DropReason::MalformedPath, "{lengths:?}");
    }
}

#[test]
fn a_single_hop_is_a_segment_only_at_a_peering_link() {
    let world = World::new();
    let end = world.send(3, udp(3, 7, path_case("short peering").3, 10));
    assert_eq!(end.at, 7);
    let path = changed("short peering", |path| {
        for segment in &mut path.segments {
            segment.info.peer = false;
        }
    });
    let end = world.send(3, udp(3, 7, path.3, 10));
    assert_eq!(end.verdict, PacketVerdict::Drop(DropReason::MalformedPath));
}

#[test]
fn peering_paths_must_have_two_segments() {
    let world = World::new();
    for name in ["core", "up, core, down"] {
        let (_, src, dst, path, _) = changed(name, |path| {
            for segment in &mut path.segments {
                segment.info.peer = true;
            }
        });
        let end = world.send(src, udp(src, dst, path, 10));
        assert_eq!(
            end.verdict,
            PacketVerdict::Drop(DropReason::MalformedPath),
            "{name}"
        );
    }
}

#[test]
fn packets_are_delivered_to_single_hosts_only() {
    let world = World::new();
    for (ip, delivered) in [
        ("10.0.2.1", true),
        ("127.0.0.1", false),
        ("0.0.0.0", false),
        ("255.255.255.255", false),
        ("224.0.0.1", false),
        ("::ffff:10.0.2.1", false),
        ("ff02::1", false),
        ("::", false),
    ] {
        let ip: IpAddr = ip.parse().unwrap();
        let dst = TestAddr::new(ia(2), ip);
        let packet = udp_between(addr(1), dst, DST_PORT, path_case("core").3, 10);
        let end = world.send(1, packet);
        let reason = DropReason::InvalidDestination;
        let error = parameter(34, 12 + 16);
        let refused = PacketVerdict::Refuse { reason, error };
        assert_eq!(end.at, 2);
        if delivered {
            assert!(matches!(end.verdict, PacketVerdict::Deliver { .. }));
        } else {
            assert_eq!(end.verdict, refused, "{ip}");
        }
    }
}

/// Such a header is that of a packet of protocol 33 over one link, with 42050 bytes of payload.
#[test]
fn a_scion_packet_that_begins_like_a_stun_message_is_none() {
    let world = World::new();
    let (_, src, dst, path, _) = path_case("core");
    let mut packet = udp(src, dst, path, 42050 - 8);
    packet[..4].copy_from_slice(&[0, 1, 0, 8]);
    packet[4] = 0x21;
    assert_eq!(packet[4..8], [0x21, 0x12, 0xa4, 0x42]);
    let verdict = world.routers[&src].process(NOW.into(), 0, &mut packet);
    let PacketVerdict::Refuse { reason, .. } = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(reason, DropReason::PacketTooBig);
    // Cut to the length of a STUN message it is not a SCION packet.
    packet.truncate(28);
    let verdict = world.routers[&src].process(NOW.into(), 0, &mut packet);
    assert_eq!(verdict, PacketVerdict::Stun);
}
