//! Segments as control-plane messages carry them.

use hawser_topology::IsdAsn;
use scion_protobuf::buffa::{EnumValue, Message};
use scion_protobuf::proto::control_plane::v1::{
    ASEntry, ASEntrySignedBody, BandwidthInfo, HopEntry, HopField, LatencyInfo, LinkType,
    PathSegment, PathSegmentExtensions, PeerEntry, SegmentInformation, StaticInfoExtension,
};
use scion_protobuf::proto::crypto::v1::{Header, HeaderAndBodyInternal, SignedMessage};

use crate::graph::Graph;
use crate::segment::{Hop, Segment, Stamp};
use crate::wire::{kbit, timestamp};

/// A segment as its ASes announce it, not yet signed.
#[derive(Debug)]
pub(crate) struct Plain {
    /// The encoded `SegmentInformation`.
    pub info: Vec<u8>,
    /// Each AS with its encoded `ASEntrySignedBody`.
    pub entries: Vec<(IsdAsn, Vec<u8>)>,
    /// When it was made, in Unix seconds.
    pub made: u64,
}

impl Plain {
    /// A segment with what each AS announces of itself.
    pub fn new(graph: &Graph, segment: &Segment) -> Self {
        let info = SegmentInformation {
            timestamp: segment.stamp.timestamp.into(),
            segment_id: segment.betas[0].into(),
        };
        let entry = |at: usize| {
            let isd_as = graph.r#as(segment.route.ases[at]).isd_as;
            (isd_as, body(graph, segment, at).encode_to_vec())
        };
        Self {
            info: info.encode_to_vec(),
            entries: (0..segment.hops.len()).map(entry).collect(),
            made: segment.stamp.made,
        }
    }

    /// The segment in the form of a signed one, without signatures.
    pub fn unsigned(&self) -> PathSegment {
        let header = Header {
            timestamp: timestamp(self.made),
            ..Header::default()
        };
        let header = header.encode_to_vec();
        let entry = |(_, body): &(IsdAsn, Vec<u8>)| ASEntry {
            signed: Some(SignedMessage {
                header_and_body: HeaderAndBodyInternal {
                    header: header.clone(),
                    body: body.clone(),
                }
                .encode_to_vec(),
                signature: Vec::new(),
            })
            .into(),
            ..ASEntry::default()
        };
        PathSegment {
            segment_info: self.info.clone(),
            as_entries: self.entries.iter().map(entry).collect(),
        }
    }
}

fn body(graph: &Graph, segment: &Segment, at: usize) -> ASEntrySignedBody {
    let route = &segment.route;
    let r#as = graph.r#as(route.ases[at]);
    let next = route.ases.get(at + 1);
    let next = next.map_or(IsdAsn::WILDCARD, |&next| graph.r#as(next).isd_as);
    let before = at.checked_sub(1).map(|before| route.links[before]);
    let peers = segment.peers[at].iter().map(|peer| PeerEntry {
        peer_isd_as: graph.r#as(peer.to).isd_as.to_u64(),
        peer_interface: graph.end(peer.link, peer.to).id.into(),
        peer_mtu: graph.link(peer.link).mtu.into(),
        hop_field: Some(hop_field(&peer.hop, &segment.stamp)).into(),
    });
    ASEntrySignedBody {
        isd_as: r#as.isd_as.to_u64(),
        next_isd_as: next.to_u64(),
        hop_entry: Some(HopEntry {
            hop_field: Some(hop_field(&segment.hops[at], &segment.stamp)).into(),
            ingress_mtu: before.map_or(0, |link| graph.link(link).mtu.into()),
        })
        .into(),
        peer_entries: peers.collect(),
        mtu: r#as.mtu.into(),
        extensions: Some(PathSegmentExtensions {
            static_info: Some(static_info(graph, segment, at)).into(),
            ..PathSegmentExtensions::default()
        })
        .into(),
    }
}

fn hop_field(hop: &Hop, stamp: &Stamp) -> HopField {
    HopField {
        ingress: hop.ingress.into(),
        egress: hop.egress.into(),
        exp_time: stamp.exp_time.into(),
        mac: hop.mac.to_vec(),
    }
}

/// What an AS says of its links at its place in a segment: of the one by which the beacon leaves,
/// and of its peering links. Inside the AS there is no delay and no limit; between two of its
/// routers there is one hop.
fn static_info(graph: &Graph, segment: &Segment, at: usize) -> StaticInfoExtension {
    let r#as = segment.route.ases[at];
    let mut info = StaticInfoExtension {
        note: graph.r#as(r#as).note.clone().unwrap_or_default(),
        ..StaticInfoExtension::default()
    };
    let (mut latency, mut bandwidth) = (LatencyInfo::default(), BandwidthInfo::default());
    let egress = segment.route.links.get(at).copied();
    let peers = segment.peers[at].iter().map(|peer| peer.link);
    for link in egress.into_iter().chain(peers) {
        let (id, shape) = (graph.end(link, r#as).id.into(), &graph.link(link).shape);
        let delay = u32::try_from(shape.delay.as_micros()).unwrap_or(u32::MAX);
        latency.inter.insert(id, delay);
        if shape.rate.is_some() {
            bandwidth.inter.insert(id, kbit(shape));
        }
        info.link_type
            .insert(id, EnumValue::Known(LinkType::Direct));
    }
    // The ways through the AS, between the egress and any other interface.
    if let Some(egress) = egress {
        let router = &graph.end(egress, r#as).router;
        for step in graph.all(r#as).filter(|&link| link != egress) {
            let other = graph.end(step, r#as);
            latency.intra.insert(other.id.into(), 0);
            let hops = u32::from(other.router != *router);
            info.internal_hops.insert(other.id.into(), hops);
        }
    }
    info.latency = Some(latency).into();
    info.bandwidth = Some(bandwidth).into();
    info
}
