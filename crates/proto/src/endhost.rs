//! The endhost API of `scion-stack` (`scion.endhost.v1`).

use prost::Message;

use crate::Method;
use crate::control_plane::PathSegment;

/// The ways from a host to the routers of its AS.
pub const LIST_UNDERLAYS: Method<ListUnderlaysRequest, ListUnderlaysResponse> =
    Method::new("/scion.endhost.v1.UnderlayService/ListUnderlays");
/// The segments between two ASes, in pages.
pub const LIST_SEGMENTS: Method<ListSegmentsRequest, ListSegmentsResponse> =
    Method::new("/scion.endhost.v1.SegmentsService/ListSegments");

/// The request of [`LIST_UNDERLAYS`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ListUnderlaysRequest {
    /// The AS; any AS if it is missing or a wildcard.
    #[prost(uint64, optional, tag = "1")]
    pub isd_as: Option<u64>,
}

/// The answer of [`LIST_UNDERLAYS`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListUnderlaysResponse {
    /// Routers that take SCION packets in UDP.
    #[prost(message, optional, tag = "1")]
    pub udp: Option<UdpUnderlay>,
}

/// Routers that take SCION packets in UDP.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct UdpUnderlay {
    /// The routers.
    #[prost(message, repeated, tag = "1")]
    pub routers: Vec<Router>,
}

/// A border router.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Router {
    /// Its AS.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    /// Its internal address, `IP:PORT`.
    #[prost(string, tag = "2")]
    pub address: String,
    /// Its interfaces.
    #[prost(uint32, repeated, tag = "3")]
    pub interfaces: Vec<u32>,
}

/// The request of [`LIST_SEGMENTS`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListSegmentsRequest {
    /// The AS where the segments begin.
    #[prost(uint64, tag = "1")]
    pub src_isd_as: u64,
    /// The AS where they end.
    #[prost(uint64, tag = "2")]
    pub dst_isd_as: u64,
    /// The most segments of a page; 0 for the service's choice.
    #[prost(int32, tag = "3")]
    pub page_size: i32,
    /// The token of the page before; empty for the first page.
    #[prost(string, tag = "4")]
    pub page_token: String,
}

/// The answer of [`LIST_SEGMENTS`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListSegmentsResponse {
    /// Segments from core ASes to the source.
    #[prost(message, repeated, tag = "1")]
    pub up_segments: Vec<PathSegment>,
    /// Segments from core ASes to the destination.
    #[prost(message, repeated, tag = "2")]
    pub down_segments: Vec<PathSegment>,
    /// Segments between core ASes.
    #[prost(message, repeated, tag = "3")]
    pub core_segments: Vec<PathSegment>,
    /// The token of the next page; empty if this is the last.
    #[prost(string, tag = "4")]
    pub next_page_token: String,
}
