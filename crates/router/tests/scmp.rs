//! The SCMP messages that the router sends, and the delivery of others.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use std::net::{IpAddr, SocketAddr};

use hawser_packet::ScmpError;
use hawser_router::{Answer, DropReason, ENDHOST_PORT, PacketVerdict, Service};
use sciparse::address::addr::ScionAddr;
use sciparse::checksum::ChecksumDigest;
use sciparse::core::convert::TryFromView as _;
use sciparse::core::encode::WireEncode as _;
use sciparse::dataplane_path::model::DpPath;
use sciparse::dataplane_path::standard::model::StandardPath;
use sciparse::dataplane_path::standard::types::HopFieldFlags;
use sciparse::packet::model::{ScionRawPacket, ScionScmpPacket};
use sciparse::payload::scmp::model::{
    ScmpEchoReply, ScmpEchoRequest, ScmpExternalInterfaceDown, ScmpMessage, ScmpTracerouteReply,
    ScmpTracerouteRequest,
};
use sciparse::payload::scmp::types::{ScmpDestinationUnreachableCode, ScmpParameterProblemCode};

use self::common::*;

/// Parses an SCMP packet; sciparse must write the same bytes for it, and its checksum must be
/// correct. (sciparse's own covers only the pseudo header.)
fn parse(packet: &[u8]) -> ScionScmpPacket {
    let (raw, rest) = ScionRawPacket::try_from_slice(packet).unwrap();
    assert!(rest.is_empty());
    let sum = ChecksumDigest::with_pseudoheader(&raw.header.address, 202, &raw.payload)
        .add_slice(&raw.payload)
        .checksum();
    assert_eq!(sum, 0, "the checksum over a message with its checksum");
    let parsed = raw.try_into_scmp().unwrap();
    let mut encoded = parsed.try_encode_to_vec().unwrap();
    let checksum = usize::from(packet[5]) * 4 + 2;
    encoded[checksum..checksum + 2].copy_from_slice(&packet[checksum..checksum + 2]);
    assert_eq!(encoded, packet);
    parsed
}

fn delivered_to(end: &End) -> SocketAddr {
    match end.verdict {
        PacketVerdict::Deliver { to } => to,
        other => panic!("{other:?} at {}", end.at),
    }
}

/// The error that `packet` from a host in AS `src` causes, carried back to it, and the packet as the
/// reporting router received it.
fn error(world: &World, src: u16, packet: Vec<u8>) -> (ScionScmpPacket, Vec<u8>) {
    let end = world.send(src, packet);
    let PacketVerdict::Refuse { error, .. } = end.verdict else {
        panic!("{:?} at {}", end.verdict, end.at)
    };
    let mut message = Vec::new();
    world.routers[&end.at]
        .write_error(end.ingress, &end.packet, error, &mut message)
        .unwrap();
    assert!(message.len() <= 1232);
    let parsed = parse(&message);
    assert_eq!(
        parsed.header.address.src_ia,
        ia(end.at),
        "the router is the source"
    );
    assert_eq!(
        parsed.src_scion_addr().unwrap().host().ip(),
        Some(router_host(end.at))
    );
    if let Some(back) = world.send_back(&end, message) {
        assert_eq!(delivered_to(&back), at(src, SRC_PORT));
        // The router that sends the message takes the first hop of the return path itself.
        let steps = end.egresses.iter().rev().skip(1);
        let expected: Vec<_> = steps.map(|hop| world.across(*hop)).collect();
        assert_eq!(back.egresses, expected);
        assert_eq!(back.at, src);
    }
    (parsed, end.packet)
}

#[test]
fn an_interface_down_anywhere_reaches_the_source() {
    for (name, src, dst, path, egresses) in path_cases() {
        for (number, id) in egresses {
            let mut world = World::new();
            world.routers.get_mut(number).unwrap().set_up(*id, false);
            let (message, quoted) = error(&world, src, udp(src, dst, path.clone(), 100));
            let expected = ScmpExternalInterfaceDown::new(ia(*number), *id, quoted);
            assert_eq!(message.payload, expected.into(), "{name}");
        }
    }
}

