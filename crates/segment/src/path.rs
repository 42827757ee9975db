//! The path of a combination of segments.

use hawser_address::IsdAsn;
use hawser_packet::path::InfoField;
use hawser_path::{Interface, Metadata, Path};

use crate::edge::{Edge, SegmentKind};
use crate::info;
use crate::segment::Entry;

/// A path and its data-plane header.
#[derive(Debug, Clone, PartialEq)]
pub struct Combined {
    /// The interfaces on the path, with the announced metadata. Packets leave the source AS by the
    /// first interface.
    pub path: Path,
    /// The data-plane path in the format of packet headers.
    pub raw: Vec<u8>,
}

/// A combination of edges that forms a path.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    pub edges: Vec<Edge<'a>>,
    pub interfaces: Vec<Interface>,
    /// Expiry, in half seconds since the Unix epoch.
    pub expiry: u64,
}

/// The path of a combination. `None` if its parts do not fit together; the checks of segments and
/// combinations exclude that.
pub(crate) fn build(src: IsdAsn, dst: IsdAsn, candidate: &Candidate<'_>) -> Option<Combined> {
    // The numbers of hop fields in the meta header (SCION data plane, path meta header: `SegLen`).
    let mut lengths = 0u32;
    let (mut infos, mut hops) = (Vec::new(), Vec::new());
    let mut entries: Vec<&Entry> = Vec::new();
    let mut mtu = u16::MAX;
    for (edge, shift) in candidate.edges.iter().zip([12, 6, 0]) {
        let cons_dir = edge.kind == SegmentKind::Down;
        let info = InfoField {
            cons_dir,
            peer: edge.peer.is_some(),
            segment_id: edge.beta(),
            ..edge.segment.info
        };
        infos.extend(info.to_bytes());
        let mut used: Vec<_> = edge.used().collect();
        if !cons_dir {
            used.reverse();
        }
        lengths |= u32::try_from(used.len()).ok()? << shift;
        for used in used {
            hops.extend(used.hop.to_bytes());
            entries.push(used.entry);
            mtu = mtu.min(used.entry.mtu).min(used.link_mtu.unwrap_or(mtu));
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
        raw: [&lengths.to_be_bytes()[..], &infos, &hops].concat(),
    })
}
