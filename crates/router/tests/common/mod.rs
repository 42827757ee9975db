//! A small SCION network of routers without sockets.
//!
//! ```text
//!   1-1 core ───#1 #1─── 1-2 core
//!   │#2    │#3            │#2
//!   │#1    │#1            │#1
//!   1-3    1-4           1-7
//!   │#2 └#3  └peering──┐  │#2      1-3#4 and 1-7#3 are peers
//!   │#1   │#1             │#1
//!   1-5   1-6            1-8
//! ```
#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]
#![allow(dead_code, reason = "each test and benchmark uses a part")]

pub mod net;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hawser_router::{ExternalInterface, Forwarder, PacketVerdict};
use hawser_topology::{IsdAsn, LinkTo};
use sciparse::address::addr::ScionAddr;
use sciparse::address::socket_addr::ScionSocketAddr;
use sciparse::core::encode::WireEncode;
use sciparse::dataplane_path::model::DpPath;
use sciparse::dataplane_path::standard::mac::algo::mac_beta_step;
use sciparse::dataplane_path::standard::model::{HopField, InfoField, Segment, StandardPath};
use sciparse::dataplane_path::standard::types::{HopFieldFlags, HopFieldMac, InfoFieldFlags};
use sciparse::packet::model::{ScionScmpPacket, ScionUdpPacket};
use sciparse::payload::scmp::model::ScmpMessage;
use sciparse::util::test_builder::TestPathBuilder;

/// The time in all tests, in Unix seconds.
pub const NOW: u32 = 1_900_000_000;
/// MTU of all links, in bytes.
pub const MTU: u16 = 1472;
/// Ports of the sending and receiving host.
pub const SRC_PORT: u16 = 31_111;
pub const DST_PORT: u16 = 32_222;

/// An AS and the number of an interface there.
type LinkEnd = (u16, u16);

/// Both ends of each link, and the type of the second end's AS as seen from the first.
const LINKS: [(LinkEnd, LinkEnd, LinkTo); 7] = [
    ((1, 1), (2, 1), LinkTo::Core),
    ((1, 2), (3, 1), LinkTo::Child),
    ((1, 3), (4, 1), LinkTo::Child),
    ((3, 2), (5, 1), LinkTo::Child),
    ((3, 3), (6, 1), LinkTo::Child),
    ((2, 2), (7, 1), LinkTo::Child),
    ((7, 2), (8, 1), LinkTo::Child),
];
const PEERS: (LinkEnd, LinkEnd) = ((3, 4), (7, 3));

pub fn ia(number: u16) -> IsdAsn {
    format!("1-{number}").parse().unwrap()
}

pub fn key(number: u16) -> [u8; 16] {
    [number as u8; 16]
}

pub fn host(number: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, number as u8, 1)
}

pub fn router_host(number: u16) -> IpAddr {
    Ipv4Addr::new(10, 0, number as u8, 254).into()
}

pub fn addr(number: u16) -> ScionAddr {
    ScionAddr::new(ia(number), IpAddr::from(host(number)).into())
}

pub struct World {
    pub routers: BTreeMap<u16, Forwarder>,
    links: BTreeMap<(u16, u16), (u16, u16)>,
    interfaces: BTreeMap<(u16, u16), ExternalInterface>,
}

/// The last router of a packet, and its verdict.
#[derive(Debug)]
pub struct End {
    /// The AS of the router that decided.
    pub at: u16,
    /// The ingress interface at that router.
    pub ingress: u16,
    pub verdict: PacketVerdict,
    pub packet: Vec<u8>,
    /// The egress interfaces it passed: AS and number.
    pub egresses: Vec<(u16, u16)>,
    /// The packet at each router, as it arrived.
    pub stops: Vec<Stop>,
}

/// A packet that arrives at a router.
#[derive(Debug, Clone)]
pub struct Stop {
    pub at: u16,
    pub ingress: u16,
    pub packet: Vec<u8>,
}

