//! What ASes announce in the entries of segments.

use std::collections::BTreeMap;

use prost::{Enumeration, Message};

/// What an AS announces.
#[derive(Clone, PartialEq, Message)]
pub struct PathSegmentExtensions {
    /// What is known of its hops.
    #[prost(message, optional, tag = "1")]
    pub static_info: Option<StaticInfoExtension>,
    /// Its services.
    #[prost(message, optional, tag = "3")]
    pub discovery: Option<DiscoveryExtension>,
}

/// What an AS knows of its hops, by interface.
#[derive(Clone, PartialEq, Message)]
pub struct StaticInfoExtension {
    /// Delays.
    #[prost(message, optional, tag = "1")]
    pub latency: Option<LatencyInfo>,
    /// Bandwidths.
    #[prost(message, optional, tag = "2")]
    pub bandwidth: Option<BandwidthInfo>,
    /// Places.
    #[prost(btree_map = "uint64, message", tag = "3")]
    pub geo: BTreeMap<u64, GeoCoordinates>,
    /// Types of the links, [`LinkType`].
    #[prost(btree_map = "uint64, enumeration(LinkType)", tag = "4")]
    pub link_type: BTreeMap<u64, i32>,
    /// Hops inside the AS, to the egress interface of the beacon.
    #[prost(btree_map = "uint64, uint32", tag = "5")]
    pub internal_hops: BTreeMap<u64, u32>,
    /// A note.
    #[prost(string, tag = "6")]
    pub note: String,
}

/// Delays in microseconds.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LatencyInfo {
    /// Inside the AS, to the egress interface of the beacon.
    #[prost(btree_map = "uint64, uint32", tag = "1")]
    pub intra: BTreeMap<u64, u32>,
    /// Over the links.
    #[prost(btree_map = "uint64, uint32", tag = "2")]
    pub inter: BTreeMap<u64, u32>,
}

/// Bandwidths in kbit/s.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BandwidthInfo {
    /// Inside the AS, to the egress interface of the beacon.
    #[prost(btree_map = "uint64, uint64", tag = "1")]
    pub intra: BTreeMap<u64, u64>,
    /// Over the links.
    #[prost(btree_map = "uint64, uint64", tag = "2")]
    pub inter: BTreeMap<u64, u64>,
}

/// A place.
#[derive(Clone, PartialEq, Message)]
pub struct GeoCoordinates {
    /// Degrees north.
    #[prost(float, tag = "1")]
    pub latitude: f32,
    /// Degrees east.
    #[prost(float, tag = "2")]
    pub longitude: f32,
    /// A postal address.
    #[prost(string, tag = "3")]
    pub address: String,
}

/// What a link is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum LinkType {
    /// Not said.
    Unspecified = 0,
    /// A direct connection of two routers.
    Direct = 1,
    /// Several hops that are not SCION's.
    MultiHop = 2,
    /// The open Internet.
    OpenNet = 3,
}

/// The services of an AS, each as `IP:PORT`. Addresses are read as bytes: one that is not text is left
/// out by the reader, and the segment stays valid.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DiscoveryExtension {
    /// The version of the extension: 1.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// Its control services.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub control_service_addresses: Vec<Vec<u8>>,
    /// Its discovery services.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub discovery_service_addresses: Vec<Vec<u8>>,
}