#[test]
fn every_refusal_of_the_path_reaches_the_source() {
    let world = World::new();
    for (name, src, dst, path, _) in path_cases() {
        for hop in 0..path.iter_hop_fields().count() {
            let mut path = path.clone();
            path.segments
                .iter_mut()
                .flat_map(|segment| segment.hop_fields.iter_mut())
                .nth(hop)
                .unwrap()
                .expiration_units ^= 0x40;
            let (message, quoted) = error(&world, src, udp(src, dst, path.clone(), 100));
            let ScmpMessage::ParameterProblem(problem) = message.payload else {
                panic!("{name}")
            };
            assert_eq!(problem.code, ScmpParameterProblemCode::InvalidHopFieldMac);
            assert_eq!(problem.get_offending_packet(), quoted);
        }
        for segment in 0..path.segments.len() {
            let mut path = path.clone();
            path.segments[segment].info_field.timestamp -= 90_000;
            let (message, _) = error(&world, src, udp(src, dst, path, 100));
            let ScmpMessage::ParameterProblem(problem) = message.payload else {
                panic!("{name}")
            };
            assert_eq!(problem.code, ScmpParameterProblemCode::PathExpired);
        }
    }
}

#[test]
fn a_long_packet_is_quoted_up_to_1232_bytes() {
    let mut world = World::new();
    world.routers.get_mut(&1).unwrap().set_up(1, false);
    let (_, src, dst, path, _) = path_case("up, core, down");
    let packet = udp(src, dst, path, 1200);
    let (message, quoted) = error(&world, src, packet);
    assert_eq!(message.try_encode_to_vec().unwrap().len(), 1232);
    let ScmpMessage::ExternalInterfaceDown(down) = message.payload else {
        panic!()
    };
    assert!(quoted.starts_with(down.get_offending_packet()));
    assert!(down.get_offending_packet().len() > 1000);
}

#[test]
fn packet_too_big_contains_the_mtu() {
    let world = World::new();
    let (_, src, dst, path, _) = path_case("core");
    let (message, _) = error(&world, src, udp(src, dst, path, 1472));
    let ScmpMessage::PacketTooBig(too_big) = message.payload else {
        panic!()
    };
    assert_eq!(too_big.mtu, MTU);
}

#[test]
fn a_host_of_another_kind_and_an_unknown_service_are_unreachable() {
    let world = World::new();
    let (_, src, dst, path, _) = path_case("up, core, down");
    let v6: IpAddr = "fd00::1".parse().unwrap();
    for host in [v6.into(), "DS".parse().unwrap(), "CS".parse().unwrap()] {
        let to = ScionAddr::new(ia(dst), host);
        let packet = udp_between(addr(src), to, DST_PORT, path.clone(), 10);
        let (message, _) = error(&world, src, packet);
        let ScmpMessage::DestinationUnreachable(unreachable) = message.payload else {
            panic!()
        };
        assert_eq!(
            unreachable.code,
            ScmpDestinationUnreachableCode::NoRouteToDestination
        );
    }
}

#[test]
fn packets_to_the_control_service_reach_its_instance() {
    let mut world = World::new();
    let control: SocketAddr = "10.0.2.254:30252".parse().unwrap();
    let router = world.routers.remove(&2).unwrap();
    world
        .routers
        .insert(2, router.with_service(Service::Control, [control]));
    let to = ScionAddr::new(ia(2), "CS".parse().unwrap());
    let end = world.send(1, udp_between(addr(1), to, 1, path_case("core").3, 10));
    assert_eq!(delivered_to(&end), control);
}

#[test]
fn errors_and_impossible_sources_are_not_answered() {
    let mut world = World::new();
    world.routers.get_mut(&1).unwrap().set_up(1, false);
    let router = &world.routers[&1];
    let path = || path_case("core").3;
    let mut out = Vec::new();
    let down = ScmpError::ExternalInterfaceDown {
        isd_as: ia(1),
        interface: 1,
    };
    let mut written = |packet: &[u8]| router.write_error(0, packet, down, &mut out);
    let error = ScmpExternalInterfaceDown::new(ia(1), 1, vec![0; 50]);
    let packet = scmp(1, addr(2), path(), error.into());
    assert_eq!(written(&packet), None, "an error");
    let mut cut = packet.clone();
    cut.truncate(usize::from(packet[5]) * 4);
    assert_eq!(written(&cut), None, "a cut one");
    let request = ScmpEchoRequest::new(1, 1, vec![]);
    let packet = scmp(1, addr(2), path(), request.into());
    assert_eq!(written(&packet), Some(()), "a request");
    for source in ["224.0.0.5", "0.0.0.0", "255.255.255.255"] {
        let mut packet = packet.clone();
        let IpAddr::V4(ip) = source.parse().unwrap() else {
            panic!()
        };
        packet[32..36].copy_from_slice(&ip.octets());
        assert_eq!(written(&packet), None, "{source}");
    }
    for short in 0..36 {
        assert_eq!(written(&packet[..short]), None);
    }
}

