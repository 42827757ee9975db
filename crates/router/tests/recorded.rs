//! Forwarding compared with scionproto's router: the same packets in, the same bytes out.
//! `recorded/scionproto.txt` says where they were recorded.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hawser_packet::ScmpError;
use hawser_router::{
    Answer, DropReason, ExternalInterface, Forwarder, Origin, PacketVerdict, Service,
};
use hawser_topology::{AsDir, IsdAsn, LinkTo};

/// Packets by family and name.
struct Recorded(BTreeMap<String, Vec<u8>>);

impl Recorded {
    fn load() -> Self {
        let lines = include_str!("recorded/scionproto.txt").lines();
        let packets = lines.filter_map(|line| {
            let (name, hex) = line.split_once(' ')?;
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            (name != "#").then(|| {
                let bytes = (0..hex.len()).step_by(2).map(byte);
                (name.to_owned(), bytes.collect())
            })
        });
        Self(packets.collect())
    }

    fn get(&self, v6: bool, name: &str) -> Vec<u8> {
        let family = if v6 { "v6" } else { "v4" };
        self.0[&format!("{family}.{name}")].clone()
    }
}

fn at(v6: bool, v4: &str, rest: &str) -> SocketAddr {
    let text = if v6 { rest } else { v4 };
    text.parse().unwrap()
}

fn interface(number: u16, link_to: LinkTo) -> ExternalInterface {
    ExternalInterface {
        neighbour: isd_as(number),
        link_to,
        max_packet: Some(1472),
        up: true,
    }
}

fn isd_as(number: u16) -> IsdAsn {
    format!("1-ff00:0:{number}").parse().unwrap()
}

/// The hop-field key of the recorded AS `number`, from its master key.
fn hop_key(number: u16) -> [u8; 16] {
    let master = match number {
        110 => "9bdb2af6799204a299c603994b8e400e",
        111 => "f6e0a1e2ac41945a9aa7ff8a8aaa0ceb",
        _ => "b1556dea32e9d0cdbfed038fd7787275",
    };
    let master = u128::from_str_radix(master, 16).unwrap().to_be_bytes();
    let folder = tempfile::tempdir().unwrap();
    let dir = AsDir::new(folder.path());
    dir.write_master_key(&master).unwrap();
    dir.hop_key().unwrap()
}

fn core_addresses(v6: bool) -> [SocketAddr; 2] {
    [
        at(v6, "10.0.1.254:30042", "[fd00:0:1::fe]:30042"),
        at(v6, "10.0.1.253:30042", "[fd00:0:1::fd]:30042"),
    ]
}

/// The routers A and B of AS 110: interface 1 leads to 111, interface 2 to 112.
fn core(v6: bool) -> [Forwarder; 2] {
    let addresses = core_addresses(v6);
    let interfaces = [
        (1, interface(111, LinkTo::Child)),
        (2, interface(112, LinkTo::Child)),
    ];
    [0, 1].map(|own| {
        Forwarder::new(isd_as(110), &hop_key(110), addresses[own].ip())
            .with_interface(interfaces[own].0, interfaces[own].1)
            .with_sibling(addresses[1 - own], [interfaces[1 - own]])
            .with_service(
                Service::Control,
                [at(v6, "10.0.1.2:30252", "[fd00:0:1::2]:30252")],
            )
    })
}

/// The router C of AS 111.
fn child(v6: bool) -> Forwarder {
    let host = at(v6, "10.0.2.254:30042", "[fd00:0:2::fe]:30042");
    Forwarder::new(isd_as(111), &hop_key(111), host.ip())
        .with_interface(1, interface(110, LinkTo::Parent))
}

/// A little after the timestamp of the packet's first segment.
fn time(packet: &[u8]) -> u64 {
    let hosts = |kind: u8| usize::from(kind & 3) * 4 + 4;
    let path = 28 + hosts(packet[9] >> 4) + hosts(packet[9]);
    let info = path + if packet[8] == 1 { 4 } else { 0 };
    let stamp = packet[info + 4..info + 8].try_into().unwrap();
    u64::from(u32::from_be_bytes(stamp)) + 30
}

/// Processes a packet from `origin`: the verdict, and the packet afterwards.
fn step(router: &Forwarder, origin: impl Into<Origin>, packet: &[u8]) -> (PacketVerdict, Vec<u8>) {
    let mut packet = packet.to_vec();
    let verdict = router.process(time(&packet), origin, &mut packet);
    (verdict, packet)
}

