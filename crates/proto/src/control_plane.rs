//! What control services answer (`proto.control_plane.v1`).

mod announcements;
mod segment;
mod trust;

use std::collections::BTreeMap;

use prost::{Enumeration, Message};

pub use self::announcements::{
    BandwidthInfo, DiscoveryExtension, GeoCoordinates, LatencyInfo, LinkType,
    PathSegmentExtensions, StaticInfoExtension,
};
pub use self::segment::{
    ASEntry, ASEntrySignedBody, HopEntry, HopField, PathSegment, PeerEntry, SegmentInformation,
};
pub use self::trust::{
    CHAINS, Chain, ChainsRequest, ChainsResponse, TRC, TRCRequest, TRCResponse, VerificationKeyID,
};
use crate::Method;

/// The segments between two ASes.
pub const SEGMENTS: Method<SegmentsRequest, SegmentsResponse> =
    Method::new("/proto.control_plane.v1.SegmentLookupService/Segments");

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum SegmentType {
    /// Not said.
    Unspecified = 0,
    /// From a core AS to the one that looks it up.
    Up = 1,
    /// From a core AS to another one.
    Down = 2,
    /// Between core ASes.
    Core = 3,
}

/// The request of [`SEGMENTS`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct SegmentsRequest {
    /// The AS where the segments begin; AS number 0 stands for all core ASes of the ISD.
    #[prost(uint64, tag = "1")]
    pub src_isd_as: u64,
    /// The AS where they end.
    #[prost(uint64, tag = "2")]
    pub dst_isd_as: u64,
}

/// The answer of [`SEGMENTS`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SegmentsResponse {
    /// The segments, by [`SegmentType`].
    #[prost(btree_map = "int32, message", tag = "1")]
    pub segments: BTreeMap<i32, Segments>,
}

/// The segments of a type.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Segments {
    /// The segments.
    #[prost(message, repeated, tag = "1")]
    pub segments: Vec<PathSegment>,
}