/// Sets the alert of hop field `hop`, for its egress or ingress interface in direction of travel.
fn alert(path: &mut StandardPath, hop: usize, egress: bool) {
    let mut seen = 0;
    for segment in &mut path.segments {
        let cons_dir = segment.info_field.flags.cons_dir();
        for field in &mut segment.hop_fields {
            if seen == hop {
                field.flags = match cons_dir == egress {
                    true => HopFieldFlags::CONS_EGRESS_ROUTER_ALERT,
                    false => HopFieldFlags::CONS_INGRESS_ROUTER_ALERT,
                };
            }
            seen += 1;
        }
    }
}

#[test]
fn traceroute_is_answered_by_every_interface() {
    let world = World::new();
    // Hop field, whether its egress side, and the AS and interface there. At a segment change the
    // first hop has the ingress interface, the second the egress interface.
    let stops = [
        (0, true, 5, 1),
        (1, false, 3, 2),
        (1, true, 3, 1),
        (2, false, 1, 2),
        (3, true, 1, 1),
        (4, false, 2, 1),
        (5, true, 2, 2),
        (6, false, 7, 1),
        (6, true, 7, 2),
        (7, false, 8, 1),
    ];
    for (hop, egress, number, id) in stops {
        let (_, src, dst, mut path, _) = path_case("up, core, down");
        alert(&mut path, hop, egress);
        let request = ScmpTracerouteRequest::new(SRC_PORT, 3);
        let end = world.send(src, scmp(src, addr(dst), path, request.into()));
        let answer = Answer::Traceroute { interface: id };
        assert_eq!(
            (end.at, end.verdict),
            (number, PacketVerdict::Answer(answer))
        );
        let mut message = Vec::new();
        world.routers[&number]
            .write_answer(end.ingress, &end.packet, answer, &mut message)
            .unwrap();
        let reply = ScmpTracerouteReply::new(SRC_PORT, 3, ia(number), id);
        assert_eq!(parse(&message).payload, reply.into());
        if let Some(back) = world.send_back(&end, message) {
            assert_eq!(delivered_to(&back), at(src, SRC_PORT));
        }
    }
}

#[test]
fn alerts_do_not_stop_other_packets() {
    let world = World::new();
    let (_, src, dst, mut path, _) = path_case("up, core, down");
    alert(&mut path, 1, true);
    alert(&mut path, 4, false);
    let end = world.send(src, udp(src, dst, path, 10));
    assert_eq!(delivered_to(&end), at(dst, DST_PORT));
}

#[test]
fn the_router_answers_echo_requests_to_itself() {
    let world = World::new();
    for (name, src, dst, path, _) in path_cases() {
        let router = ScionAddr::new(ia(dst), router_host(dst).into());
        let data = b"are you there?".to_vec();
        let request = ScmpEchoRequest::new(SRC_PORT, 7, data.clone());
        let end = world.send(src, scmp(src, router, path, request.into()));
        assert_eq!(
            (end.at, end.verdict),
            (dst, PacketVerdict::Answer(Answer::Echo))
        );
        let mut message = Vec::new();
        world.routers[&dst]
            .write_answer(end.ingress, &end.packet, Answer::Echo, &mut message)
            .unwrap();
        let reply = ScmpEchoReply::new(SRC_PORT, 7, data);
        assert_eq!(parse(&message).payload, reply.into(), "{name}");
        let back = world.send_back(&end, message).unwrap();
        assert_eq!(delivered_to(&back), at(src, SRC_PORT), "{name}");
    }
}

#[test]
fn a_host_may_ping_its_own_router_without_a_path() {
    let world = World::new();
    let request = |dst| {
        let message = ScmpEchoRequest::new(9, 1, vec![1, 2, 3]).into();
        ScionScmpPacket::new(addr(5), dst, DpPath::Empty, message)
            .try_encode_to_vec()
            .unwrap()
    };
    let router = ScionAddr::new(ia(5), router_host(5).into());
    let end = world.send(5, request(router));
    assert_eq!(end.verdict, PacketVerdict::Answer(Answer::Echo));
    let mut message = Vec::new();
    world.routers[&5]
        .write_answer(0, &end.packet, Answer::Echo, &mut message)
        .unwrap();
    let reply = ScmpEchoReply::new(9, 1, vec![1, 2, 3]);
    assert_eq!(parse(&message).payload, reply.into());

    let refused = PacketVerdict::Drop(DropReason::EmptyPath);
    assert_eq!(world.send(5, request(addr(5))).verdict, refused, "a host");
    assert_eq!(
        world.carry(5, 1, request(router)).verdict,
        refused,
        "outside"
    );
    assert_eq!(
        world.send(3, request(router)).verdict,
        refused,
        "another AS"
    );
}

