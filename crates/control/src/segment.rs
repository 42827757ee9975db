//! Creation of path segments: a route, with the announcements and hop fields of each AS on it.

use std::time::Duration;

use hawser_packet::path::{HopField, HopKey, InfoField};
use hawser_path::Discovery;
use hawser_proto::Message;
use hawser_proto::control_plane::{
    ASEntry, ASEntrySignedBody, BandwidthInfo, HopEntry, HopField as HopFieldMessage, LatencyInfo,
    LinkType, PathSegment, PathSegmentExtensions, PeerEntry, SegmentInformation,
    StaticInfoExtension,
};
use hawser_proto::crypto::{Header, HeaderAndBodyInternal, SignedMessage};
use hawser_proto::well_known::Timestamp;
use hawser_topology::IsdAsn;

use crate::discovery;
use crate::graph::{Along, Graph, Step};
use crate::routes::Route;
use crate::wire::kbit;

/// Shortest lifetime of segments: half of it must remain for a path to be usable.
pub const MIN_LIFETIME: Duration = Duration::from_secs(2);
/// Longest lifetime of segments: 256 units of a hop field's `ExpTime`.
pub const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// By how much the clocks of other machines may be behind that of the one that makes their segments: border
/// routers refuse a segment whose timestamp is in the future, but for some minutes.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_secs(3600);

/// The times of creation and expiry of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Time of creation, in Unix seconds.
    pub made: u64,
    /// Time of expiry, in Unix seconds.
    pub expiry: u64,
    /// The timestamp of the info field. It may be earlier than `made`, since the lifetime of hop
    /// fields has units of 337.5 s.
    pub timestamp: u32,
    /// The lifetime of the hop fields, in those units, minus one.
    pub exp_time: u8,
}

impl Stamp {
    /// The stamp of segments created at `now` (Unix seconds) that expire after `lifetime` (limited
    /// to [`MIN_LIFETIME`] to [`MAX_LIFETIME`], rounded down to whole seconds).
    pub fn new(now: u64, lifetime: Duration) -> Self {
        let lifetime = lifetime.clamp(MIN_LIFETIME, MAX_LIFETIME).as_secs();
        let exp_time = (0..=u8::MAX)
            .find(|&units| HopField::lifetime(units).as_secs() >= lifetime)
            .unwrap_or(u8::MAX);
        let expiry = now + lifetime;
        let timestamp = expiry.saturating_sub(HopField::lifetime(exp_time).as_secs());
        Self {
            made: now,
            expiry,
            timestamp: u32::try_from(timestamp).unwrap_or(u32::MAX),
            exp_time,
        }
    }

    /// As [`Stamp::new`], for routers whose clocks may be behind by up to [`CLOCK_TOLERANCE`]: the timestamp is
    /// earlier by that, for which the longest lifetime is shorter.
    pub fn for_other_clocks(now: u64, lifetime: Duration) -> Self {
        let whole = (lifetime + CLOCK_TOLERANCE).min(MAX_LIFETIME);
        let begin = now.saturating_sub(CLOCK_TOLERANCE.as_secs());
        Self {
            made: now,
            ..Self::new(begin, whole)
        }
    }

    /// Whether segments must be renewed: half of their lifetime is over, or the clock was set back.
    pub fn is_due(&self, now: u64) -> bool {
        now < self.made || now >= self.made + (self.expiry - self.made) / 2
    }
}

/// What an AS knows for its entries of segments, besides what the network says.
#[derive(Debug, Clone, Default)]
pub(crate) struct EntrySource {
    /// The key of its hop fields' MACs.
    pub hop_key: [u8; 16],
    /// The services that it announces.
    pub services: Discovery,
}

/// An AS that announces no services.
impl From<[u8; 16]> for EntrySource {
    fn from(hop_key: [u8; 16]) -> Self {
        Self {
            hop_key,
            services: Discovery::default(),
        }
    }
}

/// A segment without signatures.
#[derive(Debug)]
pub(crate) struct Plain {
    /// The encoded `SegmentInformation`.
    pub info: Vec<u8>,
    /// Each AS with its encoded `ASEntrySignedBody`.
    pub entries: Vec<(IsdAsn, Vec<u8>)>,
    /// Time of creation, in Unix seconds.
    pub made: u64,
}

