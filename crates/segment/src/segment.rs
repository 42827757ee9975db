//! One path segment.

use hawser_packet::path::{HopField, InfoField};
use hawser_path::Discovery;
use scion_protobuf::buffa::MessageField;
use scion_protobuf::proto::control_plane::v1::StaticInfoExtension;
use sciparse::identifier::isd_asn::IsdAsn;

/// One path segment: the announcements of each AS that a beacon crossed, about itself and the hops
/// through it, in the direction of beaconing.
///
/// It comes from [`Segment::from_message`], which checks that it is complete: it has between 1 and
/// 63 ASes, each names the next, and no interface is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The info field of a path along the segment, at its first AS.
    pub(crate) info: InfoField,
    pub(crate) hash: [u8; 32],
    pub(crate) entries: Vec<Entry>,
    /// The accumulators with which the hop fields of the ASes are checked, and the one after the
    /// last.
    pub(crate) betas: Vec<u16>,
}

/// The announcement of one AS.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub isd_as: IsdAsn,
    /// Bytes of the largest packet inside the AS.
    pub mtu: u16,
    /// Bytes of the largest packet on the link the beacon arrived by, 0 if not announced.
    pub ingress_mtu: u16,
    /// 0 is the ingress of the first AS, and the egress of the last.
    pub hop: HopField,
    pub peers: Vec<Peer>,
    /// What the AS announces of its links, by interface, as it was sent. Hops inside the AS are
    /// between the interface by which the beacon leaves and the one named.
    pub info: MessageField<StaticInfoExtension>,
    pub discovery: Discovery,
}

/// A hop field that enters the segment over a peering link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The AS at the other end, and its interface.
    pub isd_as: IsdAsn,
    pub interface: u16,
    /// Bytes of the largest packet on the link.
    pub mtu: u16,
    pub hop: HopField,
}

impl Segment {
    /// The AS that started the beacon: a core AS.
    pub fn first(&self) -> IsdAsn {
        self.entries[0].isd_as
    }

    /// The AS at which the beacon ended.
    pub fn last(&self) -> IsdAsn {
        self.entries[self.entries.len() - 1].isd_as
    }

    /// The ASes, from the first to the last.
    pub fn ases(&self) -> impl Iterator<Item = IsdAsn> {
        self.entries.iter().map(|entry| entry.isd_as)
    }

    /// When the segment was made, in seconds of Unix time.
    pub fn timestamp(&self) -> u64 {
        self.info.timestamp.into()
    }

    /// When the first of its hop fields expires, peering ones included, in whole seconds of Unix
    /// time. A path over a part of the segment may expire later.
    pub fn expiry(&self) -> u64 {
        let hops = self.entries.iter().flat_map(|entry| {
            let peers = entry.peers.iter().map(|peer| &peer.hop);
            peers.chain([&entry.hop])
        });
        let expiries = hops.map(|hop| hop.expiry_half_seconds(&self.info) / 2);
        expiries.min().unwrap_or(0)
    }

    /// The segment's name: SHA-256 over each AS and its two interfaces, the same for every renewal
    /// of it. Equal to the `ID` of scionproto's `segment.PathSegment`.
    pub fn id(&self) -> [u8; 32] {
        self.hash
    }
}
