//! One path segment.

use hawser_address::IsdAsn;
use hawser_packet::path::{HopField, InfoField};
use hawser_path::Discovery;
use hawser_proto::control_plane::StaticInfoExtension;

/// One path segment: the entries of the ASes that a beacon crossed, in the direction of beaconing.
/// An entry has the hop fields and announcements of one AS.
///
/// [`Segment::from_message`] checks that it is complete: it has between 1 and 63 ASes, each names
/// the next, and no interface is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The info field of a path over the segment, with the segment identifier at its first AS.
    pub(crate) info: InfoField,
    pub(crate) hash: [u8; 32],
    pub(crate) entries: Vec<Entry>,
    /// The accumulated segment identifiers for the MACs of the hop fields, and the one after the
    /// last hop.
    pub(crate) betas: Vec<u16>,
}

/// The entry of one AS.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub isd_as: IsdAsn,
    /// MTU inside the AS, in bytes.
    pub mtu: u16,
    /// MTU of the link by which the beacon arrived, in bytes; 0 if it is not announced.
    pub ingress_mtu: u16,
    /// The hop field. The ingress of the first AS and the egress of the last are 0.
    pub hop: HopField,
    pub peers: Vec<Peer>,
    /// The metadata that the AS announces, by interface, unchanged. Values for hops inside the AS
    /// concern the hop between the egress interface of the beacon and the named interface.
    pub info: StaticInfoExtension,
    pub discovery: Discovery,
}

/// A hop field that enters the segment over a peering link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The AS at the other end, and its interface.
    pub isd_as: IsdAsn,
    pub interface: u16,
    /// MTU of the link, in bytes.
    pub mtu: u16,
    pub hop: HopField,
}

impl Segment {
    /// The core AS that originated the beacon.
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

    /// When the segment was originated, in Unix seconds.
    pub fn timestamp(&self) -> u64 {
        self.info.timestamp.into()
    }

    /// The earliest expiry of all hop fields, with those of peering links, in whole Unix seconds. A
    /// path over a part of the segment may expire later.
    pub fn expiry(&self) -> u64 {
        let hops = self.entries.iter().flat_map(|entry| {
            let peers = entry.peers.iter().map(|peer| &peer.hop);
            peers.chain([&entry.hop])
        });
        let expiries = hops.map(|hop| hop.expiry_half_seconds(&self.info) / 2);
        expiries.min().unwrap_or(0)
    }

    /// The identifier of the segment: SHA-256 over each AS and its two interfaces. A renewed
    /// segment keeps it. Equal to the `ID` of scionproto's `segment.PathSegment`.
    pub fn id(&self) -> [u8; 32] {
        self.hash
    }
}