impl Plain {
    /// The segment over a route. Each hop field has the MAC of its AS; `sources` are those of all
    /// ASes.
    ///
    /// Segments to children have peering entries for all ASes, as in scionproto since v0.12; between
    /// core ASes they would serve no path.
    pub fn new(
        graph: &Graph,
        sources: &[EntrySource],
        route: &Route,
        stamp: Stamp,
        along: Along,
    ) -> Self {
        let id = segment_id(graph, route, stamp.timestamp);
        let mut info = InfoField {
            cons_dir: true,
            peer: false,
            segment_id: id,
            timestamp: stamp.timestamp,
        };
        let entry = |(at, &r#as): (usize, &usize)| {
            let id = |link| graph.end(link, r#as).id;
            let before = at.checked_sub(1).map(|at| route.links[at]);
            let egress = route.links.get(at).copied();
            let key = HopKey::new(&sources[r#as].hop_key);
            let hop = |info: &InfoField, ingress: Option<usize>| {
                let (ingress, egress) = (ingress.map_or(0, id), egress.map_or(0, id));
                key.hop_field(info, stamp.exp_time, ingress, egress)
            };
            let main = hop(&info, before);
            info.segment_id = main.chain(info.segment_id);
            // A peering hop field chains to the AS's main one, as the next AS does (scionproto,
            // control/beaconing/extender.go).
            let peering = along == Along::Children;
            let peers = graph.peers(r#as).filter(|_| peering);
            let peers: Vec<Step> = peers.collect();
            let peer_entry = |peer: &Step| PeerEntry {
                peer_isd_as: graph.isd_as(peer.to).to_u64(),
                peer_interface: graph.end(peer.link, peer.to).id.into(),
                peer_mtu: graph.network.links[peer.link].mtu.into(),
                hop_field: Some(hop_message(&hop(&info, Some(peer.link)))),
            };
            let next = route.ases.get(at + 1);
            let body = ASEntrySignedBody {
                isd_as: graph.isd_as(r#as).to_u64(),
                next_isd_as: next.map_or(0, |&next| graph.isd_as(next).to_u64()),
                hop_entry: Some(HopEntry {
                    hop_field: Some(hop_message(&main)),
                    ingress_mtu: before.map_or(0, |link| graph.network.links[link].mtu.into()),
                }),
                peer_entries: peers.iter().map(peer_entry).collect(),
                mtu: graph.network.ases[r#as].mtu.into(),
                extensions: Some(PathSegmentExtensions {
                    static_info: Some(static_info(graph, r#as, egress, &peers)),
                    discovery: discovery::extension(&sources[r#as].services),
                }),
            };
            (graph.isd_as(r#as), body.encode_to_vec())
        };
        let entries = route.ases.iter().enumerate().map(entry).collect();
        let info = SegmentInformation {
            timestamp: stamp.timestamp.into(),
            segment_id: id.into(),
        };
        Self {
            info: info.encode_to_vec(),
            entries,
            made: stamp.made,
        }
    }

    /// The segment message with empty signatures.
    pub fn unsigned(&self) -> PathSegment {
        let header = Header {
            timestamp: Some(Timestamp::from_unix_secs(self.made)),
            ..Header::default()
        };
        let header = header.encode_to_vec();
        let entry = |(_, body): &(IsdAsn, Vec<u8>)| {
            let parts = HeaderAndBodyInternal {
                header: header.clone(),
                body: body.clone(),
            };
            ASEntry {
                signed: Some(SignedMessage {
                    header_and_body: parts.encode_to_vec(),
                    signature: Vec::new(),
                }),
                ..ASEntry::default()
            }
        };
        PathSegment {
            segment_info: self.info.clone(),
            as_entries: self.entries.iter().map(entry).collect(),
        }
    }
}

fn hop_message(field: &HopField) -> HopFieldMessage {
    HopFieldMessage {
        ingress: field.cons_ingress.into(),
        egress: field.cons_egress.into(),
        exp_time: field.exp_time.into(),
        mac: field.mac.to_vec(),
    }
}

/// The static information that an AS announces in a segment, about the link by which the beacon
/// leaves, and about its peering links. Inside the AS there is no delay and no limit; between two
/// of its routers there is one hop.
fn static_info(
    graph: &Graph,
    r#as: usize,
    egress: Option<usize>,
    peers: &[Step],
) -> StaticInfoExtension {
    let mut info = StaticInfoExtension {
        note: graph.network.ases[r#as].note.clone().unwrap_or_default(),
        ..StaticInfoExtension::default()
    };
    let (mut latency, mut bandwidth) = (LatencyInfo::default(), BandwidthInfo::default());
    for link in egress.into_iter().chain(peers.iter().map(|peer| peer.link)) {
        let id = graph.end(link, r#as).id.into();
        let shape = &graph.network.links[link].shape;
        let delay = u32::try_from(shape.delay.as_micros()).unwrap_or(u32::MAX);
        latency.inter.insert(id, delay);
        if shape.rate.is_some() {
            bandwidth.inter.insert(id, kbit(shape));
        }
        info.link_type.insert(id, LinkType::Direct.into());
    }
    // Hops through the AS, between the egress and any other interface.
    if let Some(egress) = egress {
        let router = &graph.end(egress, r#as).router;
        for link in graph.all(r#as).filter(|&link| link != egress) {
            let other = graph.end(link, r#as);
            latency.intra.insert(other.id.into(), 0);
            let hops = u32::from(other.router != *router);
            info.internal_hops.insert(other.id.into(), hops);
        }
    }
    info.latency = Some(latency);
    info.bandwidth = Some(bandwidth);
    info
}

/// A segment's ID: FNV-1a over its interfaces and its time, folded to 16 bits. SCION requires a
/// random number so that accumulators differ between segments; this hash differs too, and is the
/// same after a restart.
fn segment_id(graph: &Graph, route: &Route, timestamp: u32) -> u16 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |value: u64| {
        for byte in value.to_be_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(u64::from(timestamp));
    for (&link, &r#as) in route.links.iter().zip(&route.ases) {
        add(graph.isd_as(r#as).to_u64());
        add(u64::from(graph.end(link, r#as).id));
    }
    (hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48)) as u16
}
