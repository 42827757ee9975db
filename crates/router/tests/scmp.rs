//! The SCMP messages that the router sends, and the delivery of others.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

mod common;

use std::net::{IpAddr, SocketAddr};

use hawser_packet::{Host, ScmpError};
use hawser_router::{Answer, DropReason, ENDHOST_PORT, PacketVerdict, Service};

use self::common::*;

fn delivered_to(end: &End) -> SocketAddr {
    match end.verdict {
        PacketVerdict::Deliver { to } => to,
        other => panic!("{other:?} at {}", end.at),
    }
}

/// The error that `packet` from a host in AS `src` causes, carried back to it, and the packet as the
/// reporting router received it.
fn error(world: &World, src: u16, packet: Vec<u8>) -> (ScmpPacket, Vec<u8>) {
    let end = world.send(src, packet);
    let PacketVerdict::Refuse { error, .. } = end.verdict else {
        panic!("{:?} at {}", end.verdict, end.at)
    };
    let mut message = Vec::new();
    world.routers[&end.at]
        .write_error(end.ingress, &end.packet, error, &mut message)
        .unwrap();
    assert!(message.len() <= 1232);
    let parsed = ScmpPacket::parse(&message);
    let router = TestAddr::new(ia(end.at), router_host(end.at));
    assert_eq!(parsed.src, router, "the router is the source");
    assert_eq!(parsed.dst, addr(src));
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
            let down = ScmpError::ExternalInterfaceDown {
                isd_as: ia(*number),
                interface: *id,
            };
            assert_eq!(message.error(), (down, &quoted[..]), "{name}");
        }
    }
}

/// Codes of parameter problems (SCMP specification).
const INVALID_MAC: u8 = 51;
const PATH_EXPIRED: u8 = 52;

fn problem_code(error: ScmpError) -> u8 {
    match error {
        ScmpError::ParameterProblem { code, .. } => code,
        other => panic!("{other} is no parameter problem"),
    }
}