impl World {
    pub fn new() -> Self {
        let mut links = BTreeMap::new();
        let mut interfaces = BTreeMap::new();
        let mut routers: BTreeMap<u16, Forwarder> = (1..=8)
            .map(|n| (n, Forwarder::new(ia(n), &key(n), router_host(n))))
            .collect();
        let mut connect = |a: (u16, u16), b: (u16, u16), to_b, to_a| {
            links.insert(a, b);
            links.insert(b, a);
            for ((number, id), link_to, far) in [(a, to_b, b), (b, to_a, a)] {
                let router = routers.remove(&number).unwrap();
                let interface = ExternalInterface {
                    neighbour: ia(far.0),
                    link_to,
                    max_packet: Some(MTU),
                    up: true,
                };
                interfaces.insert((number, id), interface);
                routers.insert(number, router.with_interface(id, interface));
            }
        };
        for (a, b, to_b) in LINKS {
            let to_a = if to_b == LinkTo::Core {
                LinkTo::Core
            } else {
                LinkTo::Parent
            };
            connect(a, b, to_b, to_a);
        }
        connect(PEERS.0, PEERS.1, LinkTo::Peer, LinkTo::Peer);
        Self {
            routers,
            links,
            interfaces,
        }
    }

    /// AS `number` with two routers: the first has interface `first`, the other all others. Each is
    /// the other's sibling 0.
    pub fn split(&self, number: u16, first: u16) -> [Forwarder; 2] {
        let interfaces = self.interfaces.iter().filter(|((at, _), _)| *at == number);
        let (one, others): (Vec<_>, Vec<_>) = interfaces
            .map(|((_, id), interface)| (*id, *interface))
            .partition(|(id, _)| *id == first);
        [(&one, &others), (&others, &one)].map(|(own, sibling)| {
            let router = Forwarder::new(ia(number), &key(number), router_host(number));
            own.iter()
                .fold(router, |router, (id, interface)| {
                    router.with_interface(*id, *interface)
                })
                .with_sibling(at(number, 30042), sibling.iter().copied())
        })
    }

    /// The other end of a link.
    pub fn across(&self, end: (u16, u16)) -> (u16, u16) {
        self.links[&end]
    }

    /// Sends `packet` from a host in `from` through routers until one does not forward it.
    pub fn send(&self, from: u16, packet: Vec<u8>) -> End {
        self.carry(from, 0, packet)
    }

    /// Sends `packet`, which arrives at `at` by `ingress`, through routers until one does not
    /// forward it.
    pub fn carry(&self, mut at: u16, mut ingress: u16, mut packet: Vec<u8>) -> End {
        let mut egresses = Vec::new();
        let mut stops = Vec::new();
        loop {
            stops.push(Stop {
                at,
                ingress,
                packet: packet.clone(),
            });
            let verdict = self.routers[&at].process(NOW.into(), ingress, &mut packet);
            if let PacketVerdict::Forward { egress } = verdict {
                egresses.push((at, egress));
                (at, ingress) = self.across((at, egress));
                continue;
            }
            if !matches!(verdict, PacketVerdict::Deliver { .. }) {
                assert_eq!(
                    Some(&packet),
                    stops.last().map(|stop| &stop.packet),
                    "changed"
                );
            }
            return End {
                at,
                ingress,
                verdict,
                packet,
                egresses,
                stops,
            };
        }
    }

    /// Sends an SCMP message of the router at `end` back to the host that sent the packet. `None`
    /// if the host is in the same AS: no other router handles the message then.
    pub fn send_back(&self, end: &End, message: Vec<u8>) -> Option<End> {
        (end.ingress != 0).then(|| {
            let (at, ingress) = self.across((end.at, end.ingress));
            self.carry(at, ingress, message)
        })
    }
}

/// Hops of a segment in direction of travel: AS, ingress, egress.
pub type Hops<'a> = &'a [(u16, u16, u16)];

