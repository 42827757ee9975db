//! The daemon API (`proto.daemon.v1`).

use std::collections::BTreeMap;

use prost::Message;

use crate::Method;
pub use crate::control_plane::{GeoCoordinates, LinkType};
use crate::well_known::{Duration, Empty, Timestamp};

/// The paths to an AS.
pub const PATHS: Method<PathsRequest, PathsResponse> =
    Method::new("/proto.daemon.v1.DaemonService/Paths");
/// What is known of an AS.
pub const AS: Method<ASRequest, ASResponse> = Method::new("/proto.daemon.v1.DaemonService/AS");
/// The addresses of the AS's routers, by interface.
pub const INTERFACES: Method<Empty, InterfacesResponse> =
    Method::new("/proto.daemon.v1.DaemonService/Interfaces");
/// The addresses of the AS's services.
pub const SERVICES: Method<Empty, ServicesResponse> =
    Method::new("/proto.daemon.v1.DaemonService/Services");
/// Reports an interface down.
pub const NOTIFY_INTERFACE_DOWN: Method<NotifyInterfaceDownRequest, Empty> =
    Method::new("/proto.daemon.v1.DaemonService/NotifyInterfaceDown");
/// The UDP ports to which routers of the AS deliver directly.
pub const PORT_RANGE: Method<Empty, PortRangeResponse> =
    Method::new("/proto.daemon.v1.DaemonService/PortRange");
/// The methods for DRKeys, whose messages nobody here uses.
pub const DRKEYS: [Method<Empty, Empty>; 3] = [
    Method::new("/proto.daemon.v1.DaemonService/DRKeyASHost"),
    Method::new("/proto.daemon.v1.DaemonService/DRKeyHostAS"),
    Method::new("/proto.daemon.v1.DaemonService/DRKeyHostHost"),
];

/// The request of [`PATHS`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct PathsRequest {
    /// The AS where the paths begin; 0 for that of the daemon.
    #[prost(uint64, tag = "1")]
    pub source_isd_as: u64,
    /// The AS where they end.
    #[prost(uint64, tag = "2")]
    pub destination_isd_as: u64,
    /// Whether the daemon must look for new paths.
    #[prost(bool, tag = "3")]
    pub refresh: bool,
    /// Whether hidden paths are wanted.
    #[prost(bool, tag = "4")]
    pub hidden: bool,
}

/// The answer of [`PATHS`].
#[derive(Clone, PartialEq, Message)]
pub struct PathsResponse {
    /// The paths.
    #[prost(message, repeated, tag = "1")]
    pub paths: Vec<Path>,
}

/// A path, with what is known of it. Lists have an entry for each hop between two interfaces, inside an AS
/// or over a link, unless it says otherwise.
#[derive(Clone, PartialEq, Message)]
pub struct Path {
    /// The path of the data plane, as packets have it.
    #[prost(bytes = "vec", tag = "1")]
    pub raw: Vec<u8>,
    /// The router that takes packets over it.
    #[prost(message, optional, tag = "2")]
    pub interface: Option<Interface>,
    /// The interfaces that it crosses, in order.
    #[prost(message, repeated, tag = "3")]
    pub interfaces: Vec<PathInterface>,
    /// The largest packet, in bytes.
    #[prost(uint32, tag = "4")]
    pub mtu: u32,
    /// When it expires.
    #[prost(message, optional, tag = "5")]
    pub expiration: Option<Timestamp>,
    /// The delays; negative if unknown.
    #[prost(message, repeated, tag = "6")]
    pub latency: Vec<Duration>,
    /// The bandwidths in kbit/s; 0 if unknown.
    #[prost(uint64, repeated, tag = "7")]
    pub bandwidth: Vec<u64>,
    /// The place of the router of each interface; all zero if unknown.
    #[prost(message, repeated, tag = "8")]
    pub geo: Vec<GeoCoordinates>,
    /// The type of each link.
    #[prost(enumeration = "LinkType", repeated, tag = "9")]
    pub link_type: Vec<i32>,
    /// The hops inside each AS between the first and the last.
    #[prost(uint32, repeated, tag = "10")]
    pub internal_hops: Vec<u32>,
    /// A note of each AS.
    #[prost(string, repeated, tag = "11")]
    pub notes: Vec<String>,
    /// The services that ASes announce, by ISD-AS.
    #[prost(btree_map = "uint64, message", tag = "13")]
    pub discovery_information: BTreeMap<u64, DiscoveryInformation>,
}

/// The services that an AS announces, each as `IP:PORT`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DiscoveryInformation {
    /// Its control services.
    #[prost(string, repeated, tag = "1")]
    pub control_service_addresses: Vec<String>,
    /// Its discovery services.
    #[prost(string, repeated, tag = "2")]
    pub discovery_service_addresses: Vec<String>,
}

/// An interface of an AS.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct PathInterface {
    /// The AS.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    /// The interface.
    #[prost(uint64, tag = "2")]
    pub id: u64,
}

/// The request of [`AS`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ASRequest {
    /// The AS; 0 for that of the daemon.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
}

/// The answer of [`AS`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ASResponse {
    /// The AS.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    /// Whether it is a core AS.
    #[prost(bool, tag = "2")]
    pub core: bool,
    /// The largest packet inside it, in bytes.
    #[prost(uint32, tag = "3")]
    pub mtu: u32,
}

/// The answer of [`INTERFACES`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct InterfacesResponse {
    /// The routers, by interface.
    #[prost(btree_map = "uint64, message", tag = "1")]
    pub interfaces: BTreeMap<u64, Interface>,
}

/// The router of an interface.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Interface {
    /// Its internal address.
    #[prost(message, optional, tag = "1")]
    pub address: Option<Underlay>,
}

/// An address of the underlay.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Underlay {
    /// `IP:PORT`.
    #[prost(string, tag = "1")]
    pub address: String,
}

/// The answer of [`SERVICES`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ServicesResponse {
    /// The services by type; `control` for control services.
    #[prost(btree_map = "string, message", tag = "1")]
    pub services: BTreeMap<String, ListService>,
}

/// The services of a type.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListService {
    /// The services.
    #[prost(message, repeated, tag = "1")]
    pub services: Vec<Service>,
}

/// A service.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Service {
    /// Its address, `IP:PORT`.
    #[prost(string, tag = "1")]
    pub uri: String,
}

/// The request of [`NOTIFY_INTERFACE_DOWN`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct NotifyInterfaceDownRequest {
    /// The AS.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    /// The interface.
    #[prost(uint64, tag = "2")]
    pub id: u64,
}

/// The answer of [`PORT_RANGE`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct PortRangeResponse {
    /// The first port; 0, as the last one, if there is none.
    #[prost(uint32, tag = "1")]
    pub dispatched_port_start: u32,
    /// The last port.
    #[prost(uint32, tag = "2")]
    pub dispatched_port_end: u32,
}
