//! Path segments: a route, and for each AS on it a hop field with its MAC.

use std::time::Duration;

use sciparse::dataplane_path::standard::mac::algo::{calculate_hop_mac, mac_beta_step};
use sciparse::dataplane_path::standard::types::exp_time_to_duration;

use crate::graph::Graph;
use crate::routes::Route;

/// When segments were made and until when they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Unix seconds at which they were made.
    pub made: u64,
    /// Unix seconds at which they expire.
    pub expiry: u64,
    /// The timestamp of the info field. It may lie before `made`, since hop fields count their life
    /// in units of 337.5 s.
    pub timestamp: u32,
    /// The hop fields' life, in those units less one.
    pub exp_time: u8,
}

impl Stamp {
    /// Segments made at `now` (Unix seconds) that hold for `lifetime` (between [`MIN_LIFETIME`] and
    /// [`MAX_LIFETIME`]; whole seconds count).
    pub fn new(now: u64, lifetime: Duration) -> Self {
        let lifetime = lifetime.clamp(MIN_LIFETIME, MAX_LIFETIME).as_secs();
        let exp_time = (0..=u8::MAX)
            .find(|&units| exp_time_to_duration(units).as_secs() >= lifetime)
            .unwrap_or(u8::MAX);
        let expiry = now + lifetime;
        let timestamp = expiry.saturating_sub(exp_time_to_duration(exp_time).as_secs());
        Self {
            made: now,
            expiry,
            timestamp: u32::try_from(timestamp).unwrap_or(u32::MAX),
            exp_time,
        }
    }

    /// Whether segments are to be made anew: half of their life is over, or the clock was set back.
    pub fn is_due(&self, now: u64) -> bool {
        now < self.made || now >= self.made + (self.expiry - self.made) / 2
    }
}

/// Shortest life of segments: half of it must be left for a path to be of use.
pub const MIN_LIFETIME: Duration = Duration::from_secs(2);
/// Longest life of segments: 256 units of a hop field's `ExpTime`.
pub const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A hop field, seen in the direction of beaconing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    /// The interface by which the beacon came in, 0 at the start.
    pub ingress: u16,
    /// The interface by which it left, 0 at the end.
    pub egress: u16,
    /// The AS's MAC.
    pub mac: [u8; 6],
}

/// A hop field that enters the segment over a peering link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The peering link.
    pub link: usize,
    /// The AS at its other end.
    pub to: usize,
    /// The hop field; its ingress is the AS's own end of the link.
    pub hop: Hop,
}

/// A path segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where it leads.
    pub route: Route,
    /// When it was made.
    pub stamp: Stamp,
    /// The accumulator with which the MAC of each AS is made; one more than ASes. The first is the
    /// segment's ID.
    pub betas: Vec<u16>,
    /// The hop fields, one for each AS.
    pub hops: Vec<Hop>,
    /// The peering hop fields of each AS.
    pub peers: Vec<Vec<Peer>>,
}

impl Segment {
    /// The segment over a route, each hop field with the MAC of its AS.
    ///
    /// `keys` are the hop keys of all ASes. The first AS adds no peering entries: scionproto's
    /// originator passes none to its extender.
    pub fn new(
        graph: &Graph,
        keys: &[[u8; 16]],
        route: Route,
        stamp: Stamp,
        peering: bool,
    ) -> Self {
        let count = route.ases.len();
        let mut segment = Self {
            betas: Vec::with_capacity(count + 1),
            hops: Vec::with_capacity(count),
            peers: Vec::with_capacity(count),
            route,
            stamp,
        };
        let mut beta = segment_id(graph, &segment.route, stamp.timestamp);
        segment.betas.push(beta);
        for (at, &r#as) in segment.route.ases.iter().enumerate() {
            let id = |link: &usize| graph.end(*link, r#as).id;
            let before = at.checked_sub(1).and_then(|i| segment.route.links.get(i));
            let ingress = before.map_or(0, id);
            let egress = segment.route.links.get(at).map_or(0, id);
            let hop = |beta, ingress| Hop {
                ingress,
                egress,
                mac: calculate_hop_mac(
                    beta,
                    stamp.timestamp,
                    stamp.exp_time,
                    ingress,
                    egress,
                    &keys[r#as],
                ),
            };
            let main = hop(beta, ingress);
            beta = mac_beta_step(beta, main.mac);
            // A peering hop field chains to the AS's main one, as the next AS does (scionproto,
            // control/beaconing/extender.go). sciparse's `AsEntry::update_macs` uses the
            // accumulator before it instead, which no router accepts.
            let mut peers = Vec::new();
            if peering && at > 0 {
                peers.extend(graph.peers(r#as).map(|step| Peer {
                    link: step.link,
                    to: step.to,
                    hop: hop(beta, graph.end(step.link, r#as).id),
                }));
            }
            segment.betas.push(beta);
            segment.hops.push(main);
            segment.peers.push(peers);
        }
        segment
    }
}

/// A segment's ID: FNV-1a over its interfaces and its time, folded to 16 bits. SCION asks for a
/// random number so that accumulators differ between segments; a hash of what differs does that and
/// is the same on every start.
fn segment_id(graph: &Graph, route: &Route, timestamp: u32) -> u16 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |value: u64| {
        for byte in value.to_be_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(u64::from(timestamp));
    for (&link, &r#as) in route.links.iter().zip(&route.ases) {
        add(graph.r#as(r#as).isd_as.to_u64());
        add(u64::from(graph.end(link, r#as).id));
    }
    (hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48)) as u16
}