/// A path of up, core and down segments, any of which may be empty.
pub fn segments(src: u16, dst: u16, up: Hops, core: Hops, down: Hops) -> StandardPath {
    let mut builder = TestPathBuilder::new(addr(src), addr(dst)).using_info_timestamp(NOW - 60);
    for (kind, hops) in [up, core, down].into_iter().enumerate() {
        if hops.is_empty() {
            continue;
        }
        builder = match kind {
            0 => builder.up(),
            1 => builder.core(),
            _ => builder.down(),
        };
        for (number, ingress, egress) in hops {
            builder = builder
                .using_forwarding_key(key(*number))
                .add_hop(*ingress, *egress);
        }
    }
    match builder.build(NOW).data_plane_path {
        DpPath::Standard(path) => path,
        other => panic!("not a standard path: {other:?}"),
    }
}

/// A hop in construction direction, with its MAC.
fn peer_hop(number: u16, cons_ingress: u16, cons_egress: u16, beta: u16) -> HopField {
    HopField {
        cons_ingress,
        cons_egress,
        mac: HopFieldMac::zero(),
        expiration_units: 63,
        flags: HopFieldFlags::empty(),
    }
    .with_calculated_mac(beta, NOW - 60, &key(number))
}

fn peer_segment(cons_dir: bool, beta: u16, hops: Vec<HopField>) -> Segment {
    let mut flags = InfoFieldFlags::PEERING;
    flags.set(InfoFieldFlags::CONS_DIR, cons_dir);
    Segment {
        info_field: InfoField {
            flags,
            segment_id: beta,
            timestamp: NOW - 60,
        },
        hop_fields: hops.into_iter().collect(),
    }
}

/// The path from 1-5 to 1-8 over the peering link between 1-3 and 1-7. The peering hop's MAC uses
/// the same segment identifier as the hop below it.
pub fn peering() -> StandardPath {
    let (up, down) = (0xabcd, 0x1234);
    let mut path = StandardPath::new_empty();
    path.segments.push(peer_segment(
        false,
        up,
        vec![peer_hop(5, 1, 0, up), peer_hop(3, 4, 2, up)],
    ));
    path.segments.push(peer_segment(
        true,
        down,
        vec![peer_hop(7, 3, 2, down), peer_hop(8, 1, 0, down)],
    ));
    path
}

/// The path from 1-3 directly over its peering link to 1-7: its segments have one hop each.
pub fn short_peering() -> StandardPath {
    let mut path = StandardPath::new_empty();
    path.segments
        .push(peer_segment(false, 7, vec![peer_hop(3, 4, 0, 7)]));
    path.segments
        .push(peer_segment(true, 9, vec![peer_hop(7, 3, 0, 9)]));
    path
}

/// Name, source, destination, path and the egress interfaces of packets.
pub type PathCase = (&'static str, u16, u16, StandardPath, &'static [(u16, u16)]);

/// Every kind of path.
pub fn path_cases() -> Vec<PathCase> {
    let up: Hops = &[(5, 0, 1), (3, 2, 1), (1, 2, 0)];
    let down: Hops = &[(2, 0, 2), (7, 1, 2), (8, 1, 0)];
    vec![
        (
            "core",
            1,
            2,
            segments(1, 2, &[], &[(1, 0, 1), (2, 1, 0)], &[]),
            &[(1, 1)],
        ),
        ("up", 5, 1, segments(5, 1, up, &[], &[]), &[(5, 1), (3, 1)]),
        (
            "down",
            2,
            8,
            segments(2, 8, &[], &[], down),
            &[(2, 2), (7, 2)],
        ),
        (
            "up, core, down",
            5,
            8,
            segments(5, 8, up, &[(1, 0, 1), (2, 1, 0)], down),
            &[(5, 1), (3, 1), (1, 1), (2, 2), (7, 2)],
        ),
        (
            "up, down at a core AS",
            5,
            4,
            segments(5, 4, up, &[], &[(1, 0, 3), (4, 1, 0)]),
            &[(5, 1), (3, 1), (1, 3)],
        ),
        (
            "shortcut",
            5,
            6,
            segments(5, 6, &[(5, 0, 1), (3, 2, 1)], &[], &[(3, 1, 3), (6, 1, 0)]),
            &[(5, 1), (3, 3)],
        ),
        ("peering", 5, 8, peering(), &[(5, 1), (3, 4), (7, 2)]),
        ("short peering", 3, 7, short_peering(), &[(3, 4)]),
    ]
}