#[test]
fn every_refusal_of_the_path_reaches_the_source() {
    let world = World::new();
    for (name, src, dst, path, _) in path_cases() {
        for hop in 0..path.clone().hops().count() {
            let mut path = path.clone();
            path.hops().nth(hop).unwrap().exp_time ^= 0x40;
            let (message, quoted) = error(&world, src, udp(src, dst, path, 100));
            let (problem, quote) = message.error();
            assert_eq!(problem_code(problem), INVALID_MAC, "{name}");
            assert_eq!(quote, quoted);
        }
        for segment in 0..path.segments.len() {
            let mut path = path.clone();
            path.segments[segment].info.timestamp -= 90_000;
            let (message, _) = error(&world, src, udp(src, dst, path, 100));
            assert_eq!(problem_code(message.error().0), PATH_EXPIRED, "{name}");
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
    assert_eq!(message.bytes.len(), 1232);
    let down = ScmpError::ExternalInterfaceDown {
        isd_as: ia(1),
        interface: 1,
    };
    let (error, quote) = message.error();
    assert_eq!(error, down);
    assert!(quoted.starts_with(quote));
    assert!(quote.len() > 1000);
}

#[test]
fn packet_too_big_contains_the_mtu() {
    let world = World::new();
    let (_, src, dst, path, _) = path_case("core");
    let (message, _) = error(&world, src, udp(src, dst, path, 1472));
    assert_eq!(message.error().0, ScmpError::PacketTooBig { mtu: MTU });
}

#[test]
fn a_host_of_another_kind_and_an_unknown_service_are_unreachable() {
    let world = World::new();
    let (_, src, dst, path, _) = path_case("up, core, down");
    let v6 = Host::Ip("fd00::1".parse().unwrap());
    for host in [v6, Host::Service(1), Host::Service(2)] {
        let isd_as = ia(dst);
        let to = TestAddr { isd_as, host };
        let packet = udp_between(addr(src), to, DST_PORT, path.clone(), 10);
        let (message, _) = error(&world, src, packet);
        // No route to the destination.
        let unreachable = ScmpError::DestinationUnreachable { code: 0 };
        assert_eq!(message.error().0, unreachable);
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
    let to = TestAddr::service(ia(2), 2);
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
    let packet = scmp(1, addr(2), path(), &error_about(down, &[0; 50]));
    assert_eq!(written(&packet), None, "an error");
    let mut cut = packet.clone();
    cut.truncate(usize::from(packet[5]) * 4);
    assert_eq!(written(&cut), None, "a cut one");
    let request = echo(false, 1, 1, &[]).to_bytes();
    let packet = scmp(1, addr(2), path(), &request);
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
fn alert(path: &mut TestPath, hop: usize, egress: bool) {
    const CONS_EGRESS: u8 = 0b01;
    const CONS_INGRESS: u8 = 0b10;
    let segments = path.segments.iter_mut();
    let mut fields = segments.flat_map(|segment| {
        let cons_dir = segment.info.cons_dir;
        segment.hops.iter_mut().map(move |field| (cons_dir, field))
    });
    let (cons_dir, field) = fields.nth(hop).unwrap();
    field.flags = if cons_dir == egress {
        CONS_EGRESS
    } else {
        CONS_INGRESS
    };
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
        let request = traceroute(SRC_PORT, 3).to_bytes();
        let end = world.send(src, scmp(src, addr(dst), path, &request));
        let answer = Answer::Traceroute { interface: id };
        assert_eq!(
            (end.at, end.verdict),
            (number, PacketVerdict::Answer(answer))
        );
        let mut message = Vec::new();
        world.routers[&number]
            .write_answer(end.ingress, &end.packet, answer, &mut message)
            .unwrap();
        let reply = traceroute_reply(SRC_PORT, 3, ia(number), id);
        assert_eq!(ScmpPacket::parse(&message).scmp(), reply);
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
        let router = TestAddr::new(ia(dst), router_host(dst));
        let data = b"are you there?";
        let request = echo(false, SRC_PORT, 7, data).to_bytes();
        let end = world.send(src, scmp(src, router, path, &request));
        assert_eq!(
            (end.at, end.verdict),
            (dst, PacketVerdict::Answer(Answer::Echo))
        );
        let mut message = Vec::new();
        world.routers[&dst]
            .write_answer(end.ingress, &end.packet, Answer::Echo, &mut message)
            .unwrap();
        let reply = echo(true, SRC_PORT, 7, data);
        assert_eq!(ScmpPacket::parse(&message).scmp(), reply, "{name}");
        let back = world.send_back(&end, message).unwrap();
        assert_eq!(delivered_to(&back), at(src, SRC_PORT), "{name}");
    }
}

#[test]
fn a_host_may_ping_its_own_router_without_a_path() {
    let world = World::new();
    let request = |dst| {
        let message = echo(false, 9, 1, &[1, 2, 3]).to_bytes();
        scmp(5, dst, Vec::new(), &message)
    };
    let router = TestAddr::new(ia(5), router_host(5));
    let end = world.send(5, request(router));
    assert_eq!(end.verdict, PacketVerdict::Answer(Answer::Echo));
    let mut message = Vec::new();
    world.routers[&5]
        .write_answer(0, &end.packet, Answer::Echo, &mut message)
        .unwrap();
    let reply = echo(true, 9, 1, &[1, 2, 3]);
    assert_eq!(ScmpPacket::parse(&message).scmp(), reply);

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
    let to = |message: &[u8]| {
        let end = world.send(1, scmp(1, addr(2), path_case("core").3, message));
        match end.verdict {
            PacketVerdict::Deliver { to } => Some(to.port()),
            PacketVerdict::Drop(DropReason::UnknownPort) => None,
            other => panic!("{other:?}"),
        }
    };
    let some = 31_500;
    let ping = |reply, id| echo(reply, id, 1, &[]).to_bytes();
    let request = traceroute(some, 1).to_bytes();
    let reply = traceroute_reply(some, 1, ia(3), 1).to_bytes();
    let far = Some(ENDHOST_PORT);
    assert_eq!(to(&ping(false, some)), far);
    assert_eq!(to(&request), far);
    assert_eq!(to(&ping(true, some)), Some(some));
    assert_eq!(to(&reply), Some(some));
    assert_eq!(to(&ping(true, 40_000)), far, "outside the dispatched range");
    let down = ScmpError::ExternalInterfaceDown {
        isd_as: ia(3),
        interface: 1,
    };
    let error = |quote: &[u8]| error_about(down, quote);
    let path = || path_case("core").3;
    let sent = |message: &[u8]| scmp(2, addr(1), path(), message);
    assert_eq!(to(&error(&udp(2, 1, path(), 100))), Some(SRC_PORT));
    let mut cut = udp(2, 1, path(), 100);
    let headers = usize::from(cut[5]) * 4;
    cut.truncate(headers + 2);
    assert_eq!(to(&error(&cut)), Some(SRC_PORT), "cut after the port");
    cut.truncate(headers + 1);
    assert_eq!(to(&error(&cut)), None, "cut within the port");
    assert_eq!(to(&error(&sent(&ping(false, some)))), Some(some));
    assert_eq!(to(&error(&sent(&ping(true, some)))), None);
    let nested = error(&udp(2, 1, path(), 1));
    assert_eq!(to(&error(&sent(&nested))), None, "no error of an error");
    assert_eq!(to(&error(&[0xff; 100])), None, "garbage");
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