#[test]
fn transit_through_two_routers_of_an_as() {
    let recorded = Recorded::load();
    for v6 in [false, true] {
        let get = |name| recorded.get(v6, name);
        let ([a, b], [at_a, at_b]) = (core(v6), core_addresses(v6));
        let between = step(&a, 1, &get("there.in"));
        assert_eq!(
            between,
            (PacketVerdict::Transit { to: at_b }, get("there.between"))
        );
        let out = step(&b, Origin::Sibling(0), &between.1);
        assert_eq!(
            out,
            (PacketVerdict::Forward { egress: 2 }, get("there.out"))
        );

        let between = step(&b, 2, &get("back.in"));
        assert_eq!(
            between,
            (PacketVerdict::Transit { to: at_a }, get("back.between"))
        );
        let out = step(&a, Origin::Sibling(0), &between.1);
        assert_eq!(out, (PacketVerdict::Forward { egress: 1 }, get("back.out")));
    }
}

#[test]
fn forged_transit_packets_are_dropped() {
    let recorded = Recorded::load();
    let [a, b] = core(false);
    let drop = PacketVerdict::Drop(DropReason::TransitFromInside);
    let between = recorded.get(false, "there.between");
    assert_eq!(step(&b, 0, &between), (drop, between.clone()));
    // A sibling must not send a packet that entered by an interface of the receiving router.
    let back = recorded.get(false, "back.between");
    assert_eq!(step(&b, Origin::Sibling(0), &back), (drop, back.clone()));
    assert_eq!(
        step(&a, Origin::Sibling(0), &between),
        (drop, between.clone())
    );
    // A host must send to the egress router.
    let mut from_host = recorded.get(false, "there.in");
    from_host[20..28].copy_from_slice(&isd_as(110).to_u64().to_be_bytes());
    assert!(matches!(step(&a, 0, &from_host).0, PacketVerdict::Drop(_)));
}

#[test]
fn one_hop_paths_are_completed() {
    let recorded = Recorded::load();
    for v6 in [false, true] {
        let get = |name| recorded.get(v6, name);
        let link = step(&child(v6), 0, &get("one-hop.sent"));
        assert_eq!(
            link,
            (PacketVerdict::Forward { egress: 1 }, get("one-hop.link"))
        );
        let [a, _] = core(v6);
        let to = at(v6, "10.0.1.2:30252", "[fd00:0:1::2]:30252");
        let end = step(&a, 1, &link.1);
        assert_eq!(
            end,
            (PacketVerdict::Deliver { to }, get("one-hop.delivered"))
        );
    }
}

#[test]
fn invalid_one_hop_paths_are_dropped() {
    let sent = Recorded::load().get(false, "one-hop.sent");
    let path = 36;
    let drops = [
        ("not from here", 27, 1, DropReason::InvalidSource),
        ("to another AS", 19, 1, DropReason::InvalidDestination),
        ("against construction", path, 1, DropReason::MalformedPath),
        ("over no interface", path + 13, 4, DropReason::UnknownEgress),
        ("another's hop", path + 14, 1, DropReason::InvalidMac),
        ("of another length", 7, 1, DropReason::PacketSize),
        ("long ago", path + 4, 1, DropReason::ExpiredHop),
    ];
    for (name, at, change, reason) in drops {
        let mut packet = sent.clone();
        packet[at] ^= change;
        let now = time(&sent);
        let verdict = child(false).process(now, 0, &mut packet);
        assert_eq!(verdict, PacketVerdict::Drop(reason), "{name}");
    }
    let link = Recorded::load().get(false, "one-hop.link");
    let [a, b] = core(false);
    let (verdict, _) = step(&b, 2, &link);
    assert_eq!(verdict, PacketVerdict::Drop(DropReason::InvalidSource));
    let (verdict, _) = step(&child(false), 1, &link);
    assert_eq!(verdict, PacketVerdict::Drop(DropReason::InvalidDestination));
    let mut unknown = link;
    unknown[29] = 0x10;
    let (verdict, _) = step(&a, 1, &unknown);
    assert_eq!(verdict, PacketVerdict::Drop(DropReason::NoService));
}

/// The verdict on a dropped packet, and the message to its sender.
fn error(router: &Forwarder, origin: Origin, packet: &[u8]) -> (PacketVerdict, Vec<u8>) {
    let (verdict, _) = step(router, origin, packet);
    let mut out = Vec::new();
    match verdict {
        PacketVerdict::Refuse { error, .. } => router.write_error(origin, packet, error, &mut out),
        PacketVerdict::Answer(answer) => router.write_answer(origin, packet, answer, &mut out),
        _ => panic!("{verdict:?}"),
    }
    .unwrap();
    (verdict, out)
}