#[test]
fn scmp_messages_reach_the_program_they_concern() {
    let world = World::new();
    let to = |message: ScmpMessage| {
        let end = world.send(1, scmp(1, addr(2), path_case("core").3, message));
        match end.verdict {
            PacketVerdict::Deliver { to } => Some(to.port()),
            PacketVerdict::Drop(DropReason::UnknownPort) => None,
            other => panic!("{other:?}"),
        }
    };
    let some = 31_500;
    assert_eq!(
        to(ScmpEchoRequest::new(some, 1, vec![]).into()),
        Some(ENDHOST_PORT)
    );
    assert_eq!(
        to(ScmpTracerouteRequest::new(some, 1).into()),
        Some(ENDHOST_PORT)
    );
    assert_eq!(to(ScmpEchoReply::new(some, 1, vec![]).into()), Some(some));
    assert_eq!(
        to(ScmpTracerouteReply::new(some, 1, ia(3), 1).into()),
        Some(some)
    );
    assert_eq!(
        to(ScmpEchoReply::new(40_000, 1, vec![]).into()),
        Some(ENDHOST_PORT),
        "outside the dispatched range"
    );
    let error = |quote: Vec<u8>| ScmpExternalInterfaceDown::new(ia(3), 1, quote).into();
    let path = || path_case("core").3;
    assert_eq!(to(error(udp(2, 1, path(), 100))), Some(SRC_PORT));
    let mut cut = udp(2, 1, path(), 100);
    let headers = usize::from(cut[5]) * 4;
    cut.truncate(headers + 2);
    assert_eq!(to(error(cut.clone())), Some(SRC_PORT), "cut after the port");
    cut.truncate(headers + 1);
    assert_eq!(to(error(cut)), None, "cut within the port");
    let request = ScmpEchoRequest::new(some, 1, vec![]);
    assert_eq!(
        to(error(scmp(2, addr(1), path(), request.into()))),
        Some(some)
    );
    let reply = ScmpEchoReply::new(some, 1, vec![]);
    assert_eq!(to(error(scmp(2, addr(1), path(), reply.into()))), None);
    let nested = error(udp(2, 1, path(), 1));
    assert_eq!(
        to(error(scmp(2, addr(1), path(), nested))),
        None,
        "no error of an error"
    );
    assert_eq!(to(error(vec![0xff; 100])), None, "garbage");
}

#[test]
fn udp_is_delivered_to_its_port_within_the_dispatched_range() {
    let world = World::new();
    for (port, expected) in [
        (31_000, 31_000),
        (32_767, 32_767),
        (30_999, ENDHOST_PORT),
        (32_768, ENDHOST_PORT),
        (53, ENDHOST_PORT),
    ] {
        let packet = udp_between(addr(1), addr(2), port, path_case("core").3, 10);
        assert_eq!(delivered_to(&world.send(1, packet)), at(2, expected));
    }
    let mut cut = udp(1, 2, path_case("core").3, 0);
    cut.pop();
    let length = u16::from_be_bytes([cut[6], cut[7]]) - 1;
    cut[6..8].copy_from_slice(&length.to_be_bytes());
    assert_eq!(
        world.send(1, cut).verdict,
        PacketVerdict::Drop(DropReason::UnknownPort)
    );
}

#[test]
fn extensions_are_skipped() {
    let world = World::new();
    let packet = udp(1, 2, path_case("core").3, 10);
    let headers = usize::from(packet[5]) * 4;
    // A hop-by-hop extension of one line, then an end-to-end extension of two, then UDP.
    let with = |kinds: [u8; 3], extensions: &[u8]| {
        let mut packet = packet.clone();
        packet[4] = kinds[0];
        let mut extensions = extensions.to_vec();
        extensions[0] = kinds[1];
        extensions[4] = kinds[2];
        let length = u16::from_be_bytes([packet[6], packet[7]]) + extensions.len() as u16;
        packet[6..8].copy_from_slice(&length.to_be_bytes());
        packet.splice(headers..headers, extensions);
        world.send(1, packet).verdict
    };
    let both = [0, 0, 1, 0, 0, 1, 1, 4, 0, 0, 0, 0];
    let to = at(2, DST_PORT);
    assert_eq!(with([200, 201, 17], &both), PacketVerdict::Deliver { to });
    let unknown = PacketVerdict::Drop(DropReason::UnknownPort);
    assert_eq!(with([201, 200, 17], &both), unknown, "the wrong order");
    assert_eq!(with([200, 200, 17], &both), unknown, "twice");
    let long = [0, 0, 1, 0, 0, 255, 1, 4, 0, 0, 0, 0];
    assert_eq!(with([200, 201, 17], &long), unknown, "beyond the end");
}
