//! Segments for tests.

use hawser_address::IsdAsn;
use hawser_proto::Message;
use hawser_proto::control_plane::{
    ASEntry, ASEntrySignedBody, HopEntry, HopField, PathSegment, PathSegmentExtensions, PeerEntry,
    SegmentInformation, StaticInfoExtension,
};
use hawser_proto::crypto::{HeaderAndBodyInternal, SignedMessage};

use crate::Segment;

/// One AS of a segment; `next` and MAC are filled in by [`message`].
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub isd_as: IsdAsn,
    pub ingress: u16,
    pub egress: u16,
    pub exp_time: u8,
    pub mtu: u32,
    pub ingress_mtu: u32,
    /// Each peering link: own interface, peer AS, its interface.
    pub peers: Vec<(u16, IsdAsn, u16)>,
    pub info: Option<StaticInfoExtension>,
}

/// The AS `1-ff00:0:n`, in hex.
pub(crate) fn ia(n: u64) -> IsdAsn {
    IsdAsn::from_u64(0x1_ff00_0000_0000 + n)
}

/// An AS that announces only its interfaces.
pub(crate) fn spec(n: u64, ingress: u16, egress: u16) -> Spec {
    Spec {
        isd_as: ia(n),
        ingress,
        egress,
        exp_time: 63,
        mtu: 1472,
        ingress_mtu: if ingress == 0 { 0 } else { 1472 },
        peers: Vec::new(),
        info: None,
    }
}

/// The body of an AS entry.
pub(crate) fn body(spec: &Spec, next: Option<IsdAsn>) -> ASEntrySignedBody {
    let hop = |ingress: u16| {
        // The MAC depends on the hop, so that different hops give different paths.
        let [a, b] = (ingress ^ spec.egress.rotate_left(5)).to_be_bytes();
        let [.., c, d] = spec.isd_as.to_be_bytes();
        Some(HopField {
            ingress: ingress.into(),
            egress: spec.egress.into(),
            exp_time: spec.exp_time.into(),
            mac: vec![a ^ c, b ^ d, c, d, a, b],
        })
    };
    let peers = spec.peers.iter().map(|&(own, peer, interface)| PeerEntry {
        peer_isd_as: peer.to_u64(),
        peer_interface: interface.into(),
        peer_mtu: 1400,
        hop_field: hop(own),
    });
    ASEntrySignedBody {
        isd_as: spec.isd_as.to_u64(),
        next_isd_as: next.map_or(0, |next| next.to_u64()),
        hop_entry: Some(HopEntry {
            hop_field: hop(spec.ingress),
            ingress_mtu: spec.ingress_mtu,
        }),
        peer_entries: peers.collect(),
        mtu: spec.mtu,
        extensions: Some(PathSegmentExtensions {
            static_info: spec.info.clone(),
            ..PathSegmentExtensions::default()
        }),
    }
}

/// An AS entry with a body.
pub(crate) fn entry(body: &ASEntrySignedBody) -> ASEntry {
    let inner = HeaderAndBodyInternal {
        header: Vec::new(),
        body: body.encode_to_vec(),
    };
    ASEntry {
        signed: Some(SignedMessage {
            header_and_body: inner.encode_to_vec(),
            signature: Vec::new(),
        }),
        ..ASEntry::default()
    }
}

pub(crate) fn message(timestamp: i64, specs: &[Spec]) -> PathSegment {
    let entries = specs.iter().enumerate().map(|(at, spec)| {
        let next = specs.get(at + 1).map(|next| next.isd_as);
        entry(&body(spec, next))
    });
    PathSegment {
        segment_info: SegmentInformation {
            timestamp,
            segment_id: 0x1234,
        }
        .encode_to_vec(),
        as_entries: entries.collect(),
    }
}

pub(crate) fn segment(timestamp: i64, specs: &[Spec]) -> Segment {
    Segment::from_message(&message(timestamp, specs)).unwrap()
}