#[test]
fn an_unreachable_router_is_reported() {
    let recorded = Recorded::load();
    for v6 in [false, true] {
        let [mut a, _] = core(v6);
        a.set_bfd_up(Origin::Sibling(0), false);
        let packet = recorded.get(v6, "connectivity-down.in");
        let (verdict, message) = error(&a, Origin::Interface(1), &packet);
        let refused = PacketVerdict::Refuse {
            reason: DropReason::SiblingDown,
            error: ScmpError::InternalConnectivityDown {
                isd_as: isd_as(110),
                ingress: 1,
                egress: 2,
            },
        };
        assert_eq!(verdict, refused);
        // scionproto's router quotes the packet as it would have been sent, ours as it arrived; the
        // checksum covers the quote.
        let theirs = recorded.get(v6, "connectivity-down.answer");
        let start = usize::from(message[5]) * 4;
        assert_eq!(message.len(), theirs.len());
        assert_same(&message[..start + 2], &theirs[..start + 2]);
        let quote = start + 28;
        assert_same(&message[start + 4..quote], &theirs[start + 4..quote]);
        assert_same(&message[quote..], &packet);
    }
}

#[test]
fn the_egress_router_reports_its_link() {
    let recorded = Recorded::load();
    for v6 in [false, true] {
        let get = |name| recorded.get(v6, name);
        let [a, mut b] = core(v6);
        let (_, between) = step(&a, 1, &get("interface-down.in"));
        assert_eq!(between, get("interface-down.between"));
        b.set_bfd_up(Origin::Interface(2), false);
        let (verdict, message) = error(&b, Origin::Sibling(0), &between);
        let refused = PacketVerdict::Refuse {
            reason: DropReason::InterfaceDown,
            error: ScmpError::ExternalInterfaceDown {
                isd_as: isd_as(110),
                interface: 2,
            },
        };
        assert_eq!(verdict, refused);
        assert_same(&message, &get("interface-down.answer-between"));
        let out = step(
            &a,
            Origin::Sibling(0),
            &get("interface-down.answer-between"),
        );
        let expected = get("interface-down.answer");
        assert_eq!(out, (PacketVerdict::Forward { egress: 1 }, expected));
    }
}

#[test]
fn traceroute_is_answered_by_the_router_of_the_interface() {
    let recorded = Recorded::load();
    for v6 in [false, true] {
        let get = |name| recorded.get(v6, name);
        let [a, b] = core(v6);
        let (verdict, message) = error(&a, Origin::Interface(1), &get("trace-ingress.in"));
        let answer = Answer::Traceroute { interface: 1 };
        assert_eq!(verdict, PacketVerdict::Answer(answer));
        assert_same(&message, &get("trace-ingress.answer"));

        let (_, between) = step(&a, 1, &get("trace-egress.in"));
        assert_eq!(between, get("trace-egress.between"));
        let (verdict, message) = error(&b, Origin::Sibling(0), &between);
        let answer = Answer::Traceroute { interface: 2 };
        assert_eq!(verdict, PacketVerdict::Answer(answer));
        assert_same(&message, &get("trace-egress.answer-between"));
        let out = step(&a, Origin::Sibling(0), &message);
        let expected = (
            PacketVerdict::Forward { egress: 1 },
            get("trace-egress.answer"),
        );
        assert_eq!(out, expected);
    }
}

#[test]
fn bfd_packets_are_passed_to_bfd() {
    let recorded = Recorded::load();
    for v6 in [false, true] {
        let [a, b] = core(v6);
        for (router, origin, name) in [
            (&a, Origin::Interface(1), "bfd.link.up"),
            (&b, Origin::Sibling(0), "bfd.sibling.up"),
        ] {
            // From 111, and from A.
            let packet = recorded.get(v6, name);
            let mut copy = packet.clone();
            let verdict = router.process(0, origin, &mut copy);
            let at = packet.len() - 24;
            assert_eq!(verdict, PacketVerdict::Bfd { at });
            assert_eq!(copy, packet);
            // A host has no session with the router.
            let verdict = router.process(0, 0, &mut copy);
            assert!(matches!(verdict, PacketVerdict::Drop(_)), "{verdict:?}");
        }
    }
}

fn assert_same(ours: &[u8], theirs: &[u8]) {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(ours), hex(theirs));
}
