//! Path segments.

use prost::Message;

use super::PathSegmentExtensions;
use crate::crypto::SignedMessage;

/// A path segment.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PathSegment {
    /// The encoded [`SegmentInformation`], which all entries sign.
    #[prost(bytes = "vec", tag = "1")]
    pub segment_info: Vec<u8>,
    /// The entries of its ASes, in the direction of beaconing.
    #[prost(message, repeated, tag = "2")]
    pub as_entries: Vec<ASEntry>,
}

/// What concerns a whole segment.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct SegmentInformation {
    /// When it was originated, in Unix seconds.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// Its ID: the first accumulator of its MACs, 16 bits.
    #[prost(uint32, tag = "2")]
    pub segment_id: u32,
}

/// The entry of an AS.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ASEntry {
    /// The signed [`ASEntrySignedBody`].
    #[prost(message, optional, tag = "1")]
    pub signed: Option<SignedMessage>,
    /// Extensions that are not signed, an encoded message: handed on as they were received.
    #[prost(bytes = "vec", tag = "2")]
    pub unsigned: Vec<u8>,
}

/// What an AS signs.
#[derive(Clone, PartialEq, Message)]
pub struct ASEntrySignedBody {
    /// The AS.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    /// The AS of the next entry; 0 in the last one.
    #[prost(uint64, tag = "2")]
    pub next_isd_as: u64,
    /// Its hop.
    #[prost(message, optional, tag = "3")]
    pub hop_entry: Option<HopEntry>,
    /// Its peering links.
    #[prost(message, repeated, tag = "4")]
    pub peer_entries: Vec<PeerEntry>,
    /// The largest packet inside the AS, in bytes.
    #[prost(uint32, tag = "5")]
    pub mtu: u32,
    /// What it announces.
    #[prost(message, optional, tag = "6")]
    pub extensions: Option<PathSegmentExtensions>,
}

/// The hop of an AS.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HopEntry {
    /// Its hop field.
    #[prost(message, optional, tag = "1")]
    pub hop_field: Option<HopField>,
    /// The MTU of the ingress link of the beacon, in bytes.
    #[prost(uint32, tag = "2")]
    pub ingress_mtu: u32,
}

/// A peering link of an AS.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PeerEntry {
    /// The AS at the other end.
    #[prost(uint64, tag = "1")]
    pub peer_isd_as: u64,
    /// That AS's interface.
    #[prost(uint64, tag = "2")]
    pub peer_interface: u64,
    /// The largest packet of the link, in bytes.
    #[prost(uint32, tag = "3")]
    pub peer_mtu: u32,
    /// The hop field of paths that enter the AS by the link.
    #[prost(message, optional, tag = "4")]
    pub hop_field: Option<HopField>,
}

/// A hop field.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HopField {
    /// The ingress interface of the beacon; 0 at the first AS.
    #[prost(uint64, tag = "1")]
    pub ingress: u64,
    /// The egress interface of the beacon; 0 at the last AS.
    #[prost(uint64, tag = "2")]
    pub egress: u64,
    /// Its lifetime, in units of 337.5 s, minus one.
    #[prost(uint32, tag = "3")]
    pub exp_time: u32,
    /// Its MAC, 6 bytes.
    #[prost(bytes = "vec", tag = "4")]
    pub mac: Vec<u8>,
}