/// The path case `name`.
pub fn path_case(name: &str) -> PathCase {
    path_cases()
        .into_iter()
        .find(|case| case.0 == name)
        .unwrap()
}

/// The AS of each hop field of the path case `name`.
fn hop_fields(name: &str) -> &'static [u16] {
    match name {
        "core" => &[1, 2],
        "up" => &[5, 3, 1],
        "down" => &[2, 7, 8],
        "up, core, down" => &[5, 3, 1, 1, 2, 2, 7, 8],
        "up, down at a core AS" => &[5, 3, 1, 1, 4],
        "shortcut" => &[5, 3, 3, 6],
        "peering" => &[5, 3, 7, 8],
        "short peering" => &[3, 7],
        other => panic!("no path case {other}"),
    }
}

/// What may differ between paths over the same interfaces.
#[derive(Debug, Clone)]
pub struct Fields {
    /// The initial identifier of each segment, in order of travel.
    pub segment_ids: [u16; 3],
    /// The age of each segment, in seconds.
    pub ages: [u32; 3],
    /// The expiry of each hop field.
    pub exp_times: [u8; 8],
}

/// The path case `name` with the `fields` of another beacon.
pub fn path_case_with(name: &str, fields: &Fields) -> PathCase {
    let mut case = path_case(name);
    let mut at = 0;
    for (number, segment) in case.3.segments.iter_mut().enumerate() {
        let info = &mut segment.info_field;
        let peering = info.flags.contains(InfoFieldFlags::PEERING);
        info.timestamp = NOW - fields.ages[number];
        let mut beta = fields.segment_ids[number];
        info.segment_id = beta;
        let count = segment.hop_fields.len();
        for i in 0..count {
            // In construction direction.
            let i = if info.flags.cons_dir() {
                i
            } else {
                count - 1 - i
            };
            let hop = &mut segment.hop_fields[i];
            hop.expiration_units = fields.exp_times[at + i];
            let key = key(hop_fields(name)[at + i]);
            *hop = (*hop).with_calculated_mac(beta, info.timestamp, &key);
            if !info.flags.cons_dir() {
                info.segment_id = beta;
            }
            if !peering {
                beta = mac_beta_step(beta, hop.mac.0);
            }
        }
        at += count;
    }
    case
}

pub fn udp(src: u16, dst: u16, path: StandardPath, payload: usize) -> Vec<u8> {
    udp_between(addr(src), addr(dst), DST_PORT, path, payload)
}

pub fn udp_between(
    src: ScionAddr,
    dst: ScionAddr,
    port: u16,
    path: StandardPath,
    payload: usize,
) -> Vec<u8> {
    ScionUdpPacket::new(
        ScionSocketAddr::new(src.isd_asn(), src.host(), SRC_PORT),
        ScionSocketAddr::new(dst.isd_asn(), dst.host(), port),
        path.into(),
        vec![0x5a; payload],
    )
    .try_encode_to_vec()
    .unwrap()
}

pub fn scmp(src: u16, dst: ScionAddr, path: StandardPath, message: ScmpMessage) -> Vec<u8> {
    ScionScmpPacket::new(addr(src), dst, path.into(), message)
        .try_encode_to_vec()
        .unwrap()
}

/// Underlay address of a host of AS `number`.
pub fn at(number: u16, port: u16) -> SocketAddr {
    SocketAddr::new(host(number).into(), port)
}
