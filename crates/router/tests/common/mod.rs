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
mod packets;
mod path;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use hawser_router::{ExternalInterface, Forwarder, PacketVerdict};
use hawser_topology::{IsdAsn, LinkTo};

pub use self::packets::*;
pub use self::path::*;

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

pub fn addr(number: u16) -> TestAddr {
    TestAddr::new(ia(number), host(number))
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
