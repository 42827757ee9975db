//! A combination of segments, written out.

use hawser_path::{Interface, Metadata, Path};
use sciparse::core::encode::WireEncode;
use sciparse::dataplane_path::standard::model::{HopField, InfoField, Segment, StandardPath};
use sciparse::dataplane_path::standard::types::{HopFieldFlags, HopFieldMac, InfoFieldFlags};
use sciparse::identifier::isd_asn::IsdAsn;

use crate::edge::{Edge, Kind};
use crate::info;
use crate::segment::Entry;

/// A path, ready to be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Combined {
    /// The interfaces crossed, and all that is announced about them. The packet leaves the source
    /// by the first of the interfaces.
    pub path: Path,
    /// The data-plane path, as it stands in a packet's header.
    pub raw: Vec<u8>,
}

/// A combination of edges that makes a path.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    pub edges: Vec<Edge<'a>>,
    pub interfaces: Vec<Interface>,
    /// Half seconds of Unix time.
    pub expiry: u64,
}

/// The path of a combination. `None` when its parts do not fit together, which the checks on
/// segments and combinations rule out.
pub(crate) fn build(src: IsdAsn, dst: IsdAsn, candidate: &Candidate<'_>) -> Option<Combined> {
    let mut wire = StandardPath::new_empty();
    let mut entries: Vec<&Entry> = Vec::new();
    let mut mtu = u16::MAX;
    for edge in &candidate.edges {
        if wire.segments.try_push(segment(edge)).is_some() {
            return None;
        }
        let start = entries.len();
        for used in edge.used() {
            entries.push(used.entry);
            mtu = mtu.min(used.entry.mtu).min(used.link_mtu.unwrap_or(mtu));
        }
        if edge.kind != Kind::Down {
            entries[start..].reverse();
        }
    }
    let interfaces = candidate.interfaces.clone();
    let metadata = Metadata {
        mtu,
        expiry: candidate.expiry / 2,
        ..info::collect(&interfaces, &entries)
    };
    Some(Combined {
        path: Path::new(src, dst, interfaces, metadata).ok()?,
        raw: wire.try_encode_to_vec().ok()?,
    })
}

/// A segment of the data-plane path, in the direction of travel.
fn segment(edge: &Edge<'_>) -> Segment {
    let down = edge.kind == Kind::Down;
    let mut flags = InfoFieldFlags::empty();
    flags.set(InfoFieldFlags::CONS_DIR, down);
    flags.set(InfoFieldFlags::PEERING, edge.peer.is_some());
    let fields = edge.used().map(|used| HopField {
        flags: HopFieldFlags::empty(),
        expiration_units: used.hop.exp_time,
        cons_ingress: used.hop.ingress,
        cons_egress: used.hop.egress,
        mac: HopFieldMac::new(used.hop.mac),
    });
    Segment {
        info_field: InfoField {
            flags,
            segment_id: edge.beta(),
            timestamp: edge.segment.timestamp,
        },
        hop_fields: if down {
            fields.collect()
        } else {
            fields.rev().collect()
        },
    }
}
